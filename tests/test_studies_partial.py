"""Results of evaluations that ended early."""

import json

import pytest

from studies.partial import main
from test_evaluation_state import StopError, run
from whytube.models import build_classifier, save_classifier
from whytube.models.stored import load_tensors, save_tensors


@pytest.fixture
def state(tmp_path):
    """Stop an evaluation after four of seven clips; return its state."""
    path = tmp_path / "mine.json.part.safetensors"
    with pytest.raises(StopError):
        run(path, stop=4)
    return path


@pytest.fixture
def network(tmp_path):
    model = build_classifier("c3d-resnet-small", ["a", "b"], width=0.1, frames=4, size=(16, 16))
    return save_classifier(tmp_path / "net.safetensors", model, provenance={})


def test_what_was_judged_is_summed_up(state, network, tmp_path):
    main([str(state), "--classifier", str(network), "--out", str(tmp_path / "part.json")])
    found = json.loads((tmp_path / "part.json").read_text())
    origin = found["provenance"]
    assert origin["notes"] == ["The evaluation ended after 4 of 7 clips."]
    assert (origin["settings"]["clips"], origin["model"]) == (4, "mine")
    whole = run(count=4).to_dict()
    assert origin["commit"] == whole["provenance"]["commit"]
    assert found["methods"]["centre"] == whole["methods"]["centre"] | {"clips": None}


def test_a_state_that_does_not_say_where_it_comes_from_is_told(state, network, tmp_path):
    tensors, header = load_tensors(state, kind="evaluation")
    save_tensors(state, tensors, header | {"origin": {}}, kind="evaluation")
    words = [str(state), "--classifier", str(network), "--out", str(tmp_path / "part.json")]
    with pytest.raises(SystemExit, match="does not say where it comes from"):
        main(words)
    main([*words, "--commit", "abc", "--device", "a GPU", "--effort", "96"])
    origin = json.loads((tmp_path / "part.json").read_text())["provenance"]
    assert (origin["commit"], origin["device"], origin["search"]) == ("abc", "a GPU", {"effort": 96})
    assert origin["notes"][-1] == "Commit and device were told, not recorded."
