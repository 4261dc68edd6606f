"""The suite: ask every method the same questions about the same clips, and judge the answers alike."""

from __future__ import annotations

from dataclasses import dataclass, field, is_dataclass
from typing import TYPE_CHECKING, Any

import torch

from whytube.checks import check_choice, check_int, fail
from whytube.classifiers.base import evaluating
from whytube.data.source import ACTOR, clips_to_take
from whytube.evaluation.judge import Truth, TruthMethod, check_regions, judge, masked_log_probabilities
from whytube.evaluation.metrics import annotated_boxes
from whytube.evaluation.record import clip_records
from whytube.evaluation.results import ClassifierResults, Results
from whytube.evaluation.summary import means_with_intervals, summarise
from whytube.search.verify import ask
from whytube.tubes import FILLS
from whytube.versions import provenance

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from whytube.classifiers.base import VideoClassifier
    from whytube.data.source import ClipBatch, Source
    from whytube.evaluation.results import MethodResults
    from whytube.search.verify import Method, Question, Regions

JUDGING_FILLS = ("mean", "blur", "freeze")
"""What regions are masked with. The paper's is "zero"; add it to compare to the letter."""


@dataclass
class _Tally:
    """What was found about one method so far."""

    figures: list[dict[str, torch.Tensor]] = field(default_factory=list)
    records: list[dict[str, Any]] = field(default_factory=list)

    def add(self, figures: dict[str, torch.Tensor], records: list[dict[str, Any]]) -> None:
        self.figures.append({name: values.cpu() for name, values in figures.items()})
        self.records += records

    def summary(self, *, frames: int, seed: int, clips: bool) -> MethodResults | None:
        """Results of the method; None where it answered nothing at all."""
        figures = {name: torch.cat([part[name] for part in self.figures]) for name in self.figures[0]}
        if not figures["answered"].any():
            return None
        return summarise(figures, frames=frames, seed=seed, clips=self.records if clips else None)


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
    progress: Callable[[int, int], None] | None = None,
) -> Results:
    """Measure methods as in section 4 of the paper, on the first `count` clips of a split (or all).

    Each clip is asked about with the predicted class as the positive and the `negatives` most probable others; every
    method gives k regions, each is masked with every fill and the classifier run again. Numbers about masked clips are
    means over the fills, and stand under `fills` for each alone.

    A method that answers nothing at all has no figures and is left out of the results: `true-box` and `detector-box`
    where the data have no boxes.

    seed: of the intervals; methods have their own. clips: also keep a short record of every clip. progress: called with
    the clips done and their number, after every batch.
    """
    _check(methods, classifier, source, fills)
    check_int(negatives, "negatives", 1, len(classifier.classes) - 1)
    check_int(k, "k", 1)
    check_int(batch_size, "batch_size", 1)
    total = clips_to_take(source, split, count)
    tallies: dict[str, _Tally] = {method.name: _Tally() for method in methods}
    right: list[torch.Tensor] = []
    classifier.to(device)
    with evaluating(classifier):
        for start in range(0, total, batch_size):
            indices = range(start, min(start + batch_size, total))
            batch = source.batch(split, indices, device)
            question, truth = ask(classifier, batch.clips, negatives=negatives), truth_of(source, batch)
            right.append((question.positive == truth.labels).double().cpu())
            answers = [_answer(method, question, truth, k) for method in methods]
            for method, regions in zip(methods, answers, strict=True):
                check_regions(regions, question, k, name=method.name)
            # All methods in one go: controls share the tubes of the methods they control.
            boxes = torch.cat([regions.boxes for regions in answers], dim=2)
            masked = masked_log_probabilities(classifier, question, boxes, fills=fills)
            for method, regions, after in zip(methods, answers, torch.split(masked, k, dim=3), strict=True):
                figures = judge(regions, question, truth, after=after, fills=fills)
                records = clip_records(indices, source, question, regions, truth, figures, after) if clips else []
                tallies[method.name].add(figures, records)
            if progress is not None:
                progress(indices.stop, total)
    found = {name: tally.summary(frames=classifier.frames, seed=seed, clips=clips) for name, tally in tallies.items()}
    settings = {"data": _described(source), "split": split, "clips": total, "negatives": negatives, "k": k}
    return Results(
        _classifier(classifier, torch.cat(right), seed),
        {name: method for name, method in found.items() if method is not None},
        provenance(torch.device(device), seed=seed) | {"settings": settings | {"fills": list(fills)}},
    )


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
    tracks = getattr(batch, "boxes", None) or [{}] * len(batch.clips)
    frames, device = batch.clips.shape[2], batch.clips.device
    boxes, known = annotated_boxes(tracks, source.attribute_names, frames=frames)
    actors, _ = annotated_boxes(tracks, (ACTOR,), frames=frames)
    return Truth(batch.labels, source.table.to(device), boxes.to(device), known.to(device), actors[:, 0].to(device))


def _answer(method: Method | TruthMethod, question: Question, truth: Truth, k: int) -> Regions:
    """Only baselines that are made of the truth see it."""
    return method.with_truth(question, truth, k) if isinstance(method, TruthMethod) else method(question, k)


def _classifier(classifier: VideoClassifier, right: torch.Tensor, seed: int) -> ClassifierResults:
    accuracy = means_with_intervals({"accuracy": right[:, None]}, seed=seed)["accuracy"]
    return ClassifierResults(accuracy, len(classifier.classes), classifier.architecture, classifier.settings)


def _described(source: Source) -> str:
    return repr(source) if is_dataclass(source) else type(source).__name__
