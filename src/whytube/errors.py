"""Everything whytube raises on purpose.

WhytubeError
├── ArgumentError      an argument has the wrong shape, type, value or name (also a ValueError)
├── DataError          a data set, or a table of it, is incomplete, contradictory or cannot be written
├── ExplanationError   a saved explanation is missing, unreadable, of another kind, or could not be written
├── ModelError         weights are missing, unreadable, damaged, of another kind, or could not be written
└── VideoError         a video is missing, unreadable, damaged or empty, or could not be written

Messages say what was expected, what came, and what to do. The command line turns every WhytubeError into its message
and exit code 2; anything else is a bug. A message comes in pieces: what is Python in it is marked as Code, so that the
command line can say the same of its own options.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class Code(str):
    """A parameter (`why_not`), a setting (`salvage=True`) or a function of the library, inside a message."""

    __slots__ = ()


class WhytubeError(Exception):
    """Base of all errors raised on purpose; its arguments are the pieces of the message."""

    def __str__(self) -> str:
        return self.say(lambda code: f"`{code}`")

    def say(self, spell: Callable[[Code], str]) -> str:
        """Write the message, with a function that writes its pieces of code."""
        return "".join(spell(piece) if isinstance(piece, Code) else str(piece) for piece in self.args)


class ArgumentError(WhytubeError, ValueError):
    """An argument has the wrong shape, type, value or name."""


class DataError(WhytubeError):
    """A data set, or a table of it, is incomplete, contradictory or cannot be written."""


class ExplanationError(WhytubeError):
    """A saved explanation is missing, unreadable, of another kind, or could not be written."""


class ModelError(WhytubeError):
    """Weights are missing, unreadable, damaged, of another kind, or could not be written."""


class VideoError(WhytubeError):
    """A video is missing, unreadable, damaged or empty, or could not be written."""
