"""Explanations without words: regions of any classifier, each checked."""

from dataclasses import replace

import pytest
import torch

from toy_squares import LEFT, RIGHT, Adder, Squares, ask
from whytube.errors import ArgumentError
from whytube.explaining import explain
from whytube.report import overlay_video, write_report
from whytube.search.grad_cam import SAME, GradCamRegions
from whytube.search.verify import VERIFYING_FILL
from whytube.tubes import box_masks, erase
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
            masks = box_masks(regions.boxes[b, n], (32, 32)).flatten(1)[torch.isfinite(regions.scores[b, n])].float()
            both, area = masks @ masks.T, masks.sum(1)
            overlap = both / (area[:, None] + area - both)
            assert float(overlap.fill_diagonal_(0).max()) <= SAME
            assert len(masks) < 12, "the rest is padding"
            assert (regions.boxes[b, n, len(masks) :] == 0).all()


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
