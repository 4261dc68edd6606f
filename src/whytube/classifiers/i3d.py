"""I3D on RGB: Inception-v1 with every filter inflated in time (Carreira and Zisserman, "Quo Vadis", CVPR 2017).

Stages have the published names, so that published weights can be converted by name:

    Conv3d_1a_7x7 | Conv3d_2b_1x1, Conv3d_2c_3x3 | Mixed_3b, 3c | Mixed_4b to 4f | Mixed_5b, 5c | mean | class layer

with a max pooling at every bar up to Mixed_5b. Every convolution and pooling pads as TensorFlow's "SAME" does: just
enough for an output of length ceil(n / stride), an odd cell at the end. With PyTorch's symmetric padding the published
weights would give other answers.

h(x) is the output of Mixed_4f (832 channels, stride 16) and of Mixed_5c (1024 channels, stride 32), after their relu.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from whytube.checks import check_choice, fail
from whytube.classifiers.base import Features, VideoClassifier
from whytube.classifiers.blocks import Step, same_padding
from whytube.classifiers.inference import convolve, convolve_relu, max_pool, space

if TYPE_CHECKING:
    from collections.abc import Sequence

    from whytube.classifiers.inference import Pads, Triple


class Pool(NamedTuple):
    """A max pooling before a stage: kernel and stride in (T, H, W)."""

    kernel: Triple
    stride: Triple


POOLS = {
    "Conv3d_2b_1x1": Pool((1, 3, 3), (1, 2, 2)),
    "Mixed_3b": Pool((1, 3, 3), (1, 2, 2)),
    "Mixed_4b": Pool((3, 3, 3), (2, 2, 2)),
    "Mixed_5b": Pool((2, 2, 2), (2, 2, 2)),
}
"""By the stage after them."""
MIXED = {
    "Mixed_3b": (64, 96, 128, 16, 32, 32),
    "Mixed_3c": (128, 128, 192, 32, 96, 64),
    "Mixed_4b": (192, 96, 208, 16, 48, 64),
    "Mixed_4c": (160, 112, 224, 24, 64, 64),
    "Mixed_4d": (128, 128, 256, 24, 64, 64),
    "Mixed_4e": (112, 144, 288, 32, 64, 64),
    "Mixed_4f": (256, 160, 320, 32, 128, 128),
    "Mixed_5b": (256, 160, 320, 32, 128, 128),
    "Mixed_5c": (384, 192, 384, 48, 128, 128),
}
"""Channels of an Inception module: branch 0; branch 1, 1x1x1 and 3x3x3; branch 2, 1x1x1 and 3x3x3; branch 3."""
FINE, COARSE = "Mixed_4f", "Mixed_5c"
"""The stages whose outputs are h(x)."""
TEMPORAL_STRIDES = ("kinetics", "one")
EPS = 1e-3
MOMENTUM = 0.01
"""Of the batch statistics; the original's .001 is too slow for a short fine-tuning."""


class Unit(nn.Module):
    """Convolution, normalisation, relu. The published normalisation has no scale, so ours stays 1."""

    def __init__(self, channels: int, out_channels: int, kernel: int = 1, stride: Triple = (1, 1, 1)) -> None:
        super().__init__()
        self.kernel, self.stride = (kernel, kernel, kernel), stride
        self.conv = nn.Conv3d(channels, out_channels, kernel, stride=stride, bias=False)
        self.norm = nn.BatchNorm3d(out_channels, eps=EPS, momentum=MOMENTUM)
        self.norm.weight.requires_grad_(False)
        nn.init.kaiming_normal_(self.conv.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, x: Tensor, pads: Pads | None = None, out: Tensor | None = None) -> Tensor:
        """(B, d, T, H, W) -> (B, d', T', H', W'); pads: "SAME" by default, less inside a map for a block of it.

        out: see `convolve_relu`; of a network for inference alone, whose normalisation went into its filters.
        """
        pads = same_padding(x.shape[2:], self.kernel, self.stride) if pads is None else pads
        if isinstance(self.norm, nn.Identity) and not torch.is_grad_enabled():
            return convolve_relu(x, self.conv, pads, out)
        x = functional.relu(self.norm(convolve(x, self.conv, pads)), inplace=not self.training)
        return x if out is None else out.copy_(x)


class Mixed(nn.Module):
    """An Inception module: four branches, whose channels are concatenated."""

    def __init__(self, channels: int, widths: tuple[int, int, int, int, int, int]) -> None:
        super().__init__()
        self.kernel, self.stride = (3, 3, 3), (1, 1, 1)
        self.branch_0 = Unit(channels, widths[0])
        self.branch_1 = nn.Sequential(Unit(channels, widths[1]), Unit(widths[1], widths[2], 3))
        self.branch_2 = nn.Sequential(Unit(channels, widths[3]), Unit(widths[3], widths[4], 3))
        self.branch_3 = Unit(channels, widths[5])
        self.widths = (widths[0], widths[2], widths[4], widths[5])

    def forward(self, x: Tensor, pads: Pads | None = None) -> Tensor:
        """(B, d, T, H, W) -> (B, d', T, H, W); pads: one cell on every side, none inside a map for a block of it."""
        pads = [(1, 1)] * 3 if pads is None else pads
        t, h, w = (slice(1 - before, n - 1 + after) for (before, after), n in zip(pads, x.shape[2:], strict=True))
        inner = x[..., t, h, w]
        whole, (first, *places, last) = space(inner, self.widths)
        parts = [self.branch_0(inner, out=first)]
        for (narrow, wide), place in zip((self.branch_1, self.branch_2), places, strict=True):
            parts.append(wide(narrow(x), pads, place))
        parts.append(self.branch_3(max_pool(x, self.kernel, self.stride, pads), out=last))
        if whole is None:
            return torch.cat(parts, dim=1)
        for part, place in zip(parts, (first, *places, last), strict=True):
            if part is not place and place is not None:  # as a hook on a branch gave something else
                place.copy_(part)
        return whole


class I3D(VideoClassifier):
    """Inception-v1 inflated, 12.3 M weights without its class layer.

    size: (H, W) of the clips; the published network was trained at 224 x 224.
    temporal_strides: "kinetics" as published (the last map has frames / 8 steps, rounded up), or "one" for none, so
        that T = T' on every map. The weights are the same.
    dropout: probability, in training, that a pooled feature is set to zero before the class layer.
    """

    architecture = "i3d"
    foldable = True
    halvable = True
    block_cut = "Mixed_4b"
    cuts: ClassVar[tuple[str, ...]] = ("Conv3d_1a_7x7", "Conv3d_2b_1x1", "Conv3d_2c_3x3", *MIXED)
    response_cut: ClassVar[str | None] = "Mixed_4b"
    frozen: tuple[str, ...] = ()
    """Stages that training leaves as they are, see `freeze_below`."""

    def __init__(
        self,
        classes: Sequence[str],
        *,
        frames: int = 32,
        size: tuple[int, int] = (144, 192),
        temporal_strides: str = "kinetics",
        dropout: float = 0.5,
    ) -> None:
        super().__init__(classes, frames=frames, size=size)
        if not 0 <= dropout < 1:
            raise fail("dropout", "at least 0 and less than 1", dropout)
        self.temporal_strides = check_choice(temporal_strides, "temporal_strides", TEMPORAL_STRIDES)
        self.dropout = float(dropout)
        self.stages = nn.ModuleDict(
            {
                "Conv3d_1a_7x7": Unit(3, 64, 7, stride=self._stride((2, 2, 2))),
                "Conv3d_2b_1x1": Unit(64, 64),
                "Conv3d_2c_3x3": Unit(64, 192, 3),
            }
        )
        channels = 192
        for name, widths in MIXED.items():
            self.stages[name] = Mixed(channels, widths)
            channels = widths[0] + widths[2] + widths[4] + widths[5]
        self.head = nn.Linear(channels, len(self.classes))

    @property
    def settings(self) -> dict[str, Any]:
        """Keyword arguments that build the same network for the same classes."""
        return {
            "frames": self.frames,
            "size": list(self.size),
            "temporal_strides": self.temporal_strides,
            "dropout": self.dropout,
        }

    def features(self, clips: Tensor) -> Features:
        """Clips (B, 3, T, H, W) in [0, 1] -> logits (B, C) and maps at strides 16 and 32.

        The maps are (B, 832, T/4, H/16, W/16) and (B, 1024, T/8, H/32, W/32), rounded up; strides "one" keep T.
        """
        x = 2 * self.check_clips(clips) - 1
        maps = []
        for name in self.stages:
            x = self._stage(x, name)
            if name in (FINE, COARSE):
                maps.append(x)
        return Features(self._logits(x), tuple(maps))

    def front(self, clips: Tensor, cut: str) -> Tensor:
        """Run up to a stage: clips (B, 3, T, H, W) -> its output (B, d, t, h, w)."""
        x = 2 * self.check_clips(clips) - 1
        for name in self.cuts[: self.cuts.index(cut) + 1]:
            x = self._stage(x, name)
        return x

    def back(self, x: Tensor, cut: str) -> Tensor:
        """Run what follows a stage: its output (B, d, t, h, w) -> logits (B, C)."""
        for name in self.cuts[self.cuts.index(cut) + 1 :]:
            x = self._stage(x, name)
        return self._logits(x)

    def steps(self) -> list[Step]:
        """List what `front` does up to `block_cut`, in steps that can be run on blocks; the first scales the pixels."""
        steps = [Step((1, 1, 1), (1, 1, 1), lambda x, _: 2 * x - 1)]
        for name in self.cuts[: self.cuts.index(self.block_cut) + 1]:
            if name in POOLS:
                steps.append(self._pool(name))
            stage: Unit | Mixed = self.stages[name]  # type: ignore[assignment]
            steps.append(Step(stage.kernel, stage.stride, stage))
        return steps

    def _stage(self, x: Tensor, name: str) -> Tensor:
        """Run one stage, with the pooling before it."""
        if name in POOLS:
            pool = self._pool(name)
            x = pool.run(x, same_padding(x.shape[2:], pool.kernel, pool.stride))
        x = self.stages[name](x)
        return x  # noqa: RET504 - a module's result has no type

    def _pool(self, name: str) -> Step:
        """Pooling before a stage. Zeros as pads do not matter: its input is a relu's, never negative."""
        kernel, stride = POOLS[name].kernel, self._stride(POOLS[name].stride)
        return Step(kernel, stride, lambda x, pads: max_pool(x, kernel, stride, pads))

    def freeze_below(self, stage: str) -> None:
        """Train only from a stage on, e.g. "Mixed_4c"; "head" for the class layer alone.

        Stages before it keep their weights and the statistics of their normalisations, also in `train()`.
        """
        names = [*self.stages, "head"]
        check_choice(stage, "stage", names)
        self.frozen = tuple(names[: names.index(stage)])
        for name, module in self.stages.items():
            for key, parameter in module.named_parameters():
                parameter.requires_grad_(name not in self.frozen and not key.endswith("norm.weight"))
        self.train(self.training)

    def train(self, mode: bool = True) -> I3D:
        """Set the mode; frozen stages stay in evaluation mode."""
        super().train(mode)
        for name in self.frozen:
            self.stages[name].eval()
        return self

    def _stride(self, stride: Triple) -> Triple:
        return stride if self.temporal_strides == "kinetics" else (1, *stride[1:])

    def _logits(self, x: Tensor) -> Tensor:
        """(B, 1024, T, H, W) -> (B, C): the mean over time of the logits of every two neighbouring steps.

        The published network pools 2 x 7 x 7 cells, all of the last map at 224 x 224; here all cells at any size.
        """
        means = x.mean((3, 4), dtype=self.head.weight.dtype)  # (B, 1024, T)
        steps = functional.avg_pool1d(means, min(2, x.shape[2]), stride=1).transpose(1, 2)
        logits: Tensor = self.head(functional.dropout(steps, self.dropout, self.training))
        return logits.mean(1)
