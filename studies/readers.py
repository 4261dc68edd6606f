"""How much the reader of videos matters: test clips read by PyAV and by OpenCV, and what a network says of them.

    python studies/readers.py --model jhmdb-i3d --data jhmdb-1 --out results/readers-jhmdb.json

Frames and their places are the same for both; decoders and ways to resize differ. Told are the difference of pixels, of
probabilities, how often the most probable class is the same, and how often each reader's clips are classified rightly.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import torch

from whytube.data.layout import read_dataset
from whytube.models import load_classifier
from whytube.versions import provenance
from whytube.video import opencv, read_clip


@torch.inference_mode()
def compare(model: str, data: Path, *, count: int = 0) -> dict[str, Any]:
    """Read the first `count` test clips (0: all) in both ways, classify them, and tell the differences."""
    network = load_classifier(model).for_inference()
    found = read_dataset(data)
    items = [item for item in found.videos if item.split == "test"]
    labels, chances, pixels = [], [], []
    for item in items[: count or None]:
        clips = [
            read(item.path, frames=network.frames, size=network.size).frames for read in (read_clip, opencv.read_clip)
        ]
        pixels.append((clips[0] - clips[1]).abs().mean())
        chances.append(network(torch.stack(clips)).softmax(1))
        labels.append(network.classes.index(found.classes[item.label]))
    said = torch.stack(chances)  # (clips, 2, C)
    difference = (said[:, 0] - said[:, 1]).abs().amax(1)
    top = said.argmax(2)
    right = (top == torch.tensor(labels)[:, None]).float().mean(0)
    return {
        "clips": len(labels),
        "mean difference of a pixel, of 255": 255 * float(torch.stack(pixels).mean()),
        "mean largest difference of a clip's probabilities": float(difference.mean()),
        "largest": float(difference.max()),
        "same top class": float((top[:, 0] == top[:, 1]).float().mean()),
        "right": {"PyAV": float(right[0]), "OpenCV": float(right[1])},
    }


def main() -> None:
    """Compare, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="jhmdb-i3d")
    parser.add_argument("--data", type=Path, required=True, help="a folder that `whytube data import` wrote")
    parser.add_argument("--count", type=int, default=0, help="test clips, 0 for all")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    report = compare(options.model, options.data, count=options.count)
    origin = provenance(torch.device("cpu"), seed=0) | {"model": options.model, "data": options.data.name}
    text = json.dumps(report | {"provenance": origin}, indent=1)
    print(text)
    options.out.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
