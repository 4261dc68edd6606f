import json
from dataclasses import replace

import pytest
import torch

from interruption import InterruptionError, interrupt_at, same
from toy_source import Tints
from whytube.classifiers import I3D, C3DResNet
from whytube.errors import ArgumentError, ModelError
from whytube.models import load_backbone, load_classifier, read_card
from whytube.training import RECIPES, Recipe, evaluate_classifier, fit_classifier

QUICK = Recipe(clips=480, batch_size=12, optimizer="adamw", lr=0.01, weight_decay=0.01, warmup=0.1, erase=0.3)


def tiny(seed=0, classes=Tints.classes):
    torch.manual_seed(seed)
    return C3DResNet(classes, width=1 / 16, frames=2, size=(16, 16), stem_stride=2, pools=(1, 2, 1, 2))


def test_it_learns_and_keeps_the_curve():
    model, source, seen = tiny(), Tints(), []
    history = fit_classifier(model, source, QUICK, progress=seen.append, report_every=10, validate=12)
    assert not model.training
    assert [(record.step, record.clips) for record in seen] == [(10, 120), (20, 240), (30, 360), (40, 480)]
    assert history.records == seen
    assert seen[-1].loss < seen[0].loss
    assert seen[-1].val_accuracy is not None
    assert evaluate_classifier(model, source, "test", 60).accuracy > 0.9
    assert model.stem.weight.is_contiguous()


@pytest.mark.parametrize("optimizer", ["adamw", "sgd"])
def test_a_resumed_run_ends_where_an_uninterrupted_one_does(tmp_path, optimizer):
    changes = {"flip": 0.5, "crop": 0.5, "span": 0.5, "light": 0.2, "mix": 0.4, "head_lr": 3.0}
    recipe = replace(QUICK, clips=120, optimizer=optimizer, distinct=30, **changes)
    whole = tiny()
    straight = fit_classifier(whole, Tints(), recipe, report_every=2, out_dir=tmp_path / "whole")
    with pytest.raises(InterruptionError):
        fit_classifier(
            tiny(), Tints(), recipe, report_every=2, save_every=2, out_dir=tmp_path / "b", progress=interrupt_at(6)
        )
    resumed = tiny(seed=9)
    history = fit_classifier(
        resumed, Tints(), recipe, report_every=2, save_every=2, out_dir=tmp_path / "b", resume=True
    )
    assert same(resumed, whole)
    assert not same(resumed, tiny())
    points = [[(r.step, r.loss, r.accuracy, r.lr) for r in h.records] for h in (history, straight)]
    assert points[0] == points[1]


def test_resume_without_a_state_begins_and_without_resume_begins_again(tmp_path):
    recipe = replace(QUICK, clips=24)
    first, second = tiny(), tiny()
    fit_classifier(first, Tints(), recipe, out_dir=tmp_path, resume=True)
    fit_classifier(second, Tints(), recipe, out_dir=tmp_path)
    assert same(first, second)


def test_another_run_is_not_resumed(tmp_path):
    fit_classifier(tiny(), Tints(), replace(QUICK, clips=24), out_dir=tmp_path)
    with pytest.raises(ModelError, match=r"its lr is 0\.01, expected 0\.5\. Use the same settings, or another folder"):
        fit_classifier(tiny(), Tints(), replace(QUICK, clips=24, lr=0.5), out_dir=tmp_path, resume=True)


def test_a_run_on_other_data_or_from_other_weights_is_not_resumed(tmp_path):
    recipe = replace(QUICK, clips=24)
    fit_classifier(tiny(), Tints(30), recipe, out_dir=tmp_path, pretrained="one")
    with pytest.raises(ModelError, match="its data's fingerprint is"):
        fit_classifier(tiny(), Tints(31), recipe, out_dir=tmp_path, resume=True, pretrained="one")
    for other in ("another", None):
        with pytest.raises(ModelError, match="its pretrained is 'one', expected"):
            fit_classifier(tiny(), Tints(30), recipe, out_dir=tmp_path, resume=True, pretrained=other)
    fit_classifier(tiny(), Tints(30), recipe, out_dir=tmp_path, resume=True, pretrained="one")


def test_what_is_left_in_the_folder(tmp_path):
    model, recipe = tiny(), replace(QUICK, clips=24)
    history = fit_classifier(model, Tints(), recipe, out_dir=tmp_path / "new", provenance={"data": "tints"})
    folder = tmp_path / "new"
    assert same(load_classifier(folder / "classifier.safetensors"), model)
    card = read_card(folder / "classifier.safetensors")
    assert card.recipe is not None
    assert card.recipe["lr"] == 0.01
    assert card.provenance == {"data": "tints"}
    assert json.loads((folder / "history.json").read_text()) == history.to_dict()


def test_going_on_with_other_classes_from_a_trained_backbone(tmp_path):
    fit_classifier(tiny(), Tints(), QUICK, out_dir=tmp_path)

    class Renamed(Tints):
        classes = ("rose", "leaf", "snow")

    model = load_backbone(tmp_path / "classifier.safetensors", Renamed.classes)
    fit_classifier(model, Renamed(), replace(QUICK, clips=144))
    assert evaluate_classifier(model, Renamed(), "test", 30).accuracy > 0.9


def test_clips_are_not_mirrored_where_a_name_has_a_side():
    class Sided(Tints):
        attribute_names = ("reddish", "left foot")

    history = fit_classifier(tiny(), Sided(), replace(QUICK, clips=12, flip=0.5))
    assert history.notes == ["no clip was mirrored: 'left foot' would become wrong"]
    assert fit_classifier(tiny(), Tints(), replace(QUICK, clips=12, flip=0.5)).notes == []


def test_divergence_is_said():
    model = tiny()
    torch.nn.init.constant_(model.head[0].weight, float("inf"))
    with pytest.raises(ModelError, match=r"training diverged .*Lower the learning rate"):
        fit_classifier(model, Tints(), replace(QUICK, clips=12))


def test_wrong_arguments():
    with pytest.raises(ArgumentError, match="`model` must be for the classes of the source"):
        fit_classifier(tiny(classes=("a", "b")), Tints(), QUICK)
    with pytest.raises(ArgumentError, match="`source` must be one with clips to train on"):
        fit_classifier(tiny(), Tints(0), QUICK)
    with pytest.raises(ArgumentError, match="`report_every` must be an integer of at least 1, got 0"):
        fit_classifier(tiny(), Tints(), QUICK, report_every=0)


def test_a_network_without_stages_says_so():
    with pytest.raises(ArgumentError, match="c3d-resnet has no stages to freeze, such as 'Mixed_4b'"):
        fit_classifier(tiny(), Tints(), replace(QUICK, clips=12, freeze="Mixed_4b"))


def test_the_laptop_recipe_changes_the_head_alone():
    model = I3D(Tints.classes, frames=2, size=(16, 16)).eval()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    fit_classifier(model, Tints(12), replace(RECIPES["laptop"], clips=8, batch_size=4))
    changed = {name for name, tensor in model.state_dict().items() if not torch.equal(tensor, before[name])}
    assert changed == {"head.weight", "head.bias"}


class Always(C3DResNet):
    """Says the same class whatever it sees."""

    def forward(self, clips):
        return torch.eye(3, device=clips.device)[1].expand(len(clips), 3)


@pytest.fixture
def always():
    return Always(Tints.classes, width=1 / 16, frames=2, size=(16, 16))


def test_accuracy_and_confusion(always):
    accuracy, confusion = evaluate_classifier(always, Tints(), "test", 10, batch_size=4)
    assert accuracy == pytest.approx(0.3)
    assert confusion.tolist() == [[0, 4, 0], [0, 3, 0], [0, 3, 0]]
    assert always.training, "the mode is left as it was"
    always.blocks[0].eval()
    evaluate_classifier(always, Tints(), "test", 4)
    assert not always.blocks[0].training, "of every part"


def test_all_clips_where_they_have_an_end(always):
    assert evaluate_classifier(always, Tints(5), "test").confusion.sum() == 5
    assert evaluate_classifier(always, Tints(5), "test", 100).confusion.sum() == 5
    with pytest.raises(ArgumentError, match="`count` must be a number, as there is no end of clips in 'test'"):
        evaluate_classifier(always, Tints(), "test")
    with pytest.raises(ArgumentError, match="`count` must be an integer of at least 1, got 0"):
        evaluate_classifier(always, Tints(0), "test")
