"""How much tubes overlap.

Empties, decided once: a tube without volume (no box, or boxes without area) overlaps nothing, so its IoU with any tube
is 0, and so is that of two such tubes. A hit needs something that was hit. An IoU of 1 needs equal tubes with volume.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from whytube.tubes.tube import Tube, box_areas

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray


def tube_iou(a: Tube, b: Tube) -> float:
    """Spatio-temporal IoU: sum of intersections over sum of unions, over the union of both tubes' frames."""
    return float(tube_iou_many(a, [b])[0])


def tube_iou_on(a: Tube, b: Tube, frames: ArrayLike) -> float:
    """Spatio-temporal IoU on the given frames alone, e.g. those which are annotated; repeats count once."""
    return float(tube_iou_many(a, [b], frames=frames)[0])


def tube_iou_many(tube: Tube, others: Sequence[Tube], *, frames: ArrayLike | None = None) -> NDArray[np.float64]:
    """IoU of one tube with each of N others, (N,); over each pair's frames, or on the given ones."""
    if not others:
        return np.zeros(0)
    if frames is None:
        shared = np.unique(np.concatenate([tube.frames, *(other.frames for other in others)]))
    else:
        shared = np.unique(np.asarray(frames, dtype=np.int64))
    mine = tube.at(shared)
    theirs = np.stack([other.at(shared) for other in others])
    common = np.concatenate([np.maximum(mine, theirs)[..., :2], np.minimum(mine, theirs)[..., 2:]], axis=-1)
    # A frame without a box has a box of no area at the origin, which adds nothing to either sum.
    intersection = box_areas(common).sum(axis=1)
    union = box_areas(mine).sum() + box_areas(theirs).sum(axis=1) - intersection
    ratio: NDArray[np.float64] = np.divide(intersection, union, out=np.zeros(len(others)), where=union > 0)
    return ratio
