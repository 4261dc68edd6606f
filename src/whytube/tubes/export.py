"""Tubes for other tools: COCO's JSON, and `supervision.Detections`."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import numpy as np

from whytube.errors import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from whytube.tubes.tube import Tube


def coco(
    source: str,
    size: tuple[int, int],
    frames: Sequence[int],
    tubes: Sequence[tuple[str, Tube]],
    *,
    sentence: str = "",
) -> dict[str, Any]:
    """Write tubes of one video, each with its word, as COCO writes detections: plain values for JSON.

    Every sampled frame is an image, called VIDEO/000012.jpg for frame 12 of VIDEO.mp4. Every word is a category. Every
    box is an annotation: `bbox` is [x, y, width, height] in pixels of the video's own frames, `track_id` the rank of
    its tube, from 1.
    """
    height, width = size
    stem = PurePath(source).stem or "video"
    image_ids = {frame: image for image, frame in enumerate(sorted(set(frames)), 1)}
    words = list(dict.fromkeys(word for word, _ in tubes))
    images = [
        {"id": image, "file_name": f"{stem}/{frame:06d}.jpg", "width": width, "height": height, "frame_index": frame}
        for frame, image in image_ids.items()
    ]
    rows = [
        (image_ids[frame], words.index(word) + 1, rank, box)
        for rank, (word, tube) in enumerate(tubes, 1)
        for frame, box in zip(tube.frames.tolist(), tube.boxes.round(2).tolist(), strict=True)
        if frame in image_ids
    ]
    annotations = [
        {
            "id": number,
            "image_id": image,
            "category_id": category,
            "bbox": [x1, y1, round(x2 - x1, 2), round(y2 - y1, 2)],
            "area": round((x2 - x1) * (y2 - y1), 2),
            "iscrowd": 0,
            "segmentation": [],
            "track_id": rank,
        }
        for number, (image, category, rank, (x1, y1, x2, y2)) in enumerate(rows, 1)
    ]
    return {
        "info": {"description": sentence, "video": source, "contributor": "whytube"},
        "licenses": [],
        "images": images,
        "annotations": annotations,
        "categories": [
            {"id": place, "name": word, "supercategory": "attribute"} for place, word in enumerate(words, 1)
        ],
    }


def detections(boxes: Any, ranks: Sequence[int], *, data: Mapping[str, Sequence[Any]]) -> Any:
    """Make a `supervision.Detections` of N boxes x1 y1 x2 y2 and the ranks of their tubes, with further columns."""
    fields = detection_fields(boxes, ranks, data=data)
    try:
        from supervision import Detections
    except ImportError as error:
        raise ArgumentError("detections need supervision, which is not installed: pip install supervision") from error
    return Detections(**fields)


def detection_fields(boxes: Any, ranks: Sequence[int], *, data: Mapping[str, Sequence[Any]]) -> dict[str, Any]:
    """Return the arguments of `supervision.Detections`: xyxy (N, 4), class_id, tracker_id (N,), data of N each."""
    return {
        "xyxy": np.array(boxes, dtype=np.float32).reshape(-1, 4),
        "class_id": np.array(ranks, dtype=int),
        "tracker_id": np.array(ranks, dtype=int) + 1,
        "data": {name: np.array(column) for name, column in data.items()},
    }
