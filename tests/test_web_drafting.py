import numpy as np
import pytest
import torch

from toy_explainer import tiny_explainer
from whytube.video import Clip
from whytube.web.annotation_actions import Key
from whytube.web.drafting import MOST_KEYS, key_frames, propose, thinned


def clip(frames=2, size=(16, 16), indices=None, own=(160, 320)):
    pixels = torch.rand(3, frames, *size, generator=torch.Generator().manual_seed(0))
    at = np.arange(frames) * 10 if indices is None else np.array(indices)
    return Clip(pixels, at, at / 10, own, "video", fps=10.0, duration=1.0)


def test_every_word_has_a_draft_in_frames_and_pixels_of_the_video():
    explainer = tiny_explainer()
    predicted, drafts = propose(explainer, clip(), frames=20)
    assert predicted in explainer.classes
    assert [draft["attribute"] for draft in drafts] == list(explainer.attribute_names)
    row = explainer.table[explainer.classes.index(predicted)].tolist()
    assert [draft["likely"] for draft in drafts] == row
    for draft in drafts:
        keys = [Key(**{**key, "box": tuple(key["box"])}) for key in draft["keys"]]
        assert 1 <= len(keys) <= MOST_KEYS + 1
        assert all(0 <= k.box[0] < k.box[2] <= 320 and 0 <= k.box[1] < k.box[3] <= 160 for k in keys)
        assert draft["fit"] is None, "nobody measured how well this one's words fit"


def test_a_tube_that_ends_is_gone_half_way_to_the_next_frame():
    boxes = np.array([[2, 2, 6, 6], [2, 2, 6, 6], [0, 0, 0, 0]], dtype=float)
    keys = key_frames(boxes, clip(3, indices=[0, 10, 20]), frames=25)
    assert [(key["frame"], key["outside"]) for key in keys] == [(0, False), (10, False), (15, True)]
    assert keys[0]["box"] == [40, 20, 120, 60]
    assert key_frames(np.zeros((3, 4)), clip(3, indices=[0, 10, 20]), frames=25) == []


def test_a_tube_to_the_end_stays_and_frames_shown_twice_count_once():
    boxes = np.array([[2, 2, 6, 6]] * 3, dtype=float)
    keys = key_frames(boxes, clip(3, indices=[0, 0, 1]), frames=2)
    assert [(key["frame"], key["outside"]) for key in keys] == [(0, False), (1, False)]


def test_few_keys_follow_a_long_tube():
    frames = np.arange(60)
    boxes = np.stack([frames, frames, frames + 20, frames + 20], 1).astype(float)
    boxes[30:] = boxes[29] + (29 - frames[30:, None])  # back again
    kept = thinned(frames, boxes, slack=2.0)
    assert len(kept) <= 4
    assert 0 in kept
    assert 59 in kept
    got = np.stack([np.interp(frames, frames[kept], column) for column in boxes[kept].T], 1)
    assert np.abs(got - boxes).max() <= 2


def test_a_jumping_tube_has_no_more_keys_than_a_person_looks_at():
    rng = np.random.default_rng(0)
    corner = rng.uniform(0, 8, (16, 2))
    keys = key_frames(np.concatenate([corner, corner + 4], 1), clip(16, indices=range(16)), frames=16)
    assert len(keys) <= MOST_KEYS


@pytest.mark.parametrize("count", [1, 2])
def test_short_tubes_keep_all_frames(count):
    assert thinned(np.arange(count), np.zeros((count, 4)), 1.0).tolist() == list(range(count))
