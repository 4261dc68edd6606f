"""J-HMDB: the official folders, or one pack of clips with clips.csv, actor_boxes.npz and part boxes.

Jhuang, Gall, Zuffi, Schmid, Black, "Towards understanding action recognition", ICCV 2013. Official are
ReCompress_Videos/<class>/<name>.avi or Rename_Images/<class>/<name>/*.png, splits/<class>_test_split<k>.txt, and
puppet_mask/<class>/<name>/puppet_mask.mat, from which the actor's boxes come where scipy is here. Clips of the pack
have every frame of the original ones, re-encoded as H.264 (CRF 23). Boxes of body parts and objects in 63 test clips
and 105 training clips come with whytube, so that part_boxes.json and part_boxes_train.json are needed only for others.
"""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from whytube import checks
from whytube.data.importers.index import Listing, check_class, read_list, videos_under, without_ending, write_index
from whytube.data.importers.mat import EXTRA, can_read_mat, read_mat
from whytube.data.rows import Problems, Sheet
from whytube.data.source import ACTOR
from whytube.data.tables import HOME, AttributeTable, read_table
from whytube.errors import DataError
from whytube.tubes import Tube, enclosing_tube

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping
    from typing import Unpack

    from numpy.typing import NDArray

    from whytube.data.importers.index import Imported, Options

_Parts: TypeAlias = "dict[int, dict[str, NDArray[np.float64]]]"
"""Of one clip: frame -> label -> corners (4,)."""

PART_BOXES = {"test": HOME / "jhmdb_part_boxes.json", "train": HOME / "jhmdb_part_boxes_train.json"}
"""Of 63 test and 105 training clips of split 1, three frames each, in the original 320 x 240 pixels; frames from 0."""
SPLIT_MARKS = {"1": "train", "2": "test"}
"""The official lists' marks."""


class _Clips(NamedTuple):
    """What a folder says: class/name -> train or test, where the videos lie, class/name -> the actor's boxes."""

    splits: dict[str, str]
    videos: Path
    actors: Mapping[str, Tube]
    notes: tuple[str, ...] = ()


def import_jhmdb(
    folder: str | os.PathLike[str], out: str | os.PathLike[str], *, split: int = 1, **options: Unpack[Options]
) -> Imported:
    """Index J-HMDB as it lies in `folder`, with one of its three official splits, in the new folder `out`.

    Part boxes become boxes of the attributes that the parts show. Those of `folder`/part_boxes.json, or else of
    PART_BOXES, are for evaluation: only test clips get them. Those of `folder`/part_boxes_train.json, or else of
    PART_BOXES, are for training: only training clips get them. Which is which is up to the split that is asked for.
    options: see Options; a group is a source video.
    """
    checks.check_int(split, "split", 1, 3)
    place, table = Path(folder), read_table("jhmdb")
    pack = place / "clips.csv"
    clips = _read_pack(pack, split, table) if pack.is_file() else _read_official(place, split, table)
    own = {"test": place / "part_boxes.json", "train": place / "part_boxes_train.json"}
    parts = {part: _read_parts(own[part] if own[part].is_file() else shipped) for part, shipped in PART_BOXES.items()}

    def boxes(name: str) -> dict[str, Tube]:
        actor = {ACTOR: clips.actors[name]} if name in clips.actors else {}
        return actor | _attribute_boxes(parts[clips.splits[name]].get(name, {}), name, table)

    found = videos_under(clips.videos)
    return write_index(
        out, Listing(table, clips.splits, clips.videos, found, _source_video, boxes, clips.notes), **options
    )


def _source_video(name: str) -> str:
    """Take jump/Fun_jump_f_cm_np1_le_med_0 apart: the source video stands before the class."""
    label, _, video = name.partition("/")
    return video.rpartition(f"_{label}_")[0] or video


def _read_pack(path: Path, split: int, table: AttributeTable) -> _Clips:
    problems, column, splits = Problems(path.parent), f"split{split}", {}
    for row in Sheet(path, problems, required=("clip", column), free=True):
        check_class(row["clip"], table, f"{path}:{row.line}")
        splits[row["clip"]] = checks.check_choice(row[column], f"{column} of {row['clip']}", ("train", "test"))
    problems.raise_errors(f"the data in {path.parent}")
    boxes = path.with_name("actor_boxes.npz")
    return _Clips(splits, path.with_name("clips"), _read_actors(boxes) if boxes.is_file() else {})


def _read_actors(path: Path) -> dict[str, Tube]:
    """Read class/name -> (T, 4) corners of every frame."""
    try:
        with np.load(path, allow_pickle=False) as arrays:
            return {name: enclosing_tube(np.arange(len(arrays[name])), arrays[name]) for name in arrays.files}
    except (OSError, ValueError, zipfile.BadZipFile) as error:
        raise DataError(f"cannot read the boxes of {path}: {error}") from error


def _read_official(folder: Path, split: int, table: AttributeTable) -> _Clips:
    places = [place for name in ("ReCompress_Videos", "Rename_Images") if (place := folder / name).is_dir()]
    if not places:
        expected = "clips.csv, or ReCompress_Videos/ or Rename_Images/ with splits/"
        raise DataError(f"{folder} does not hold J-HMDB; expected {expected} in it")
    splits: dict[str, str] = {}
    for label in table.classes:
        path = folder / "splits" / f"{label}_test_split{split}.txt"
        for where, cells in read_list(path):
            if len(cells) != 2 or cells[1] not in SPLIT_MARKS:
                raise DataError(f"{where}: expected a video and 1 (train) or 2 (test), got {' '.join(cells)!r}")
            splits[f"{label}/{without_ending(cells[0])}"] = SPLIT_MARKS[cells[1]]
    masks = folder / "puppet_mask"
    if masks.is_dir() and not can_read_mat():
        return _Clips(splits, places[0], {}, (f"no boxes of the actor: puppet_mask/ needs scipy, {EXTRA}",))
    paths = {name: path for name in splits if (path := masks / name / "puppet_mask.mat").is_file()}
    return _Clips(splits, places[0], {name: _around_mask(path) for name, path in paths.items()})


def _around_mask(path: Path) -> Tube:
    """Tight boxes of masks (H, W, T); a frame without a mask has none."""
    masks = np.atleast_3d(read_mat(path, "part_mask")) > 0
    frames, boxes = [], []
    for frame in np.flatnonzero(masks.any((0, 1))):
        rows, columns = (np.flatnonzero(masks[:, :, frame].any(axis)) for axis in (1, 0))
        frames.append(int(frame))
        boxes.append([columns[0], rows[0], columns[-1] + 1, rows[-1] + 1])
    return enclosing_tube(frames, boxes)


def _read_parts(path: Path) -> dict[str, _Parts]:
    """Read class/name -> frame -> label -> corners."""
    parts: dict[str, _Parts] = {}
    try:
        for clip, frames in json.loads(path.read_text(encoding="utf-8")).items():
            for frame, boxes in frames.items():
                corners = {label: np.array(box, dtype=np.float64).reshape(4) for label, box in boxes.items()}
                parts.setdefault(clip, {})[int(frame)] = corners
    except (OSError, ValueError, TypeError, AttributeError) as error:
        expected = "expected {clip: {frame: {label: [x1, y1, x2, y2]}}}"
        raise DataError(f"cannot read the part boxes of {path}, {expected}: {error}") from error
    return parts


def _attribute_boxes(parts: _Parts, name: str, table: AttributeTable) -> dict[str, Tube]:
    """One box per frame around all parts that show an attribute which the class has."""
    boxes = {}
    for attribute, has in zip(table.attribute_names, table.row(name.partition("/")[0]).tolist(), strict=True):
        labels = table.parts.get(attribute, ())
        shown = [(frame, seen[label]) for frame, seen in parts.items() for label in labels if label in seen]
        if has and shown:
            frames, corners = zip(*shown, strict=True)
            boxes[attribute] = enclosing_tube(frames, corners)
    return boxes
