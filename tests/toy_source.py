"""Clips so simple that a tiny network learns them at once: noise, tinted or not."""

import torch

from whytube.data.source import PlainBatch


class Tints:
    """Class "red" is brighter in red, "green" in green, "none" in nothing; `number` clips per split, or no end."""

    classes = ("red", "green", "none")
    attribute_names = ("reddish", "greenish")
    table = torch.tensor([[1, 0], [0, 1], [0, 0]], dtype=torch.bool)

    def __init__(self, number=None, size=16, frames=2):
        self.number, self.size, self.frames = number, size, frames
        self.asked = []

    def count(self, split):
        return self.number

    def batch(self, split, indices, device="cpu"):
        chosen = list(indices)
        self.asked.append((split, chosen))
        labels = torch.tensor([index % 3 for index in chosen], dtype=torch.long)
        clips = torch.empty(len(chosen), 3, self.frames, self.size, self.size)
        for clip, index in zip(clips, chosen, strict=True):
            seed = index + {"train": 0, "val": 10**6, "test": 2 * 10**6}[split]
            torch.rand(clip.shape, generator=torch.Generator().manual_seed(seed), out=clip)
            if index % 3 < 2:
                clip[index % 3] = 0.3 * clip[index % 3] + 0.7
        return PlainBatch(clips.to(device), labels.to(device), self.table[labels].to(device))
