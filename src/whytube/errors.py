"""Everything whytube raises on purpose.

WhytubeError
├── ArgumentError      an argument has the wrong shape, type, value or name (also a ValueError)
├── DataError          a data set, or a table of it, is incomplete, contradictory or cannot be written
├── ExplanationError   a saved explanation is missing, unreadable, of another kind, or could not be written
├── ModelError         weights are missing, unreadable, damaged, of another kind, or could not be written
└── VideoError         a video is missing, unreadable, damaged or empty, or could not be written

Messages say what was expected, what came, and what to do. They write a parameter in backticks: `why_not`, or a setting:
`salvage=True`. The command line turns these into its own options, prints the message and ends with exit code 2.
Anything that is not a WhytubeError is a bug.
"""

from __future__ import annotations


def printable(text: object) -> str:
    """Write text, such as a file name, so that any terminal or file takes it, on one line.

    Line breaks, control characters and bytes that are no UTF-8 become escapes, as in a Python string.
    """
    plain = str(text)
    if plain.isprintable():
        return plain
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in plain)


class WhytubeError(Exception):
    """Base of all errors raised on purpose: a message, and further lines of it if there are several."""

    def __str__(self) -> str:
        return "\n".join(map(printable, self.args))


class ArgumentError(WhytubeError, ValueError):
    """An argument has the wrong shape, type, value or name."""


class DataError(WhytubeError):
    """A data set, or a table of it, is incomplete, contradictory or cannot be written."""


class ExplanationError(WhytubeError):
    """A saved explanation is missing, unreadable, of another kind, or could not be written."""


class ModelError(WhytubeError):
    """Weights are missing, unreadable, damaged, of another kind, or could not be written."""


class VideoError(WhytubeError):
    """A video is missing, unreadable, damaged or empty, or could not be written.

    advice: a setting of the readers that helps; who reads for others, and has no such setting, drops it (`bare`).
    """

    def __init__(self, message: str, *, advice: str = "") -> None:
        super().__init__(message)
        self.advice = advice

    def __str__(self) -> str:
        return f"{super().__str__()}, or {self.advice}" if self.advice else super().__str__()

    @property
    def bare(self) -> VideoError:
        """The same without its advice."""
        return VideoError(*self.args)
