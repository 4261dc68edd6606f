"""UCF101-24: videos as unpacked from UCF101.rar, its split lists, and the corrected boxes of Singh et al.

Singh, Saha, Sapienza, Torr, Cuzzolin, "Online Real-time Multiple Spatiotemporal Action Localisation and Prediction",
ICCV 2017, distribute the boxes as a pickle and as finalAnnots.mat. Both hold tracks of persons, x y w h in pixels.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from whytube import checks
from whytube.data.importers.index import Listing, check_class, read_splits, videos_under, write_index
from whytube.data.importers.mat import read_mat
from whytube.data.importers.unpickling import load_arrays
from whytube.data.source import ACTOR
from whytube.data.tables import read_table
from whytube.errors import DataError
from whytube.tubes import Tube, enclosing_tube

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator
    from typing import Unpack

    from numpy.typing import NDArray

    from whytube.data.importers.index import Imported, Options


class _Person(NamedTuple):
    """One track: its first frame from 0, one past its last, and x y w h, (L, 4)."""

    start: int
    stop: int
    boxes: NDArray[np.float64]


def import_ucf101_24(
    videos: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    split: int = 1,
    annotations: str | os.PathLike[str],
    splits: str | os.PathLike[str],
    **options: Unpack[Options],
) -> Imported:
    """Index the annotated videos of UCF101-24 that lie under `videos`/<class>/, in the new folder `out`.

    annotations: the corrected boxes, .pkl (nothing in it is run) or .mat (needs scipy). Persons become the actor's
    boxes, one around all of a frame. splits: folder with trainlist01.txt, testlist01.txt, ...; split: 1 to 3.
    options: see Options; a group is one of g01, g02, ...
    """
    checks.check_int(split, "split", 1, 3)
    table, found = read_table("ucf101_24"), videos_under(Path(videos))
    train, test = (Path(splits) / f"{kind}list{split:02d}.txt" for kind in ("train", "test"))
    of_all = read_splits(train=train, test=test)
    persons = dict(_read_persons(Path(annotations)))
    for name in persons:
        check_class(name, table, annotations)
    unlisted = len(persons.keys() - of_all.keys())
    listing = Listing(
        table=table,
        splits={name: of_all[name] for name in persons if name in of_all},
        videos=Path(videos),
        found=found,
        group=lambda name: name.partition("/")[2].rpartition("_c")[0],
        boxes=lambda name: {ACTOR: _actor(persons[name], f"{annotations}: {name}")},
        notes=[f"{unlisted} annotated videos are in no list of split {split} and left out"] if unlisted else (),
    )
    return write_index(out, listing, **options)


def _read_persons(path: Path) -> Iterator[tuple[str, list[_Person]]]:
    """Yield class/name and tracks of every annotated video."""
    readers = {".pkl": _from_pickle, ".mat": _from_mat}
    if path.suffix.lower() not in readers:
        raise checks.fail("annotations", "a .pkl or a .mat file", path)
    try:
        yield from readers[path.suffix.lower()](path)
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}") from error
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise DataError(
            f"{path} does not hold the boxes of UCF101-24 as Singh et al. distribute them: {error}"
        ) from error


def _from_pickle(path: Path) -> Iterator[tuple[str, list[_Person]]]:
    """Frames are counted from 0, `ef` is one past the last."""
    with path.open("rb") as file:
        data = load_arrays(file, encoding="latin1")
    for name, video in data.items():
        yield str(name), [_person(track, first=0) for track in video["annotations"]]


def _from_mat(path: Path) -> Iterator[tuple[str, list[_Person]]]:
    """Frames are counted from 1, `ef` is the last."""
    for video in _as_list(read_mat(path, "annot")):
        yield str(video["name"]).strip(), [_person(track, first=1) for track in _as_list(video["tubes"])]


def _as_list(structs: Any) -> list[dict[str, Any]]:
    """Undo that a struct array of one element comes as the element."""
    return [structs] if isinstance(structs, dict) else list(structs)


def _person(track: dict[str, Any], *, first: int) -> _Person:
    """Read a track whose file calls the first frame `first`; the pickle has bytes, in which x + w would wrap around."""
    boxes = np.atleast_2d(np.asarray(track["boxes"], dtype=np.float64))
    return _Person(int(track["sf"]) - first, int(track["ef"]), boxes)


def _actor(persons: list[_Person], where: str) -> Tube:
    """One box around all persons of a frame."""
    frames, boxes = [np.zeros(0, dtype=np.int64)], [np.zeros((0, 4))]
    for person in persons:
        count = person.stop - person.start
        if person.start < 0 or person.boxes.shape != (count, 4):
            expected = f"a track from frame {person.start} has {count} boxes of x y w h"
            raise DataError(f"{where}: {expected}, got an array of shape {person.boxes.shape}")
        corner, size = np.split(person.boxes, 2, axis=1)
        frames.append(np.arange(person.start, person.stop))
        boxes.append(np.concatenate([corner, corner + size], axis=1))
    return enclosing_tube(np.concatenate(frames), np.concatenate(boxes))
