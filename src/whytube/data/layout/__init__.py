"""The one layout of a user's own data, described in docs/data.md: index it, check it, read clips from it."""

from whytube.data.layout.check import Report, check_dataset
from whytube.data.layout.dataset import Dataset, read_dataset

__all__ = ["Dataset", "Report", "check_dataset", "read_dataset"]
