"""The suite: ask every method the same questions about the same clips, and judge the answers alike."""

from __future__ import annotations

from dataclasses import is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from whytube.checks import check_choice, check_int, fail
from whytube.classifiers.base import evaluating
from whytube.data.source import ACTOR, boxes_of, clips_to_take, fingerprint
from whytube.evaluation.judge import Truth, TruthMethod, check_regions, judge, masked_log_probabilities
from whytube.evaluation.metrics import annotated_boxes
from whytube.evaluation.notes import WORDED, notes_on, without_words
from whytube.evaluation.record import clip_records
from whytube.evaluation.results import ClassifierResults, Results
from whytube.evaluation.state import State, Tally, method_fingerprint
from whytube.evaluation.summary import means_with_intervals, summarise
from whytube.search.verify import ask
from whytube.tubes import FILLS
from whytube.versions import provenance, versions

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from whytube.classifiers.base import VideoClassifier
    from whytube.data.source import ClipBatch, Source
    from whytube.search.verify import Method, Question, Regions

JUDGING_FILLS = ("mean", "blur", "freeze")
"""What regions are masked with. The paper's is "zero"; add it to compare to the letter."""


def evaluate(
    methods: Sequence[Method | TruthMethod],
    classifier: VideoClassifier,
    source: Source,
    *,
    split: str = "test",
    count: int | None = None,
    negatives: int = 3,
    k: int = 1,
    fills: Sequence[str] = JUDGING_FILLS,
    device: torch.device | str = "cpu",
    batch_size: int = 16,
    seed: int = 0,
    clips: bool = False,
    state: str | os.PathLike[str] | None = None,
    resume: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> Results:
    """Measure methods as in section 4 of the paper, on the first `count` clips of a split (or all).

    Each clip is asked about with the predicted class as the positive and the `negatives` most probable others; every
    method gives k regions, each is masked with every fill and the classifier run again. Numbers about masked clips are
    means over the fills, and stand under `fills` for each alone.

    A method that answers nothing at all has no figures and is left out of the results: `true-box` and `detector-box`
    where the data have no boxes.

    seed: of the intervals; methods have their own. clips: also keep a short record of every clip. state: a file
    (.safetensors) that holds what was found so far; remove it once the results are saved. resume: go on from it, if it
    is there; the results are exactly those of an uninterrupted run. progress: called with the clips
    done and their number, after every batch.
    """
    _check(methods, classifier, source, fills)
    check_int(negatives, "negatives", 1, len(classifier.classes) - 1)
    check_int(k, "k", 1)
    check_int(batch_size, "batch_size", 1)
    total = clips_to_take(source, split, count)
    settings = {"data": _described(source), "split": split, "clips": total, "negatives": negatives, "k": k}
    settings["fills"] = list(fills)
    classifier.to(device)
    found = State(
        {method.name: Tally() for method in methods},
        settings | _identity(methods, classifier, source) | {"batch_size": batch_size, "clips kept": clips},
        None if state is None else Path(state),
    )
    if resume:
        found.load()
    try:
        with evaluating(classifier):
            for start in range(found.done, total, batch_size):
                indices = range(start, min(start + batch_size, total))
                batch = source.batch(split, indices, device)
                question, truth = ask(classifier, batch.clips, negatives=negatives), truth_of(source, batch)
                for method, regions, after in _answers(methods, classifier, question, truth, k=k, fills=fills):
                    figures = judge(regions, question, truth, after=after, fills=fills)
                    records = clip_records(indices, source, question, regions, truth, figures, after) if clips else []
                    found.tallies[method.name].add(figures | {WORDED: regions.attribute_ids >= 0}, records)
                found.add(question.positive == truth.labels, truth.known.any(1))
                if progress is not None:
                    progress(found.done, total)
    except BaseException:
        found.save(now=True)
        raise
    notes = _notes(found, methods, source)
    origin = provenance(torch.device(device), seed=seed) | {"settings": settings} | ({"notes": notes} if notes else {})
    return _results(found, classifier, origin, seed=seed, clips=clips)


def _answers(
    methods: Sequence[Method | TruthMethod],
    classifier: VideoClassifier,
    question: Question,
    truth: Truth,
    *,
    k: int,
    fills: Sequence[str],
) -> Iterator[tuple[Method | TruthMethod, Regions, torch.Tensor]]:
    """Yield every method with its answers and the log-probabilities of the masked clips, (F, B, N, k, C)."""
    answers = [_answer(method, question, truth, k) for method in methods]
    for method, regions in zip(methods, answers, strict=True):
        check_regions(regions, question, k, name=method.name)
    # All methods in one go: controls share the tubes of the methods they control.
    boxes = torch.cat([regions.boxes for regions in answers], dim=2)
    masked = masked_log_probabilities(classifier, question, boxes, fills=fills)
    yield from zip(methods, answers, torch.split(masked, k, dim=3), strict=True)


def _identity(methods: Sequence[Method | TruthMethod], classifier: VideoClassifier, source: Source) -> dict[str, Any]:
    """Return what must be equal, beside the settings, for an evaluation to go on; as JSON gives it back."""
    return {
        "data's fingerprint": fingerprint(source),
        "classifier": method_fingerprint(classifier),
        "methods": {method.name: method_fingerprint(method) for method in methods},
        "device": classifier.device.type,
        "versions": versions(),
    }


def _notes(found: State, methods: Sequence[Method | TruthMethod], source: Source) -> list[str]:
    likes = {method.name: getattr(getattr(method, "like", None), "name", None) for method in methods}
    right, known = torch.cat(found.clips).bool().unbind(1)
    return notes_on(
        {name: without_words(tally.whole()) for name, tally in found.tallies.items()},
        {name: like for name, like in likes.items() if like is not None},
        words=len(source.attribute_names),
        boxes=bool(known.any()),
        right=bool((right & known).any()),
    )


def _results(
    found: State, classifier: VideoClassifier, origin: Mapping[str, Any], *, seed: int, clips: bool
) -> Results:
    """Sum up what was found; a method that answered nothing has no figures."""
    summaries = {}
    for name, tally in found.tallies.items():
        figures = without_words(tally.whole())
        if figures["answered"].any():
            del figures[WORDED]
            kept = tally.records if clips else None
            summaries[name] = summarise(figures, frames=classifier.frames, seed=seed, clips=kept)
    right = torch.cat(found.clips)[:, :1]
    accuracy = means_with_intervals({"accuracy": right}, seed=seed)["accuracy"]
    told = ClassifierResults(accuracy, len(classifier.classes), classifier.architecture, classifier.settings)
    return Results(told, summaries, origin)


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


def truth_of(source: Source, batch: ClipBatch) -> Truth:
    """Lay out what a source says about a batch of its clips."""
    tracks = boxes_of(batch)
    frames, device = batch.clips.shape[2], batch.clips.device
    boxes, known = annotated_boxes(tracks, source.attribute_names, frames=frames)
    actors, _ = annotated_boxes(tracks, (ACTOR,), frames=frames)
    return Truth(batch.labels, source.table.to(device), boxes.to(device), known.to(device), actors[:, 0].to(device))


def _answer(method: Method | TruthMethod, question: Question, truth: Truth, k: int) -> Regions:
    """Only baselines that are made of the truth see it."""
    return method.with_truth(question, truth, k) if isinstance(method, TruthMethod) else method(question, k)


def _described(source: Source) -> str:
    return repr(source) if is_dataclass(source) else type(source).__name__
