from collections import namedtuple

import pytest
import torch
from torch import nn

from whytube.classifiers.hooks import hidden, watching, with_hidden

Pair = namedtuple("Pair", "features more")


def test_blocks_may_be_nested():
    network = nn.Linear(2, 2)
    outer, inner = [], []
    with watching({"it": network}, lambda name, output: outer.append(name)):
        network(torch.ones(1, 2))
        with watching({"it": network}, lambda name, output: inner.append(name)):
            network(torch.ones(1, 2))
        network(torch.ones(1, 2))
    network(torch.ones(1, 2))
    assert (outer, inner) == (["it", "it"], ["it"])
    assert not network._forward_hooks


def test_outputs_can_be_replaced():
    network = nn.Sequential(nn.Identity(), nn.Identity())
    with watching({"0": network[0]}, lambda name, output: output + 1):
        assert network(torch.zeros(())) == 1
    assert network(torch.zeros(())) == 0


@pytest.mark.parametrize(
    "output",
    [
        torch.ones(2),
        (torch.ones(2), 3),
        [torch.ones(2)],
        {"last_hidden_state": torch.ones(2), "b": 1},
        Pair(torch.ones(2), 0),
    ],
)
def test_features_are_found_and_exchanged(output):
    assert torch.equal(hidden(output), torch.ones(2))
    changed = with_hidden(output, torch.zeros(2))
    assert type(changed) is type(output)
    assert torch.equal(hidden(changed), torch.zeros(2))
    assert torch.equal(hidden(output), torch.ones(2)), "the output itself stays"


@pytest.mark.parametrize("output", [None, (), (None,), {"other": torch.ones(2)}, torch.ones(2, dtype=torch.long)])
def test_outputs_without_features(output):
    assert hidden(output) is None
