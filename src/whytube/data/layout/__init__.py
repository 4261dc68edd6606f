"""The one layout of a user's own data, described in docs/data.md: index it, check it, read clips from it."""

from whytube.data.layout.check import Report, Statistics, check_dataset
from whytube.data.layout.dataset import Dataset, Item, read_dataset
from whytube.data.layout.source import FolderBatch, FolderSource
from whytube.data.rows import Problem

__all__ = [
    "Dataset",
    "FolderBatch",
    "FolderSource",
    "Item",
    "Problem",
    "Report",
    "Statistics",
    "check_dataset",
    "read_dataset",
]
