import pytest
from pydantic import TypeAdapter

from whytube.web.annotate_jobs import drawn
from whytube.web.annotation_actions import Action
from whytube.web.annotation_state import Entry, fold

ACTIONS = TypeAdapter(Action)


def state(*said):
    return fold([Entry(n, who, 0.0, ACTIONS.validate_python(what)) for n, (who, what) in enumerate(said, 1)])


def box(frame, x, word="ball", **more):
    return {"type": "set_key", "attribute": word, "frame": frame, "box": [x, 0, x + 10, 10], **more}


def mark(word, value):
    return {"type": "mark", "attribute": word, "value": value}


def test_boxes_between_key_frames_are_taught_and_held_ones_are_not():
    told = drawn(state(("a", box(2, 0)), ("a", box(4, 20)), ("a", box(5, 20, outside=True))), frames=9)
    assert told["present"] == {"ball": True}
    assert told["tubes"]["ball"] == {"frames": [2, 3, 4], "boxes": [[0, 0, 10, 10], [10, 0, 20, 10], [20, 0, 30, 10]]}
    single = drawn(state(("a", box(3, 0))), frames=9)
    assert single["tubes"]["ball"]["frames"] == [3]
    assert drawn(state(("a", box(3, 0))), frames=3)["tubes"] == {}, "beyond the end"


def test_people_are_averaged_and_ones_own_tracks_joined():
    told = drawn(state(("a", box(0, 0)), ("a", box(0, 20, track=2)), ("b", box(0, 10))), frames=4)
    assert told["tubes"]["ball"]["boxes"] == [pytest.approx([5, 0, 25, 10])]


def test_most_decide_whether_a_word_is_there():
    three = [("a", box(0, 0)), ("b", mark("ball", "has_not")), ("c", mark("ball", "has_not"))]
    assert drawn(state(*three), frames=4) == {"present": {"ball": False}, "tubes": {}}
    assert drawn(state(*three[:2]), frames=4)["present"] == {"ball": True}, "a tie"


def test_the_actor_is_no_word():
    assert drawn(state(("a", box(0, 0, "actor"))), frames=4) == {"present": {}, "tubes": {}}
