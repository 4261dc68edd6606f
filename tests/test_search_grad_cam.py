"""Contrastive Grad-CAM maps, and tubes through them."""

from dataclasses import replace

import pytest
import torch

from toy_squares import LEFT, Adder, ask
from whytube.classifiers import C3DResNet
from whytube.errors import ModelError
from whytube.search.grad_cam import PER_FORM, SIDES, box_means, box_tubes, contrastive_maps, map_tubes


class Flat(Adder):
    """The adder of wide clips."""

    def __init__(self):
        super().__init__()
        self.size = (8, 32)


class Constant(Adder):
    """Logits that do not depend on what is seen."""

    def features(self, clips):
        found = super().features(clips)
        return found._replace(logits=found.logits.detach())


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
    boxes, values = box_tubes(maps, [(24, 24)], 2, frames=8, size=(64, 64), grid=8, background=0.2)
    assert boxes.shape == (1, 1, 1, 2, 8, 4)
    assert values[0, 0, 0, 0] > values[0, 0, 0, 1] > 0
    best, second = boxes[0, 0, 0]
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


def test_boxes_are_two_and_three_sevenths_square_tall_and_wide():
    question, _ = ask(1)
    boxes, _ = map_tubes(Adder().eval(), question)
    found = boxes[0, 0, :6, 1]  # the best of each form, on the bright square, away from the border
    height, width = (found[:, 3] - found[:, 1]) / 32, (found[:, 2] - found[:, 0]) / 32
    expected = [(side * stretch, side / stretch) for side in (2 / 7, 3 / 7) for stretch in (1, 1.5, 1 / 1.5)]
    torch.testing.assert_close(torch.stack([height, width], 1), torch.tensor(expected))


def test_a_box_is_at_most_the_frame():
    question, _ = ask(1)
    flat = replace(question, clips=question.clips[..., :8, :])
    boxes, exists = map_tubes(Flat().eval(), flat)
    assert (boxes[exists][..., 3] <= 8).all()
    assert (boxes[exists][..., 2] <= 32).all()


def test_without_a_background_tubes_last_the_whole_clip():
    maps = torch.zeros(1, 1, 4, 8, 8)
    maps[0, 0, 2, 1:4, 1:4] = 3.0
    boxes, values = box_tubes(maps, [(24, 24)], 1, frames=4, size=(64, 64), grid=8, background=None)
    assert (boxes[0, 0, 0, 0, :, 2] > 0).all()
    assert boxes[0, 0, 0, 0, 2].tolist() == [8, 8, 32, 32]
    assert float(values) == pytest.approx(3.0 + 4 * 0.003, rel=1e-5), "a thousandth of the range at every step"
    short, _ = box_tubes(maps, [(24, 24)], 1, frames=4, size=(64, 64), grid=8)
    assert (short[0, 0, 0, 0, :, 2] > 0).tolist() == [False, False, True, False]


def test_values_of_tubes_are_above_the_background():
    maps = torch.zeros(1, 1, 1, 8, 8)
    maps[0, 0, 0, 1:4, 1:4] = 3.0
    means = box_means(maps[0], (3.0, 3.0))
    average, best = float(means.mean()), float(means.max())
    for background in (0.5, 0.25):
        _, values = box_tubes(maps, [(24, 24)], 1, frames=1, size=(64, 64), grid=8, background=background)
        assert float(values) == pytest.approx((1 - background) * (best - average), rel=1e-4)
    _, plain = box_tubes(maps, [(24, 24)], 1, frames=1, size=(64, 64), grid=8)
    assert float(plain) == pytest.approx((best - average) / 2, rel=1e-4), "half way to the best by default"


def test_coarse_maps_are_drawn_finer():
    maps = torch.zeros(1, 1, 1, 2, 2)
    maps[0, 0, 0, 0, 0] = 1.0
    boxes, _ = box_tubes(maps, [(8, 8)], 1, frames=1, size=(56, 56))
    centre = (boxes[0, 0, 0, 0, 0, :2] + boxes[0, 0, 0, 0, 0, 2:]) / 2
    assert (centre % 4 == 2).all(), "the centre of one of 14 x 14 cells"
    assert (centre < 28).all()


def test_second_tubes_keep_half_a_box_away():
    maps = torch.zeros(1, 1, 1, 14, 14)
    maps[0, 0, 0, 7] = torch.linspace(1, 2, 14)
    boxes, values = box_tubes(maps, [(12, 24)], 3, frames=1, size=(56, 56), background=0.1)
    centres = ((boxes[0, 0, 0, :, 0, :2] + boxes[0, 0, 0, :, 0, 2:]) / 2)[values[0, 0, 0] > -torch.inf] / 4
    apart = (centres[:, None] - centres).abs().amax(-1)
    assert (apart + 99 * torch.eye(len(centres)) > 2).all(), "the shorter side is three cells"


def test_logits_that_no_map_explains_are_an_error():
    question, _ = ask(1)
    with pytest.raises(ModelError, match="no gradient of the logits reaches the classifier's maps"):
        contrastive_maps(Constant().eval(), question.clips, question.positive, question.negative)
