import math
from dataclasses import replace

import pytest
import torch

from whytube.errors import ArgumentError
from whytube.training import EXPLAINER_RECIPES, RECIPES, Recipe, find_recipe


def test_the_paper_says():
    paper = find_recipe("paper")
    assert (paper.optimizer, paper.lr, paper.momentum, paper.weight_decay) == ("sgd", 0.1, 0.9, 1e-3)
    assert paper.batch_size == 64
    assert paper.erase == 0
    assert (paper.clips, paper.schedule, paper.flip) == (100 * 2284, "steps", 0.5), "not in the paper: ours"


@pytest.mark.parametrize("recipes", [RECIPES, EXPLAINER_RECIPES], ids=["classifier", "explainer"])
def test_a_laptop_is_shown_few_clips(recipes):
    laptop = recipes["laptop"]
    assert laptop.clips <= 600
    assert laptop.batch_size <= 8
    assert laptop.precision == "float32"
    assert laptop.distinct is None, (
        "the source keeps clips up to a limit; `distinct` would keep them again, without one"
    )


@pytest.mark.parametrize("name", RECIPES)
def test_every_recipe_has_a_sane_schedule(name):
    recipe = RECIPES[name]
    rates = [recipe.lr_at(step) for step in range(recipe.steps)]
    assert all(0 < rate <= recipe.lr for rate in rates)
    assert max(rates) == pytest.approx(recipe.lr, rel=0.01)
    assert rates[-1] < 0.02 * recipe.lr


def test_schedules():
    base = Recipe(clips=100, batch_size=1, lr=1.0)
    constant, steps, cosine = (replace(base, schedule=s) for s in ("constant", "steps", "cosine"))
    assert constant.lr_at(99) == 1.0
    assert [steps.lr_at(s) for s in (0, 49, 50, 74, 75, 99)] == [1.0, 1.0, 0.1, 0.1, 0.01, 0.01]
    assert cosine.lr_at(0) == 1.0
    assert cosine.lr_at(50) == pytest.approx(0.5)
    warm = replace(cosine, warmup=0.1)
    assert [warm.lr_at(s) for s in (0, 4, 10)] == pytest.approx([1 / 11, 5 / 11, 1.0])
    assert warm.lr_at(55) == pytest.approx(0.5)


def test_erasing_comes_in_slowly():
    recipe = Recipe(clips=100, batch_size=1, erase=0.4)
    assert [recipe.erase_at(s) for s in (0, 25, 50, 99)] == pytest.approx([0.0, 0.2, 0.4, 0.4])


def test_optimizers():
    weights = [torch.nn.Parameter(torch.ones(2))]
    sgd = Recipe(clips=64, lr=0.3, momentum=0.8).build_optimizer(weights)
    assert isinstance(sgd, torch.optim.SGD)
    assert (sgd.defaults["lr"], sgd.defaults["momentum"]) == (0.3, 0.8)
    adamw = Recipe(clips=64, optimizer="adamw", weight_decay=0.02).build_optimizer(weights)
    assert isinstance(adamw, torch.optim.AdamW)
    assert (adamw.defaults["betas"], adamw.defaults["weight_decay"]) == ((0.9, 0.999), 0.02)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"optimizer": "lion"}, "`optimizer` must be one of 'sgd', 'adamw', got 'lion'"),
        ({"schedule": "linear"}, "`schedule` must be one of"),
        ({"precision": "float16"}, "`precision` must be one of"),
        ({"clips": 63}, "`clips` must be an integer of at least 64, got 63"),
        ({"lr": -1.0}, "`lr` must be a number of at least 0, got -1.0"),
        ({"lr": math.nan}, "`lr` must be"),
        ({"erase": 1.5}, "`erase` must be a number from 0 to 1.0, got 1.5"),
        ({"erase_area": (0.3, 0.1)}, "`erase_area` must be two fractions"),
        ({"erase_area": 0.3}, "`erase_area` must be two fractions"),
        ({"erase_area": ("a", "b")}, "`erase_area` must be two fractions"),
        ({"lr": True}, "`lr` must be a number of at least 0, got True"),
        ({"distinct": 0}, "`distinct` must be an integer of at least 1, got 0"),
    ],
)
def test_wrong_values(change, message):
    with pytest.raises(ArgumentError, match=message):
        Recipe(**({"clips": 64} | change))


def test_unknown_recipe():
    with pytest.raises(ArgumentError, match=r"unknown recipe 'demos'\. Did you mean 'demo'\?"):
        find_recipe("demos")
