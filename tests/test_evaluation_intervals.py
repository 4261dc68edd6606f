import math

import pytest
import torch

from whytube.errors import ArgumentError
from whytube.evaluation.intervals import bootstrap, over_seeds


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


def test_wrong_arguments():
    with pytest.raises(ArgumentError, match="`level` must be between 0 and 1"):
        bootstrap(torch.ones(1, 1), torch.ones(1, 1), seed=0, level=95)
    with pytest.raises(ArgumentError, match="`results` must be at least one"):
        over_seeds([])


def result(seed, accuracy, drop):
    method = {
        "positive_drop": drop,
        "concept_accuracy": {"top1": None},
        "curve": {"top1": [drop, 1.0]},
        "intervals": {"positive_drop": [0, 1]},
        "tube_lengths": [0, 3],
        "clips": None,
    }
    return {
        "classifier": {"accuracy": accuracy, "classes": 3},
        "methods": {"centre": method},
        "provenance": {"seed": seed, "commit": "abc"},
    }


def test_over_seeds_keeps_the_form():
    runs = [result(0, 0.9, 0.1), result(1, 0.8, 0.2), result(2, 0.7, 0.6)]
    merged = over_seeds(runs)
    centre = merged["methods"]["centre"]
    assert set(centre) == set(runs[0]["methods"]["centre"])
    assert centre["positive_drop"] == pytest.approx(0.3)
    assert centre["concept_accuracy"] == {"top1": None}
    assert centre["curve"] == {"top1": [pytest.approx(0.3), 1.0]}
    assert centre["tube_lengths"] == [0, 9]
    low, high = centre["intervals"]["positive_drop"]
    assert 0.1 <= low < 0.3 < high <= 0.6
    assert centre["intervals"]["curve"]["top1"][1] == [1, 1]
    assert merged["classifier"]["accuracy"] == pytest.approx(0.8)
    assert merged["classifier"]["accuracies"] == [0.9, 0.8, 0.7]
    low, high = merged["classifier"]["interval"]
    assert 0.7 <= low < 0.8 < high <= 0.9
    assert merged["classifier"]["classes"] == 3
    assert merged["provenance"] == {"seed": [0, 1, 2], "commit": "abc"}


def test_splits_are_listed_where_they_differ():
    runs = [result(0, 0.9, 0.1), result(0, 0.8, 0.2)]
    for split, run in enumerate(runs):
        run["provenance"] |= {"data": f"jhmdb-{split}", "model": "i3d"}
    origin = over_seeds(runs)["provenance"]
    assert origin == {"seed": [0, 0], "commit": "abc", "data": ["jhmdb-0", "jhmdb-1"], "model": "i3d"}


def test_seeds_must_have_run_the_same_methods():
    other = result(1, 0.9, 0.1)
    other["methods"]["grad-cam"] = other["methods"]["centre"]
    with pytest.raises(ArgumentError, match="`results` must be of the same methods"):
        over_seeds([result(0, 0.9, 0.1), other])
