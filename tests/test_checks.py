import pytest
import torch

from whytube.checks import check_choice, check_int, check_tensor, find_name, unknown_name
from whytube.data.world import World
from whytube.errors import ArgumentError, WhytubeError
from whytube.evaluation import make_methods
from whytube.explainer.explainer import find_objective
from whytube.models import build_classifier, find_device, load_model
from whytube.training import Recipe, find_recipe
from whytube.video import sample_indices


def test_one_wording():
    with pytest.raises(ArgumentError, match=r"^`clip` must be of shape \(3, T, H, W\), got \(16, 3, 8\)$"):
        check_tensor(torch.zeros(16, 3, 8), "clip", "(3, T, H, W)", ndim=4)
    with pytest.raises(ArgumentError, match=r"^`radius` must be an integer from 0 to 3, got True$"):
        check_int(True, "radius", 0, 3)
    with pytest.raises(ArgumentError, match=r"^`fill` must be one of 'mean', 'blur', got 'red'$"):
        check_choice("red", "fill", ["mean", "blur"])


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: check_choice("blurr", "fill", ["mean", "blur"]), "got 'blurr'. Did you mean 'blur'?"),
        (lambda: find_device("cdua"), "unknown device 'cdua': use cpu, cuda or cuda:N. Did you mean 'cuda'?"),
        (lambda: find_recipe("laptp"), "unknown recipe 'laptp'. Did you mean 'laptop'?"),
        (lambda: build_classifier("i3", ["a", "b"]), "unknown classifier preset 'i3'. Did you mean 'i3d'?"),
        (lambda: find_objective("two-sidd"), "unknown objective 'two-sidd'. Did you mean 'two-sided'?"),
        (lambda: make_methods(["centr"], None, None), "unknown method 'centr'. Did you mean 'centre'?"),
        (lambda: sample_indices(4, frames=2, sampling="unifrm"), "Did you mean 'uniform'?"),
        (lambda: World().count("tset"), "Did you mean 'test'?"),
        (lambda: Recipe(clips=64, schedule="cosin"), "Did you mean 'cosine'?"),
        (lambda: build_classifier("i3d", ["a", "b"], dropot=0.1), "Did you mean 'dropout'?"),
        (lambda: load_model("jhmdb-i3"), "unknown model 'jhmdb-i3'. Did you mean 'jhmdb-i3d'?"),
        (lambda: check_choice(7, "fill", ["mean"]), "got 7"),
    ],
)
def test_a_name_with_a_typo_gets_a_suggestion(make, told):
    with pytest.raises(ArgumentError) as caught:
        make()
    assert str(caught.value).endswith(told)


def test_checks_return_what_passed():
    tensor = torch.zeros(2, 2)
    assert check_tensor(tensor, "x", "(A, B)", ndim=2) is tensor
    assert check_int(3, "k", 1) == 3
    assert check_choice("mean", "fill", ["mean"]) == "mean"


def test_unknown_names_suggest_the_nearest():
    known = ["LongJump", "PoleVault"]
    assert str(unknown_name("class", "Long jmp", known)) == "unknown class 'Long jmp'. Did you mean 'LongJump'?"
    assert str(unknown_name("class", "zzz", known)) == "unknown class 'zzz'. Known: LongJump, PoleVault"


def test_names_may_be_written_otherwise_where_that_leaves_one_choice():
    known = ["climb_stairs", "Run", "run", "re-run"]
    assert find_name("class", "Climb Stairs", known) == 0
    assert find_name("class", "run", known) == 2, "an exact name comes first"
    assert find_name("class", "RERUN", known) == 3
    for name in ("RUN", "climb stair"):
        with pytest.raises(ArgumentError, match="unknown class"):
            find_name("class", name, known)


def test_errors_are_one_tree():
    assert issubclass(ArgumentError, WhytubeError)
    assert issubclass(ArgumentError, ValueError)


def test_a_name_that_is_far_from_all_is_not_guessed():
    assert "Known: jig, waltz" in str(unknown_name("class", "swing", ["waltz", "jig"]))
