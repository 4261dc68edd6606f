import json
import subprocess
import sys

import pytest
import torch
from whytube.cache import cached_weights
from whytube.weights import PULLABLE, describe, list_models, listing
from whytube.weights.i3d_kinetics import BRANCHES, CLASS_LAYER, convert_i3d

from whytube.classifiers import I3D
from whytube.errors import ModelError
from whytube.models import classifier_file as checkpoint
from whytube.models import load_backbone, save_classifier


@pytest.fixture(autouse=True)
def empty_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("WHYTUBE_CACHE", str(tmp_path / "cache"))


def keep_weights(name):
    """Put random weights into the cache, as if pulled."""
    cached_weights(name).parent.mkdir(parents=True)
    torch.manual_seed(0)
    return save_classifier(cached_weights(name), I3D(PULLABLE[name].classes, frames=8), provenance={})


def test_what_is_shipped_and_what_can_be_pulled():
    rows = {row.name: row for row in list_models()}
    assert rows["demo"].status == "shipped"
    assert rows["demo"].accuracy == 1.0
    assert (rows["i3d-kinetics-400"].status, rows["i3d-kinetics-400"].classes) == ("not pulled", 400)
    keep_weights("i3d-kinetics-400")
    row = next(row for row in list_models() if row.name == "i3d-kinetics-400")
    assert (row.status, row.size) == ("cached", cached_weights(row.name).stat().st_size)


def test_shipped_models_say_what_they_need(monkeypatch, tmp_path):
    base = keep_weights("i3d-kinetics-400")
    folder = tmp_path / "shipped" / "mine"
    folder.mkdir(parents=True)
    tuned = load_backbone("i3d-kinetics-400", ["a", "b"])
    save_classifier(folder / "classifier.safetensors", tuned, provenance={}, base="i3d-kinetics-400")
    assert (folder / "classifier.safetensors").stat().st_size < 100_000
    for module in (listing, checkpoint):
        monkeypatch.setattr(module, "SHIPPED", folder.parent)
    row = list_models()[0]
    assert (row.name, row.status, row.base) == ("mine", "shipped", "i3d-kinetics-400")
    base.unlink()
    assert list_models()[0].status == "needs i3d-kinetics-400"


def test_a_card_is_known_before_the_weights_are():
    card = describe("i3d-kinetics-400")
    assert card.classes[:2] == ("abseiling", "air drumming")
    assert card.classes == tuple(sorted(set(card.classes)))
    assert len(card.classes) == 400
    assert "Apache-2.0" in card.provenance["licence"]
    assert describe("demo").architecture == "c3d-resnet"
    with pytest.raises(ModelError, match="no weights are called 'i4d'"):
        describe("i4d")


def test_published_names_find_their_place():
    torch.manual_seed(0)
    model = I3D(["a", "b"], frames=8)
    for name, buffer in model.named_buffers():
        if "running" in name:
            buffer.uniform_(0.5, 2.0)
    state = model.state_dict()
    found = convert_i3d(published(state))
    assert found.keys() == state.keys()
    assert all(torch.equal(found[name], state[name]) for name in state)


def published(state):
    """Write our state as the published file does."""

    def kernel(name):
        return state[f"{name}.conv.weight"].permute(2, 3, 4, 1, 0).numpy()

    def unit(name):
        norm = {key: state[f"{name}.norm.running_{key}"].view(1, 1, 1, 1, -1).numpy() for key in ("mean", "var")}
        bias = state[f"{name}.norm.bias"].numpy()
        return {"Conv_0": {"kernel": kernel(name)}, "BatchNorm_0": {"bias": bias}}, {"BatchNorm_0": norm}

    params, stats = {}, {}
    for stage in dict.fromkeys(name.split(".")[1] for name in state if name.startswith("stages.")):
        if stage.startswith("Mixed"):
            pairs = {theirs: unit(f"stages.{stage}.{ours}") for theirs, ours in BRANCHES.items()}
            params[stage] = {theirs: pair[0] for theirs, pair in pairs.items()}
            stats[stage] = {theirs: pair[1] for theirs, pair in pairs.items()}
        else:
            params[stage], stats[stage] = unit(f"stages.{stage}")
    layer = {"kernel": state["head.weight"].T[None, None, None].numpy(), "bias": state["head.bias"].numpy()}
    params[CLASS_LAYER] = {"Conv_0": layer}
    return {"params": params, "batch_stats": stats}


def test_the_command_line():
    def run(*words):
        command = [sys.executable, "-m", "whytube", "models", *words]
        return subprocess.run(command, capture_output=True, text=True)

    listed = json.loads(run("list", "--json").stdout)
    assert [row["name"] for row in listed] == ["demo", "jhmdb-i3d", "i3d-kinetics-400"]
    assert "not pulled" in run("list").stdout
    assert len(json.loads(run("info", "i3d-kinetics-400", "--json").stdout)["classes"]) == 400
    assert "c3d-resnet" in run("info", "demo").stdout
    wrong = run("info", "i4d")
    assert (wrong.returncode, "models pull" in wrong.stderr) == (2, True)
