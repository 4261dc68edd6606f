import pytest
import torch

from toy_squares import WORDS, Adder, Knowing, Squares
from whytube.evaluation import Results, evaluate
from whytube.evaluation.compare import COMPARED, compare, paired, references
from whytube.evaluation.methods import MAKERS, Centre, MapMethod
from whytube.evaluation.results import Comparison


def table(seed, mean, clips=80, negatives=3):
    values = torch.rand(clips, negatives, generator=torch.Generator().manual_seed(seed)).double()
    return (values < mean).double()


def test_a_difference_its_interval_and_its_chance():
    large, small, none = paired([table(0, 0.8) - table(1, 0.4), table(2, 0.5) - table(3, 0.5), table(4, 0) * 0], seed=0)
    assert large.difference == pytest.approx(0.4, abs=0.1)
    assert 0.2 < large.low < large.difference < large.high < 0.6
    assert large.p == 0.0001, "none of 9999 exchanges is as far"
    assert small.low < 0 < small.high
    assert small.p > 0.05
    assert none == Comparison(0, 0, 0, 1)


def test_p_values_are_right_where_there_is_no_difference():
    gaps = [table(2 * seed, 0.3) - table(2 * seed + 1, 0.3) for seed in range(200)]
    p = torch.tensor([told.p for told in paired(gaps, seed=1)])
    assert (p < 0.05).float().mean() < 0.1
    assert 0.3 < p.mean() < 0.7


def test_it_agrees_with_all_exchanges():
    gap = torch.tensor([[0.5], [0.25], [-0.1], [0.7], [0.0]]).double()
    signs = torch.cartesian_prod(*[torch.tensor([-1.0, 1.0])] * 5).double()
    exact = float(((signs @ gap).abs() >= gap.sum() - 1e-9).double().mean())
    assert paired([gap], seed=0)[0].p == pytest.approx(exact, abs=0.02)


def test_only_cases_that_both_define_count():
    nan = torch.nan
    (told,) = paired([torch.tensor([[1.0, nan], [nan, nan], [0.5, 0.0]])], seed=0)
    assert told.difference == 0.5
    assert paired([torch.full((3, 2), nan)], seed=0) == [None]


def test_who_is_compared():
    every = ["ours", "ours-regions", "ours-unverified", "ours+class", "paper", "paper-sgd", "centre"]
    assert references(every) == ["ours", "ours-regions", "paper"], "the paper's own claim is against the centre"
    assert references(["grad-cam", "centre"]) == ["grad-cam"]
    figures = {
        name: {path: table(seed, 0.5)[..., None] for path in COMPARED[:2]} for seed, name in enumerate(("x", "ours"))
    }
    found = compare(figures, seed=0)
    assert {one: {other: list(paths) for other, paths in others.items()} for one, others in found.items()} == {
        "ours": {"x": list(COMPARED[:2])}
    }
    assert compare({"alone": figures["x"]}, seed=0) == {}


def test_results_carry_them(tmp_path):
    model, source = Adder(), Squares(6)
    methods = [Knowing(), Centre(WORDS), MapMethod(model, MAKERS["grad-cam"])]
    results = evaluate(methods, model, source, fills=("mean",))
    told = results.comparisons["knowing"]
    assert list(told) == ["centre", "grad-cam"]
    here, there = (results.methods[name].figure("positive_drop").mean for name in ("knowing", "centre"))
    assert told["centre"]["positive_drop"].difference == pytest.approx(here - there, abs=1e-5)
    assert "concept_accuracy.top1" in told["centre"]
    assert "concept_accuracy.top1" not in told["grad-cam"], "it says no words"
    assert Results.load(results.save(tmp_path / "results.json")) == results
