"""The search: propose tubes, predict what masking them does, mask the best, change the best, again and again.

It can be stopped at any time: after every round it has an answer, and later ones begin with no worse a tube. Tubes come
from where the caller likes (`given`), and at random. Where the network's response can be predicted
(search/response.py), many are predicted and few are tried; where not, the given ones come first. Tried tubes are masked
with the selecting fills, which no answer is judged by, and ranked by search/score.py. The same clip, question and seed
give the same answer.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

import numpy as np
import torch
from torch.nn.functional import pad

from whytube.checks import LONGEST, check_finite, check_int, fail, suggestion
from whytube.errors import ArgumentError
from whytube.explanation import MOVED
from whytube.search.masked import masked_logits
from whytube.search.score import margin_fall, value
from whytube.search.tracks import Tracks, changed, joined, random_tracks, tracks_of
from whytube.search.verify import SAME, SELECTING_FILLS, different
from whytube.tubes import region_iou

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from whytube.classifiers.base import VideoClassifier
    from whytube.search.response import Predictor, Response
    from whytube.search.verify import Question, Regions

EFFORTS = {"quick": 6, "normal": 16, "thorough": 192}
"""Tubes that are tried for a question."""
AREA = 0.1
"""Largest volume of a tube, as a fraction of the clip's."""
FIT_WEIGHT = 1.0
"""Weight of the logarithm of a word's fit beside the value of a tube; docs/results.md has the figures of others."""
SILENT = 0.05
"""A tube that no word fits better than this is as good as one that a word fits so well; it then has no word."""
FIRST, ROUNDS = 3, 4
"""One tube of so many is tried in the first round; the rest in so many rounds, of LEAST tubes at least."""
LEAST = 4
PREDICTED, MORE, CHANGES = 32, 8, 4
"""Tubes that are predicted at first at least, and for every one tried in the first round and in later ones."""
CHEAP, MANY = 0.02, 4
"""Where a prediction costs less than this share of a run, there are so many times as many."""
PARENTS = 4
"""Best tubes whose changes are tried next."""
UNTRIED = 512
"""Tubes that are predicted at first where none will be tried."""
CLIMBS = 2
"""How often the best predictions are changed and predicted again before the first round."""


class Words(Protocol):
    """Says how well words fit tubes."""

    def __call__(self, boxes: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Tubes (B, N, M, T, 4) -> fits (B, N, M, s) in [0, 1], and the attribute ids (B, N, s), -1 for none."""
        ...


@dataclass(frozen=True, kw_only=True)
class Effort:
    """How tubes are searched.

    tubes: how many are tried for a question. area: largest volume of a tube, as a fraction of the clip's. fit_weight:
    of the logarithm of a word's fit beside the value of a tube. seed: of what is random.
    """

    tubes: int = EFFORTS["normal"]
    area: float = AREA
    fit_weight: float = FIT_WEIGHT
    seed: int = 0

    def __post_init__(self) -> None:
        check_int(self.tubes, "effort", 1)
        check_int(self.seed, "seed", 0)
        if isinstance(self.area, bool) or not isinstance(self.area, int | float) or not 0 < self.area <= 1:
            raise fail("area", "a fraction of the clip, more than 0 and at most 1", repr(self.area))
        if check_finite(self.fit_weight, "fit_weight") < 0:
            raise fail("fit_weight", "at least 0", repr(self.fit_weight))

    def rounds(self) -> list[int]:
        """Tubes tried in each round."""
        left = self.tubes - max(min(LEAST, self.tubes), self.tubes // FIRST)
        step = max(LEAST, -(-left // ROUNDS))
        return [self.tubes - left, *(min(step, left - done) for done in range(0, left, step))]

    def masked_clips(self, response: Response | None) -> float:
        """Return the runs of the classifier that a question takes; a prediction counts by its share of a run."""
        runs = float(len(SELECTING_FILLS) * self.tubes)
        if response is None:
            return runs
        (first, *later), many = self.rounds(), _many(response)
        predicted = many * max(PREDICTED, MORE * first) + CHANGES * PARENTS * CLIMBS
        predicted += sum(-(-many * CHANGES * count // PARENTS) * PARENTS for count in later)
        return runs + response.cost * predicted


def find_effort(effort: str | int) -> int:
    """Return the tubes that an effort stands for: one of EFFORTS, or their number."""
    if isinstance(effort, str) and not effort.removeprefix("-").isdecimal():
        if effort not in EFFORTS:
            known = f". Known: {', '.join(EFFORTS)}, or a number of tubes"
            raise ArgumentError(f"unknown effort {effort[:LONGEST]!r}{suggestion(effort, EFFORTS) or known}")
        return EFFORTS[effort]
    return check_int(int(effort) if isinstance(effort, str) else effort, "effort", 1)


def search(
    classifier: VideoClassifier,
    question: Question,
    k: int,
    effort: Effort,
    *,
    given: Sequence[tuple[torch.Tensor, torch.Tensor]] = (),
    predictor: Predictor | None = None,
    words: Words | None = None,
    every: bool = True,
) -> Iterator[Regions]:
    """Yield the k best regions after every round, or the last alone, which are the answer.

    given: proposals, boxes (B, N, M, T, 4) and which of them there are, (B, N, M) bool; any volume, they are shrunk.
    predictor: of the question's clips. words: how well attributes fit tubes; then a region has the attribute that fits
    it best, and its fit.
    """
    run = _Run(classifier, question, effort, predictor, words)
    tubes = effort.rounds()[0]
    pool = run.proposals(given, _many(predictor.response) * max(PREDICTED, MORE * tubes) if predictor else tubes)
    for number, count in enumerate(effort.rounds()):
        if number:
            pool = run.changes(count)
        run.attempt(pool, count)
        if every:
            yield run.best(k)
    if not every:
        yield run.best(k)


def _many(response: Response) -> int:
    """Return how many times as many tubes are predicted as usual."""
    return MANY if response.cost < CHEAP else 1


def predict(
    classifier: VideoClassifier,
    question: Question,
    k: int,
    effort: Effort,
    predictor: Predictor,
    *,
    given: Sequence[tuple[torch.Tensor, torch.Tensor]] = (),
) -> Regions:
    """Return the k best regions by prediction alone: no tube is tried. given: as for `search`."""
    run = _Run(classifier, question, effort, predictor, None)
    run.tried = run.proposals(given, UNTRIED, climbs=4 * CLIMBS)
    cost = torch.full(run.shape, predictor.response.cost * run.predictions, device=question.clips.device)
    return replace(run.best(k), masked_clips=cost)


@dataclass(frozen=True, eq=False)
class _Pool:
    """Tubes of Q questions, M each.

    tracks: Q times M. boxes: (Q, M, T, 4). foretold: (Q, M) predicted values, 0 without a predictor. values: (Q, M),
    what they are ranked by: estimates, or, of tubes that were tried, what was measured. fits: (Q, M, s) of each of s
    words, none without words. falls: (Q, M), how far p(A) - p(B) falls; 0 for tubes that were not tried.
    """

    tracks: list[Tracks]
    boxes: torch.Tensor
    foretold: torch.Tensor
    values: torch.Tensor
    fits: torch.Tensor
    falls: torch.Tensor

    def __add__(self, other: _Pool) -> _Pool:
        return _Pool(
            [joined(pair) for pair in zip(self.tracks, other.tracks, strict=True)],
            torch.cat([self.boxes, other.boxes], 1),
            torch.cat([self.foretold, other.foretold], 1),
            torch.cat([self.values, other.values], 1),
            torch.cat([self.fits, other.fits], 1),
            torch.cat([self.falls, other.falls], 1),
        )

    def rows(self, rows: torch.Tensor) -> _Pool:
        """Take rows (Q, m) of each question."""
        tracks = [t[r] for t, r in zip(self.tracks, rows.cpu().numpy(), strict=True)]
        question = torch.arange(len(rows), device=rows.device)[:, None]
        own = (self.boxes, self.foretold, self.values, self.fits, self.falls)
        return _Pool(tracks, *(x[question, rows] for x in own))

    def leading(self, count: int) -> _Pool:
        """Take those of the largest values, best first."""
        return self.rows(self.values.topk(min(count, self.values.shape[1]), 1).indices)


@dataclass
class _Run:
    """A search between two rounds. Questions are numbered through, Q = B * N."""

    classifier: VideoClassifier
    question: Question
    effort: Effort
    predictor: Predictor | None
    words: Words | None
    tried: _Pool | None = None
    ids: torch.Tensor | None = None
    predictions: int = 0

    def __post_init__(self) -> None:
        count = self.question.negative.shape[1]
        self.shape = (len(self.question.clips), count)
        frames, height, width = self.question.clips.shape[2:]
        self.frames, self.size = int(frames), (int(height), int(width))
        self.keys = [key for key in clip_keys(self.question.clips) for _ in range(count)]
        negatives = self.question.negative.flatten().tolist()
        self.chances = [
            np.random.default_rng([self.effort.seed, key, negative])
            for key, negative in zip(self.keys, negatives, strict=True)
        ]

    def proposals(
        self, given: Sequence[tuple[torch.Tensor, torch.Tensor]], count: int, *, climbs: int = CLIMBS
    ) -> _Pool:
        """Collect what is given and random tubes, `count` in all; where they can be predicted, climb."""
        sets: list[list[Tracks]] = [[] for _ in self.chances]
        for boxes, exists in given:
            on_host = (x.flatten(0, 1).cpu().numpy() for x in (boxes.float(), exists))
            for parts, some, there in zip(sets, *on_host, strict=True):
                if there.any():
                    parts.append(tracks_of(some[there], self.size).within(self.effort.area))
        for parts, key in zip(sets, self.keys, strict=True):
            have = sum(len(part) for part in parts)
            room = max(count - have, count - count // 2)  # however many are given, some are random
            # The same ones for all negatives of a clip, so that they are predicted once.
            rng = np.random.default_rng([self.effort.seed, key])
            parts.append(random_tracks(rng, count, frames=self.frames, area=self.effort.area)[:room])
        # Of more than `count`, as many in all, spread evenly: the same whatever else is in the batch.
        pool = self._pool([tracks[_evenly(len(tracks), count)] for tracks in map(joined, sets)])
        for _ in range(climbs if self.predictor else 0):
            pool = pool + self._changed(pool.leading(PARENTS), CHANGES)
        return pool

    def changes(self, count: int) -> _Pool:
        """Change the best tubes of those tried; their estimates add what a prediction says of the change."""
        assert self.tried is not None
        parents = self.tried.leading(PARENTS)
        each = CHANGES * _many(self.predictor.response) if self.predictor else 1
        times = -(-count * each // len(parents.tracks[0]))
        pool = self._changed(parents, times)
        known = (parents.values - parents.foretold).repeat_interleave(times, 1)
        return replace(pool, values=pool.values + known)

    def attempt(self, pool: _Pool, count: int) -> None:
        """Try the most promising tubes of a pool."""
        chosen = pool.rows(self._spread(pool, count) if self.predictor else self._in_turn(pool, count))
        boxes = self._shaped(chosen.boxes)
        every = torch.ones(boxes.shape[:3], dtype=torch.bool, device=boxes.device)
        runs = [
            masked_logits(self.classifier, self.question, boxes, every, fill=fill, exact=False)
            for fill in SELECTING_FILLS
        ]
        logits = torch.cat(runs, 2)
        values, falls = (
            measure(self.question, logits).view(*self.shape, len(runs), -1).mean(2).flatten(0, 1)
            for measure in (value, margin_fall)
        )
        chosen = replace(chosen, values=values + self._fit(chosen.fits), falls=falls)
        self.tried = chosen if self.tried is None else self.tried + chosen

    def best(self, k: int) -> Regions:
        """Return the k best tubes of those tried, as different regions and words.

        Where none of them would move the decision, the last of several is the best tube that does, see `different`.
        """
        assert self.tried is not None
        spent = float(len(SELECTING_FILLS)) * self.tried.values.shape[1]
        if self.predictor:
            spent += self.predictor.response.cost * self.predictions
        best = self._different(self.tried, k) if self.ids is None else self._worded(self.tried, self.ids, k)
        return replace(best, masked_clips=torch.full(self.shape, spent, device=best.boxes.device))

    def _different(self, tubes: _Pool, k: int) -> Regions:
        boxes, values, falls = map(self._shaped, (tubes.boxes, tubes.values, tubes.falls))
        return different(boxes, values, k, moving=falls >= MOVED)

    def _worded(self, tubes: _Pool, ids: torch.Tensor, k: int) -> Regions:
        fits, ids = pad(tubes.fits, (0, 1), value=SILENT), pad(ids, (0, 1), value=-1)  # one more: no word
        ranked = (tubes.values - self._fit(tubes.fits))[..., None] + self.effort.fit_weight * _log(fits)
        ranked[..., :-1] = ranked[..., :-1].masked_fill(fits[..., :-1] <= SILENT, -torch.inf)
        boxes, ranked, fits, falls = map(self._shaped, (tubes.boxes, ranked, fits, tubes.falls))
        return different(boxes, ranked, k, fits=fits, ids=ids, moving=falls >= MOVED)

    def _shaped(self, x: torch.Tensor) -> torch.Tensor:
        """(Q, ...) -> (B, N, ...)."""
        return x.view(*self.shape, *x.shape[1:])

    def _pool(self, tracks: list[Tracks]) -> _Pool:
        boxes = torch.from_numpy(np.stack([t.tubes(self.size) for t in tracks])).to(self.question.clips.device)
        shaped = self._shaped(boxes)
        foretold, fits = boxes.new_zeros(boxes.shape[:2]), boxes.new_zeros(*boxes.shape[:2], 0)
        if self.words:
            each, self.ids = self.words(shaped)
            fits = each.flatten(0, 1)
        if self.predictor:
            logits = self.predictor(shaped.flatten(1, 2)).view(*shaped.shape[:3], -1)
            self.predictions += boxes.shape[1]
            foretold = (value(self.question, logits).flatten(0, 1) + self._fit(fits)).nan_to_num(-torch.inf)
        return _Pool(tracks, boxes, foretold, foretold, fits, torch.zeros_like(foretold))

    def _fit(self, fits: torch.Tensor) -> torch.Tensor:
        """Return the weighted logarithm of the best of s words' fits (Q, M, s), (Q, M); 0 without words."""
        if not fits.shape[-1]:
            return fits.new_zeros(fits.shape[:-1])
        return self.effort.fit_weight * _log(fits.amax(-1))

    def _changed(self, parents: _Pool, times: int) -> _Pool:
        """Change each of M tubes `times` times."""
        each = np.repeat(np.arange(len(parents.tracks[0])), times)
        chances = zip(parents.tracks, self.chances, strict=True)
        return self._pool([changed(tracks[each], rng, area=self.effort.area) for tracks, rng in chances])

    def _spread(self, pool: _Pool, count: int) -> torch.Tensor:
        """Rows of the `count` most promising tubes (Q, count), of which none repeats a better one if possible."""
        ranked = pool.values.argsort(1, descending=True)[:, : 4 * count]
        same = _same(own[rows] for own, rows in zip(pool.boxes, ranked, strict=True))
        return ranked.gather(1, torch.tensor([_apart(matrix, count) for matrix in same], device=ranked.device))

    def _in_turn(self, pool: _Pool, count: int) -> torch.Tensor:
        """Rows (Q, count) spread evenly over a pool in its order: given tubes first, then random ones."""
        rows = _evenly(pool.boxes.shape[1], count)
        return torch.from_numpy(rows).to(pool.boxes.device).expand(len(pool.boxes), -1)


def _same(boxes: Iterable[torch.Tensor]) -> NDArray[np.bool_]:
    """Which of tubes (M, T, 4) of Q questions are the same region: (Q, M, M)."""
    return np.stack([(region_iou(own[:, None], own) > SAME).cpu().numpy() for own in boxes])


def _apart(same: NDArray[np.bool_], count: int) -> list[int]:
    """Take `count` places in order, first those that are not the same as one taken before, then the rest."""
    taken: list[int] = []
    for place in range(len(same)):
        if len(taken) < count and not same[place, taken].any():
            taken.append(place)
    return taken + [place for place in range(len(same)) if place not in taken][: count - len(taken)]


def _evenly(length: int, count: int) -> NDArray[np.int64]:
    """Places of `count` of so many, spread evenly."""
    return np.linspace(0, length - 1, count).round().astype(np.int64)


def _log(fits: torch.Tensor) -> torch.Tensor:
    return fits.clamp_min(SILENT).log()


def clip_keys(clips: torch.Tensor) -> list[int]:
    """Return a number for each clip (B, 3, T, H, W), the same for the same clip in any batch."""
    coarse = (clips[:, :, :, ::7, ::7] * 255).round().to(torch.uint8).cpu().numpy()
    return [zlib.crc32(clip.tobytes()) for clip in coarse]
