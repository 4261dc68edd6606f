"""VideoClassifier, what is explained: a network that gives logits and the features behind them."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from contextlib import contextmanager
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import torch
from torch import nn
from torch.nn.utils.fusion import fuse_conv_bn_eval

from whytube.checks import check_int, check_size, check_tensor, fail, find_name, shape_of
from whytube.errors import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Self

    from whytube.classifiers.blocks import Step


class Features(NamedTuple):
    """Output of a classifier: logits (B, C) and mid-level maps h(x), each (B, d, T, H, W), finer first."""

    logits: torch.Tensor
    maps: tuple[torch.Tensor, ...]


class VideoClassifier(nn.Module, ABC):
    """p(c|x) = f(h(x)): clips (B, 3, T, H, W) in [0, 1] -> logits (B, C).

    A subclass implements `features` and `settings`, normalises the clips itself, and names its class layers `head`.

    classes: the C class names, in the order of the logits. frames: T of its clips. size: their (H, W).
    """

    architecture: ClassVar[str]
    """Name under which `load_classifier` finds the subclass."""
    foldable: ClassVar[bool] = False
    """Whether each BatchNorm3d normalises the Conv3d defined right before it, so that the two can become one."""

    cuts: ClassVar[tuple[str, ...]] = ()
    """Stages after which the network can be run in two parts, `front` and `back`; early ones first."""
    response_cut: ClassVar[str | None] = None
    """The one of `cuts` at which the response to masking is predicted, see search/response.py."""

    block_cut: ClassVar[str] = ""
    """The cut that `steps` lead to; empty for networks that do not run on blocks."""
    halvable: ClassVar[bool] = False
    """Whether it may run in half precision where only comparisons depend on it."""

    def __init__(self, classes: Sequence[str], *, frames: int, size: tuple[int, int]) -> None:
        super().__init__()
        self.classes = checked_classes(classes)
        self.frames = check_int(frames, "frames", 1)
        self.size = check_size(size)
        self.title = self.architecture

    title: str
    """What explanations call it: the name that it was loaded by, else that of the network or its architecture."""

    @property
    def device(self) -> torch.device:
        """Where it runs."""
        return next((tensor.device for tensor in (*self.parameters(), *self.buffers())), torch.device("cpu"))

    @property
    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """Keyword arguments, as JSON can hold them, that build the same network for the same classes."""

    @abstractmethod
    def features(self, clips: torch.Tensor) -> Features:
        """Run on clips (B, 3, T, H, W) and also return the maps of one or two late layers, finer first."""

    def forward(self, clips: torch.Tensor) -> torch.Tensor:
        """Class scores before the softmax: (B, 3, T, H, W) -> (B, C)."""
        return self.features(clips).logits

    def front(self, clips: torch.Tensor, cut: str) -> torch.Tensor:  # noqa: ARG002 (for subclasses that have cuts)
        """Run on clips (B, 3, T, H, W) up to a stage of `cuts`: its output, (B, d, t, h, w)."""
        raise ArgumentError(f"{self.architecture} cannot be run in parts")

    def back(self, x: torch.Tensor, cut: str) -> torch.Tensor:  # noqa: ARG002
        """Run what follows a stage of `cuts` on its output (B, d, t, h, w): logits (B, C)."""
        raise ArgumentError(f"{self.architecture} cannot be run in parts")

    def finish(self, x: torch.Tensor) -> torch.Tensor:
        """Run what follows `block_cut`, once a clip was run up to it block by block: (B, d, t, h, w) -> (B, C)."""
        return self.back(x, self.block_cut)

    def steps(self) -> list[Step]:
        """List what is done with clips up to `block_cut`, in steps that can be run on blocks of their inputs."""
        return []

    def map_shapes(self) -> tuple[tuple[int, int, int, int], ...]:
        """Shape (d, T, H, W) of each map, found by a run on an empty clip."""
        clip = torch.zeros(1, 3, self.frames, *self.size, device=self.device)
        with torch.inference_mode(), evaluating(self):
            maps = self.features(clip).maps
        return tuple((m.shape[1], m.shape[2], m.shape[3], m.shape[4]) for m in maps)

    def for_inference(self) -> Self:
        """Return a network that answers the same, faster on a CPU; do not train or save it."""
        if not self.foldable:
            return self.eval()
        fast = copy.deepcopy(self).eval()
        for module in fast.modules():
            children = list(module.named_children())
            for (conv_name, conv), (norm_name, norm) in pairwise(children):
                if isinstance(conv, nn.Conv3d) and isinstance(norm, nn.BatchNorm3d):
                    setattr(module, conv_name, fuse_conv_bn_eval(conv, norm))
                    setattr(module, norm_name, nn.Identity())
        return fast.to(memory_format=torch.channels_last_3d)  # type: ignore[call-overload,no-any-return]

    def freeze_below(self, stage: str) -> None:
        """Freeze the stages before a named one; networks without stages refuse."""
        raise ArgumentError(f"{self.architecture} has no stages to freeze, such as {stage!r}: leave `freeze` empty")

    def class_index(self, name: str) -> int:
        """Index of a class in the logits; case, blanks, underscores and hyphens of the name may differ."""
        return find_name("class", name, self.classes)

    def check_clips(self, clips: torch.Tensor) -> torch.Tensor:
        """Require clips of this network's shape."""
        expected = f"(B, 3, {self.frames}, {self.size[0]}, {self.size[1]})"
        check_tensor(clips, "clips", expected, ndim=5)
        if tuple(clips.shape[1:]) != (3, self.frames, *self.size):
            raise fail("clips", f"of shape {expected}", shape_of(clips))
        return clips


def checked_classes(classes: Sequence[str]) -> tuple[str, ...]:
    """Require at least two different class names."""
    names = (classes,) if isinstance(classes, str) else tuple(classes)
    if len(names) < 2 or not all(isinstance(name, str) and name for name in names) or len(set(names)) < len(names):
        raise fail("classes", "at least two different names", repr(names))
    return names


@contextmanager
def evaluating(classifier: VideoClassifier) -> Iterator[None]:
    """Put a network in evaluation mode for a block; afterwards each module has its own mode again."""
    modes = [(module, module.training) for module in classifier.modules()]
    classifier.eval()
    try:
        yield
    finally:
        for module, training in modes:
            module.training = training
