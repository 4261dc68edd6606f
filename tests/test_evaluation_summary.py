import json
import math

import pytest
import torch

from whytube.evaluation.results import Figure, MethodResults
from whytube.evaluation.summary import bootstrap, means_with_intervals, plain, summarise

NAN = math.nan


def figures_of(values, **more):
    """Figures (M, N, k) with one accuracy given and the others constant."""
    values = torch.tensor(values, dtype=torch.float64)
    same = torch.ones_like(values)
    figures = {"negative_class_accuracy.top1": values, "negative_class_accuracy.top3": same, "positive_drop": same}
    figures |= {
        f"{lead}.{name}": value for name, value in figures.items() for lead in ("log_probability", "fills.mean")
    }
    figures |= {"concept_accuracy.top1": same * NAN, "tube_frames": same * 0.5, "answered": same}
    return figures | more


def test_means_leave_out_what_is_not_defined():
    figures = {"a": torch.tensor([[1.0, NAN], [0.0, 0.0]]), "b": torch.tensor([[NAN, NAN], [NAN, NAN]])}
    found = means_with_intervals(figures, seed=0)
    assert found == {"a": Figure(0.333333, 0, 1), "b": Figure()}


def test_curve_averages_over_the_most_probable():
    results = summarise(figures_of([[[1], [0], [0]], [[1], [1], [0]]]), frames=4, seed=0)
    assert [point.mean for point in results.curves["curve.top1"]] == [1, 0.75, 0.5]
    assert [point.mean for point in results.curves["curve.top3"]] == [1, 1, 1]
    assert results.curves["curve.top1"][-1] == results.figure("negative_class_accuracy.top1")
    assert [point.mean for point in results.curves["log_probability.curve.top1"]] == [1, 0.75, 0.5]
    assert results.curves["curve.top1"][0] == Figure(1, 1, 1)
    assert len(results.curves["log_probability.curve.top3"]) == 3
    assert len(results.curves) == 4, "none for single fills"


def test_the_best_region_makes_the_figures():
    results = summarise(figures_of([[[1, 0]], [[1, 1]]]), frames=4, seed=0)
    assert results.figure("negative_class_accuracy.top1").mean == 1
    assert [rank["negative_class_accuracy.top1"].mean for rank in results.ranks] == [1, 0.5]
    plain_ranks = results.to_dict()["ranks"]
    assert set(plain_ranks[0]) == {"negative_class_accuracy", "positive_drop", "concept_accuracy", "answered"}


def test_the_papers_fill_has_curves_and_ranks_of_its_own():
    zeros = torch.tensor([[[1.0, 0.0], [0.0, 0.0]], [[1.0, 1.0], [1.0, 0.0]]])
    figures = figures_of([[[0, 1], [0, 1]], [[0, 1], [0, 1]]])
    figures |= {f"fills.{fill}.negative_class_accuracy.top1": zeros for fill in ("zero", "blur")}
    results = summarise(figures, frames=4, seed=0)
    assert [point.mean for point in results.curves["fills.zero.curve.top1"]] == [1, 0.75]
    assert [point.mean for point in results.curves["curve.top1"]] == [0, 0]
    assert "fills.blur.curve.top1" not in results.curves
    assert [rank["fills.zero.negative_class_accuracy.top1"].mean for rank in results.ranks] == [0.75, 0.25]
    assert "fills.blur.negative_class_accuracy.top1" not in results.ranks[0]
    assert MethodResults.from_dict(results.to_dict()) == results


def test_lengths_are_counted():
    frames = torch.tensor([[[0.25], [NAN]], [[1.0], [0.25]]])
    results = summarise(figures_of([[[1], [1]], [[1], [1]]], tube_frames=frames), frames=4, seed=0)
    assert results.tube_lengths == [1, 2, 0, 0, 1]


def test_json_can_hold_it():
    results = summarise(figures_of([[[1], [0]]]), frames=4, seed=0)
    found = json.loads(json.dumps(results.to_dict(), allow_nan=False))
    assert found == results.to_dict()
    assert found["concept_accuracy"] == {"top1": None}
    assert found["intervals"]["concept_accuracy"] == {"top1": [None, None]}
    assert MethodResults.from_dict(found) == results


def test_small_things():
    assert plain(1 / 3) == 0.333333
    assert plain(NAN) is None


def test_interval_has_the_width_that_theory_says():
    generator = torch.Generator().manual_seed(0)
    values = (torch.rand(400, 1, generator=generator) < 0.3).double()
    low, high = bootstrap(values, torch.ones_like(values), seed=1)[0].tolist()
    mean = float(values.mean())
    error = math.sqrt(mean * (1 - mean) / 400)
    assert low == pytest.approx(mean - 1.96 * error, abs=0.006)
    assert high == pytest.approx(mean + 1.96 * error, abs=0.006)


def test_interval_is_seeded():
    values = torch.rand(20, 2)
    again = [bootstrap(values, torch.ones_like(values), seed=seed) for seed in (3, 3, 4)]
    assert torch.equal(again[0], again[1])
    assert not torch.equal(again[0], again[2])


def test_cases_weigh_alike_whatever_their_clip():
    sums, counts = torch.tensor([[3.0], [0.0]]), torch.tensor([[3.0], [1.0]])
    low, high = bootstrap(sums, counts, seed=0)[0].tolist()
    assert (low, high) == (0, 1)


def test_empties():
    assert bootstrap(torch.zeros(0, 2), torch.zeros(0, 2), seed=0).isnan().all()
    nothing = bootstrap(torch.zeros(5, 1), torch.zeros(5, 1), seed=0)
    assert nothing.shape == (1, 2)
    assert nothing.isnan().all()
    assert bootstrap(torch.ones(1, 1), torch.ones(1, 1), seed=0).tolist() == [[1, 1]]
