"""export_world: the embedded world as real video files, in the layout of a user's own data."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import TYPE_CHECKING

from whytube import checks
from whytube.data.layout.writing import BOX_COLUMNS, box_rows, class_rows, write_rows
from whytube.data.world import SPLITS, World
from whytube.errors import DataError
from whytube.files import whole_folder
from whytube.video import write_video

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator, Mapping

    from whytube.data.world import Batch

# Clips rendered at a time: as many as the renderer needs to be quick, few enough for any memory.
CHUNK = 16
# Near-lossless: what is checked on the files should be what the world knows about the clips.
CRF = 10


def export_world(
    out: str | os.PathLike[str],
    *,
    count: int = 480,
    size: int = 112,
    frames: int = 16,
    fps: float = 8.0,
    seed: int = 0,
    splits: Mapping[str, float] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Path:
    """Write `count` clips of World(size, frames, seed) as H.264 files to the new folder `out`, for `read_dataset`.

    splits: share of each split, by default .7 train, .1 val, .2 test; rounded so that the counts add up.
    progress: called with the number of clips written and of all.
    Clip n of a split becomes videos/<class>/<split>_<n>.mp4, beside attributes.csv, splits.csv and boxes.csv (all
    frames of all clips). The folder appears under its name only once it is whole; one that holds anything is refused.
    """
    world = World(size=size, frames=frames, seed=seed)
    shares = {"train": 0.7, "val": 0.1, "test": 0.2} if splits is None else dict(splits)
    counts = _counts(checks.check_int(count, "count", 1), shares)
    with whole_folder(out, error=DataError) as folder:
        for name in world.classes:
            (folder / "videos" / name).mkdir(parents=True)
        write_rows(folder / "attributes.csv", class_rows(world.classes, world.attribute_names, world.table))
        with (
            (folder / "splits.csv").open("w", encoding="utf-8", newline="") as split_file,
            (folder / "boxes.csv").open("w", encoding="utf-8", newline="") as box_file,
        ):
            splits_csv, boxes_csv = (csv.writer(file, lineterminator="\n") for file in (split_file, box_file))
            splits_csv.writerow(["video", "split"])
            boxes_csv.writerow(BOX_COLUMNS)
            for done, (split, name, batch, place) in enumerate(_clips(world, counts), start=1):
                write_video(folder / name, batch.clips[place], fps, crf=CRF)
                splits_csv.writerow([name, split])
                for word, boxes in batch.boxes[place].items():
                    boxes_csv.writerows(box_rows(name, word, range(frames), boxes))
                if progress is not None:
                    progress(done, count)
        for empty in [place for place in (folder / "videos").iterdir() if not any(place.iterdir())]:
            empty.rmdir()
        told = f"count={count}, size={size}, frames={frames}, fps={fps:g}, seed={seed}, splits={shares}"
        (folder / "README.txt").write_text(f"Made by whytube.data.export.export_world({told}).\n", encoding="utf-8")
    return Path(out)


def _counts(count: int, shares: Mapping[str, float]) -> dict[str, int]:
    """Share `count` out, the largest remainders first."""
    for split, share in shares.items():
        checks.check_choice(split, "splits", SPLITS)
        if not 0 <= share < float("inf"):
            raise checks.fail(f"splits[{split!r}]", "a share of 0 or more", share)
    total = sum(shares.values())
    if total <= 0:
        raise checks.fail("splits", "shares with a sum above 0", dict(shares))
    exact = {split: count * share / total for split, share in shares.items()}
    counts = {split: int(share) for split, share in exact.items()}
    by_remainder = sorted(exact, key=lambda split: counts[split] - exact[split])
    for split in by_remainder[: count - sum(counts.values())]:
        counts[split] += 1
    return counts


def _clips(world: World, counts: Mapping[str, int]) -> Iterator[tuple[str, str, Batch, int]]:
    """Yield split, name, batch and place in the batch of every clip."""
    for split, count in counts.items():
        for start in range(0, count, CHUNK):
            batch = world.batch(split, range(start, min(start + CHUNK, count)))
            for place, label in enumerate(batch.labels.tolist()):
                yield split, f"videos/{world.classes[label]}/{split}_{start + place:05d}.mp4", batch, place
