"""Results of evaluations that ended early, or were shared among processes."""

import pytest
import torch

from studies.partial import _read
from toy_squares import WORDS, Adder, Squares
from whytube.evaluation import evaluate
from whytube.evaluation.methods import Centre


@pytest.fixture
def states(tmp_path):
    """States of one evaluation in two parts, and of another one."""
    paths = [tmp_path / f"{name}.part.safetensors" for name in ("one", "two", "other")]
    for path, clips, options in zip(paths, (3, 5, 3), ({}, {}, {"fills": ("mean",)}), strict=True):
        evaluate([Centre(WORDS)], Adder(), Squares(clips), state=path, **options)
    return paths


def test_states_are_put_together(states):
    found, run, clips = _read(states[:2])
    assert (found.done, clips, run["negatives"]) == (8, 8, found.same["negatives"])
    parts = [_read([path])[0] for path in states[:2]]
    for name, values in found.tallies["centre"].whole().items():
        own = torch.cat([part.tallies["centre"].whole()[name] for part in parts])
        assert torch.equal(values.nan_to_num(-1), own.nan_to_num(-1)), name
    assert torch.cat(found.clips).shape == (8, 3)


def test_a_state_of_another_evaluation_is_refused(states):
    with pytest.raises(SystemExit, match="of another evaluation: its fills is"):
        _read([states[0], states[2]])
