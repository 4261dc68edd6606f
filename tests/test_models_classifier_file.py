import pytest
import torch
from whytube.cache import cached_weights

from whytube.classifiers import C3DResNet
from whytube.errors import ModelError
from whytube.models import classifier_file as checkpoint
from whytube.models import load_backbone, load_classifier, read_card, save_classifier
from whytube.models.explainer_file import fingerprint
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
    monkeypatch.setattr(checkpoint, "SHIPPED", path.parent)
    assert load_classifier("c").classes == ("run", "jump")
    with pytest.raises(
        ModelError, match=r"no weights are called 'world'.*shipped weights \(c\).*`whytube models pull`"
    ):
        load_classifier("world")
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
        ({"base": {"name": "x"}}, "its card is damaged"),
    ],
)
def test_cards_that_do_not_fit(path, change, message):
    tensors, header = load_tensors(path, kind="classifier")
    save_tensors(path, tensors, header | change, kind="classifier")
    with pytest.raises(ModelError, match=message):
        load_classifier(path)


@pytest.fixture
def base(model, monkeypatch, tmp_path):
    """Put weights called "base" into the cache, as if pulled."""
    monkeypatch.setenv("WHYTUBE_CACHE", str(tmp_path / "cache"))
    cached_weights("base").parent.mkdir(parents=True)
    return save_classifier(cached_weights("base"), model, provenance={})


@pytest.fixture
def tuned(base):
    """Return a classifier for other classes whose last block went on learning."""
    tuned = load_backbone("base", ["walk", "swim", "ride"], seed=1)
    with torch.no_grad():
        for parameter in tuned.blocks[3].parameters():
            parameter.add_(torch.randn_like(parameter) * 0.01)
    return tuned.eval()


def test_pulled_weights_have_a_name(base, model):
    assert load_classifier("base").classes == model.classes
    assert load_backbone("base", ["x", "y"], pooling="max").pooling == "max"
    with pytest.raises(ModelError, match="unknown setting of c3d-resnet 'depth'"):
        load_backbone("base", ["x", "y"], depth=3)


def test_only_names_in_the_cache_are_pulled(base, path):
    assert checkpoint.is_pulled("base")
    assert not checkpoint.is_pulled(base), "a path is a file, wherever it lies"
    assert not checkpoint.is_pulled(path)
    assert not checkpoint.is_pulled("demo"), "a shipped model"
    assert not checkpoint.is_pulled("bass"), "not in the cache"


@pytest.mark.parametrize("half", [False, True])
def test_a_file_that_stands_on_a_base_holds_what_differs(tuned, tmp_path, half):
    path = save_classifier(tmp_path / "t.safetensors", tuned, provenance={}, base="base", half=half)
    stored, _ = load_tensors(path, kind="classifier")
    assert {name.split(".")[0] for name in stored} == {"blocks", "head"}
    assert all(name.startswith(("head.", "blocks.3.")) for name in stored)
    assert stored["blocks.3.conv1.weight"].dtype == (torch.float16 if half else torch.float32)
    assert stored["head.0.weight"].dtype == stored["blocks.3.norm1.bias"].dtype == torch.float32
    loaded = load_classifier(path)
    assert read_card(path).base["name"] == "base"
    assert fingerprint(loaded) == fingerprint(tuned)
    clips = torch.rand(2, 3, 4, 32, 32)
    torch.testing.assert_close(loaded(clips), tuned(clips), rtol=0, atol=1e-3 if half else 0.0)


def test_a_base_must_be_there_and_the_same(tuned, base, tmp_path):
    path = save_classifier(tmp_path / "t.safetensors", tuned, provenance={}, base="base")
    save_classifier(base, C3DResNet(["run", "jump"], **load_classifier("base").settings), provenance={})
    with pytest.raises(ModelError, match="it stands on other weights than the base in the cache"):
        load_classifier(path)
    base.unlink()
    for use in (load_classifier, lambda path: load_backbone(path, ["x", "y"])):
        with pytest.raises(ModelError, match=r"run `whytube models pull base` first"):
            use(path)
    with pytest.raises(ModelError, match=r"run `whytube models pull base` first"):
        save_classifier(path, tuned, provenance={}, base="base")
