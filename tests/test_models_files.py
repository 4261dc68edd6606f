import pytest
import torch

from toy_squares import Adder
from whytube.classifiers import C3DResNet
from whytube.errors import ArgumentError, ModelError
from whytube.models import (
    files,
    fingerprint,
    forget_weights,
    load_backbone,
    load_classifier,
    read_card,
    save_classifier,
    weights_fingerprint,
)
from whytube.models.stored import load_tensors, save_tensors


@pytest.fixture
def model():
    torch.manual_seed(0)
    return C3DResNet(["run", "jump"], width=1 / 16, frames=4, size=(32, 32), fc_layers=2)


@pytest.fixture
def path(model, tmp_path):
    provenance = {"data": "world", "commit": "abc"}
    recipe, metrics = {"lr": 0.1}, {"test accuracy": 0.9}
    return save_classifier(tmp_path / "c.safetensors", model, provenance=provenance, recipe=recipe, metrics=metrics)


def test_a_loaded_classifier_says_the_same(model, path):
    loaded = load_classifier(path)
    clips = torch.rand(2, 3, 4, 32, 32)
    assert not loaded.training
    assert loaded.classes == ("run", "jump")
    assert torch.equal(loaded(clips), model.eval()(clips))


def test_the_card_tells_how_it_came_about(model, path):
    card = read_card(path)
    assert card.architecture == "c3d-resnet"
    assert card.settings == model.settings
    assert card.classes == ("run", "jump")
    assert card.recipe == {"lr": 0.1}
    assert card.metrics == {"test accuracy": 0.9}
    assert card.provenance == {"data": "world", "commit": "abc"}


def test_a_backbone_keeps_all_but_the_head(model, path):
    other = load_backbone(path, ["walk", "swim", "ride"], seed=5)
    assert other.training
    assert other(torch.rand(2, 3, 4, 32, 32)).shape == (2, 3)
    for name, tensor in load_backbone(path, ["walk", "swim", "ride"], seed=5).state_dict().items():
        mine = model.state_dict()[name]
        assert name.startswith("head.") != (mine.shape == tensor.shape and torch.equal(mine, tensor)), name


def test_weights_with_a_name(path, monkeypatch):
    (path.parent / "c").mkdir()
    path.rename(path.parent / "c" / "classifier.safetensors")
    monkeypatch.setattr(files, "SHIPPED", path.parent)
    assert load_classifier("c").classes == load_classifier(path.parent / "c").classes == ("run", "jump")
    assert load_backbone("c", ["x", "y"], pooling="max").pooling == "max"
    with pytest.raises(ModelError, match="unknown setting of c3d-resnet 'depth'"):
        load_backbone("c", ["x", "y"], depth=3)
    with pytest.raises(ArgumentError, match=r"unknown model 'world'\. Known: c"):
        load_classifier("world")
    with pytest.raises(ArgumentError, match=r"unknown model 'cc'\. Did you mean 'c'\?"):
        read_card("cc")
    with pytest.raises(ModelError, match="there is no such file"):
        load_classifier("world.safetensors")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"architecture": "i4d"}, "unknown architecture 'i4d'; this whytube knows c3d-resnet"),
        ({"settings": {"depth": 3}}, "unknown setting of c3d-resnet 'depth'"),
        ({"settings": {"width": 0.125, "frames": 4, "size": [32, 32]}}, "its weights do not fit its settings"),
        ({"settings": {"fc_layers": 9}}, "`fc_layers` must be"),
        ({"shoes": 2}, "its card is damaged"),
        ({"base": {"name": "x"}}, r"it holds only what differs .* whole file of it with studies/whole_weights\.py"),
    ],
)
def test_cards_that_do_not_fit(path, change, message):
    tensors, header = load_tensors(path, kind="classifier")
    save_tensors(path, tensors, header | change, kind="classifier")
    with pytest.raises(ModelError, match=message):
        load_classifier(path)


def test_half_a_file_keeps_head_and_vectors_exact(model, tmp_path):
    path = save_classifier(tmp_path / "half.safetensors", model, provenance={}, half=True)
    stored, _ = load_tensors(path, kind="classifier")
    assert stored["blocks.3.conv1.weight"].dtype == torch.float16
    assert stored["head.0.weight"].dtype == stored["blocks.3.norm1.bias"].dtype == torch.float32
    loaded = load_classifier(path)
    assert {tensor.dtype for tensor in loaded.parameters()} == {torch.float32}
    assert fingerprint(loaded) == fingerprint(model)
    clips = torch.rand(2, 3, 4, 32, 32)
    torch.testing.assert_close(loaded(clips), model.eval()(clips), rtol=0, atol=1e-3)


def test_fingerprints_tell_weights_apart(model, path, tmp_path):
    copy = save_classifier(tmp_path / "copy.safetensors", model, provenance={"other": "card"})
    assert weights_fingerprint(copy) == weights_fingerprint(path)
    with torch.no_grad():
        model.stem.weight[0, 0, 0, 0, 0] += 1
    save_classifier(copy, model, provenance={})
    assert weights_fingerprint(copy) != weights_fingerprint(path)
    assert fingerprint(load_classifier(copy)) == fingerprint(load_classifier(path)), "explainers look at the head"


def test_weights_are_forgotten_in_place(model):
    before = {name: value.clone() for name, value in model.state_dict().items()}
    forget_weights(model, seed=5)
    fresh = files.construct(model.architecture, model.classes, settings=model.settings, seed=5)
    assert all(torch.equal(value, fresh.state_dict()[name]) for name, value in model.state_dict().items())
    assert not torch.equal(model.state_dict()["stem.weight"], before["stem.weight"])
    fast = load_classifier("demo").for_inference()
    clip = torch.rand(1, 3, fast.frames, *fast.size)
    learned = fast(clip)
    forget_weights(fast)
    assert not torch.allclose(fast(clip), learned), "also where normalisations are folded into filters"
    with pytest.raises(ModelError, match="cannot make the weights of adder random: only those of c3d-resnet, i3d"):
        forget_weights(Adder())
