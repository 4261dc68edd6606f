"""Sources with as many classes and words as one likes."""

import torch

from whytube.data.source import PlainBatch

OF_CLASS = 5


class Many:
    """Noise, `number` clips in every split; every class has OF_CLASS of the words."""

    def __init__(self, classes=400, attributes=100, number=8):
        self.classes = tuple(f"class {c}" for c in range(classes))
        self.attribute_names = tuple(f"word {s}" for s in range(attributes))
        order = torch.rand(classes, attributes, generator=torch.Generator().manual_seed(0)).argsort(1)
        self.table = torch.zeros(classes, attributes, dtype=torch.bool).scatter(1, order[:, :OF_CLASS], True)
        self.number = number

    def count(self, split):
        return self.number

    def batch(self, split, indices, device="cpu"):
        labels = torch.tensor([index % len(self.classes) for index in indices])
        generators = [torch.Generator().manual_seed(index) for index in indices]
        clips = torch.stack([torch.rand(3, 2, 16, 16, generator=generator) for generator in generators])
        return PlainBatch(clips.to(device), labels.to(device), self.table[labels].to(device))
