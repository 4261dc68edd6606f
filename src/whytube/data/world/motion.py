"""How things move: each motion is a path of offsets, scales, turns and flashes about a resting place.

A clip is one unit of time whatever its number of frames. Every motion swings about its resting place, so that a mean
position tells nothing, and starts at a random phase, in a random sense, at a slightly random rate.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from collections.abc import Callable

Path: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True)
class Beat:
    """The time of one entity: `clock` (T,) in clips, `phase` in turns, and the angles (T,) of its trembling."""

    clock: Path
    phase: float
    sense: float
    rate: float
    jitter: Path

    def angle(self, turns: float) -> Path:
        """Return the angle (T,) of something that makes so many turns in a clip."""
        return 2 * np.pi * (turns * self.rate * self.sense * self.clock + self.phase)


@dataclass(frozen=True)
class Motion:
    """What a motion adds: offset (T, 2) in frame sides, scale (T,), turn (T,), flash (T,) from -1 black to 1 white."""

    offset: Path | float = 0.0
    scale: Path | float = 1.0
    turn: Path | float = 0.0
    flash: Path | float = 0.0


def _at(angle: Path, radius: float) -> Path:
    return radius * np.stack([np.cos(angle), np.sin(angle)], -1)


def _spinning(beat: Beat) -> Motion:
    return Motion(turn=beat.angle(1.1))


def _pulsing(beat: Beat) -> Motion:
    return Motion(scale=0.9 + 0.35 * np.sin(beat.angle(2)))


def _bouncing(beat: Beat) -> Motion:
    height = np.abs(np.sin(beat.angle(1))) - 2 / np.pi
    return Motion(offset=np.stack([np.zeros_like(height), -0.18 * height], -1))


def _swaying(beat: Beat) -> Motion:
    aside = np.sin(beat.angle(2))
    return Motion(offset=np.stack([0.1 * aside, np.zeros_like(aside)], -1))


def _circling(beat: Beat) -> Motion:
    return Motion(offset=_at(beat.angle(2), 0.085))


def _rocking(beat: Beat) -> Motion:
    return Motion(turn=1.1 * np.sin(beat.angle(2)))


def _flashing(beat: Beat) -> Motion:
    return Motion(flash=np.clip(1.6 * np.sin(beat.angle(2)), -0.8, 0.8))


def _trembling(beat: Beat) -> Motion:
    return Motion(offset=_at(beat.jitter, 0.05))


MOTIONS: dict[str, Callable[[Beat], Motion]] = {
    "spinning": _spinning,
    "pulsing": _pulsing,
    "bouncing": _bouncing,
    "swaying": _swaying,
    "circling": _circling,
    "rocking": _rocking,
    "flashing": _flashing,
    "trembling": _trembling,
}
