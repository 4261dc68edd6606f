"""Compare what two files of one classifier say of the same clips, such as float16 and float32 weights.

python studies/compare_weights.py A.safetensors B.safetensors CLIP.mp4 ...
"""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

import torch

from whytube.models import load_classifier
from whytube.video import read_clip

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(first: str, second: str, clips: Sequence[str]) -> dict[str, float]:
    """Differences of the probabilities, and the share of clips with the same most probable class."""
    models = [load_classifier(path).for_inference() for path in (first, second)]
    rows = []
    for path in clips:
        shown = read_clip(path, frames=models[0].frames, size=models[0].size).frames[None]
        with torch.inference_mode():
            rows.append(torch.cat([model(shown).softmax(1) for model in models]))
    chances = torch.stack(rows)  # (clips, 2, C)
    difference = (chances[:, 0] - chances[:, 1]).abs()
    top = chances.argmax(2)
    return {
        "clips": len(clips),
        "largest difference of a probability": float(difference.max()),
        "mean largest difference of a clip": float(difference.amax(1).mean()),
        "mean difference of a probability": float(difference.mean()),
        "same top class": float((top[:, 0] == top[:, 1]).float().mean()),
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("first")
    parser.add_argument("second")
    parser.add_argument("clips", nargs="+")
    given = parser.parse_args()
    print(json.dumps(main(given.first, given.second, given.clips), indent=1))
