"""The one layout of a user's own data, described in docs/data.md: index it, check it, read clips from it.

videos.py        which videos there are, of which class and split
annotations.py   attributes and boxes, read and written
dataset.py       read_dataset: both together, as an index that opens no video
clips.py         batches of clips, decoded when they are asked for
check.py         check_dataset: all that is wrong, with file and line
"""

from whytube.data.layout.check import Report, Statistics, check_dataset
from whytube.data.layout.clips import FolderBatch, FolderSource
from whytube.data.layout.dataset import Dataset, Item, read_dataset
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
