"""Olympic Sports: folders of .seq files, and the user's own train and test lists.

Niebles, Chen, Fei-Fei, "Modeling Temporal Structure of Decomposable Motion Segments for Activity Classification",
ECCV 2010. It has no boxes.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from whytube import checks
from whytube.data.importers.index import Entry, read_list, videos_under, without_ending, write_index
from whytube.data.tables import read_table
from whytube.errors import DataError

if TYPE_CHECKING:
    import os

    from whytube.data.importers.index import Imported

# A folder as it is distributed, and what it means.
MISSPELT = {"diving_platfrom_10m": "diving_platform_10m"}


def import_olympic_sports(
    videos: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    train: str | os.PathLike[str],
    test: str | os.PathLike[str],
    val: float = 0.0,
    relative: bool = False,
) -> Imported:
    """Index the listed videos of Olympic Sports that lie under `videos`/<class>/, in the new folder `out`.

    train, test: text files with one `class/name` per line; the ending may be left out, the class may be written as the
    folder is. val: share of train held out as val, by whole source videos. relative: paths from `out` to the videos.
    """
    table = read_table("olympic_sports")
    found = {_named(name): path for name, path in videos_under(Path(videos)).items()}
    of_name: dict[str, str] = {}
    for split, path in (("train", Path(train)), ("test", Path(test))):
        for line, words in read_list(path):
            name = _named(without_ending(words[0]))
            label = name.partition("/")[0]
            if label not in table.classes:
                raise DataError(f"{path}:{line}: {checks.unknown_name('class', label, table.classes)}")
            if name in of_name:
                raise DataError(f"{path}:{line}: {name!r} is listed already, in {of_name[name]}. Keep one")
            of_name[name] = split
    entries = [_entry(name, found[name], split) for name, split in of_name.items() if name in found]
    unlisted = len(found.keys() - of_name.keys())
    notes = [f"{unlisted} videos under {videos} are in neither list and left out"] if unlisted else []
    return write_index(
        out, entries, table=table, listed=list(of_name), videos=Path(videos), val=val, relative=relative, notes=notes
    )


def _named(name: str) -> str:
    """Give class/name with the class as the attribute table writes it."""
    label, slash, video = name.replace("\\", "/").partition("/")
    label = label.lower()
    return f"{MISSPELT.get(label, label)}{slash}{video}"


def _entry(name: str, path: Path, split: str) -> Entry:
    """Take a name apart: the source video, then the clip's first and last frame in it, 17XU-siN32A_00017_00240."""
    label, _, video = name.partition("/")
    return Entry(video, path, label, split, group=video.rsplit("_", 2)[0])
