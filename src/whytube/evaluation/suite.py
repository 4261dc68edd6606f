"""The suite: ask every method the same questions about the same clips, and judge the answers alike."""

from __future__ import annotations

from dataclasses import dataclass, is_dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import torch

from whytube.checks import check_choice, check_finite, check_int, fail
from whytube.classifiers.base import evaluating
from whytube.data.source import ACTOR, boxes_of, clips_to_take, fingerprint
from whytube.errors import ArgumentError
from whytube.evaluation.compare import compare
from whytube.evaluation.curves import curve_points
from whytube.evaluation.judge import Truth, TruthMethod, judge, masked_log_probabilities, transferred, unseen
from whytube.evaluation.metrics import annotated_boxes
from whytube.evaluation.notes import COST, SHRUNK, WORDED, notes_on, without_words
from whytube.evaluation.record import clip_records
from whytube.evaluation.results import ClassifierResults, Results
from whytube.evaluation.rules import checked_regions, limited
from whytube.evaluation.runs import counted
from whytube.evaluation.state import Share, State, Tally, method_fingerprint, shares_of, traced
from whytube.evaluation.summary import means_with_intervals, summarise
from whytube.search.verify import SEEN_FILLS, SELECTING_FILLS, ask
from whytube.tubes import FILLS, PAPERS_FILL
from whytube.versions import provenance, versions

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from whytube.classifiers.base import VideoClassifier
    from whytube.data.source import ClipBatch, Source
    from whytube.search.verify import Method, Question, Regions

JUDGING_FILLS = ("mean", "blur", "freeze", PAPERS_FILL)
"""What regions are masked with: three that the search has not seen, whose mean is the headline, and the paper's."""


def evaluate(
    methods: Sequence[Method | TruthMethod],
    classifier: VideoClassifier,
    source: Source,
    *,
    split: str = "test",
    count: int | None = None,
    negatives: int | Literal["all"] = 3,
    k: int = 1,
    fills: Sequence[str] = JUDGING_FILLS,
    area: float | None = None,
    curves: bool = False,
    judge_with: VideoClassifier | None = None,
    device: torch.device | str = "cpu",
    batch_size: int = 16,
    seed: int = 0,
    clips: bool = False,
    state: str | os.PathLike[str] | None = None,
    resume: bool = False,
    share: Share | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Results:
    """Measure methods as in section 4 of the paper, on the first `count` clips of a split (or all).

    Each clip is asked about with the predicted class as the positive and the `negatives` most probable others; every
    method gives k regions, each is masked with every fill and the classifier run again. Numbers about masked clips are
    means over the fills that no method has seen (not in SEEN_FILLS), and stand under `fills` for each alone, among
    them the paper's, "zero". What a method's answers cost is counted: `masked_clips`, runs of the classifier per
    question; what judging them cost is `judging_clips` of the provenance, runs in all.

    negatives: "all" for every class but the positive one, whose curve is the paper's Fig. 5.

    A method that answers nothing at all has no figures and is left out of the results: `true-box` and `detector-box`
    where the data have no boxes.

    area: largest share of the clip that a tube may cover; larger ones are shrunk, but for those made of the truth.
    curves: also measure insertion and deletion over the k regions, which costs 2 k runs per fill and answer.
    judge_with: another network of the same classes, on which the same regions are masked too; see `transferred`.

    seed: of the intervals; methods have their own. clips: also keep a short record of every clip. state: a file
    (.safetensors) that holds what was found so far; remove it once the results are saved. resume: go on from it, if it
    is there; the results are exactly those of an uninterrupted run. progress: called with the clips
    done and their number, after every batch.

    share: judge some of the batches alone, and keep what is found in a file beside `state`. A call with resume and
    without a share then puts all shares together, and judges what they left.
    """
    _check(methods, classifier, source, fills)
    negatives = check_negatives(negatives, len(classifier.classes))
    check_int(k, "k", 1)
    check_int(batch_size, "batch_size", 1)
    _check_options(classifier, area, judge_with)
    total = clips_to_take(source, split, count)
    settings = {"data": _described(source), "split": split, "clips": total, "negatives": negatives, "k": k}
    settings |= {"fills": list(fills), "seen_fills": [fill for fill in fills if fill in SEEN_FILLS]}
    settings |= {} if area is None else {"area": area}
    settings |= {"curves": True} if curves else {}
    settings |= {} if judge_with is None else {"judge_with": judge_with.title}
    asked = _Protocol(methods, classifier.to(device), k, fills, area, curves, judge_with and judge_with.to(device))
    origin = provenance(torch.device(device), seed=seed)
    order: Sequence[int]
    order, kept = range(total), None if state is None else Path(state)
    if share is not None:
        if kept is None:
            raise fail("share", "a `state` to keep what was found in", "none")
        order, kept = share.of_batches(total, batch_size), share.path(kept)
    found = State(
        {method.name: Tally() for method in methods},
        settings
        | _identity(asked, source)
        | {"batch_size": batch_size, "clips kept": clips}
        | ({} if share is None else traced(origin)),
        order,
        kept,
        origin,
    )
    if resume:
        shares = shares_of(kept) if share is None and kept is not None else []
        if shares and kept is not None and not kept.exists():
            found.adopt(shares)
        else:
            found.load()
        if not all(found.has(path) for path in shares):
            raise ArgumentError(f"{kept} and shares of another run lie side by side: remove the one or the others")
    try:
        with evaluating(classifier):
            for start in range(found.done, len(found.order), batch_size):
                indices = found.order[start : start + batch_size]
                batch = source.batch(split, indices, device)
                question, truth = ask(classifier, batch.clips, negatives=negatives), truth_of(source, batch)
                judging, judged = _judged(asked, question, truth)
                for method, regions, after, figures in judged:
                    shown = after[unseen(fills)]
                    records = clip_records(indices, source, question, regions, truth, figures, shown) if clips else []
                    found.tallies[method.name].add(figures, records)
                found.add(question.positive == truth.labels, truth.known.any(1), judging)
                if progress is not None:
                    progress(found.done, len(found.order))
    except BaseException:
        found.save(now=True)
        raise
    if share is not None:
        found.save(now=True)
        settings |= {"share": str(share)}
    found.in_order()
    notes = _notes(found, methods, source, fills)
    origin |= {"settings": settings} | ({"notes": notes} if notes else {})
    reader = getattr(source, "reader", None)
    origin |= {} if reader is None else {"reader": reader}
    origin["judging_clips"] = found.judging_clips
    return summed_up(found, classifier, origin, seed=seed, clips=clips)


@dataclass(frozen=True)
class _Protocol:
    """Who is asked, and how the answers are judged: as for `evaluate`."""

    methods: Sequence[Method | TruthMethod]
    classifier: VideoClassifier
    k: int
    fills: Sequence[str]
    area: float | None
    curves: bool
    other: VideoClassifier | None


_Judged: TypeAlias = "Iterator[tuple[Method | TruthMethod, Regions, torch.Tensor, dict[str, torch.Tensor]]]"
"""Every method with its answers, log-probabilities of the masked clips (F, B, N, k, C), and all figures."""


def _judged(asked: _Protocol, question: Question, truth: Truth) -> tuple[float, _Judged]:
    """Ask every method and mask what it answers. Returns how many clips the classifier was run on to judge, and more.

    All methods are judged in one go: controls share the tubes of the methods they control.
    """
    answers = [_answer(asked, method, question, truth) for method in asked.methods]
    boxes = torch.cat([regions.boxes for regions, _ in answers], dim=2)
    with counted(asked.classifier) as runs:
        masked = masked_log_probabilities(asked.classifier, question, boxes, fills=asked.fills)
    return runs.clips, _figures(asked, question, truth, answers, masked)


def _figures(
    asked: _Protocol,
    question: Question,
    truth: Truth,
    answers: Sequence[tuple[Regions, dict[str, torch.Tensor]]],
    after: torch.Tensor,
) -> _Judged:
    """Yield the figures of every method; after: (F, B, N, methods * k, C) log-probabilities of the masked clips."""
    again, fills = None if asked.other is None else _again(asked.other, question), asked.fills
    masked = torch.split(after, asked.k, dim=3)
    if asked.other is not None and again is not None:
        boxes = torch.cat([regions.boxes for regions, _ in answers], dim=2)
        there = torch.split(masked_log_probabilities(asked.other, again, boxes, fills=fills), asked.k, dim=3)
    new = [fills[place] for place in unseen(fills)]
    seen = [fill for fill in fills if fill not in new]
    for place, method in enumerate(asked.methods):
        regions, beside = answers[place]
        figures = judge(regions, question, truth, after=masked[place], fills=fills) | beside
        if asked.curves:
            figures |= curve_points(asked.classifier, question, regions.boxes, fills=new, seen=seen)
        if again is not None:
            figures |= transferred(regions, question, masked[place], again, there[place], fills=fills)
        yield method, regions, masked[place], figures


def _answer(
    asked: _Protocol, method: Method | TruthMethod, question: Question, truth: Truth
) -> tuple[Regions, dict[str, torch.Tensor]]:
    """Ask a method, count what it asks of the classifier, and hold its answer to the rules.

    Only baselines that are made of the truth see it, and theirs alone may be of any area. Returns also what is kept
    beside the figures, (B, N, k): the cost of a question, words said, tubes shrunk.
    """
    with counted(asked.classifier) as runs:
        if isinstance(method, TruthMethod):
            regions, area = method.with_truth(question, truth, asked.k), None
        else:
            regions, area = method(question, asked.k), asked.area
    regions = checked_regions(regions, question, asked.k, name=method.name, words=truth.table.shape[1])
    regions, large = limited(regions, question, area)
    cost = torch.full(large.shape, runs.clips / question.negative.numel(), dtype=torch.float64)
    if regions.masked_clips is not None:  # of a question alone, where the same runs served several
        cost = torch.maximum(cost, regions.masked_clips[..., None].double().cpu())
    return regions, {COST: cost, WORDED: regions.attribute_ids >= 0, SHRUNK: large}


def _again(other: VideoClassifier, question: Question) -> Question:
    """Ask another network about the same clips and the same A and B."""
    with torch.no_grad(), evaluating(other):
        return replace(question, features=other.features(other.check_clips(question.clips)))


def _identity(asked: _Protocol, source: Source) -> dict[str, Any]:
    """Return what must be equal, beside the settings, for an evaluation to go on; as JSON gives it back."""
    return {
        "data's fingerprint": fingerprint(source),
        "classifier": method_fingerprint(asked.classifier),
        "methods": {method.name: method_fingerprint(method) for method in asked.methods},
        "device": asked.classifier.device.type,
        "selecting fills": list(SELECTING_FILLS),
        "versions": versions(),
        "other network": None if asked.other is None else method_fingerprint(asked.other),
    }


def _notes(found: State, methods: Sequence[Method | TruthMethod], source: Source, fills: Sequence[str]) -> list[str]:
    likes = {method.name: getattr(getattr(method, "like", None), "name", None) for method in methods}
    right, known = torch.cat(found.clips)[:, :2].bool().unbind(1)
    notes = notes_on(
        {name: without_words(tally.whole()) for name, tally in found.tallies.items()},
        {name: like for name, like in likes.items() if like is not None},
        words=len(source.attribute_names),
        boxes=bool(known.any()),
        right=bool((right & known).any()),
    )
    if all(fill in SELECTING_FILLS for fill in fills):
        notes.append("Tubes were judged by fills that tubes are chosen with: figures of verified ones are flattered.")
    elif all(fill in SEEN_FILLS for fill in fills):
        notes.append("Tubes were judged by fills that some methods have seen: figures of these are flattered.")
    return notes


def summed_up(
    found: State, classifier: VideoClassifier, origin: Mapping[str, Any], *, seed: int, clips: bool
) -> Results:
    """Sum up what was found; a method that answered nothing has no figures."""
    heard, summaries = {}, {}
    for name, tally in found.tallies.items():
        figures = without_words(tally.whole())
        if figures["answered"].any():
            del figures[WORDED], figures[SHRUNK]
            kept = tally.records if clips else None
            heard[name], summaries[name] = figures, summarise(figures, frames=classifier.frames, seed=seed, clips=kept)
    right = torch.cat(found.clips)[:, :1]
    accuracy = means_with_intervals({"accuracy": right}, seed=seed)["accuracy"]
    told = ClassifierResults(accuracy, len(classifier.classes), classifier.architecture, classifier.settings)
    return Results(told, summaries, origin, compare(heard, seed=seed))


def _check(
    methods: Sequence[Method | TruthMethod], classifier: VideoClassifier, source: Source, fills: Sequence[str]
) -> None:
    names = [method.name for method in methods]
    if not names or len(set(names)) < len(names):
        raise fail("methods", "at least one, each with a name of its own", names)
    if tuple(source.classes) != tuple(classifier.classes):
        raise fail("source", f"of the classifier's classes, {list(classifier.classes)}", list(source.classes))
    if not fills:
        raise fail("fills", f"at least one of {', '.join(FILLS)}", "none")
    for fill in fills:
        check_choice(fill, "fills", FILLS)


def check_negatives(negatives: int | str, classes: int) -> int:
    """Return how many negatives are asked about; "all": every class but one."""
    if negatives == "all":
        return classes - 1
    if isinstance(negatives, str):
        raise fail("negatives", f"all, or an integer from 1 to {classes - 1}", repr(negatives))
    return check_int(negatives, "negatives", 1, classes - 1)


def _check_options(classifier: VideoClassifier, area: float | None, other: VideoClassifier | None) -> None:
    if area is not None and not 0 < check_finite(area, "area") <= 1:
        raise fail("area", "a share of the clip above 0, at most 1", area)
    if other is None:
        return
    for what in ("classes", "frames", "size"):
        own, its = getattr(classifier, what), getattr(other, what)
        if own != its:
            raise fail("judge_with", f"a network of the same {what}, {own}", its)


def truth_of(source: Source, batch: ClipBatch) -> Truth:
    """Lay out what a source says about a batch of its clips."""
    tracks = boxes_of(batch)
    frames, device = batch.clips.shape[2], batch.clips.device
    boxes, known = annotated_boxes(tracks, source.attribute_names, frames=frames)
    actors, _ = annotated_boxes(tracks, (ACTOR,), frames=frames)
    return Truth(batch.labels, source.table.to(device), boxes.to(device), known.to(device), actors[:, 0].to(device))


def _described(source: Source) -> str:
    return repr(source) if is_dataclass(source) else type(source).__name__
