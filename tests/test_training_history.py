"""Curves as TensorBoard reads them back."""

import contextlib
import sys

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from whytube.errors import ArgumentError
from whytube.training.history import Record, tensorboard

RECORDS = (
    Record(step=20, clips=160, lr=0.1, loss=2.5, accuracy=0.25, seconds=1.0),
    Record(step=40, clips=320, lr=0.05, loss=1.5, accuracy=0.5, seconds=2.0, val_accuracy=0.75),
)


def read_curves(folder):
    """Every scalar in an event folder: name -> [(step, value)]."""
    events = EventAccumulator(str(folder)).Reload()
    return {name: [(e.step, e.value) for e in events.Scalars(name)] for name in events.Tags()["scalars"]}


def test_records_become_scalars_at_their_steps(tmp_path):
    with tensorboard(tmp_path / "curves") as add:
        for record in RECORDS:
            add(record)
    assert read_curves(tmp_path / "curves") == {
        "loss": [(20, 2.5), (40, 1.5)],
        "accuracy": [(20, 0.25), (40, 0.5)],
        "lr": [(20, pytest.approx(0.1)), (40, pytest.approx(0.05))],
        "val_accuracy": [(40, 0.75)],
    }


def test_steps_that_are_taken_again_are_shown_once(tmp_path):
    for sitting in (RECORDS, RECORDS[1:]):
        with tensorboard(tmp_path / "curves") as add:
            for record in sitting:
                add(record)
    assert read_curves(tmp_path / "curves")["loss"] == [(20, 2.5), (40, 1.5)]


def test_what_was_added_is_there_when_training_fails(tmp_path):
    with contextlib.suppress(ZeroDivisionError), tensorboard(tmp_path / "curves") as add:
        add(RECORDS[0])
        raise ZeroDivisionError
    assert read_curves(tmp_path / "curves")["loss"] == [(20, 2.5)]


def test_a_run_without_records_leaves_no_folder(tmp_path):
    with tensorboard(tmp_path / "curves"):
        pass
    assert list(tmp_path.iterdir()) == []


def test_without_tensorboard_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(ArgumentError, match=r"pip install 'whytube\[tensorboard\]'"), tensorboard(tmp_path):
        pass
