import math
from dataclasses import replace

import pytest
import torch

from toy_squares import WORDS, Adder, Knowing, Squares, ask
from whytube.classifiers.base import Features
from whytube.evaluation.judge import Truth, judge, masked_log_probabilities, transferred, unseen
from whytube.evaluation.methods import Centre
from whytube.evaluation.metrics import annotated_boxes
from whytube.search.verify import Regions
from whytube.tubes import box_masks, erase

RED, GREEN, BLUE, PLAIN = range(4)


def truth_of(shown):
    boxes, known = annotated_boxes(shown.boxes, WORDS, frames=4)
    return Truth(shown.labels, Squares.table, boxes, known, boxes[:, 0])


def true_boxes(question, shown, words):
    """One region per negative: the box of a word, for the first clip."""
    tracks = torch.stack([torch.from_numpy(shown.boxes[0][WORDS[word]]) for word in words])
    return Regions(tracks[None, :, None].float(), torch.tensor(words)[None, :, None], torch.zeros(1, len(words), 1))


def judged(question, shown, regions, fills=("zero",)):
    after = masked_log_probabilities(Adder().eval(), question, regions.boxes, fills=fills)
    return judge(regions, question, truth_of(shown), after=after, fills=fills)


def test_masking_is_really_done():
    question, _ = ask(3)
    model, fills = Adder().eval(), ("zero", "mean", "blur")
    regions = Knowing()(question, 2)
    after = masked_log_probabilities(model, question, regions.boxes, fills=fills)
    assert after.shape == (3, 3, 2, 2, 4)
    for f, fill in enumerate(fills):
        for b in range(3):
            for n in range(2):
                mask = box_masks(regions.boxes[b, n, 0], (32, 32))[None]
                expected = model(erase(question.clips[b : b + 1], mask, fill=fill))[0].log_softmax(0)
                assert torch.allclose(after[f, b, n, 0], expected.double(), atol=1e-5)


def test_equal_regions_are_masked_once():
    question, _ = ask(3)
    model = Adder().eval()
    regions = Centre(WORDS)(question, 2)
    masked_log_probabilities(model, question, regions.boxes, fills=("zero", "mean"))
    assert model.seen == 3 * 2


def test_masking_the_red_square_speaks_for_green():
    question, shown = ask(1)
    question = replace(question, positive=torch.tensor([RED]), negative=torch.tensor([[GREEN, BLUE, PLAIN]]))
    figures = judged(question, shown, true_boxes(question, shown, [0, 0, 0]))
    top1 = figures["log_probability.negative_class_accuracy.top1"]
    assert top1.flatten().tolist() == [1, 0, 0], "only green also loses an objection"
    assert figures["log_probability.change.positive"].max() < 0
    assert figures["positive_drop"].tolist() == [[[1], [1], [1]]]
    figures = judged(question, shown, true_boxes(question, shown, [1, 1, 1]))
    assert figures["positive_drop"].sum() == 0, "without the green square red is more probable"
    assert figures["change.positive"].min() > 0


def test_the_headline_ranks_probabilities_not_their_logarithms():
    question, shown = ask(1, negatives=3)
    before = torch.tensor([[0.60, 0.30, 0.09, 0.01]]).log()
    question = replace(
        question,
        features=Features(before, question.features.maps),
        positive=torch.tensor([RED]),
        negative=torch.tensor([[GREEN, BLUE, PLAIN]]),
    )
    regions = true_boxes(question, shown, [0, 0, 0])
    after = torch.tensor([0.40, 0.40, 0.15, 0.05]).double().log().expand(1, 1, 3, 1, 4)
    figures = judge(regions, question, truth_of(shown), after=after, fills=("mean",))
    by_p = figures["negative_class_accuracy.top1"].flatten().tolist()
    by_log_p = figures["log_probability.negative_class_accuracy.top1"].flatten().tolist()
    assert by_p == [1, 0, 0], "green rises by .10, blue by .06, plain by .04"
    assert by_log_p == [0, 0, 1], "plain is five times as probable as before"
    assert figures["change.negative"].flatten().tolist() == pytest.approx([0.10, 0.06, 0.04])
    assert figures["log_probability.change.negative"].flatten()[2] == pytest.approx(math.log(5), abs=1e-6)


def test_fills_that_tubes_are_chosen_with_do_not_count():
    question, shown = ask(3)
    regions = Knowing()(question, 1)
    figures = judged(question, shown, regions, fills=("zero", "freeze", "still"))
    alone = judged(question, shown, regions, fills=("freeze",))
    for name, values in alone.items():
        assert torch.equal(figures[name].nan_to_num(-9), values.nan_to_num(-9)), name
    assert "fills.still.positive_drop" in figures
    assert unseen(("zero", "mean", "still", "blur", "shift", "noise")) == [1, 3]
    assert unseen(("zero", "still")) == [0, 1], "better than nothing"


def test_headline_is_the_mean_over_fills():
    question, shown = ask(3)
    regions = Knowing()(question, 1)
    figures = judged(question, shown, regions, fills=("mean", "freeze"))
    for name in ("negative_class_accuracy.top1", "positive_drop", "log_probability.change.negative"):
        both = (figures[f"fills.mean.{name}"] + figures[f"fills.freeze.{name}"]) / 2
        assert torch.allclose(figures[name], both)


def test_no_region_hits_nothing():
    question, shown = ask(1)
    nothing = Regions(torch.zeros(1, 2, 1, 4, 4), torch.full((1, 2, 1), -1), torch.full((1, 2, 1), -torch.inf))
    figures = judged(question, shown, nothing)
    for name in ("answered", "negative_class_accuracy.top3", "positive_drop", "concept_accuracy.top5", "right_box"):
        assert figures[name].tolist() == [[[0], [0]]], name
    for name in ("tube_area", "tube_frames", "tube_change", "actor_iou", "actor_pointing"):
        assert figures[name].isnan().all(), name


def test_a_frozen_single_frame_changes_nothing():
    question, shown = ask(1, negatives=3)
    regions = true_boxes(question, shown, [0, 0, 0])
    regions.boxes[..., 1:, :] = 0
    figures = judged(question, shown, regions, fills=("freeze",))
    assert (figures["change.positive"] == 0).all()
    assert (figures["positive_drop"] == 0).all()
    assert figures["negative_class_accuracy.top1"].flatten().tolist() == pytest.approx([1 / 3] * 3), "all classes tie"


def test_words_are_judged_where_the_class_is_right():
    question, shown = ask(1)
    regions = true_boxes(question, shown, [0, 1])
    figures = judged(question, shown, regions)
    assert figures["concept_accuracy.top1"].tolist() == [[[1], [1]]]
    assert figures["word_in_class"].tolist() == [[[1], [1]]]
    assert figures["tube_area"].flatten().tolist() == pytest.approx([64 / 1024] * 2)
    wrong = replace(question, positive=torch.tensor([BLUE]), negative=torch.tensor([[RED, GREEN]]))
    figures = judged(wrong, shown, regions)
    for name in ("concept_accuracy.top1", "right_box", "true_box_iou", "pointing"):
        assert figures[name].isnan().all(), name
    assert figures["word_in_class"].tolist() == [[[1], [0]]]


def test_tubes_are_compared_with_the_actor_and_with_each_other():
    question, shown = ask(1)
    figures = judged(question, shown, true_boxes(question, shown, [0, 1]))
    assert figures["actor_iou"].tolist() == [[[1], [0]]], "the red square acts"
    assert figures["actor_pointing"].tolist() == [[[1], [0]]]
    assert figures["tube_change"].tolist() == [[[1], [1]]]
    same = judged(question, shown, true_boxes(question, shown, [0, 0]))
    assert same["tube_change"].tolist() == [[[0], [0]]]


def test_words_that_are_not_said_are_counted():
    question, shown = ask(1)
    regions = true_boxes(question, shown, [0, 1])
    said = judged(question, shown, regions)
    assert said["word_said"].flatten().tolist() == [1, 1]
    assert said["right_box"].flatten().tolist() == [1, 1]
    half = judged(question, shown, replace(regions, attribute_ids=torch.tensor([[[0], [-1]]])))
    assert half["word_said"].flatten().tolist() == [1, 0]
    for figure in ("right_box", "concept_accuracy.top3", "concept_accuracy.tied.top1"):
        assert half[figure][0, 0, 0] == 1
        assert half[figure][0, 1, 0].isnan(), "a word that was not said is neither right nor wrong"
    assert half["concept_accuracy.printed.top3"].flatten().tolist() == [1, 0], "as printed it is a miss"
    wrong = judged(question, shown, replace(regions, attribute_ids=torch.tensor([[[1], [0]]])))
    assert wrong["right_box"].flatten().tolist() == [0, 0]
    empty = judged(question, shown, replace(regions, boxes=torch.zeros_like(regions.boxes)))
    assert empty["word_said"].isnan().all(), "no answer, no word"


def made_question(chances, negative, positive=RED):
    """Ask about clips with these probabilities (B, 4), the same negatives for each."""
    question, _ = ask(len(chances))
    logits = torch.tensor(chances).double().log() + 5  # a constant makes no difference
    features = question.features._replace(logits=logits)
    count = len(chances)
    return replace(
        question,
        features=features,
        positive=torch.full((count,), positive),
        negative=torch.tensor(negative).expand(count, -1),
    )


def made_regions(exists):
    """Make regions (B, N, k) that cover a corner where they exist."""
    boxes = torch.where(torch.tensor(exists)[..., None, None], torch.tensor([1.0, 1, 3, 3]).expand(4, 4), 0)
    return Regions(boxes, torch.zeros(boxes.shape[:3], dtype=torch.long), torch.zeros(boxes.shape[:3]))


BEFORE = [[0.6, 0.2, 0.1, 0.1], [0.4, 0.3, 0.2, 0.1]]
AFTER = [[0.5, 0.1, 0.3, 0.1], [0.5, 0.35, 0.05, 0.1]]


def test_effects_are_changes_of_probabilities():
    question = made_question(BEFORE, [GREEN, BLUE])
    after = torch.tensor(AFTER).double().log().view(1, 2, 1, 1, 4).expand(1, 2, 2, 1, 4)
    _, shown = ask(2)
    figures = judge(made_regions([[[True]] * 2] * 2), question, truth_of(shown), after=after, fills=("mean",))
    before, masked = torch.tensor(BEFORE).double(), torch.tensor(AFTER).double()
    for leading, change in (("", masked - before), ("log_probability.", masked.log() - before.log())):
        torch.testing.assert_close(figures[f"{leading}change.positive"][..., 0], change[:, [RED, RED]])
        torch.testing.assert_close(figures[f"{leading}change.negative"][..., 0], change[:, [GREEN, BLUE]])
        assert figures[f"{leading}negative_class_accuracy.top1"].tolist() == [[[0], [1]], [[1], [0]]]
        assert figures[f"{leading}negative_class_accuracy.top3"].min() == 1
    assert figures["positive_drop"].tolist() == [[[1], [1]], [[0], [0]]]


def test_agreement_is_asked_where_the_first_network_moved():
    question, other = (made_question(chances, [GREEN, BLUE]) for chances in (BEFORE, BEFORE[::-1]))
    there = torch.tensor([[0.3, 0.4, 0.15, 0.15], [0.5, 0.1, 0.3, 0.1]])
    after, after_other = (  # with the second fill nothing happens
        torch.stack([torch.tensor(masked).double().log(), own.features.logits.log_softmax(1)])[:, :, None, None].expand(
            2, 2, 2, 1, 4
        )
        for masked, own in ((AFTER, question), (there.tolist(), other))
    )
    figures = transferred(made_regions([[[True]] * 2] * 2), question, after, other, after_other, fills=("mean", "blur"))
    nan = torch.nan
    # Clip 0: p(A) falls on both. Clip 1: it rises here, so that there is nothing to agree in.
    torch.testing.assert_close(
        figures["agreement.positive"][..., 0], torch.tensor([[1.0, 1], [nan, nan]]).double(), equal_nan=True
    )
    # Clip 0: green falls here, blue rises here but not there. Clip 1: green rises here, and falls there.
    torch.testing.assert_close(
        figures["agreement.negative"][..., 0], torch.tensor([[nan, 0], [0, nan]]).double(), equal_nan=True
    )
    torch.testing.assert_close(figures["transfer.change.positive"][..., 0], torch.tensor([[-0.05, -0.05]] * 2).double())
    torch.testing.assert_close(
        figures["transfer.change.negative"][..., 0], torch.tensor([[0.05, -0.025], [-0.05, 0.1]]).double()
    )


def test_no_region_transfers_nothing():
    question = made_question(BEFORE, [GREEN, BLUE])
    after = torch.tensor(AFTER).double().log().view(1, 2, 1, 1, 4).expand(2, 2, 2, 1, 4)
    exists = [[[True], [False]], [[False], [True]]]
    figures = transferred(made_regions(exists), question, after, question, after, fills=("zero", "mean"))
    missing = ~torch.tensor(exists)
    for name, values in figures.items():
        assert values.shape == (2, 2, 1)
        if name.startswith("transfer."):
            assert not values[missing].any(), name
        else:
            assert values[missing].isnan().all(), name
    assert figures["agreement.positive"][0, 0, 0] == 1
