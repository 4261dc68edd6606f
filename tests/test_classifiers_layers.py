"""How layers are watched, and which are chosen of networks whose every part is known."""

from collections import namedtuple

import pytest
import torch
from torch import nn

from toy_networks import Tokens, conv_net
from whytube.classifiers.layers import Trial, choose_layers, hidden, layer_name, named_layers, watching, with_hidden
from whytube.errors import ArgumentError

Pair = namedtuple("Pair", "features more")


def tried(network, frames=4, size=(16, 24), keep=None):
    clip = torch.rand(1, 3, frames, *size, generator=torch.Generator().manual_seed(0)).requires_grad_()
    trial = Trial(network.eval(), frames=frames)
    output = trial.run(lambda: network(clip), keep=keep)
    return trial, output[0] if isinstance(output, tuple) else output


def chosen(network, **clip):
    trial, logits = tried(network, **clip)
    return tuple(choose_layers(trial, logits, order=None, grid=None))


class Detour(nn.Module):
    """A side branch that nobody reads runs last."""

    def __init__(self):
        super().__init__()
        self.main, self.side = conv_net(), nn.Conv3d(3, 4, 4, 4)

    def forward(self, clips):
        logits = self.main(clips)
        self.side(clips)
        return logits


def test_the_last_map_and_the_last_finer_one():
    assert chosen(conv_net()) == ("0", "1"), "outermost names of the two grids"
    assert chosen(Detour()) == ("main.0", "main.1"), "not what the logits do not depend on"
    one_grid = nn.Sequential(nn.Conv3d(3, 4, 4, 4), nn.Conv3d(4, 4, 1), nn.Flatten(), nn.Linear(96, 3))
    assert chosen(one_grid) == ("1",)


def test_blocks_of_tokens():
    assert chosen(Tokens(read="mean")) == ("layers.1", "layers.2")
    assert chosen(Tokens(read="class")) == ("layers.0", "layers.1"), "the last block's cells are not read"
    assert chosen(Tokens(read="class", depth=2)) == ("layers.0",)


def test_nothing_that_fits():
    with pytest.raises(ArgumentError, match=r"no layer of Sequential gives .*: 0 \(1, 4608\), 1 \(1, 3\), the model"):
        chosen(nn.Sequential(nn.Flatten(), nn.Linear(4608, 3)))
    frozen = conv_net()
    trial, logits = tried(frozen)
    with pytest.raises(ArgumentError, match="that its logits depend on"):
        choose_layers(trial, logits.detach(), order=None, grid=None)


def test_named_layers_come_finer_first():
    trial, _ = tried(conv_net(), keep=["1", "0"])
    assert tuple(named_layers(trial, ["1", "0"], order=None, grid=None)) == ("0", "1")
    trial, _ = tried(Tokens(), keep=["layers.0.linear1"])
    found = named_layers(trial, ["layers.0.linear1"], order=None, grid=(2, 4, 6))
    assert found["layers.0.linear1"].grid == (2, 4, 6)
    with pytest.raises(ArgumentError, match="ran 0 times"):
        named_layers(trial, ["patches.none"], order=None, grid=None)


def test_names_of_modules():
    network = conv_net()
    assert layer_name(network, network[0][1]) == layer_name(network, "0.1") == "0.1"
    with pytest.raises(ArgumentError, match="unknown layer"):
        layer_name(network, "7")


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
