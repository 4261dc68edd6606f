from dataclasses import replace

import pytest
import torch

from toy_squares import LEFT, RIGHT, Adder, Squares, ask
from whytube.classifiers import C3DResNet
from whytube.classifiers.base import Features
from whytube.evaluation.methods import GradCam
from whytube.evaluation.methods.grad_cam import box_means, contrastive_maps
from whytube.explainer.regions import Question


def test_the_tube_follows_what_speaks_for_a():
    question, _ = ask(3)
    regions = GradCam(Adder(), Squares.table, side=8 / 32)(question, 1)
    centre = (regions.boxes[..., :2] + regions.boxes[..., 2:]).mean(3)[:, :, 0] / 2
    assert (centre[..., 0] - (LEFT + 4)).abs().max() < 2.5, "the bright square at the left makes all three classes"
    assert (centre[..., 1] - 17.5).abs().max() < 2.5


def test_the_negative_decides_where_to_look():
    question, _ = ask(1)
    asked = replace(question, positive=torch.tensor([1]), negative=torch.tensor([[3, 0]]))
    regions = GradCam(Adder(), side=8 / 32)(asked, 1)
    assert ((regions.boxes[0, :, 0, :, 0] - RIGHT).abs() < 3).all(), "the green square, whoever is asked about"
    assert (regions.attributes == -1).all(), "without a table there are no words"


def test_words_that_separate_come_first():
    question, _ = ask(1)
    asked = replace(question, positive=torch.tensor([0]), negative=torch.tensor([[1, 2, 3]]))
    regions = GradCam(Adder(), Squares.table)(asked, 2)
    assert regions.attributes[0, :2].tolist() == [[0, 1], [1, 0]]


def test_background_shortens_tubes():
    question, _ = ask(3)
    lengths = []
    for background in (0.0, 0.99999):
        boxes = GradCam(Adder(), background=background)(question, 1).boxes
        lengths.append(float((boxes[..., 2] > boxes[..., 0]).float().sum(-1).mean()))
    assert lengths[0] == 4
    assert lengths[1] < 4


def test_k_tubes_keep_apart():
    question, _ = ask(1)
    regions = GradCam(Adder(), Squares.table, side=8 / 32, background=0.0)(question, 3)
    assert regions.boxes.shape == (1, 2, 3, 4, 4)
    assert (regions.scores.diff(dim=-1) <= 0).all()
    assert not torch.equal(regions.boxes[0, 0, 0], regions.boxes[0, 0, 1])


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


def test_a_flat_map_still_has_an_answer():
    clips = torch.zeros(1, 3, 4, 32, 32)
    features = Features(torch.zeros(1, 4), ())
    question = Question(clips, features, torch.tensor([0]), torch.tensor([[1]]))
    regions = GradCam(Adder())(question, 1)
    assert regions.scores.isfinite().all()
