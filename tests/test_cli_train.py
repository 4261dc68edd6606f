"""What `train classifier` says of the network that it saved."""

from functools import partial

import pytest
import torch

from toy_source import Tints
from whytube.classifiers import C3DResNet
from whytube.cli.train import _save_and_judge
from whytube.models import load_classifier, read_card, save_classifier
from whytube.training import Recipe, evaluate_classifier, fit_classifier

TINY = 1e-9
"""Nothing is left of filters of this size in float16."""


@pytest.fixture(scope="module")
def model():
    """Train a network; then make its first filters tiny and what normalises them large, for the same answers."""
    torch.manual_seed(0)
    made = C3DResNet(Tints.classes, width=1 / 16, frames=2, size=(16, 16), stem_stride=2, pools=(1, 2, 1, 2))
    fit_classifier(made, Tints(), Recipe(clips=480, batch_size=12, optimizer="adamw", lr=0.01, warmup=0.1))
    norm = made.norm
    with torch.no_grad():
        gain = norm.weight / (norm.running_var + norm.eps).sqrt()
        made.stem.weight.mul_(TINY)
        norm.running_mean.mul_(TINY)
        norm.running_var.mul_(TINY**2)
        norm.weight.copy_(gain / TINY * (norm.running_var + norm.eps).sqrt())
    return made


@pytest.mark.parametrize("half", [False, True])
def test_the_accuracy_is_of_what_the_file_holds(model, tmp_path, half):
    path = tmp_path / "classifier.safetensors"
    save = partial(save_classifier, path, model, provenance={"data": "tints"}, half=half)
    metrics = _save_and_judge(save, Tints(), {"test": 30, "val": 6}, torch.device("cpu"), batch_size=8, seconds=2.0)
    assert {"test clips": 30, "val clips": 6, "seconds": 2.0}.items() <= metrics.items()
    assert metrics["val accuracy"] == evaluate_classifier(load_classifier(path), Tints(), "val", 6).accuracy
    assert read_card(path).metrics == metrics
    assert [file.name for file in tmp_path.iterdir()] == [path.name]
    assert metrics["test accuracy"] == evaluate_classifier(load_classifier(path), Tints(), "test", 30).accuracy
    assert evaluate_classifier(model, Tints(), "test", 30).accuracy > 0.9
    assert (metrics["test accuracy"] > 0.9) == (not half)
