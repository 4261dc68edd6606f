"""export_world: the embedded world as real video files, in the layout of a user's own data."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from whytube import checks
from whytube.data.layout.annotations import BOX_COLUMNS, BOX_FILE, CLASS_FILE, box_rows, write_classes
from whytube.data.layout.videos import SPLIT_FILE
from whytube.data.rows import write_rows
from whytube.data.source import SPLITS
from whytube.data.tables import AttributeTable
from whytube.data.world import World
from whytube.errors import DataError
from whytube.files import whole_folder
from whytube.video import write_video

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator, Mapping, Sequence

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
        write_classes(folder / CLASS_FILE, AttributeTable(world.classes, world.attribute_names, world.table))
        names: list[tuple[str, str]] = [("video", "split")]

        def write_clips() -> Iterator[Sequence[str | int]]:
            """Write the videos one by one, and yield their rows of boxes.csv."""
            yield BOX_COLUMNS
            for done, (split, name, batch, place) in enumerate(_clips(world, counts), start=1):
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                write_video(folder / name, batch.clips[place], fps, crf=CRF)
                names.append((name, split))
                for attribute, boxes in batch.boxes[place].items():
                    yield from box_rows(name, attribute, range(frames), boxes)
                if progress is not None:
                    progress(done, count)

        write_rows(folder / BOX_FILE, write_clips())
        write_rows(folder / SPLIT_FILE, names)
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
