"""Actions and what they fold to, beside an editor that keeps copies; boxes between keys, beside data/formats."""

import copy

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from whytube.data.formats import Box
from whytube.data.formats import Track as FormatTrack
from whytube.web.annotation_actions import Action, Key
from whytube.web.annotation_state import Entry, State, Track, changes_anything, fold, simple_actions

ACTIONS = TypeAdapter(Action)


def action(**fields):
    return ACTIONS.validate_python(fields)


def key(frame, x=0.0, **fields):
    return action(type="set_key", attribute="ball", frame=frame, box=[x, 0, x + 10, 10], **fields)


def folded(*actions, annotator="ann"):
    return fold([Entry(n, annotator, 0.0, one) for n, one in enumerate(actions, 1)])


def test_keys_make_a_track_and_the_last_one_taken_away_ends_it():
    state = folded(key(3), key(0, 20))
    assert state.tracks["ann", "ball", 1].frames == [0, 3]
    assert (state.version, state.boxes, state.undoable) == (2, 2, {"ann": 2})
    gone = folded(key(3), action(type="delete_key", attribute="ball", frame=3))
    assert not gone.tracks
    assert folded(key(3), action(type="delete_key", attribute="other", frame=3)).boxes == 1


def test_a_box_says_that_the_attribute_is_there_unless_a_mark_says_otherwise():
    mark = action(type="mark", attribute="ball", value="has_not")
    assert folded(key(0)).present == {("ann", "ball"): "has"}
    assert folded(key(0), mark).present == {("ann", "ball"): "has_not"}
    assert folded(mark, action(type="mark", attribute="ball", value="unknown")).present == {}
    assert folded(key(0, outside=True)).present == {}


def test_the_class_is_said_and_taken_back():
    assert folded(action(type="label", label="waltz")).label == ("waltz", "ann")
    assert folded(action(type="label", label="waltz"), action(type="label", label=None)).label is None


def test_an_import_is_taken_back_at_once():
    track = {"type": "set_track", "attribute": "cat", "keys": [{"frame": 1, "box": [0, 0, 1, 1]}], "origin": "import"}
    both = action(type="batch", actions=[track, {"type": "mark", "attribute": "dog", "value": "has"}])
    assert folded(both).present == {("ann", "cat"): "has", ("ann", "dog"): "has"}
    assert folded(both, action(type="undo")).present == {}
    assert folded(both, action(type="undo"), action(type="redo")).tracks["ann", "cat", 1].origin == "import"


def test_people_take_back_only_their_own():
    log = [Entry(1, "ann", 0, key(0)), Entry(2, "bob", 0, key(0, 50)), Entry(3, "ann", 0, action(type="undo"))]
    state = fold(log)
    assert list(state.tracks) == [("bob", "ball", 1)]
    assert (state.undoable, state.redoable) == ({"ann": 0, "bob": 1}, {"ann": 1, "bob": 0})
    assert not changes_anything(state, "ann", action(type="undo"))
    assert changes_anything(state, "ann", action(type="redo"))
    assert not changes_anything(state, "eve", action(type="redo"))


SIMPLE = st.one_of(
    st.builds(key, st.integers(0, 3), st.integers(0, 50), outside=st.booleans(), track=st.integers(1, 2)),
    st.builds(lambda f: action(type="delete_key", attribute="ball", frame=f), st.integers(0, 3)),
    st.builds(lambda n: action(type="delete_track", attribute="ball", track=n), st.integers(1, 2)),
    st.builds(lambda v: action(type="mark", attribute="ball", value=v), st.sampled_from(["has", "has_not", "unknown"])),
)
ANY = st.one_of(SIMPLE, st.just(action(type="undo")), st.just(action(type="redo")))


@settings(max_examples=200, deadline=None)
@given(st.lists(ANY, max_size=25))
def test_undo_and_redo_are_as_in_an_editor_that_keeps_copies(actions):
    past, now, future = [], State(), []
    for one in actions:
        if one.type == "undo":
            if past:
                future.append(now)
                now = past.pop()
        elif one.type == "redo":
            if future:
                past.append(now)
                now = future.pop()
        else:
            past.append(now)
            now, future = copy.deepcopy(now), []
            for simple in simple_actions(one):
                now._apply("ann", simple)
    found = folded(*actions)
    assert (found.tracks, found.marks, found.label) == (now.tracks, now.marks, now.label)
    if actions:
        assert (found.undoable["ann"], found.redoable["ann"]) == (len(past), len(future))


@settings(max_examples=200, deadline=None)
@given(
    st.dictionaries(
        st.integers(0, 20), st.tuples(st.integers(0, 90), st.integers(1, 40), st.booleans()), min_size=1, max_size=5
    )
)
def test_boxes_between_keys_are_those_of_the_formats(keys):
    assume(any(not outside for _, _, outside in keys.values()))
    own = Track("", "ball", 1, {f: Key(frame=f, box=(x, 2, x + w, 9), outside=o) for f, (x, w, o) in keys.items()})
    other = FormatTrack("ball", {f: Box(x, 2, x + w, 9, outside=o) for f, (x, w, o) in keys.items()})
    expected = other.boxes(range(25))
    for frame in range(25):
        assert np.allclose(own.at(frame) or 0, expected[frame])


@pytest.mark.parametrize(
    "wrong",
    [
        {"type": "set_key", "attribute": "a", "frame": 0, "box": [1, 1, 1, 2]},
        {"type": "set_key", "attribute": "a", "frame": 0, "box": [0, 0, float("nan"), 2]},
        {"type": "set_key", "attribute": "a", "frame": 0, "box": [0, 0, 2e6, 2]},
        {"type": "set_key", "attribute": "a", "frame": -1, "box": [0, 0, 1, 2]},
        {"type": "set_key", "attribute": "a", "frame": 0, "box": [0, 0, 1, 2], "outsid": True},
        {"type": "mark", "attribute": " ", "value": "has"},
        {"type": "mark", "attribute": "a\nb", "value": "has"},
        {"type": "mark", "attribute": "\ud800", "value": "has"},
        {"type": "mark", "attribute": "a" * 256, "value": "has"},
        {"type": "mark", "attribute": "a", "value": "maybe"},
        {"type": "set_track", "attribute": "a", "keys": []},
        {"type": "set_track", "attribute": "a", "keys": [{"frame": 1, "box": [0, 0, 1, 1]}] * 2},
        {"type": "batch", "actions": [{"type": "undo"}]},
        {"type": "explode"},
    ],
)
def test_what_no_file_could_hold_is_refused(wrong):
    with pytest.raises(ValidationError):
        ACTIONS.validate_python(wrong)


@pytest.mark.parametrize("name", ["<img src=x onerror=alert(1)>", "🐈 with hat", "שלום", "é" * 255, "a,b;\"'&"])
def test_names_may_be_of_any_printable_letters(name):
    assert action(type="mark", attribute=name, value="has").attribute == name
