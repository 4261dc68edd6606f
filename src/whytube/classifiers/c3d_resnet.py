"""C3D-ResNet, the paper's classifier ("Detailed settings"): nine 3x3x3 convolutions with shortcuts, 2-d pooling.

The paper gives the number of convolutions (nine), of fc layers (one; 1 to 3 in its study of complexity), the input
(112x112x16), relu everywhere but on the last fc layer, and 2-d instead of 3-d max pooling so that T = T' everywhere.
The arrangement is our reading: a stem and four residual blocks of two convolutions, as wide as a ResNet's, with a
pooling between each two stages:

    stem 64 at 112x112 | block 64 at 56x56 | block 128 at 28x28 | block 256 at 14x14 | block 512 at 7x7 | mean | fc

The paper's h(x) is "the outputs of the last and the 2nd to last convolutional layers", on two scales (section 3.6).
Convolutions eight and nine share a block and a grid. So we read "layer" as the ResNet paper does, where conv4_x and
conv5_x name all convolutions on one grid: h(x) is the output of block three (256 x 14 x 14) and of block four
(512 x 7 x 7), after their relu.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from torch import Tensor, nn
from torch.nn import functional

from whytube.checks import check_choice, check_int, fail
from whytube.classifiers.base import Features, VideoClassifier

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

CHANNELS = (64, 64, 128, 256, 512)
"""Channels of the stem and the four blocks at width 1."""
MEAN, STD = 0.45, 0.225
"""Mean and deviation of natural video, the same for all channels."""

POOLINGS: dict[str, Callable[[Tensor], Tensor]] = {
    "mean": lambda x: x.mean(dim=(2, 3, 4)),
    "max": lambda x: x.amax(dim=(3, 4)).mean(dim=2),
}
"""Poolings of a map, (B, d, T, H, W) -> (B, d): the mean, or the largest value of each frame, averaged."""


class Block(nn.Module):
    """Two convolutions and a shortcut without weights (He et al., option A): its added channels are zero."""

    def __init__(self, channels: int, out_channels: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv3d(channels, out_channels, 3, padding=1, bias=False)
        self.norm1 = nn.BatchNorm3d(out_channels)
        self.conv2 = nn.Conv3d(out_channels, out_channels, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm3d(out_channels)
        self.added = out_channels - channels

    def forward(self, x: Tensor) -> Tensor:
        """(B, d, T, H, W) -> (B, d', T, H, W)."""
        y = functional.relu(self.norm1(self.conv1(x)))
        y = self.norm2(self.conv2(y))
        return functional.relu(y + functional.pad(x, (0, 0) * 3 + (0, self.added)))


class C3DResNet(VideoClassifier):
    """The paper's classifier; with a smaller `width` and `size` one that trains in minutes without a GPU.

    width: multiplies all channels. size: (H, W) of the clips.
    fc_layers: 1 to 3 (table 4 of the paper); the hidden ones are as wide as the last block.
    stem_stride: spatial stride of the first convolution.
    pooling: of the last map before the fc layers, one of POOLINGS.
    pools: sides of the 2-d max poolings after the stem and after blocks one to three; 1 for none.
    """

    architecture = "c3d-resnet"
    foldable = True
    halvable = True
    cuts: ClassVar[tuple[str, ...]] = ("block1", "block2", "block3", "block4")
    response_cut: ClassVar[str | None] = "block4"

    def __init__(
        self,
        classes: Sequence[str],
        *,
        width: float = 1.0,
        frames: int = 16,
        size: tuple[int, int] = (112, 112),
        fc_layers: int = 1,
        pooling: str = "mean",
        stem_stride: int = 1,
        pools: tuple[int, int, int, int] = (2, 2, 2, 2),
    ) -> None:
        super().__init__(classes, frames=frames, size=size)
        channels = [round(width * n) for n in CHANNELS]
        if min(channels) < 1:
            raise fail("width", f"at least {1 / min(CHANNELS)}", width)
        if len(pools) != 4:
            raise fail("pools", "four sides, of the poolings after stem and blocks one to three", repr(pools))
        self.width = float(width)
        self.fc_layers = check_int(fc_layers, "fc_layers", 1, 3)
        self.pooling = check_choice(pooling, "pooling", POOLINGS)
        self.stem_stride = check_int(stem_stride, "stem_stride", 1)
        self.pools = tuple(check_int(side, f"pools[{i}]", 1) for i, side in enumerate(pools))
        stride = (1, self.stem_stride, self.stem_stride)
        self.stem = nn.Conv3d(3, channels[0], 3, stride=stride, padding=1, bias=False)
        self.norm = nn.BatchNorm3d(channels[0])
        self.blocks = nn.ModuleList(Block(channels[i], channels[i + 1]) for i in range(4))
        self.head = _head(channels[-1], len(self.classes), self.fc_layers)
        _initialise(self)

    @property
    def settings(self) -> dict[str, Any]:
        """Keyword arguments that build the same network for the same classes."""
        return {
            "width": self.width,
            "frames": self.frames,
            "size": list(self.size),
            "fc_layers": self.fc_layers,
            "pooling": self.pooling,
            "stem_stride": self.stem_stride,
            "pools": list(self.pools),
        }

    def features(self, clips: Tensor) -> Features:
        """Clips (B, 3, T, H, W) in [0, 1] -> logits (B, C), maps (B, 256, T, H/8, W/8) and (B, 512, T, H/16, W/16)."""
        x = self._stem(clips)
        maps = []
        for place in range(len(self.blocks)):
            x = self._block(x, place)
            maps.append(x)
        return Features(self._logits(x), tuple(maps[-2:]))

    def front(self, clips: Tensor, cut: str) -> Tensor:
        """Run up to a block: clips (B, 3, T, H, W) -> its output (B, d, T, h, w)."""
        x = self._stem(clips)
        for place in range(self.cuts.index(cut) + 1):
            x = self._block(x, place)
        return x

    def back(self, x: Tensor, cut: str) -> Tensor:
        """Run what follows a block: its output (B, d, T, h, w) -> logits (B, C)."""
        for place in range(self.cuts.index(cut) + 1, len(self.blocks)):
            x = self._block(x, place)
        return self._logits(x)

    def _logits(self, x: Tensor) -> Tensor:
        weights: Tensor = self.head[0].weight  # type: ignore[assignment]
        logits: Tensor = self.head(POOLINGS[self.pooling](x.to(weights.dtype)))
        return logits

    def _stem(self, clips: Tensor) -> Tensor:
        x = (self.check_clips(clips) - MEAN) / STD
        return functional.relu(self.norm(self.stem(x)))

    def _block(self, x: Tensor, place: int) -> Tensor:
        """Run one block, with the pooling before it."""
        side = self.pools[place]
        pooled = functional.max_pool3d(x, (1, side, side)) if side > 1 else x
        x = self.blocks[place](pooled)
        return x  # noqa: RET504 - a module's result has no type


def _head(channels: int, classes: int, layers: int) -> nn.Sequential:
    """Fc layers with relu between them: (B, channels) -> (B, classes)."""
    hidden = [part for _ in range(layers - 1) for part in (nn.Linear(channels, channels), nn.ReLU())]
    return nn.Sequential(*hidden, nn.Linear(channels, classes))


def _initialise(model: nn.Module) -> None:
    """Draw convolutions at He's scale; zero-initialised blocks reached half as much in a short training run."""
    for module in model.modules():
        if isinstance(module, nn.Conv3d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
