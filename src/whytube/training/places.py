"""Boxes of training clips: gather them, and train attributes to be where they were drawn.

The classifier is frozen, so the steps of its maps with a drawn box are computed once and kept. Copies of
their clips, mirrored and cropped, can be learnt from, too (docs/words.md#copies-of-boxed-clips).
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from whytube.data.source import boxed_indices, boxes_of
from whytube.explainer.objective import place_term
from whytube.explainer.places import place_targets, steps_of_frames
from whytube.search.verify import listed
from whytube.training.augment import framed, framed_boxes, sided_names

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from whytube.classifiers.base import VideoClassifier
    from whytube.data.source import Source
    from whytube.explainer.scores import Scores

ENDLESS = 5
"""Clips with a box per attribute where there is no end of clips and no number was asked for."""
FRAMES = 3
"""Frames per clip that are used where a number was asked for: the first, the middle and the last with a box."""
MOST = 2500
"""Clips and copies of them whose steps are kept at most; boxes of more clips than this need no copies."""
ROWS = 32
"""Steps of clips in a batch."""
_CHUNK = 16
_CLOSEST = 0.65
"""Smallest share of the frame's sides that a copy keeps."""


@dataclass(frozen=True, eq=False)
class DrawnClip:
    """A training clip with boxes: index in "train", and boxes (S, T, 4) in pixels, zeros where none was drawn."""

    index: int
    boxes: torch.Tensor

    @property
    def drawn(self) -> torch.Tensor:
        """Which attribute has a box in which frame: (S, T) bool."""
        return (self.boxes[..., 2] > self.boxes[..., 0]) & (self.boxes[..., 3] > self.boxes[..., 1])


def drawn_clips(source: Source, per_attribute: int | None = None) -> list[DrawnClip]:
    """Return the training clips with boxes of attributes; [] where there are none.

    per_attribute: take clips until every attribute has so many, with all their boxes on FRAMES frames, as a person
    would draw them; None takes all there are, or ENDLESS where there is no end of clips.
    """
    if per_attribute == 0:
        return []
    indices = boxed_indices(source, "train")
    if per_attribute is None and indices is None:
        per_attribute = ENDLESS
    if indices is None:  # without end; classes come in rounds there, so a few rounds have enough of every attribute
        indices = range(2 * (per_attribute or 0) * len(source.classes))
    left = np.full(len(source.attribute_names), np.inf if per_attribute is None else per_attribute)
    found = []
    for start in range(0, len(indices), _CHUNK):
        chosen = indices[start : start + _CHUNK]
        for index, tracks in zip(chosen, boxes_of(source.batch("train", chosen)), strict=True):
            boxes = _laid_out(tracks, source.attribute_names, thin=per_attribute is not None)
            there = boxes[..., 2].any(1).numpy()
            if (left[there] > 0).any():
                left[there] -= 1
                found.append(DrawnClip(int(index), boxes))
        if (left <= 0).all():
            break
    return found


def _laid_out(tracks: Mapping[str, Any], names: Sequence[str], *, thin: bool) -> torch.Tensor:
    """Boxes (S, T, 4) of a clip; thin: on FRAMES frames each."""
    boxes = np.zeros((len(names), max((len(track) for track in tracks.values()), default=1), 4))
    for place, name in enumerate(names):
        track = np.asarray(tracks.get(name, np.zeros((0, 4))), dtype=np.float64)
        there = np.flatnonzero((track[:, 2] > track[:, 0]) & (track[:, 3] > track[:, 1]))
        if len(there):
            kept = there[np.linspace(0, len(there) - 1, FRAMES).round().astype(int)] if thin else there
            boxes[place, kept] = track[kept]
    return torch.from_numpy(boxes).float()


def drawn_fingerprint(clips: Sequence[DrawnClip]) -> str:
    """SHA-256 of indices and boxes, 16 digits; "" for none."""
    digest = hashlib.sha256()
    for clip in clips:
        digest.update(f"{clip.index} {tuple(clip.boxes.shape)}".encode())
        digest.update(clip.boxes.numpy().tobytes())
    return digest.hexdigest()[:16] if clips else ""


@dataclass(frozen=True, eq=False)
class DrawnSteps:
    """R steps of clips with a drawn box in them.

    Attributes:
        rows: per scale (R, d, h, w), standardised maps at the step.
        clip: (R,) which of the drawn clips. step: (R,) of the common grid. copy: (R,) 0 for the clip as it is.
        attribute_ids: (R, s) those with a box, -1 where a row has fewer. boxes: (R, s, 4) in pixels.
        targets: (R, s, P) over the places of the step.
        present: (R, S) bool, all attributes of the clip.
    """

    rows: tuple[torch.Tensor, ...]
    clip: torch.Tensor
    step: torch.Tensor
    copy: torch.Tensor
    attribute_ids: torch.Tensor
    boxes: torch.Tensor
    targets: torch.Tensor
    present: torch.Tensor

    def __len__(self) -> int:
        return len(self.clip)

    def part(self, chosen: torch.Tensor) -> DrawnSteps:
        """Take the rows `chosen`, indices or bool (R,)."""
        rows = tuple(h[chosen] for h in self.rows)
        return DrawnSteps(
            rows,
            self.clip[chosen],
            self.step[chosen],
            self.copy[chosen],
            self.attribute_ids[chosen],
            self.boxes[chosen],
            self.targets[chosen],
            self.present[chosen],
        )

    @property
    def every_box(self) -> torch.Tensor:
        """Boxes of all S attributes, zeros for none: (R, S, 4)."""
        # One more row takes what is listed as -1.
        found = self.boxes.new_zeros(len(self), self.present.shape[1] + 1, 4)
        return found.scatter(1, self.attribute_ids.remainder(found.shape[1])[..., None].expand(-1, -1, 4), self.boxes)[
            :, :-1
        ]

    @property
    def clips_per_attribute(self) -> tuple[int, ...]:
        """How many clips have a box of each attribute: S numbers."""
        there = self.every_box[..., 2] > self.every_box[..., 0]
        clips = [there[self.clip == clip].any(0).int() for clip in torch.unique(self.clip).tolist()]
        return tuple(torch.stack(clips).sum(0).tolist())


@torch.no_grad()
def drawn_steps(
    classifier: VideoClassifier,
    source: Source,
    scores: Scores,
    clips: Sequence[DrawnClip],
    device: torch.device,
    *,
    copies: int = 0,
    seed: int = 0,
) -> DrawnSteps:
    """Run the classifier on drawn clips, and keep the steps with boxes as `scores` standardises them.

    copies: of every clip. The first, third ... are mirrored, and all but the first are cropped by chance; where an
    attribute means left or right none is mirrored, and all are cropped. Where clips are many, there are fewer copies.
    """
    copies = min(copies, max(0, MOST // len(clips) - 1))
    steps = scores.forms.grid[0]
    at = steps_of_frames(steps, scores.forms.frames)
    kept: list[list[torch.Tensor]] = [[] for _ in scores.channels]
    where, boxes, present = [], [], []
    mirror = not sided_names(source.attribute_names)
    for start in range(0, len(clips), _CHUNK):
        part = clips[start : start + _CHUNK]
        batch = source.batch("train", [clip.index for clip in part], device)
        for copy in range(copies + 1):
            shown, own = batch.clips, part
            if copy:
                shown, own = _copied(batch.clips, part, copy, mirror=mirror, seed=seed)
            maps = scores.normalise(classifier.features(shown).maps)
            for b, clip in enumerate(own):
                drawn = clip.drawn
                for step in torch.unique(at[drawn.any(0)]).tolist():
                    frames = drawn & (at == step)  # (S, T)
                    first = frames.int().argmax(1)  # one frame per attribute and step
                    at_first = clip.boxes.gather(1, first[:, None, None].expand(-1, 1, 4))[:, 0]
                    boxes.append(torch.where(frames.any(1)[:, None], at_first, 0))
                    where.append((start + b, step, copy))
                    present.append(batch.attributes[b])
                    for scale, h in enumerate(maps):
                        kept[scale].append(h[b, :, step * h.shape[2] // steps].clone())
    drawn_boxes = torch.stack(boxes)  # (R, S, 4)
    ids = listed(drawn_boxes[..., 2] > drawn_boxes[..., 0])
    chosen = drawn_boxes.gather(1, ids.clamp_min(0)[..., None].expand(-1, -1, 4))
    owner, at_step, of_copy = torch.tensor(where, device=device).unbind(1)
    ids, chosen = ids.to(device), torch.where(ids[..., None] >= 0, chosen, 0).to(device)
    rows = tuple(torch.stack(of_scale) for of_scale in kept)
    targets = place_targets(scores.forms, chosen)
    return DrawnSteps(rows, owner, at_step, of_copy, ids, chosen, targets, torch.stack(present))


def _copied(
    shown: torch.Tensor, clips: Sequence[DrawnClip], copy: int, *, mirror: bool, seed: int
) -> tuple[torch.Tensor, list[DrawnClip]]:
    """Return a copy of clips (B, 3, T, H, W), mirrored or cropped, with their boxes."""
    sides, middles = np.ones((len(clips), 2)), np.zeros((len(clips), 2))
    for row, clip in enumerate(clips if copy > 1 or not mirror else ()):
        rng = np.random.default_rng([seed, clip.index, copy])
        sides[row] = rng.uniform(_CLOSEST, 1)
        middles[row] = rng.uniform(-1, 1, size=2) * (1 - sides[row])
    sides[:, 0] *= -1 if mirror and copy % 2 else 1
    size = (int(shown.shape[3]), int(shown.shape[4]))
    rows = zip(clips, sides, middles, strict=True)
    return framed(shown, sides, middles), [
        DrawnClip(clip.index, framed_boxes(clip.boxes, side, middle, size=size)) for clip, side, middle in rows
    ]


def fit_places(scores: Scores, drawn: DrawnSteps, *, steps: int, lr: float, seed: int = 0) -> float:
    """Train the attribute weights, in place, for the drawn boxes; returns the mean loss of the last tenth of the steps.

    AdamW, a rate that falls to zero as a cosine. Attributes without a box keep their weights.
    """
    weights = list(scores.attribute_weights)
    boxed = torch.zeros(len(scores.attribute_bias), dtype=torch.bool, device=drawn.clip.device)
    boxed[drawn.attribute_ids[drawn.attribute_ids >= 0]] = True
    before = [w.detach().clone() for w in weights]
    optimizer = torch.optim.AdamW(weights, lr)
    losses = []
    for step, chosen in enumerate(_batches(len(drawn), steps, seed)):
        for group in optimizer.param_groups:
            group["lr"] = lr * 0.5 * (1 + math.cos(math.pi * step / steps))
        part = drawn.part(chosen.to(drawn.clip.device))
        loss = place_term(scores, part.rows, part.attribute_ids, part.targets)
        for w, gradient in zip(weights, torch.autograd.grad(loss, weights), strict=True):
            w.grad = gradient
        optimizer.step()
        losses.append(loss.detach())
    optimizer.zero_grad(set_to_none=True)
    with torch.no_grad():
        for w, old in zip(weights, before, strict=True):
            w.copy_(torch.where(boxed[:, None, None, None], w, old))
    return float(torch.stack(losses[-max(1, steps // 10) :]).mean())


def _batches(count: int, steps: int, seed: int) -> Iterator[torch.Tensor]:
    """Yield the rows of each step, in newly shuffled rounds."""
    generator = torch.Generator().manual_seed(seed)
    order = torch.empty(0, dtype=torch.long)
    for _ in range(steps):
        if len(order) < min(ROWS, count):
            order = torch.randperm(count, generator=generator)
        yield order[:ROWS]
        order = order[ROWS:]
