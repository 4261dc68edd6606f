"""Explanations without words: regions of any classifier, each checked."""

from dataclasses import replace

import pytest
import torch

from toy_explainer import tiny_classifier
from toy_source import Tints
from toy_squares import LEFT, RIGHT, Adder, Squares, ask, ask_next
from whytube.classifiers.base import Features
from whytube.errors import ArgumentError
from whytube.explaining import explain
from whytube.report import overlay_video, write_report
from whytube.search import verify
from whytube.search.anytime import Effort
from whytube.search.regions import Predicted, RegionSearch, predictor_of
from whytube.search.response import untrained_response
from whytube.search.score import value
from whytube.search.verify import SAME, SELECTING_FILLS, Question
from whytube.tubes import box_masks, erase, region_iou
from whytube.video import Clip, write_video


def test_the_region_that_makes_the_difference_comes_first():
    question = ask_next(3)
    regions = RegionSearch(Adder().eval())(question, 2)
    assert regions.boxes.shape == (3, 1, 2, 4, 4)
    assert (regions.attribute_ids == -1).all()
    centre = (regions.boxes[:, :, 0, :, 0] + regions.boxes[:, :, 0, :, 2]) / 2
    there = regions.boxes[:, :, 0, :, 2] > 0
    assert there.any(-1).all()
    assert (centre[there] - (LEFT + 4)).abs().max() < 5, "the bright square at the left makes all three classes"
    asked = replace(question, positive=torch.tensor([1, 2, 0]), negative=question.positive[:, None])
    other = RegionSearch(Adder().eval())(asked, 1).boxes[:, 0, 0]
    shown = other[other[..., 2] > 0]
    assert ((shown[:, 0] + shown[:, 2]) / 2 - (RIGHT + 4)).abs().max() < 5, "the dim one speaks for the next class"


def test_scores_are_what_masking_does():
    question, _ = ask(2)
    model = Adder().eval()
    regions = RegionSearch(model)(question, 3)
    for b, n, r in torch.isfinite(regions.scores).nonzero().tolist():
        mask = box_masks(regions.boxes[b, n, r], model.size)[None]
        clip = slice(b, b + 1)
        features = Features(question.features.logits[clip], ())
        one = Question(question.clips[clip], features, question.positive[clip], question.negative[clip, n : n + 1])
        masked = [model(erase(one.clips, mask, fill=fill)).detach() for fill in SELECTING_FILLS]
        expected = sum(float(value(one, logits[None, None])) for logits in masked) / len(masked)
        assert float(regions.scores[b, n, r]) == pytest.approx(expected, abs=1e-2)
    ranked = regions.scores.diff(dim=-1)
    assert (ranked[~ranked.isnan()] <= 0).all()


def test_answers_do_not_repeat_each_other():
    question, _ = ask(2)
    regions = RegionSearch(Adder().eval())(question, 17)
    for b in range(2):
        for n in range(2):
            tubes = regions.boxes[b, n][torch.isfinite(regions.scores[b, n])]
            assert float(region_iou(tubes[:, None], tubes).fill_diagonal_(0).max()) <= SAME
            assert len(tubes) < 17, "no more than were tried, the rest is padding"
            assert (regions.boxes[b, n, len(tubes) :] == 0).all()


@pytest.fixture
def video(tmp_path):
    return write_video(tmp_path / "squares.mp4", Squares().batch("test", [0]).clips[0], 8.0, crf=0)


def test_from_file_to_page_without_a_word(video, tmp_path):
    explanation = explain(video, Adder().train(), why_not="green", k=2)
    assert explanation.settings["objective"] == "ours-regions"
    assert explanation.reasons[0].moved
    count = sum(bool(reason.moved) for reason in explanation.reasons)
    said = "the marked region" if count == 1 else f"the {count} marked regions"
    assert explanation.sentence.startswith("classified as red, not green, ")
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


def test_effort_and_area_are_kept_and_told():
    model = Adder().eval()
    search = RegionSearch(model).with_effort(Effort(tubes=7, area=0.05))
    assert search.settings == {"objective": "ours-regions", "score": "search score", "effort": 7, "area": 0.05}
    question, _ = ask(1)
    regions = search(question, 1)
    sides = regions.boxes[..., 2:] - regions.boxes[..., :2]
    assert (sides.prod(-1).sum(-1) <= 0.05 * 4 * 32 * 32 + 1e-2).all()
    assert (regions.masked_clips == 2 * 7).all()
    with pytest.raises(ArgumentError, match="`k` must be an integer of at least 1, got 0"):
        search(question, 0)


def test_predictions_alone_try_nothing():
    model = tiny_classifier(frames=4, size=(32, 32))
    clips = Tints(size=32, frames=4).batch("test", range(2)).clips
    question = verify.ask(model, clips, negatives=2)
    response = untrained_response(model)
    regions = Predicted(model, response)(question, 2)
    assert regions.boxes.shape == (2, 2, 2, 4, 4)
    assert (regions.attribute_ids == -1).all()
    assert regions.scores[..., 0].isfinite().all()
    assert (regions.masked_clips >= 512 * response.cost).all(), "a prediction costs its share of a run"
    predictions = regions.masked_clips / response.cost
    torch.testing.assert_close(predictions, predictions.round(), rtol=0, atol=1e-3)
    again = Predicted(model, response)(question, 2)
    assert torch.equal(regions.boxes, again.boxes)


def test_networks_that_cannot_be_cut_are_not_predicted():
    question, _ = ask(1)
    assert predictor_of(Adder().eval(), question, None) is None
    model = tiny_classifier()
    asked = verify.ask(model, Tints().batch("test", [0]).clips)
    assert predictor_of(model, asked, None).response is untrained_response(model)


def test_moving_moves_the_classifier_and_the_response():
    model = tiny_classifier()
    search = RegionSearch(model, response=untrained_response(model))
    assert search.device.type == "cpu"
    assert search.to("meta") is search
    assert search.device.type == model.device.type == "meta"
    assert search.response.keep.device.type == "meta"
    plain = RegionSearch(Adder())
    assert plain.to("cpu") is plain


def test_another_effort_leaves_the_rest_as_it_is():
    model = tiny_classifier()
    search = RegionSearch(model, response=untrained_response(model))
    for other in (search.with_effort(Effort(tubes=3)), search.regions(Effort(tubes=3))):
        assert other.effort.tubes == 3
        assert other.classifier is model
        assert other.response is search.response
    assert search.effort == Effort()


def test_the_search_has_rounds():
    question, _ = ask(1)
    search = RegionSearch(Adder().eval(), Effort(tubes=9))
    answers = list(search.rounds(question, 1))
    assert len(answers) == len(Effort(tubes=9).rounds())
    assert torch.equal(answers[-1].boxes, search(question, 1).boxes)
