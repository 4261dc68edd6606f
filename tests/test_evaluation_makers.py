"""Map makers: highest where the difference is made, the same by hand, nothing left behind."""

from dataclasses import replace

import pytest
import torch
from torch.nn.functional import interpolate

from toy_squares import FRAMES, LEFT, RIGHT, SIDE, SIZE, Adder, Squares, ask
from whytube.classifiers import C3DResNet
from whytube.evaluation.methods import MAKERS
from whytube.evaluation.methods.gradients import attributions
from whytube.evaluation.methods.maps import AREA
from whytube.search.grad_cam import margins
from whytube.search.score import log_odds
from whytube.search.verify import ask as ask_about


def peak(maps):
    """Row and column of the largest cell, summed over time, in pixels of 32 x 32: (B, N, 2)."""
    place = interpolate(maps.sum(2), size=(SIZE, SIZE), mode="bilinear").flatten(2).argmax(-1)
    return torch.stack([place // SIZE, place % SIZE], -1)


@pytest.fixture(scope="module")
def network():
    torch.manual_seed(0)
    return C3DResNet(Squares.classes, width=1 / 16, frames=FRAMES, size=(SIZE, SIZE)).eval()


@pytest.fixture(scope="module")
def asked(network):
    return ask_about(network, Squares().batch("test", range(2)).clips, negatives=2)


@pytest.mark.parametrize("name", MAKERS)
def test_a_map_is_highest_at_the_square_that_makes_the_difference(name):
    question, _ = ask(3)
    maps = MAKERS[name].make(Adder(), question, 0)
    assert maps.shape[:2] == (3, 2)
    assert maps.isfinite().all()
    found = peak(maps)
    assert ((found[..., 1] >= LEFT) & (found[..., 1] < LEFT + SIDE)).all(), "the bright square makes all classes"
    assert ((found[..., 0] >= 12) & (found[..., 0] < 12 + SIDE + FRAMES)).all()
    other = replace(question, positive=torch.tensor([1, 2, 0]), negative=torch.tensor([[0], [1], [2]]))
    found = peak(MAKERS[name].make(Adder(), other, 0))
    assert ((found[..., 1] >= RIGHT) & (found[..., 1] < RIGHT + SIDE)).all(), "the dim one speaks for the next class"


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("context", [torch.no_grad, torch.inference_mode])
def test_nothing_is_left_behind(name, context, network):
    network.train()
    network.norm.eval()
    before = {key: value.clone() for key, value in network.state_dict().items()}
    with context():
        question = ask_about(network, torch.rand(1, 3, FRAMES, SIZE, SIZE), negatives=1)
        maps = MAKERS[name].make(network, question, 0)
        assert not torch.is_grad_enabled()
    assert not maps.requires_grad
    assert network.training
    assert not network.norm.training
    assert all(parameter.grad is None for parameter in network.parameters())
    assert all(torch.equal(value, before[key]) for key, value in network.state_dict().items())
    network.eval()


@pytest.mark.parametrize("name", MAKERS)
def test_a_map_is_the_same_again_and_in_any_batch(name, network, asked):
    maps = MAKERS[name].make(network, asked, 3)
    torch.testing.assert_close(MAKERS[name].make(network, asked, 3), maps, rtol=1e-4, atol=1e-5)
    alone = ask_about(network, asked.clips[1:], negatives=2)
    one = MAKERS[name].make(network, alone, 3)
    assert torch.corrcoef(torch.stack([one.flatten(), maps[1:].flatten()]))[0, 1] > 0.99
    if name == "rise":
        assert not torch.allclose(MAKERS[name].make(network, asked, 4), maps, rtol=1e-2)


def test_finer_and_hires_cam_by_hand(network, asked):
    """With a mean and one fc layer the slope is the same at every cell: HiResCAM is Grad-CAM."""
    grad, hires = (MAKERS[name].make(network, asked, 0) for name in ("grad-cam", "hires-cam"))
    torch.testing.assert_close(hires, grad, rtol=1e-4, atol=1e-6)
    finer = MAKERS["finer-cam"].make(network, asked, 0)
    last, weight = network.features(asked.clips).maps[-1].detach(), network.head[-1].weight.detach()
    for b in range(2):
        mine = asked.positive[b]
        others = weight[[c for c in range(4) if c != mine]].mean(0)  # of four classes all others are similar ones
        slope = (weight[mine] - 0.6 * others) / last[0, 0].numel()
        expected = torch.einsum("d,dthw->thw", slope, last[b]).relu()
        torch.testing.assert_close(finer[b], expected.expand_as(finer[b]), rtol=1e-4, atol=1e-6)


def test_scout_by_hand():
    """The toy's classes each look at one colour: what speaks for A times what does not for B."""
    question, _ = ask(1)
    asked = replace(question, positive=torch.tensor([0]), negative=torch.tensor([[1, 3]]))
    maps = MAKERS["scout"].make(Adder(), asked, 0)[0]
    red, green = Adder().features(question.clips).maps[-1][0, :2].detach()
    mine, theirs = red / red.max(), (60 * green - 30 * red).relu()
    slope = Adder.weights[0] - torch.softmax(question.features.logits[0, 1:], 0) @ Adder.weights[1:]
    sure = (slope[:, None, None, None] * Adder().features(question.clips).maps[-1][0].detach()).sum(0).relu()
    torch.testing.assert_close(maps[1], mine * sure / sure.max(), rtol=1e-3, atol=1e-4)
    torch.testing.assert_close(maps[0], maps[1] * (1 - theirs / theirs.max()), rtol=1e-3, atol=1e-4)


def test_integrated_gradients_are_complete(network, asked):
    """They sum up to what the margin is above that of a black clip."""
    points = [(step + 0.5) / 64 for step in range(64)]
    total = attributions(network, asked, points).sum((2, 3, 4))
    apart = margins(asked.positive, asked.negative)
    expected = apart(network(asked.clips)) - apart(network(torch.zeros_like(asked.clips)))
    torch.testing.assert_close(total, expected.detach(), rtol=0.05, atol=1e-2)


def test_integrated_gradients_are_those_of_captum(network, asked):
    captum = pytest.importorskip("captum.attr")
    apart = margins(asked.positive, asked.negative)
    found = attributions(network, asked, [(step + 0.5) / 8 for step in range(8)])
    simple = attributions(network, asked, (1.0,))
    for n in range(2):
        method = captum.IntegratedGradients(lambda clips, n=n: _wide(apart, network, clips)[:, n])
        theirs = method.attribute(asked.clips, n_steps=8, method="riemann_middle").sum(1).detach()
        torch.testing.assert_close(found[:, n], theirs.float(), rtol=1e-3, atol=1e-5)
        method = captum.InputXGradient(lambda clips, n=n: apart(network(clips))[:, n])
        clips = asked.clips.clone().requires_grad_()
        torch.testing.assert_close(simple[:, n], method.attribute(clips).sum(1).detach(), rtol=1e-3, atol=1e-5)


def _wide(apart, network, clips):
    """Captum asks about all points at once: the clips in turn, again and again; ask about one turn at a time."""
    return torch.cat([apart(network(part)) for part in clips.split(2)])


def test_an_extremal_mask_has_its_area_and_lowers_the_margin():
    question, _ = ask(3, negatives=1)
    model = Adder().eval()
    masks = MAKERS["extremal"].make(model, question, 0)
    assert torch.allclose((masks > 0.5).float().mean((2, 3, 4)), torch.tensor(AREA), atol=0.02)
    large = interpolate(masks, size=question.clips.shape[2:], mode="trilinear")
    apart = margins(question.positive, question.negative)
    after, before = apart(model(question.clips * (1 - large))), apart(question.features.logits)
    assert (before - after > 2).all()


def test_occlusion_is_what_masking_does():
    question, _ = ask(1, negatives=1)
    model = Adder().eval()
    maps = MAKERS["occlusion"].make(model, question, 0)
    assert maps.shape == (1, 1, 4, 8, 8)
    changed = question.clips.clone()
    changed[:, :, :2, :8, :8] = 0  # only this box covers the first cell
    rise = log_odds(model(changed).detach(), question.negative) - log_odds(question.features.logits, question.negative)
    torch.testing.assert_close(maps[:, :, 0, 0, 0], rise)
