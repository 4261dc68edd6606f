"""Explain a network of your own: first by regions, with no training; then in words.

    python examples/your_own_model.py

The network below stands for yours. It is trained for some seconds on clips of the embedded world, written as video
files, so it knows little; what matters is how it is asked. About a minute of CPU time. The twin of this file,
your_own_model_by_hand.py, does the same without `wrap`.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import torch
from torch import nn

import whytube
from whytube.data.export import export_world
from whytube.data.layout import read_dataset
from whytube.models import load_explainer
from whytube.training.explainer import fit_explainer
from whytube.training.recipe import Recipe

FRAMES, SIZE = 8, (64, 64)


class YourNet(nn.Module):
    """Clips (B, 3, T, H, W), normalised to mean 0 and deviation 1 -> logits (B, C)."""

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv3d(3, 16, 5, stride=(1, 4, 4), padding=2), nn.BatchNorm3d(16), nn.ReLU())
        self.body = nn.Sequential(nn.Conv3d(16, 32, 3, stride=2, padding=1), nn.BatchNorm3d(32), nn.ReLU())
        self.head = nn.Linear(32, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Classify clips."""
        return self.head(self.body(self.stem(x)).amax((3, 4)).mean(2))


def train(net: nn.Module, source, steps: int, batch: int = 16) -> None:
    """Train as you train your networks; whytube has no part in it."""
    optimizer = torch.optim.AdamW(net.parameters(), lr=3e-3)
    for step in range(steps):
        indices = [(step * batch + i) % source.count("train") for i in range(batch)]
        shown = source.batch("train", indices)
        loss = nn.functional.cross_entropy(net((shown.clips - 0.45) / 0.225), shown.labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def main(folder: Path, *, count: int = 240, steps: int = 60, clips: int = 480) -> tuple[str, str]:
    """Write data to `folder`, train, explain; return the two sentences."""
    data = read_dataset(export_world(folder / "world", count=count, size=SIZE[0], frames=FRAMES))
    source = data.source(frames=FRAMES, size=SIZE)
    torch.manual_seed(0)
    net = YourNet(len(data.classes))
    train(net, source, steps)

    # Any network becomes a classifier that can be explained. Layers are found; `layers=["stem", "body"]` names them.
    model = whytube.wrap(
        net, classes=data.classes, frames=FRAMES, size=SIZE, mean=(0.45, 0.45, 0.45), std=(0.225, 0.225, 0.225)
    )
    video = data.items("test")[0].path
    without = whytube.explain(video, model)
    print(f"layers {', '.join(model.layers)}\n{without.sentence}")

    # With a table of words beside the videos (docs/data.md), the explainer learns them; the network stays as it is.
    recipe = Recipe(clips=clips, batch_size=30, optimizer="adamw", lr=3e-2, warmup=0.05)
    fit_explainer(model, source, recipe, out_dir=folder)
    explainer = load_explainer(folder / "explainer.safetensors", model)
    explanation = whytube.explain(video, explainer)
    print(explanation.sentence)
    for reason in explanation.reasons:
        e = reason.evidence[0]
        change = f"{e.positive_before:.2f} -> {e.positive_after:.2f}"
        print(f"  {reason.attribute}: masked, p({explanation.positive}) {change}")
    return without.sentence, explanation.sentence


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as made:
            main(Path(made))
