"""How a scene comes about: first everything that is left to chance, then what the class decides.

`Chance` is drawn without knowing the class, so places, sizes, colours, phases, pebbles and background cannot tell
classes apart, and one chance can be danced as any class.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from whytube.data.world import shapes, vocabulary
from whytube.data.world.scene import COATS, LAYERS, Background, Scene, Sprites

if TYPE_CHECKING:
    from collections.abc import Callable

Floats: TypeAlias = NDArray[np.float64]

PEBBLE, SECOND, GUEST, POSE, PARTNER, LEAD = range(len(LAYERS))
GRATINGS = 14
LAYOUTS = 64
"""Places tried for everything that comes in; the one with the least overlap is taken."""

# Per layer; a pose has the place of its partner. What a sprite needs about its centre, whatever its class makes of it,
# is girth * radius (poses) + room (to move).
SMALLEST = np.array([0.05, 0.05, 0.14, 0.12, 0.12, 0.145])
LARGEST = np.array([0.07, 0.07, 0.16, 0.14, 0.14, 0.175])
GIRTH = np.array([1.0, 1.0, 1.0, 1.35, 1.35, 1.0])
DRIFT = np.array([0.04, 0.04, 0.04, 0.015, 0.015, 0.015])
ROOM = np.array([0.04, 0.04, 0.04, 0.1, 0.1, 0.13])

# How far below the partner's place partner and pose stand, and how large the pose is, all in the partner's radii. The
# middle of the two stays at the place, which therefore tells nothing about the pose.
POSES = {"in bubble": (0.0, 0.0, 1.35), "under umbrella": (0.19, -0.66, 1.3), "on wheels": (-0.19, 0.71, 1.0)}


@dataclass(frozen=True)
class Beat:
    """The time of one entity: `clock` (T,) in clips, `phase` in turns, and the angles (T,) of its trembling."""

    clock: Floats
    phase: float
    sense: float
    rate: float
    jitter: Floats

    def angle(self, turns: float) -> Floats:
        """Return the angle (T,) of something that makes so many turns in a clip."""
        return 2 * np.pi * (turns * self.rate * self.sense * self.clock + self.phase)


@dataclass(frozen=True)
class Motion:
    """What a motion adds: offset (T, 2) in frame sides, scale (T,), turn (T,), flash (T,) from -1 black to 1 white."""

    offset: Floats | float = 0.0
    scale: Floats | float = 1.0
    turn: Floats | float = 0.0
    flash: Floats | float = 0.0


def _aside(x: Floats | float, y: Floats | float) -> Motion:
    return Motion(offset=np.stack(np.broadcast_arrays(x, y), -1))


def _around(angle: Floats, radius: float) -> Motion:
    return Motion(offset=radius * np.stack([np.cos(angle), np.sin(angle)], -1))


# A clip is one unit of time whatever its number of frames. Every motion swings about its resting place, so that a mean
# position tells nothing, and starts at a random phase, in a random sense, at a slightly random rate.
MOTIONS: dict[str, Callable[[Beat], Motion]] = {
    "spinning": lambda beat: Motion(turn=beat.angle(1.1)),
    "pulsing": lambda beat: Motion(scale=0.9 + 0.35 * np.sin(beat.angle(2))),
    "bouncing": lambda beat: _aside(0.0, -0.18 * (np.abs(np.sin(beat.angle(1))) - 2 / np.pi)),
    "swaying": lambda beat: _aside(0.1 * np.sin(beat.angle(2)), 0.0),
    "circling": lambda beat: _around(beat.angle(2), 0.085),
    "rocking": lambda beat: Motion(turn=1.1 * np.sin(beat.angle(2))),
    "flashing": lambda beat: Motion(flash=np.clip(1.6 * np.sin(beat.angle(2)), -0.8, 0.8)),
    "trembling": lambda beat: _around(beat.jitter, 0.05),
}


@dataclass(frozen=True)
class Chance:
    """Everything about a clip that its class does not decide; L layers, T frames."""

    background: Background
    radius: Floats  # (L,)
    place: Floats  # (L, 2)
    drift: Floats  # (L, 2) from the middle of the clip to its end
    tilt: Floats  # (L,)
    mirror: Floats  # (L,)
    colours: Floats  # (L, 2, 3)
    light: Floats  # (L, 2)
    pebbles: tuple[int, int]
    second: bool
    beats: dict[int, Beat]  # of PARTNER and LEAD


def draw(rng: np.random.Generator, frames: int) -> Chance:
    """Leave to chance all that a class does not decide."""
    layers = len(LAYERS)
    radius = rng.uniform(SMALLEST, LARGEST)
    ground = rng.uniform(0.3, 0.7, 3)
    toward = rng.uniform(0, 2 * np.pi, layers)
    phase, rate, sense = rng.uniform(0, 1, layers), rng.uniform(0.9, 1.1, layers), _signs(rng)
    clock = np.arange(frames) / frames
    return Chance(
        radius=radius,
        place=_layout(rng, radius),
        drift=rng.uniform(-1, 1, (layers, 2)) * DRIFT[:, None],
        tilt=rng.uniform(-0.35, 0.35, layers),
        mirror=_signs(rng),
        colours=_colours(rng, ground),
        light=0.28 * np.stack([np.cos(toward), np.sin(toward)], -1),
        pebbles=(int(rng.integers(shapes.PEBBLES)), int(rng.integers(shapes.PEBBLES))),
        second=bool(rng.random() < 0.5),
        background=_background(rng, ground, frames),
        beats={k: Beat(clock, phase[k], sense[k], rate[k], rng.uniform(0, 2 * np.pi, frames)) for k in (PARTNER, LEAD)},
    )


def compose(chance: Chance, label: int) -> Scene:
    """Let class `label` be danced under this chance."""
    dance = {name: value or "" for name, value in zip(vocabulary.SLOTS, vocabulary.dances()[label], strict=True)}
    moves = {PARTNER: MOTIONS[dance["gait"]], LEAD: MOTIONS[dance["step"]]}
    motions = [moves[k](chance.beats[k]) if k in moves else Motion() for k in range(len(LAYERS))]
    frames = chance.background.phase.shape[1]
    still = np.zeros(frames)
    sway = np.linspace(-1, 1, frames)[:, None]
    centre = np.stack([chance.place[k] + sway * chance.drift[k] + m.offset for k, m in enumerate(motions)])
    radius = np.stack([chance.radius[k] * m.scale + still for k, m in enumerate(motions)])
    angle = np.stack([chance.tilt[k] + m.turn + still for k, m in enumerate(motions)])
    partner_down, pose_down, larger = POSES[dance["pose"]]
    centre[POSE] = centre[PARTNER] + radius[PARTNER][:, None] * (0.0, pose_down)
    centre[PARTNER] += radius[PARTNER][:, None] * (0.0, partner_down)
    radius[POSE] = radius[PARTNER] * larger
    angle[POSE] *= 0.3
    drawn = [f"pebble {number}" for number in chance.pebbles]
    drawn += ["with cat", dance["pose"], dance["partner"], dance["lead"]]
    coats = [None] * LEAD + [dance["coat"] or None]
    sprites = Sprites(
        shape=np.array([shapes.places()[name] for name in drawn]),
        alpha=np.array([1, chance.second, dance["guest"] != "", 1, 1, 1], np.float32),
        centre=centre.astype(np.float32),
        radius=radius.astype(np.float32),
        angle=angle.astype(np.float32),
        mirror=chance.mirror.astype(np.float32),
        colours=chance.colours.astype(np.float32),
        coat=np.array([COATS.index(coat) for coat in coats]),
        flash=np.stack([m.flash + still for m in motions]).astype(np.float32),
        light=chance.light.astype(np.float32),
    )
    return Scene(label=label, sprites=sprites, background=chance.background)


def _signs(rng: np.random.Generator) -> Floats:
    return np.where(rng.random(len(LAYERS)) < 0.5, -1.0, 1.0)


def _layout(rng: np.random.Generator, radius: Floats) -> Floats:
    """Return places (L, 2): lead and partner first, then the guest, then the pebbles where there is room left."""
    margin, reach = radius * GIRTH + ROOM, radius * GIRTH + 0.4 * ROOM
    place = np.zeros((len(LAYERS), 2))
    settled: list[int] = []
    for coming in ([LEAD, PARTNER], [GUEST], [PEBBLE], [SECOND]):
        edge = margin[coming, None]
        tried = edge + (1 - 2 * edge) * rng.random((LAYOUTS, len(coming), 2))
        pairs = [(tried[:, 0], coming[0], place[k], k) for k in settled]
        pairs += [(tried[:, 0], LEAD, tried[:, 1], PARTNER)] if not settled else []
        overlap = np.zeros(LAYOUTS)
        for first, i, second, j in pairs:
            overlap += np.maximum(reach[i] + reach[j] - np.sqrt(((first - second) ** 2).sum(-1)), 0)
        place[coming] = tried[overlap.argmin()]
        settled += coming
    place[POSE] = place[PARTNER]
    return place


def _colours(rng: np.random.Generator, ground: Floats) -> Floats:
    """Return two colours per layer (L, 2, 3): a body that stands out from the ground, a pattern from both."""
    tried = rng.random((len(LAYERS), 12, 3))
    tried -= tried.min(-1, keepdims=True) * 0.7
    from_ground = np.sqrt(((tried - ground) ** 2).sum(-1))
    body = np.take_along_axis(tried, np.minimum(from_ground, 0.6).argmax(1)[:, None, None], 1)
    from_body = np.sqrt(((tried - body) ** 2).sum(-1))
    apart = np.minimum(from_body, 0.6) + np.minimum(from_ground, 0.5)
    pattern = np.take_along_axis(tried, apart.argmax(1)[:, None, None], 1)
    return np.concatenate([body, pattern], 1)


def _background(rng: np.random.Generator, ground: Floats, frames: int) -> Background:
    """Return gratings from fine to coarse, in all directions, that drift together but not quite."""
    length = np.geomspace(0.09, 0.6, GRATINGS) * rng.uniform(0.85, 1.15, GRATINGS)
    heading = rng.uniform(0, 2 * np.pi, GRATINGS)
    wave = 2 * np.pi / length[:, None] * np.stack([np.cos(heading), np.sin(heading)], -1)
    wind = rng.uniform(0, 2 * np.pi)
    velocity = rng.uniform(0.05, 0.25) * np.array([np.cos(wind), np.sin(wind)])
    speed = (wave * (velocity + rng.uniform(-0.05, 0.05, (GRATINGS, 2)))).sum(-1)
    phase = rng.uniform(0, 2 * np.pi, GRATINGS)[:, None] - speed[:, None] * np.arange(frames) / frames
    tint = 1 + rng.uniform(-0.8, 0.8, (GRATINGS, 3))
    return Background(
        mean=ground.astype(np.float32),
        amplitude=(0.022 * (length[:, None] / 0.3) ** 0.35 * tint).astype(np.float32),
        wave=wave.astype(np.float32),
        phase=phase.astype(np.float32),
    )
