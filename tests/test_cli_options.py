"""Models from a reader's own file."""

import sys

import pytest

from whytube.classifiers.base import VideoClassifier
from whytube.errors import ModelError
from whytube.models import load_model

OWN = """
from __future__ import annotations

from dataclasses import dataclass

from torch import nn

import whytube


@dataclass
class Settings:
    channels: int = 4
    classes: tuple[str, ...] = ("jump", "run")


def build():
    made = Settings()
    net = nn.Sequential(
        nn.Conv3d(3, made.channels, 4, 4), nn.AdaptiveAvgPool3d(1), nn.Flatten(), nn.Linear(made.channels, 2)
    )
    return whytube.wrap(net, classes=made.classes, frames=4, size=(32, 32))
"""


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Return a function that writes a file and names what to take from it; imports are forgotten afterwards."""
    monkeypatch.setattr(sys, "modules", dict(sys.modules))
    monkeypatch.setattr(sys, "path", list(sys.path))

    def write(name, text):
        (tmp_path / name).write_text(text)
        return f"{tmp_path / name}:build"

    return write


def test_a_file_may_have_dataclasses_with_postponed_annotations(write):
    found = load_model(write("own_network.py", OWN), device="cpu")
    assert isinstance(found.classifier, VideoClassifier)
    assert found.classifier.classes == ("jump", "run")


def test_a_file_that_fails_leaves_no_module(write):
    with pytest.raises(ModelError, match="failed with ZeroDivisionError"):
        load_model(write("broken_network.py", "half = 1\nrest = 1 / 0\n"), device="cpu")
    assert not any("broken_network" in name for name in sys.modules)


def test_a_file_does_not_take_the_place_of_a_module_of_its_name(write):
    import random

    load_model(write("random.py", OWN), device="cpu")
    assert sys.modules["random"] is random
