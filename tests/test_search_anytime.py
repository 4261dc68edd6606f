"""The search in rounds: what it finds, what it costs, what decides it."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from toy_explainer import tiny_classifier
from toy_source import Tints
from toy_squares import LEFT, Adder, Squares, ask, ask_next
from whytube.errors import ArgumentError
from whytube.explanation import MOVED
from whytube.search import anytime, verify
from whytube.search.anytime import (
    CHANGES,
    CLIMBS,
    EFFORTS,
    PARENTS,
    PREDICTED,
    SILENT,
    UNTRIED,
    Effort,
    clip_keys,
    find_effort,
    predict,
    search,
)
from whytube.search.masked import masked_logits
from whytube.search.response import Predictor, untrained_response
from whytube.search.score import margin_fall
from whytube.search.verify import SAME, SELECTING_FILLS, different
from whytube.tubes import box_areas, region_iou


def last(*asked, **more):
    *_, found = search(*asked, **more)
    return found


def predicted(count=2, negatives=2):
    """Return a network that can be run in parts, a question about clips, and what predicts it."""
    model = tiny_classifier(frames=4, size=(32, 32))
    clips = Tints(size=32, frames=4).batch("test", range(count)).clips
    question = verify.ask(model, clips, negatives=negatives)
    return model, question, Predictor(model, untrained_response(model), clips)


@pytest.mark.parametrize("tubes", [1, 2, 3, 4, 5, 7, 12, 16, 100, 192])
def test_rounds_add_up_to_the_effort(tubes):
    rounds = Effort(tubes=tubes).rounds()
    assert sum(rounds) == tubes
    assert min(rounds) >= 1
    assert len(rounds) <= 5


def test_efforts_by_name_and_number():
    assert [find_effort(name) for name in ("quick", "normal", "thorough")] == [6, 16, 192]
    assert find_effort("7") == find_effort(7) == 7
    assert Effort().tubes == EFFORTS["normal"]
    with pytest.raises(ArgumentError, match=r"unknown effort 'quik'\. Did you mean 'quick'\?"):
        find_effort("quik")
    for wrong in (0, "0", -1, "-3", 2.5, True):
        with pytest.raises(ArgumentError, match="`effort` must be an integer of at least 1"):
            find_effort(wrong)
    with pytest.raises(ArgumentError, match=r"'2\.5'\. Known: quick, normal, thorough, or a number of tubes$"):
        find_effort("2.5")


@pytest.mark.parametrize("area", [0, -0.1, 1.5, math.nan, True, "0.1"])
def test_an_area_is_a_fraction(area):
    with pytest.raises(ArgumentError, match="`area` must be a fraction of the clip, more than 0 and at most 1"):
        Effort(area=area)
    Effort(area=1)


def test_seeds_and_tubes_are_checked():
    with pytest.raises(ArgumentError, match="`effort` must be"):
        Effort(tubes=0)
    with pytest.raises(ArgumentError, match="`seed` must be"):
        Effort(seed=-1)
    with pytest.raises(ArgumentError, match="`fit_weight` must be at least 0"):
        Effort(fit_weight=-0.1)
    Effort(fit_weight=0)
    Effort(tubes=1, seed=0)


def test_it_finds_the_bright_square():
    found = last(Adder().eval(), ask_next(3), 1, Effort(tubes=64))
    there = found.boxes[:, 0, 0, :, 2] > 0
    centre = (found.boxes[:, 0, 0, :, :2] + found.boxes[:, 0, 0, :, 2:])[there] / 2
    assert (centre[:, 0] - (LEFT + 4)).abs().max() < 5
    assert (found.scores > 0).all()


def test_later_answers_are_no_worse():
    question, _ = ask(3)
    answers = list(search(Adder().eval(), question, 2, Effort(tubes=40)))
    assert len(answers) == len(Effort(tubes=40).rounds())
    best = torch.stack([found.scores[..., 0] for found in answers])
    assert (best.diff(dim=0) >= 0).all()
    assert (best[-1] > best[0]).any(), "changes of the best find better ones"
    spent = torch.stack([found.masked_clips for found in answers])
    assert (spent.diff(dim=0) > 0).all()


@pytest.mark.parametrize("tubes", [1, 6, 16])
def test_the_cost_is_what_the_network_is_run_for(tubes):
    question, _ = ask(1, negatives=1)
    model = Adder().eval()
    found = last(model, question, 1, Effort(tubes=tubes))
    assert model.seen == found.masked_clips.item() == len(SELECTING_FILLS) * tubes
    assert Effort(tubes=tubes).masked_clips(None) == model.seen


@pytest.mark.parametrize("tubes", [1, 6, 16, 40])
def test_predictions_cost_their_share(tubes, monkeypatch):
    model, question, predictor = predicted(1, 1)
    made = []
    plain = Predictor.__call__
    monkeypatch.setattr(Predictor, "__call__", lambda self, boxes: (made.append(boxes.shape[1]), plain(self, boxes))[1])
    found = last(model, question, 1, Effort(tubes=tubes), predictor=predictor)
    assert sum(made) >= PREDICTED + 8 * PARENTS * CLIMBS
    expected = len(SELECTING_FILLS) * tubes + predictor.response.cost * sum(made)
    assert found.masked_clips.item() == pytest.approx(expected, rel=1e-5)
    assert Effort(tubes=tubes).masked_clips(predictor.response) == pytest.approx(expected, rel=1e-5)


def test_more_proposals_than_are_predicted_cost_no_more():
    model, question, predictor = predicted(1, 1)
    boxes = torch.rand(1, 1, 90, 4, 4) * 8
    boxes[..., 2:] += 10
    given = [(boxes, torch.ones(1, 1, 90, dtype=torch.bool))]
    found = last(model, question, 1, Effort(), given=given, predictor=predictor)
    assert found.masked_clips.item() == pytest.approx(Effort().masked_clips(predictor.response), rel=1e-5)


@pytest.mark.parametrize("effort", [Effort(tubes=6), Effort(tubes=16), Effort(tubes=9, area=0.03)])
def test_the_area_is_kept(effort):
    question, _ = ask(2)
    large = torch.tensor([0.0, 0, 32, 32]).expand(2, 2, 3, 4, 4)
    given = [(large, torch.ones(2, 2, 3, dtype=torch.bool))]
    found = last(Adder().eval(), question, 3, effort, given=given)
    assert (box_areas(found.boxes).sum(-1) <= effort.area * 4 * 32 * 32 + 1e-2).all()
    assert ((found.boxes >= 0) & (found.boxes <= 32)).all()


def test_the_clip_the_question_and_the_seed_decide_not_the_batch():
    question, _ = ask(3)
    model = Adder().eval()
    together = last(model, question, 2, Effort())
    for b in range(3):
        one = slice(b, b + 1)
        features = replace_features(question, one)
        for n in range(2):
            alone = replace(
                question,
                clips=question.clips[one],
                features=features,
                positive=question.positive[one],
                negative=question.negative[one, n : n + 1],
            )
            found = last(model, alone, 2, Effort())
            assert torch.equal(found.boxes[0, 0], together.boxes[b, n])
            torch.testing.assert_close(found.scores[0, 0], together.scores[b, n])
    other = last(model, question, 2, Effort(seed=1))
    assert not torch.equal(other.boxes, together.boxes)


def replace_features(question, rows):
    return question.features._replace(logits=question.features.logits[rows], maps=())


@pytest.mark.parametrize("with_predictor", [False, True])
def test_unequal_numbers_of_proposals_do_not_change_other_questions(with_predictor):
    model, question, predictor = predicted(2, 1)
    predictor = predictor if with_predictor else None
    boxes = torch.tensor([4.0, 4, 12, 12]).expand(2, 1, 50, 4, 4) + torch.arange(50).view(50, 1, 1) / 5
    many, few = torch.ones(2, 1, 50, dtype=torch.bool), torch.ones(2, 1, 50, dtype=torch.bool)
    few[1, 0, 3:] = False
    first, second = (
        last(model, question, 1, Effort(), given=[(boxes, exists)], predictor=predictor) for exists in (many, few)
    )
    assert torch.equal(first.boxes[0], second.boxes[0])
    torch.testing.assert_close(first.scores[0], second.scores[0])


def test_keys_are_of_clips():
    clips = Squares().batch("test", range(3)).clips
    keys = clip_keys(clips)
    assert len(set(keys)) == 3
    assert clip_keys(clips[1:]) == keys[1:]


def square_tubes(count, negatives):
    """Return the tube of the bright square as the only proposal."""
    track = Squares().batch("test", range(count)).boxes
    tubes = torch.stack([torch.from_numpy(next(iter(boxes.values()))) for boxes in track]).float()
    return tubes[:, None, None].expand(count, negatives, 1, 4, 4), torch.ones(count, negatives, 1, dtype=torch.bool)


@pytest.mark.parametrize("tubes", [1, 6])
def test_given_proposals_are_tried(tubes):
    question = ask_next(3)
    found = last(Adder().eval(), question, 1, Effort(tubes=tubes), given=[square_tubes(3, 1)])
    without = last(Adder().eval(), question, 1, Effort(tubes=tubes))
    if tubes == 6:  # a single tube may be a random one
        assert (found.scores >= without.scores).all()
        assert (region_iou(found.boxes[:, :, 0], square_tubes(3, 1)[0][:, :, 0]) > 0.3).all()
    missing = [(square_tubes(3, 1)[0], torch.zeros(3, 1, 1, dtype=torch.bool))]
    assert torch.equal(last(Adder().eval(), question, 1, Effort(tubes=tubes), given=missing).boxes, without.boxes)


def test_predictions_choose_what_is_tried():
    model, question, predictor = predicted(2, 2)
    found = last(model, question, 2, Effort(tubes=6), predictor=predictor)
    assert found.boxes.shape == (2, 2, 2, 4, 4)
    again = last(model, question, 2, Effort(tubes=6), predictor=predictor)
    assert torch.equal(found.boxes, again.boxes)
    alone = predict(model, question, 2, Effort(), predictor)
    assert alone.fits is None
    assert alone.scores[..., 0].isfinite().all()


def fitting_words(fits, ids):
    """Say fixed fits (s,) of every tube."""

    def words(boxes):
        shape = boxes.shape[:3]
        return torch.tensor(fits).expand(*shape, len(fits)), torch.tensor(ids).expand(*shape[:2], len(ids))

    return words


def test_the_best_fitting_word_is_said():
    question, _ = ask(2)
    found = last(Adder().eval(), question, 3, Effort(), words=fitting_words([0.3, 0.9, 0.6], [4, 7, 5]))
    assert found.attribute_ids.tolist() == [[[7, 5, 4]] * 2] * 2, "each word once, the best fitting first"
    torch.testing.assert_close(found.fits, torch.tensor([0.9, 0.6, 0.3]).expand(2, 2, 3))
    for b in range(2):
        for n in range(2):
            tubes = found.boxes[b, n]
            assert float(region_iou(tubes[:, None], tubes).fill_diagonal_(0).max()) <= SAME


def test_where_nothing_fits_no_word_is_said():
    question, _ = ask(2)
    model = Adder().eval()
    found = last(model, question, 2, Effort(), words=fitting_words([0.01, 0.0], [1, 2]))
    assert (found.attribute_ids == -1).all()
    assert found.fits.isnan().all()
    plain = last(model, question, 2, Effort())
    assert torch.equal(found.boxes, plain.boxes), "the search is as without words"
    torch.testing.assert_close(found.scores, plain.scores + math.log(SILENT))
    assert plain.fits is None


def test_an_attribute_that_is_none_is_never_said():
    question, _ = ask(1)
    found = last(Adder().eval(), question, 2, Effort(), words=fitting_words([0.5, 0.0], [3, -1]))
    assert (found.attribute_ids[..., 0] == 3).all()
    assert (found.attribute_ids[..., 1] == -1).all()


def test_words_pull_tubes_to_where_they_fit():
    question = ask_next(3)

    def right(boxes):
        """One word, which fits tubes in the right half."""
        centre = boxes[..., [0, 2]].sum(-1).sum(-1) / (boxes[..., 2] > 0).sum(-1).clamp_min(1) / 2
        fits = torch.where(centre > 16, 0.9, 0.06)[..., None]
        return fits, torch.zeros(*boxes.shape[:2], 1, dtype=torch.long)

    model = Adder().eval()
    free, pulled = (last(model, question, 1, Effort(fit_weight=weight), words=right) for weight in (0.0, 50.0))
    there = pulled.boxes[..., 2] > 0
    assert (((pulled.boxes[..., 0] + pulled.boxes[..., 2]) / 2)[there]).mean() > 16
    assert not torch.equal(free.boxes, pulled.boxes)


def test_different_answers():
    boxes = torch.zeros(1, 1, 3, 2, 4)
    boxes[0, 0, :, :] = torch.tensor([[0.0, 0, 8, 8], [1, 0, 9, 8], [20, 20, 28, 28]])[:, None]
    found = different(boxes, torch.tensor([[[3.0, 2.0, 1.0]]]), 3)
    assert found.scores.tolist() == [[[3.0, 1.0, -math.inf]]], "the second repeats the first"
    assert torch.equal(found.boxes[0, 0, :2], boxes[0, 0, [0, 2]])
    assert not found.boxes[0, 0, 2].any()
    values = torch.tensor([[[[3.0, 1.0], [2.5, 1.0], [2.0, 0.5]]]])  # of one word, and of none
    fits, ids = torch.tensor([[[[0.8, SILENT]] * 3]]), torch.tensor([[[6, -1]]])
    found = different(boxes, values, 3, fits=fits, ids=ids)
    assert found.attribute_ids.tolist() == [[[6, -1, -1]]]
    assert found.scores.tolist() == [[[3.0, 0.5, -math.inf]]], "the word is said once, then none"
    assert found.fits[0, 0, 0].item() == pytest.approx(0.8)
    assert found.fits[0, 0, 1:].isnan().all()


@pytest.mark.parametrize(("tubes", "rounds"), [(1, [1]), (5, [4, 1]), (16, [5, 4, 4, 3]), (192, [64, 32, 32, 32, 32])])
def test_a_third_is_tried_first_then_up_to_four_rounds(tubes, rounds):
    assert Effort(tubes=tubes).rounds() == rounds


def test_prediction_alone_climbs_eight_times():
    model, question, predictor = predicted(1, 1)
    found = predict(model, question, 1, Effort(), predictor)
    predictions = found.masked_clips.item() / predictor.response.cost
    assert predictions == pytest.approx(UNTRIED + 8 * PARENTS * CHANGES)
    assert found.masked_clips.shape == (1, 1)


@pytest.mark.parametrize(("many", "kept"), [(2, 2), (40, 7)])
def test_given_tubes_come_first_and_random_ones_are_always_among_them(many, kept):
    """Of more than are tried, those that are tried are spread evenly over the given and half as many random ones."""
    given = torch.tensor([4.0, 12, 12, 20]).expand(1, 1, many, 4, 4), torch.ones(1, 1, many, dtype=torch.bool)
    run = anytime._Run(Adder().eval(), ask_next(1), Effort(), None, None)
    pool = run.proposals([given], 8)
    assert (pool.boxes[0] == given[0][0, 0, 0]).flatten(1).all(1).tolist() == [True] * kept + [False] * (8 - kept)
    assert len(pool.tracks[0]) == 8


def test_tubes_that_are_tried_differ_where_they_can():
    """Predictions rank near copies side by side: of these one is tried first."""
    model, question, predictor = predicted(1, 1)
    run = anytime._Run(model, question, Effort(tubes=4), predictor, None)
    run.attempt(run.proposals([], 32), 4)
    chosen = run.tried.boxes[0]
    assert len(chosen) == 4
    assert float(region_iou(chosen[:, None], chosen).fill_diagonal_(0).max()) <= SAME


def test_how_well_words_fit_a_tube_is_asked_once():
    """Of every tube once, when it is proposed; ranking and the answer use what was found then."""
    model, question, predictor = predicted(1, 2)
    asked = []

    def words(boxes):
        asked.extend(boxes[0, 0])
        fits = torch.stack([boxes[..., 0].mean(-1) / 32, torch.full(boxes.shape[:3], 0.3)], -1)
        return fits, torch.tensor([4, 7]).expand(*boxes.shape[:2], 2)

    *_, last = search(model, question, 2, Effort(tubes=8), predictor=predictor, words=words)
    assert len(asked) == last.masked_clips[0, 0].sub(16).div(predictor.response.cost).round().item()
    fits, ids = words(last.boxes)
    said = (last.attribute_ids[..., None] == ids[:, :, None]) & (last.attribute_ids >= 0)[..., None]
    assert said.any()
    assert torch.equal(torch.where(said, fits, 0).sum(-1)[said.any(-1)], last.fits[said.any(-1)])


def test_an_estimate_adds_what_was_measured_of_the_parent():
    """A change of a tube that was better than predicted is expected to be better than predicted, too."""
    model, question, predictor = predicted(1, 1)
    run = anytime._Run(model, question, Effort(), predictor, None)
    pool = run.proposals([], 8)
    run.attempt(pool, 4)
    run.tried = replace(run.tried, values=run.tried.foretold + 100.0)
    assert (run.changes(4).values > 50).all()
    run.tried = replace(run.tried, values=run.tried.foretold - 100.0)
    assert (run.changes(4).values < -50).all()


def test_words_come_apart_from_tubes_that_none_fits():
    """A word that fits no better than SILENT is not said; the tube stays, without a word."""
    question, _ = ask(1)
    found = last(Adder().eval(), question, 2, Effort(), words=fitting_words([SILENT, SILENT + 0.01], [1, 2]))
    assert found.attribute_ids[..., 0].tolist() == [[2, 2]]
    assert (found.attribute_ids[..., 1] == -1).all()


def test_repeats_come_after_what_differs():
    same = np.eye(4, dtype=bool)
    same[0, 1] = same[1, 0] = True
    assert anytime._apart(same, 2) == [0, 2]
    assert anytime._apart(same, 3) == [0, 2, 3]
    assert anytime._apart(same, 4) == [0, 2, 3, 1], "rather a repeat than none"


def test_keys_tell_256_levels_of_every_seventh_pixel():
    levels = (torch.arange(256) / 255).view(256, 1, 1, 1, 1).expand(256, 3, 2, 8, 8)
    assert len(set(clip_keys(levels))) == 256
    clips = torch.zeros(3, 3, 2, 16, 16)
    clips[1, 2, 1, 7, 14] = 1.0
    clips[2, 2, 1, 8, 14] = clips[2, 0, 0, 7, 13] = 1.0
    plain, seen, unseen = clip_keys(clips)
    assert plain == unseen != seen


def test_the_last_of_several_answers_is_of_those_that_moved_the_decision(monkeypatch):
    """The fall of p(A) - p(B) is measured for every tube that was tried, as the mean over the selecting fills."""
    told = []

    def spying(boxes, values, k, **more):
        told.append((boxes, values, more["moving"]))
        return different(boxes, values, k, **more)

    monkeypatch.setattr(anytime, "different", spying)
    model, (question, _) = Adder().eval(), ask(2)
    last(model, question, 2, Effort(tubes=8))
    boxes, values, moving = told[-1]
    every = torch.ones(boxes.shape[:3], dtype=torch.bool)
    tries = [masked_logits(model, question, boxes, every, fill=fill) for fill in SELECTING_FILLS]
    expected = sum(margin_fall(question, logits) for logits in tries) / len(tries)
    assert torch.equal(moving, expected >= MOVED)
    assert moving.any()
    assert not moving.all()
    assert moving.shape == values.shape == (2, 2, 8)
