"""What is explained: a network that turns clips into class scores and shows the features it got them from."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import torch
from torch import nn

from whytube.checks import check_int, check_tensor, fail, find_name, shape_of
from whytube.errors import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


class Features(NamedTuple):
    """What one run of a classifier gives: logits (B, C) and mid-level maps h(x), each (B, d, T, H, W), finer first."""

    logits: torch.Tensor
    maps: tuple[torch.Tensor, ...]


class VideoClassifier(nn.Module, ABC):
    """p(c|x) = f(h(x)): clips (B, 3, T, H, W) in [0, 1] -> logits (B, C).

    A subclass gives `features`, normalises the clips itself, keeps the layers that belong to its classes under `head`,
    and says in `settings` how to build it again.

    classes: the C class names, in the order of the logits. frames: T of the clips it wants. size: their (H, W).
    """

    architecture: ClassVar[str]
    """Name under which `load_classifier` finds the subclass."""

    def __init__(self, classes: Sequence[str], *, frames: int, size: tuple[int, int]) -> None:
        super().__init__()
        self.classes = checked_classes(classes)
        self.frames = check_int(frames, "frames", 1)
        self.size = checked_size(size)

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

    def map_shapes(self) -> tuple[tuple[int, int, int, int], ...]:
        """Shape (d, T, H, W) of each map, found by a run on an empty clip."""
        clip = torch.zeros(1, 3, self.frames, *self.size, device=self.device)
        with torch.inference_mode(), evaluating(self):
            maps = self.features(clip).maps
        return tuple((m.shape[1], m.shape[2], m.shape[3], m.shape[4]) for m in maps)

    def for_inference(self) -> VideoClassifier:
        """Return a network that answers the same, perhaps faster, and is not trained or saved any more."""
        return self.eval()

    def freeze_below(self, stage: str) -> None:
        """Train only from a stage on, where the network has named stages."""
        raise ArgumentError(f"{self.architecture} has no stages to freeze, such as {stage!r}: leave `freeze` empty")

    def class_index(self, name: str) -> int:
        """Place of a class in the logits; its name may be written in another case, or with blanks for underscores."""
        return find_name("class", name, self.classes)

    def check_clips(self, clips: torch.Tensor) -> torch.Tensor:
        """Require clips of the shape this network wants."""
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


def checked_size(size: Sequence[int]) -> tuple[int, int]:
    """Require (height, width)."""
    if len(size) != 2:
        raise fail("size", "(height, width)", repr(size))
    height, width = size
    return check_int(height, "size[0]", 1), check_int(width, "size[1]", 1)


@contextmanager
def evaluating(classifier: VideoClassifier) -> Iterator[None]:
    """Put a network in evaluation mode; afterwards each of its modules has its own mode again."""
    modes = [(module, module.training) for module in classifier.modules()]
    classifier.eval()
    try:
        yield
    finally:
        for module, training in modes:
            module.training = training
