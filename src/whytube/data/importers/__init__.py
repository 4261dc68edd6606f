"""Data sets as people have them after unpacking, indexed in the layout of docs/data.md; no video is copied."""

from whytube.data.importers.index import Imported
from whytube.data.importers.jhmdb import import_jhmdb
from whytube.data.importers.olympic_sports import import_olympic_sports
from whytube.data.importers.ucf101_24 import import_ucf101_24

__all__ = ["Imported", "import_jhmdb", "import_olympic_sports", "import_ucf101_24"]
