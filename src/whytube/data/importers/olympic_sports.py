"""Olympic Sports: folders of .seq files, and the user's own train and test lists.

Niebles, Chen, Fei-Fei, "Modeling Temporal Structure of Decomposable Motion Segments for Activity Classification",
ECCV 2010. It has no boxes.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from whytube.data.importers.index import Listing, read_splits, videos_under, write_index
from whytube.data.tables import read_table

if TYPE_CHECKING:
    import os
    from typing import Unpack

    from whytube.data.importers.index import Imported, Options

# A folder as it is distributed, and what it means.
MISSPELT = {"diving_platfrom_10m": "diving_platform_10m"}


def import_olympic_sports(
    videos: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    train: str | os.PathLike[str],
    test: str | os.PathLike[str],
    **options: Unpack[Options],
) -> Imported:
    """Index the listed videos of Olympic Sports that lie under `videos`/<class>/, in the new folder `out`.

    train, test: text files with one `class/name` per line; the ending may be left out, the class may be written as the
    folder is. options: see Options; a group is a source video.
    """
    table = read_table("olympic_sports")
    found = {_spelt(name): path for name, path in videos_under(Path(videos)).items()}
    splits = read_splits(train=Path(train), test=Path(test), table=table, spelt=_spelt)
    unlisted = len(found.keys() - splits.keys())
    notes = [f"{unlisted} videos under {videos} are in neither list and left out"] if unlisted else []
    return write_index(out, Listing(table, splits, Path(videos), found, _source_video, notes=notes), **options)


def _spelt(name: str) -> str:
    """Give class/name with the class as the attribute table writes it."""
    label, slash, video = name.replace("\\", "/").partition("/")
    label = label.lower()
    return f"{MISSPELT.get(label, label)}{slash}{video}"


def _source_video(name: str) -> str:
    """Take a name apart: the source video, then the clip's first and last frame in it, 17XU-siN32A_00017_00240."""
    return name.partition("/")[2].rsplit("_", 2)[0]
