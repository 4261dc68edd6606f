"""Small networks of the kinds that people bring."""

import torch
from torch import nn

from whytube.video import Clip

CLASSES = ("jump", "walk", "swim")


def conv_net(seed=0):
    """Strides (2, 8, 8) in all, relus in place."""
    torch.manual_seed(seed)
    return nn.Sequential(
        nn.Sequential(nn.Conv3d(3, 8, 4, stride=(2, 4, 4), padding=1), nn.BatchNorm3d(8), nn.ReLU(inplace=True)),
        nn.Sequential(nn.Conv3d(8, 12, 3, stride=(1, 2, 2), padding=1), nn.ReLU(inplace=True)),
        nn.AdaptiveAvgPool3d(1),
        nn.Flatten(),
        nn.Linear(12, len(CLASSES)),
    )


class Frames(nn.Module):
    """A 2-d network on every frame, and the mean of what it says; gives a dictionary."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 6, 4, stride=4)
        self.head = nn.Linear(6, len(CLASSES))

    def forward(self, clips):
        batch, _, frames = clips.shape[:3]
        flat = clips.transpose(1, 2).flatten(0, 1)
        pooled = self.conv(flat).relu().mean((2, 3)).view(batch, frames, -1).mean(1)
        return {"logits": self.head(pooled)}


class Tokens(nn.Module):
    """A transformer on tubelets of (2, 4, 4), with or without a class token; `read` says which tokens are read."""

    def __init__(self, *, class_token=True, depth=3, read="class", seed=0):
        super().__init__()
        torch.manual_seed(seed)
        self.patches = nn.Conv3d(3, 8, (2, 4, 4), stride=(2, 4, 4))
        self.first = nn.Parameter(torch.randn(1, 1, 8)) if class_token else None
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(8, 2, 16, dropout=0.1, batch_first=True) for _ in range(depth)
        )
        self.head = nn.Linear(8, len(CLASSES))
        self.read = read

    def forward(self, clips):
        x = self.patches(clips).flatten(2).transpose(1, 2)
        if self.first is not None:
            x = torch.cat([self.first.expand(len(x), -1, -1), x], 1)
        for layer in self.layers:
            x = layer(x)
        return self.head(x[:, 0] if self.read == "class" else x.mean(1)), x


def made_clip(model, seed=3):
    """Noise with a bright patch that walks, as a Clip of the frames and size that a classifier wants."""
    frames = 0.3 * torch.rand(3, model.frames, *model.size, generator=torch.Generator().manual_seed(seed))
    for t in range(model.frames):
        frames[:2, t, 4:12, 2 + t : 10 + t] = 0.95
    places = list(range(model.frames))
    return Clip(frames, places, [place / 8 for place in places], model.size, "made")
