"""Contrastive Grad-CAM maps, and tubes through them."""

import pytest
import torch

from toy_squares import LEFT, Adder, ask
from whytube.classifiers import C3DResNet
from whytube.search.grad_cam import PER_FORM, SIDES, box_means, box_tubes, contrastive_maps, map_tubes


@pytest.fixture
def network():
    torch.manual_seed(0)
    return C3DResNet(("a", "b", "c", "d"), width=1 / 16, frames=4, size=(32, 32))


def test_maps_are_grad_cam_by_hand(network):
    clips = torch.rand(2, 3, 4, 32, 32)
    positive, negative = torch.tensor([0, 3]), torch.tensor([[1, 2], [0, 1]])
    found = contrastive_maps(network, clips, positive, negative)
    assert found.shape == (2, 2, 4, 2, 2)
    # With a mean and one fc layer, the slope at the map is the difference of the classes' weights over its cells.
    last = network.eval().features(clips).maps[-1].detach()
    weight = network.head[-1].weight.detach()
    for b in range(2):
        for n in range(2):
            slope = (weight[positive[b]] - weight[negative[b, n]]) / last[0, 0].numel()
            assert torch.allclose(found[b, n], torch.einsum("d,dthw->thw", slope, last[b]).relu(), atol=1e-6)


@pytest.mark.parametrize("context", [torch.no_grad, torch.inference_mode])
def test_nothing_is_left_behind(network, context):
    network.train()
    network.norm.eval()
    for parameter in network.parameters():
        parameter.requires_grad_(False)
    before = {name: value.clone() for name, value in network.state_dict().items()}
    with context():
        clips = torch.rand(1, 3, 4, 32, 32)
        contrastive_maps(network, clips, torch.tensor([0]), torch.tensor([[1]]))
        assert not torch.is_grad_enabled()
    assert network.training
    assert not network.norm.training
    assert all(parameter.grad is None and not parameter.requires_grad for parameter in network.parameters())
    assert all(torch.equal(value, before[name]) for name, value in network.state_dict().items())


def test_modes_come_back_after_an_error(network):
    network.train()
    with pytest.raises(ValueError, match="clips"):
        contrastive_maps(network, torch.rand(1, 3, 2, 32, 32), torch.tensor([0]), torch.tensor([[1]]))
    assert network.training


def test_box_means_of_fractional_boxes():
    maps = torch.zeros(1, 1, 5, 5)
    maps[0, 0, 2, 2] = 12.0
    assert box_means(maps, (2.0, 3.0))[0, 0].tolist() == [
        [0, 0, 0, 0, 0],
        [0, 1, 1, 1, 0],
        [0, 2, 2, 2, 0],
        [0, 1, 1, 1, 0],
        [0, 0, 0, 0, 0],
    ]
    assert torch.equal(box_means(maps, (1.0, 0.5)), maps)
    assert torch.allclose(box_means(torch.ones(1, 1, 9, 9), (4.0, 4.0))[0, 0, 4, 4], torch.ones(()))


def test_tubes_follow_what_moves_and_keep_apart():
    maps = torch.zeros(1, 1, 4, 8, 8)
    for t in range(4):
        maps[0, 0, t, 1:4, t : t + 3] = 3.0
        maps[0, 0, t, 5:8, 5:8] = 2.0
    boxes, values = box_tubes(maps, (24, 24), 2, frames=8, size=(64, 64), grid=8, background=0.2)
    assert boxes.shape == (1, 1, 2, 8, 4)
    assert values[0, 0, 0] > values[0, 0, 1] > 0
    best, second = boxes[0, 0]
    assert best[0].tolist() == best[1].tolist() == [0, 8, 24, 32], "a step of the map covers two frames of the clip"
    assert (best[::2, 0].diff() == 8).all()
    assert (second == torch.tensor([40, 40, 64, 64])).all()


def test_every_form_proposes_tubes_and_the_best_come_first():
    question, _ = ask(3)
    boxes, exists = map_tubes(Adder().eval(), question)
    forms = 3 * len(SIDES)
    assert boxes.shape == (3, 2, PER_FORM * forms, 4, 4)
    assert exists.shape == boxes.shape[:3]
    assert exists[:, :, :forms].all(), "the best of each form"
    there = boxes[..., 2] > boxes[..., 0]
    assert torch.equal(there.any(-1), exists)
    best = boxes[:, :, :forms][there[:, :, :forms]]
    assert ((best[:, 0] + best[:, 2]) / 2 - (LEFT + 4)).abs().max() < 5, "on the bright square"
