"""Why did the network say A, not B? A word and a moving region, for any PyTorch video classifier."""

from whytube.errors import ArgumentError, WhytubeError
from whytube.subpath import (
    MaxSubpathPool,
    Subpath,
    max_subpath,
    max_subpath_difference,
    min_subpath,
    min_subpath_difference,
    path_sum,
    top_subpaths,
)

__version__ = "0.1.0.dev0"

__all__ = [
    "ArgumentError",
    "MaxSubpathPool",
    "Subpath",
    "WhytubeError",
    "max_subpath",
    "max_subpath_difference",
    "min_subpath",
    "min_subpath_difference",
    "path_sum",
    "top_subpaths",
]
