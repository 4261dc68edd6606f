"""What was given: a video as the clip that a classifier takes, and the hashes that tell videos and models apart."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import torch

from whytube.errors import ArgumentError
from whytube.video import MAX_PIXELS, Clip, clip_of_array, read_clip
from whytube.video.frames import FRAME_SUFFIXES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from whytube.classifiers.base import VideoClassifier

    Video: TypeAlias = str | PathLike[str] | Clip | torch.Tensor | NDArray[np.generic]


@dataclass(frozen=True)
class Reading:
    """How a clip is made of what is given as a video."""

    sampling: str = "uniform"
    salvage: bool = False
    max_pixels: int = MAX_PIXELS
    fps: float | None = None
    size: tuple[int, int] | None = None

    def clip(self, video: Video, classifier: VideoClassifier) -> Clip:
        """Read, sample and resize."""
        frames, size = classifier.frames, classifier.size
        if not isinstance(video, (str, PathLike, Clip)):
            return clip_of_array(
                video, frames=frames, size=size, sampling=self.sampling, fps=self.fps, own_size=self.size
            )
        if self.fps is not None or self.size is not None:
            raise ArgumentError("`fps` and `size` are for arrays and tensors: a file or a Clip says its own")
        if isinstance(video, Clip):
            return video
        return read_clip(video, frames=frames, size=size, sampling=self.sampling, **self.kept)

    @property
    def kept(self) -> dict[str, Any]:
        """What an explanation tells of it, so that what draws on the file reads it in the same way."""
        told = {"salvage": True} if self.salvage else {}
        return told if self.max_pixels == MAX_PIXELS else {**told, "max_pixels": self.max_pixels}


def identity(video: Video, clip: Clip, content: str | None = None) -> tuple[str, str]:
    """Where a clip comes from, and the SHA-256 of what was given: see `video_hash`, or of the pixels.

    content: that hash, where it is known already.
    """
    if isinstance(video, (str, PathLike)):
        path = Path(video).absolute()
        return str(path), video_hash(path) if content is None else content
    source = Path(clip.source)
    name = str(source.absolute()) if isinstance(video, Clip) and source.exists() else clip.source
    if content is not None:
        return name, content
    given = video.frames if isinstance(video, Clip) else video
    array = (
        given.detach().cpu().contiguous().numpy() if isinstance(given, torch.Tensor) else np.ascontiguousarray(given)
    )
    digest = hashlib.sha256(f"{array.dtype} {array.shape}".encode())
    digest.update(array.data)
    return name, digest.hexdigest()


def video_hash(path: Path) -> str:
    """SHA-256 of a file, or of the names and hashes of a folder's frames; "" where they cannot be read."""
    try:
        if not path.is_dir():
            if not path.is_file():  # a pipe or a device may never end
                return ""
            with path.open("rb") as file:
                return hashlib.file_digest(file, "sha256").hexdigest()
        digest = hashlib.sha256()
        for frame in sorted(p for p in path.iterdir() if p.suffix.lower() in FRAME_SUFFIXES):
            digest.update(f"{frame.name} {video_hash(frame)}\n".encode("utf-8", "surrogateescape"))
        return digest.hexdigest()
    except OSError:
        return ""


def model_hash(classifier: torch.nn.Module) -> str:
    """SHA-256 of the names and values of all tensors that a classifier runs with."""
    digest = hashlib.sha256()
    for name, tensor in classifier.state_dict().items():
        if isinstance(tensor, torch.Tensor):  # a layer's `get_extra_state` may give anything else
            digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
            digest.update(tensor.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()
