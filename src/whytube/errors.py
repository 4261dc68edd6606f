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


class WhytubeError(Exception):
    """Base of all errors raised on purpose."""


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
