"""The arithmetic of the annotating page, run in Chromium and compared with the server's own."""

import numpy as np
import pytest
from pydantic import TypeAdapter

from browsing import static_page
from whytube.web.annotate_api import shown
from whytube.web.annotation_actions import Action, Key
from whytube.web.annotation_state import Entry, Track, fold

pytestmark = pytest.mark.browser
ACTIONS = TypeAdapter(Action)
SIZE = {"width": 200, "height": 100}


@pytest.fixture(scope="module")
def page(browser):
    return static_page(browser)


def call(page, body, value=None):
    script = f"async value => {{ const m = await import('/static/annotate_model.js'); return ({body})(m, value); }}"
    return page.evaluate(script, value)


def random_key(rng, frame):
    x, y, w, h = (int(v) for v in rng.integers(1, 60, 4))
    return {"frame": frame, "box": [x, y, x + w, y + h], "outside": bool(rng.random() < 0.3), "occluded": False}


def test_boxes_at_every_frame_are_the_servers(page):
    rng = np.random.default_rng(0)
    tracks = []
    for _ in range(40):
        frames = sorted({int(f) for f in rng.integers(0, 20, int(rng.integers(1, 6)))})
        tracks.append({"keys": [random_key(rng, frame) for frame in frames]})
    body = "(m, tracks) => tracks.map(t => Array.from({length: 25}, (_, f) => m.boxAt(t, f)?.box ?? null))"
    for track, boxes in zip(tracks, call(page, body, tracks), strict=True):
        keys = {key["frame"]: Key(**{**key, "box": tuple(key["box"])}) for key in track["keys"]}
        own = Track("", "", 1, keys)
        for frame, box in enumerate(boxes):
            expected = own.at(frame)
            assert (box is None) == (expected is None)
            assert box is None or np.allclose(box, expected)


def test_actions_lead_to_the_servers_states(page):
    rng = np.random.default_rng(1)
    actions = []
    for _ in range(60):
        place = {"attribute": ["cat", "dog"][rng.integers(2)], "track": int(rng.integers(1, 3))}
        key = random_key(rng, int(rng.integers(0, 5)))
        actions.append(
            [
                {"type": "set_key", **place, **key},
                {"type": "set_key", **place, **key},
                {"type": "delete_key", **place, "frame": key["frame"]},
                {"type": "delete_track", **place},
                {"type": "set_track", **place, "keys": [key], "origin": "draft"},
                {
                    "type": "mark",
                    "attribute": place["attribute"],
                    "value": ["has", "has_not", "unknown"][rng.integers(3)],
                },
                {"type": "label", "label": ["waltz", None][rng.integers(2)]},
            ][rng.integers(7)]
        )
    actions.append({"type": "batch", "actions": actions[:3]})
    body = """(m, actions) => { const seen = []; let state = {tracks: [], marks: [], label: null};
        for (const action of actions) { state = m.applied(state, "ann", action); seen.push(state); } return seen; }"""
    log = []
    for action, state in zip(actions, call(page, body, actions), strict=True):
        log.append(Entry(len(log) + 1, "ann", 0.0, ACTIONS.validate_python(action)))
        expected = shown("0" * 32, fold(log)).model_dump(mode="json")

        def order(track):
            return track["attribute"], track["track"]

        assert sorted(state["tracks"], key=order) == sorted(expected["tracks"], key=order)
        assert sorted(state["marks"], key=str) == sorted(expected["marks"], key=str)
        assert state["label"] == expected["label"]


def test_boxes_stay_in_the_picture_and_keep_a_size(page):
    assert call(page, "(m, s) => m.boxBetween([50, 60], [20, 10], s)", SIZE) == [20, 10, 50, 60]
    assert call(page, "(m, s) => m.boxBetween([-50, -9], [900, 900], s)", SIZE) == [0, 0, 200, 100]
    assert call(page, "(m, s) => m.boxBetween([200, 100], [200, 100], s)", SIZE) == [198, 98, 200, 100]
    assert call(page, "(m, s) => m.moved([10, 10, 30, 30], 999, -999, s)", SIZE) == [180, 0, 200, 20]
    assert call(page, "(m, s) => m.resized([10, 10, 30, 30], 'nw', 100, -100, s)", SIZE) == [28, 0, 30, 30]
    assert call(page, "(m, s) => m.resized([10, 10, 30, 30], 'se', 5, -3, s)", SIZE) == [10, 10, 35, 27]


def test_handles_come_before_the_inside(page):
    body = "(m, points) => points.map(p => m.hit([10, 10, 50, 50], p, 4))"
    points = [[10, 10], [52, 48], [30, 9], [30, 30], [70, 70], [51, 30]]
    assert call(page, body, points) == ["nw", "se", "n", "move", None, "e"]


def test_zoom_keeps_the_point_under_the_pointer(page):
    body = """(m, size) => { const room = {width: 400, height: 300}; const fit = m.fitted(size, room);
        const near = m.zoomed(fit, 3, [150, 140], size, room);
        const at = v => [(150 - v.x) / v.scale, (140 - v.y) / v.scale];
        return [fit, at(fit), at(near), m.zoomed(near, 0.001, [0, 0], size, room)]; }"""
    fit, before, after, back = call(page, body, SIZE)
    assert fit == {"scale": 2, "x": 0, "y": 50}
    assert np.allclose(before, after)
    assert back == fit
