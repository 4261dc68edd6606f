"""Explanations without words: regions of any classifier, each checked."""

from dataclasses import replace

import pytest
import torch

from toy_squares import LEFT, RIGHT, Adder, Squares, ask
from whytube.classifiers import C3DResNet
from whytube.errors import ArgumentError
from whytube.explaining import explain
from whytube.report import overlay_video, write_report
from whytube.search.grad_cam import GradCamRegions, box_means, box_tubes, contrastive_maps
from whytube.search.verify import SAME, VERIFYING_FILL
from whytube.tubes import box_masks, erase, region_iou
from whytube.video import Clip, write_video


def test_the_region_that_makes_the_difference_comes_first():
    question, _ = ask(3)
    regions = GradCamRegions(Adder().eval())(question, 2)
    assert regions.boxes.shape == (3, 2, 2, 4, 4)
    assert (regions.attribute_ids == -1).all()
    centre = (regions.boxes[:, :, 0, :, 0] + regions.boxes[:, :, 0, :, 2]) / 2
    there = regions.boxes[:, :, 0, :, 2] > 0
    assert there.any(-1).all()
    assert (centre[there] - (LEFT + 4)).abs().max() < 5, "the bright square at the left makes all three classes"
    asked = replace(question, positive=torch.tensor([1, 2, 0]), negative=question.positive[:, None])
    other = GradCamRegions(Adder().eval())(asked, 1).boxes[:, 0, 0]
    shown = other[other[..., 2] > 0]
    assert ((shown[:, 0] + shown[:, 2]) / 2 - (RIGHT + 4)).abs().max() < 5, "the dim one speaks for the next class"


def test_scores_are_the_rise_of_the_log_odds_once_masked():
    question, _ = ask(2)
    model = Adder().eval()
    regions = GradCamRegions(model)(question, 3)
    for b, n, r in torch.isfinite(regions.scores).nonzero().tolist():
        mask = box_masks(regions.boxes[b, n, r], model.size)[None]
        other = question.negative[b, n]
        after = model(erase(question.clips[b : b + 1], mask, fill=VERIFYING_FILL)).detach().softmax(1)[0, other]
        before = question.features.logits.softmax(1)[b, other]
        rise = torch.logit(after.double()) - torch.logit(before.double())
        assert float(regions.scores[b, n, r]) == pytest.approx(float(rise), abs=1e-2)
    ranked = regions.scores.diff(dim=-1)
    assert (ranked[~ranked.isnan()] <= 0).all()


def test_answers_do_not_repeat_each_other():
    question, _ = ask(2)
    regions = GradCamRegions(Adder().eval())(question, 12)
    for b in range(2):
        for n in range(2):
            tubes = regions.boxes[b, n][torch.isfinite(regions.scores[b, n])]
            assert float(region_iou(tubes[:, None], tubes).fill_diagonal_(0).max()) <= SAME
            assert len(tubes) < 12, "the rest is padding"
            assert (regions.boxes[b, n, len(tubes) :] == 0).all()


@pytest.fixture
def video(tmp_path):
    return write_video(tmp_path / "squares.mp4", Squares().batch("test", [0]).clips[0], 8.0, crf=0)


def test_from_file_to_page_without_a_word(video, tmp_path):
    explanation = explain(video, Adder().train(), why_not="plain", k=2)
    assert explanation.settings["objective"] == "grad-cam-regions"
    assert explanation.reasons[0].moved
    count = sum(bool(reason.moved) for reason in explanation.reasons)
    said = "the marked region" if count == 1 else f"the {count} marked regions"
    assert explanation.sentence.startswith("classified as red, not plain, ")
    assert explanation.sentence.endswith(f"because of {said}")
    overlay = overlay_video(video, explanation, tmp_path / "why.mp4")
    page = write_report(tmp_path / "why.html", explanations=[(explanation, overlay)]).read_text()
    assert said in page
    assert "a region without a word" in page


def test_questions_are_checked_as_with_words():
    frames = Squares().batch("test", [0]).clips[0]
    clip = Clip(frames, [0, 1, 2, 3], [0.0, 0.1, 0.2, 0.3], (32, 32), "made")
    with pytest.raises(ArgumentError, match=r"unknown class 'gren'\. Did you mean 'green'\?"):
        explain(clip, Adder(), why_not="gren")


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
