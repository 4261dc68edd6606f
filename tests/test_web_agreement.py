import pytest
from pydantic import TypeAdapter

from whytube.web.agreement import agreement, cohens_kappa
from whytube.web.annotation_actions import Action
from whytube.web.annotation_state import Entry, fold

ACTIONS = TypeAdapter(Action)


def video(*said):
    """Fold (annotator, action) pairs."""
    return fold([Entry(n, who, 0.0, ACTIONS.validate_python(what)) for n, (who, what) in enumerate(said, 1)])


def box(frame, x, **fields):
    return {"type": "set_key", "attribute": "ball", "frame": frame, "box": [x, 0, x + 10, 10], **fields}


def mark(attribute, value="has"):
    return {"type": "mark", "attribute": attribute, "value": value}


def test_boxes_that_are_the_same_agree_wholly():
    state = video(("a", box(0, 0)), ("a", box(4, 8)), ("b", box(0, 0)), ("b", box(4, 8)))
    (pair,) = agreement({"v": state})
    assert (pair.annotators, pair.iou, pair.tracks, pair.frames) == (("a", "b"), pytest.approx(1), 1, 5)
    assert (pair.agree, pair.kappa, pair.marks) == (1, None, 1), "always the same word: kappa is not defined"


def test_half_a_box_beside_is_a_third_and_one_that_is_not_there_nothing():
    state = video(
        ("a", box(0, 0)), ("a", box(3, 0)), ("b", box(0, 5)), ("b", box(1, 5, outside=True)), ("b", box(3, 5))
    )
    (pair,) = agreement({"v": state})
    assert pair.iou == pytest.approx((1 / 3 + 0 + 0 + 1 / 3) / 4)


def test_boxes_that_are_only_held_are_not_compared():
    state = video(("a", box(0, 0)), ("b", box(5, 0)))
    (pair,) = agreement({"v": state})
    assert (pair.iou, pair.tracks) == (None, 0)


def test_several_tracks_count_as_the_box_around_them():
    apart = video(("a", box(0, 0)), ("a", box(0, 10, track=2)), ("b", {**box(0, 0), "box": [0, 0, 20, 10]}))
    assert agreement({"v": apart})[0].iou == pytest.approx(1)


def test_kappa():
    assert cohens_kappa([]) == (None, None)
    share, kappa = cohens_kappa(
        [(True, True)] * 20 + [(True, False)] * 5 + [(False, True)] * 10 + [(False, False)] * 15
    )
    assert (share, kappa) == (pytest.approx(0.7), pytest.approx(0.4)), "the example of the textbooks"


def test_marks_of_all_videos_count_together_and_every_pair_is_compared():
    one = video(("a", mark("x")), ("b", mark("x")), ("c", mark("y")))
    two = video(("a", mark("x", "has_not")), ("b", mark("x", "has_not")))
    found = agreement({"1": one, "2": two})
    assert [pair.annotators for pair in found] == [("a", "b"), ("a", "c"), ("b", "c")]
    assert (found[0].kappa, found[0].marks, found[1].marks) == (1, 2, 0)
