"""Presets: networks to train, by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from whytube.checks import unknown_name
from whytube.models.files import construct, read_card, settings_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from whytube.classifiers.base import VideoClassifier

PRESETS: dict[str, tuple[str, dict[str, Any]]] = {
    # The paper's: 37 G multiply-adds a clip, 14 M weights; maps 256 x 14 x 14 and 512 x 7 x 7.
    "c3d-resnet": ("c3d-resnet", {}),
    # For a CPU: 0.4 G multiply-adds, 0.2 M weights; maps 32 x 16 x 16 and 64 x 8 x 8, grids of the paper's make. On the
    # embedded world a grid this fine is worth more than width: after 3200 clips 65 % of test clips are right, at equal
    # cost 52 % with twice the width on 8 x 8 and 4 x 4 cells. Entities are small, hence "max".
    "c3d-resnet-small": (
        "c3d-resnet",
        {"width": 0.125, "size": (64, 64), "pooling": "max", "stem_stride": 2, "pools": (2, 1, 1, 2)},
    ),
    # Inception-v1 inflated, the network of the shipped i3d-kinetics-400; 4:3 clips as J-HMDB and UCF101 have them.
    "i3d": ("i3d", {}),
}


def build_classifier(preset: str, classes: Sequence[str], *, seed: int = 0, **changes: Any) -> VideoClassifier:
    """Build an untrained classifier; `seed` decides its weights, `changes` go over the preset's settings.

    Example:
        >>> build_classifier("c3d-resnet-small", ["jump", "run"], fc_layers=2).size
        (64, 64)
    """
    architecture, settings = _find_preset(preset)
    return construct(architecture, classes, seed=seed, settings=settings | changes)


def known_settings(preset: str, pretrained: str | None = None) -> list[str]:
    """Return the names of the settings of a preset's network, or of a pretrained one."""
    return settings_of(read_card(pretrained).architecture if pretrained else _find_preset(preset)[0])


def _find_preset(name: str) -> tuple[str, dict[str, Any]]:
    if name not in PRESETS:
        raise unknown_name("classifier preset", name, PRESETS)
    return PRESETS[name]
