"""`whytube evaluate` with an effort: what ours costs, and that peers may cost as much."""

import json
import sys

import pytest

from toy_explainer import saved_model, tiny_classifier, tiny_explainer
from whytube.cli import main
from whytube.data.world import World
from whytube.models import load_classifier, save_explainer
from whytube.search.anytime import Effort
from whytube.search.response import untrained_response


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    world = World(size=32, frames=4)
    classifier = tiny_classifier(world.classes, frames=4, size=(32, 32))
    made = tiny_explainer(classifier=classifier, words=world.attribute_names, table=world.table)
    return saved_model(tmp_path_factory.mktemp("models") / "tiny", made)


@pytest.fixture
def evaluated(folder, monkeypatch, capsys):
    """Evaluate a tiny model on two clips: a function from options to the results."""

    def run(*words):
        options = ("--count", "2", "--negatives", "1", "--fills", "mean", "--device", "cpu", "--json")
        monkeypatch.setattr(sys, "argv", ["whytube", "evaluate", "--model", str(folder), *options, *words])
        with pytest.raises(SystemExit) as end:
            main()
        said = capsys.readouterr()
        assert end.value.code == 0, said.err
        return json.loads(said.out)["methods"]

    return run


def test_verified_peers_cost_what_ours_does(evaluated):
    found = evaluated("--effort", "quick", "--peers", "random-verified")
    response = untrained_response(tiny_classifier(World().classes, frames=4, size=(32, 32)))
    expected = Effort(tubes=6).masked_clips(response)
    assert found["ours"]["masked_clips"] >= 0.9 * expected
    assert found["random-verified"]["masked_clips"] == pytest.approx(2 * round(expected / 2))


def test_tubes_of_peers_may_be_said(evaluated):
    found = evaluated("--effort", "3", "--tubes", "5", "--peers", "random-verified")
    assert found["random-verified"]["masked_clips"] == pytest.approx(10)


def test_the_search_without_words_and_predictions_alone(evaluated):
    found = evaluated("--effort", "quick", "--peers", "ours-regions,predicted")
    assert {"ours", "ours-regions", "predicted"} <= set(found)
    assert found["ours-regions"]["word_in_class"] is None
    assert found["predicted"]["masked_clips"] > 0


def test_all_negatives_and_several_pairs(evaluated):
    found = evaluated("--effort", "1", "--peers", "centre", "--negatives", "all", "-k", "2", "--fills", "mean,zero")
    others = len(World().classes) - 1
    for method in found.values():
        assert len(method["curve"]["top1"]) == len(method["fills"]["zero"]["curve"]["top3"]) == others
        assert len(method["ranks"]) == 2
        assert {"concept_accuracy", "fills", "negative_class_accuracy"} <= set(method["ranks"][1])


@pytest.mark.parametrize("given", ["most", "0", "24", "-1"])
def test_other_numbers_of_negatives_are_refused(folder, given, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["whytube", "evaluate", "--model", str(folder), f"--negatives={given}"])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 2
    assert "from 1 to 23" in capsys.readouterr().err


def test_what_is_due_to_what_stands_in_every_table(evaluated, folder, tmp_path):
    classifier = load_classifier(folder)
    world = World(size=32, frames=4)
    paper = tiny_explainer("paper", classifier=classifier, words=world.attribute_names, table=world.table)
    file = save_explainer(tmp_path / "explainer.safetensors", paper, provenance={})
    found = evaluated("--effort", "2", "--with", str(file))
    assert {"ours", "paper", "ours-unverified", "paper+verified"} <= set(found)
    assert found["ours-unverified"]["masked_clips"] == found["paper"]["masked_clips"] == 0
    assert found["paper+verified"]["masked_clips"] >= 4
    alone = evaluated("--effort", "2", "--peers", "ours-unverified,paper+verified")
    assert set(alone) == {"ours", "ours-unverified"}, "nothing to verify"
    assert set(evaluated("--effort", "2", "--regions", "--peers", "ours-unverified")) == {"ours-regions"}
