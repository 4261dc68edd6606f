import json
import math

import pytest
import torch

from whytube.evaluation.summary import means_with_intervals, nested, plain, summarise

NAN = math.nan


def figures_of(values, **more):
    """Figures (M, N, k) with one accuracy given and the others constant."""
    values = torch.tensor(values, dtype=torch.float64)
    same = torch.ones_like(values)
    figures = {"negative_class_accuracy.top1": values, "negative_class_accuracy.top3": same, "positive_drop": same}
    figures |= {f"log_probability.{name}": value for name, value in figures.items() if name.startswith("neg")}
    figures |= {"concept_accuracy.top1": same * NAN, "tube_frames": same * 0.5, "answered": same}
    return figures | more


def test_means_leave_out_what_is_not_defined():
    figures = {"a": torch.tensor([[1.0, NAN], [0.0, 0.0]]), "b": torch.tensor([[NAN, NAN], [NAN, NAN]])}
    means, intervals = means_with_intervals(figures, seed=0)
    assert means == {"a": pytest.approx(1 / 3, abs=1e-6), "b": None}
    assert intervals == {"a": [0, 1], "b": [None, None]}


def test_curve_averages_over_the_most_probable():
    results = summarise(figures_of([[[1], [0], [0]], [[1], [1], [0]]]), frames=4, seed=0)
    assert results["curve"]["top1"] == [1, 0.75, 0.5]
    assert results["curve"]["top3"] == [1, 1, 1]
    assert results["curve"]["top1"][-1] == results["negative_class_accuracy"]["top1"]
    assert results["log_probability"]["curve"]["top1"] == [1, 0.75, 0.5]
    assert results["intervals"]["curve"]["top1"][0] == [1, 1]
    assert len(results["intervals"]["log_probability"]["curve"]["top3"]) == 3


def test_the_best_region_makes_the_figures():
    results = summarise(figures_of([[[1, 0]], [[1, 1]]]), frames=4, seed=0)
    assert results["negative_class_accuracy"]["top1"] == 1
    assert [rank["negative_class_accuracy"]["top1"] for rank in results["ranks"]] == [1, 0.5]
    assert set(results["ranks"][0]) == {"negative_class_accuracy", "positive_drop", "concept_accuracy"}


def test_lengths_are_counted():
    frames = torch.tensor([[[0.25], [NAN]], [[1.0], [0.25]]])
    results = summarise(figures_of([[[1], [1]], [[1], [1]]], tube_frames=frames), frames=4, seed=0)
    assert results["tube_lengths"] == [1, 2, 0, 0, 1]


def test_json_can_hold_it():
    results = summarise(figures_of([[[1], [0]]]), frames=4, seed=0)
    assert json.loads(json.dumps(results, allow_nan=False)) == results
    assert results["concept_accuracy"] == {"top1": None}
    assert results["intervals"]["concept_accuracy"] == {"top1": [None, None]}


def test_small_things():
    assert nested({"a.b.c": 1, "a.d": 2, "e": 3}) == {"a": {"b": {"c": 1}, "d": 2}, "e": 3}
    assert plain(1 / 3) == 0.333333
    assert plain(NAN) is None
