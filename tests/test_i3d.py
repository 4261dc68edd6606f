import os
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from whytube.classifiers import I3D
from whytube.classifiers.blocks import same_padding
from whytube.classifiers.i3d import Unit
from whytube.errors import ArgumentError
from whytube.models import load_classifier
from whytube.video import read_clip

CLASSES = ["a", "b", "c"]
JHMDB = Path(__file__).parent.parent.parent / "shared" / "data" / "jhmdb" / "clips"


def tiny(**changes):
    torch.manual_seed(0)
    return I3D(CLASSES, **({"frames": 9, "size": (36, 52)} | changes))


def filled(model):
    """Give the normalisations statistics that are not their starting ones."""
    with torch.no_grad():
        for norm in (m for m in model.modules() if isinstance(m, nn.BatchNorm3d)):
            norm.running_mean.normal_(std=0.1)
            norm.running_var.uniform_(0.5, 2.0)
            norm.bias.normal_(std=0.1)
    return model.eval()


def test_it_has_the_published_number_of_weights():
    model = I3D([f"class {i}" for i in range(400)])
    assert sum(p.numel() for p in model.parameters() if p.requires_grad) == 12_689_984
    assert model.size == (144, 192)


@pytest.mark.parametrize(
    ("strides", "times"), [("kinetics", [(9, 3, 2), (16, 4, 2)]), ("one", [(9, 9, 9), (16, 16, 16)])]
)
def test_maps_are_as_long_as_the_strides_say(strides, times):
    for frames, fine, coarse in times:
        model = tiny(frames=frames, temporal_strides=strides)
        assert model.map_shapes() == ((832, fine, 3, 4), (1024, coarse, 2, 2))


@pytest.mark.parametrize(
    ("n", "k", "s", "pads"),
    [(8, 7, 2, (2, 3)), (9, 7, 2, (3, 3)), (8, 3, 2, (0, 1)), (7, 2, 2, (0, 1)), (5, 2, 1, (0, 1)), (1, 2, 2, (0, 1))],
)
def test_same_padding_is_tensorflows(n, k, s, pads):
    assert same_padding((n, 4, 4), (k, 1, 1), (s, 1, 1)) == [pads, (0, 0), (0, 0)]


@pytest.mark.parametrize("n", [8, 9])
def test_a_strided_unit_is_the_convolution_written_out(n):
    unit = Unit(1, 1, 7, stride=(2, 2, 2)).eval()
    x = torch.zeros(1, 1, n, n, n)
    x[0, 0, :, 0, 0] = torch.rand(n)
    kernel = unit.conv.weight.detach()[0, 0].numpy()
    before = {8: 2, 9: 3}[n]
    padded = np.pad(x[0, 0].numpy(), (before, 3))
    by_hand = [(padded[2 * t : 2 * t + 7, :7, :7] * kernel).sum() for t in range(-(-n // 2))]
    norm = np.sqrt(1 + 1e-3)
    found = unit(x)[0, 0, :, 0, 0].detach().numpy()
    np.testing.assert_allclose(found, np.maximum(by_hand, 0) / norm, rtol=1e-4, atol=1e-6)


def test_logits_are_the_mean_over_neighbouring_steps():
    model = tiny(frames=24).eval()
    logits, (_, coarse) = model.features(torch.rand(2, 3, 24, 36, 52))
    steps = coarse.mean((3, 4))
    pairs = (steps[:, :, 1:] + steps[:, :, :-1]) / 2
    assert pairs.shape[2] == 2
    torch.testing.assert_close(logits, model.head(pairs.transpose(1, 2)).mean(1))
    assert tiny(frames=1).eval()(torch.rand(1, 3, 1, 36, 52)).shape == (1, 3)


def test_clips_come_from_0_to_1_and_enter_from_minus_1_to_1():
    model, seen = tiny().eval(), []
    model.stages["Conv3d_1a_7x7"].register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    model(torch.linspace(0, 1, 3 * 9 * 36 * 52).view(1, 3, 9, 36, 52))
    assert (seen[0].min(), seen[0].max()) == (-1, 1)
    with pytest.raises(ArgumentError, match=r"`clips` must be of shape \(B, 3, 9, 36, 52\)"):
        model(torch.rand(1, 3, 9, 52, 36))


@pytest.mark.parametrize("strides", ["kinetics", "one"])
def test_inference_answers_the_same(strides):
    model = filled(tiny(temporal_strides=strides)).double()
    clips = torch.rand(2, 3, 9, 36, 52, dtype=torch.float64)
    with torch.no_grad():
        plain, fast = model.features(clips), model.for_inference().features(clips)
    torch.testing.assert_close(fast, plain)
    assert not any(isinstance(m, nn.BatchNorm3d) for m in model.for_inference().modules())
    assert any(isinstance(m, nn.BatchNorm3d) for m in model.modules())


def test_what_is_frozen_stays_as_it_is_and_the_rest_learns():
    model = filled(tiny(dropout=0.0))
    model.freeze_below("Mixed_4c")
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    model.train()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, weight_decay=0.1)
    model(torch.rand(2, 3, 9, 36, 52)).square().sum().backward()
    optimizer.step()
    names = list(model.stages)
    frozen = tuple(f"stages.{name}." for name in names[: names.index("Mixed_4c")])
    for name, tensor in model.state_dict().items():
        still = name.startswith(frozen) or name.endswith("norm.weight")
        assert torch.equal(tensor, before[name]) == still, name
    assert not model.stages["Mixed_4b"].training
    assert model.stages["Mixed_4c"].training
    assert not model.eval().stages["Mixed_4c"].training


def test_freezing_can_be_moved():
    model = tiny()
    model.freeze_below("head")
    assert {n for n, p in model.named_parameters() if p.requires_grad} == {"head.weight", "head.bias"}
    model.freeze_below("Conv3d_1a_7x7")
    assert all(p.requires_grad != n.endswith("norm.weight") for n, p in model.named_parameters())
    assert model.stages["Mixed_3b"].training
    with pytest.raises(ArgumentError, match="`stage` must be one of 'Conv3d_1a_7x7'"):
        model.freeze_below("Mixed_9z")


def test_settings_build_the_same_network():
    model = tiny(temporal_strides="one", dropout=0.2).eval()
    twin = I3D(CLASSES, **model.settings).eval()
    twin.load_state_dict(model.state_dict())
    clips = torch.rand(1, 3, 9, 36, 52)
    assert torch.equal(twin(clips), model(clips))
    assert twin.settings == model.settings


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"temporal_strides": "two"}, "`temporal_strides` must be one of 'kinetics', 'one', got 'two'"),
        ({"dropout": 1.0}, "`dropout` must be at least 0 and less than 1, got 1.0"),
    ],
)
def test_wrong_settings(changes, message):
    with pytest.raises(ArgumentError, match=message):
        tiny(**changes)


@pytest.mark.slow
@pytest.mark.skipif(not JHMDB.is_dir(), reason="J-HMDB's clips are not here")
@pytest.mark.parametrize(
    ("folder", "names"),
    [
        ("pullup", {"pull ups"}),
        ("golf", {"golf driving", "golf putting", "golf chipping"}),
        ("shoot_bow", {"archery"}),
    ],
)
def test_published_weights_know_kinetics_own_names(folder, names):
    model = load_classifier("i3d-kinetics-400").for_inference()
    files = sorted((JHMDB / folder).glob("*.mp4"))[::6]
    said = []
    with torch.inference_mode():
        for file in files:
            clip = read_clip(os.fspath(file), frames=model.frames, size=model.size)
            said.append(model.classes[int(model(clip.frames[None]).argmax())])
    assert sum(name in names for name in said) > len(files) / 2, said
