from dataclasses import replace

import numpy as np
import pytest

from annotation_examples import there_and_back
from explanation_examples import explanation, reason
from whytube.data.formats import explained
from whytube.report.draw import boxes_between


@pytest.mark.parametrize("step", [2, 5])
def test_tracks_are_what_overlays_draw(step):
    """A tube of the later frames: the box is there from half a step before, and moves between the sampled frames."""
    late = reason("with ribbon", start=2)
    tube = replace(late.tube, frames=late.tube.frames // 2 * step)
    sampled = tuple(range(0, 6 * step, step))
    made = replace(explanation(replace(late, tube=tube)), frames=sampled, fps=25.0, duration=2.0)
    one = explained(made)
    (track,) = one.tracks
    assert (one.video, one.size, one.frames, one.fps) == ("a.mp4", (48, 48), 50, 25.0)
    assert (track.attribute, track.annotator) == ("with ribbon", "whytube")
    drawn = boxes_between(tube, range(50), sampled=made.frames)
    assert 0 < np.count_nonzero(drawn.any(1)) < 50
    np.testing.assert_allclose(track.boxes(range(50)), drawn, atol=1e-6)
    assert there_and_back("cvat", one) == [one]


def test_a_pause_in_a_tube():
    whole = reason("with ribbon")
    kept = [0, 1, 4, 5]
    tube = replace(whole.tube, frames=whole.tube.frames[kept], boxes=whole.tube.boxes[kept], times=None)
    (track,) = explained(explanation(replace(whole, tube=tube))).tracks
    assert track.tube(11).frames.tolist() == [0, 1, 2, 3, 8, 9, 10], "frames 4 and 6 were looked at and left out"


def test_what_the_sentence_names():
    made = explanation(reason("with ribbon"), reason("", left=20.0), reason("bowing", moved=False))
    assert [track.attribute for track in explained(made).tracks] == ["region", "with ribbon"]
    assert explained(explanation(reason("bowing", moved=False))).tracks == ()
    odd = replace(made, source="dances/a\nb ")
    assert explained(odd).video == "a\\nb"
