"""Clips of the embedded world on a server, and their true boxes as what a person draws."""

from functools import cache

import numpy as np

from whytube.data.world import World
from whytube.video import write_video

KEYS = (0, 7, 15)
"""Frames on which a person draws."""


@cache
def clips_with(attribute, count, size=64):
    """Find training clips in which an attribute is seen on all KEYS: (clip, class, boxes (T, 4)) each."""
    world = World(size=size)
    batch = world.batch("train", range(60))
    found = []
    for clip, label, boxes in zip(batch.clips, batch.labels.tolist(), batch.boxes, strict=True):
        track = np.asarray(boxes.get(attribute, np.zeros((16, 4))))
        if (track[list(KEYS), 2] > track[list(KEYS), 0]).all():
            found.append((clip, world.classes[label], track))
    assert len(found) >= count
    return found[:count]


def upload_clips(client, folder, clips):
    """Give clips to a server; returns their ids."""
    ids = []
    for number, (clip, _, _) in enumerate(clips):
        path = write_video(folder / f"clip{number}.mp4", clip, 8.0)
        with path.open("rb") as file:
            ids.append(client.post("/api/videos", files={"file": (path.name, file)}).raise_for_status().json()["id"])
    return ids


def draw(client, video, word, boxes, *, annotator="ann"):
    """Draw a word on the KEYS of a video; returns the last answer."""
    version = client.get(f"/api/annotations/{video}").json()["version"]
    for frame in KEYS:
        action = {"type": "set_key", "attribute": word, "frame": frame, "box": [float(v) for v in boxes[frame]]}
        body = {"version": version, "annotator": annotator, "action": action}
        answer = client.post(f"/api/annotations/{video}/actions", json=body)
        version = answer.raise_for_status().json()["version"]
    return answer.json()
