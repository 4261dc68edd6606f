"""Boxes and marks of other tools, read and written without loss: one type, `Annotations`, and a file per format."""

from whytube.data.formats.facts import Describe, Facts
from whytube.data.formats.track import Annotations, Box, Mark, Track

__all__ = ["Annotations", "Box", "Describe", "Facts", "Mark", "Track"]
