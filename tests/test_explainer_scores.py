"""The volumes and weights of the explanation module against the paper's formulas written out."""

import pytest
import torch
from torch.nn.functional import conv2d

from toy_explainer import CHANNELS, GRIDS, tiny_maps, tiny_scores
from whytube.explainer.scores import shape_windows

ATTRIBUTES = torch.tensor([[0, 3], [4, 1]])


def convolved(scores, h, kernels, scale):
    """One conv2d per shape with `w * a_i`: h (d, t, h, w), kernels (n, d, 3, 3) -> (n, 4, T, H, W)."""
    volumes = []
    for window in shape_windows().double().view(-1, 3, 3):
        out = conv2d(h.transpose(0, 1), kernels * window, padding=1).transpose(0, 1)  # (n, t, h, w)
        volumes.append(scores.forms.to_common(out, scale))
    return torch.stack(volumes, 1)


def full_volumes(scores, maps, b, attribute):
    """m_cs of one clip and attribute with the whole w_cs = w_c * w_s + w_c + w_s: (C, K, T, H, W)."""
    parts = []
    for scale, h in enumerate(maps):
        w_c, w_s = scores.class_weights[scale], scores.attribute_weights[scale][attribute]
        parts.append(convolved(scores, h[b], w_c * w_s + w_c + w_s, scale))
    return torch.cat(parts, 1)


@pytest.fixture
def scores():
    return tiny_scores()


@pytest.fixture
def maps():
    return tiny_maps()


@torch.no_grad()
def test_class_volumes_are_the_full_scores_up_to_what_cancels(scores, maps):
    volumes = scores.class_volumes(maps, ATTRIBUTES)
    assert volumes.shape == (2, 4, 2, 8, *GRIDS[0])
    for b in range(2):
        for place, attribute in enumerate(ATTRIBUTES[b].tolist()):
            whole = full_volumes(scores, maps, b, attribute)
            alone = [
                convolved(scores, h[b], scores.attribute_weights[i][attribute][None], i) for i, h in enumerate(maps)
            ]
            torch.testing.assert_close(volumes[b, :, place], whole - torch.cat(alone, 1))
            for one in range(4):
                for other in range(4):
                    torch.testing.assert_close(
                        volumes[b, one, place] - volumes[b, other, place], whole[one] - whole[other]
                    )


@torch.no_grad()
def test_attribute_volumes_are_what_cancels_and_a_bias(scores, maps):
    scores.attribute_bias.copy_(torch.arange(5.0))
    volumes = scores.attribute_volumes(maps)
    assert volumes.shape == (2, 5, 8, *GRIDS[0])
    for b in range(2):
        parts = [convolved(scores, h[b], scores.attribute_weights[i], i) for i, h in enumerate(maps)]
        expected = torch.cat(parts, 1) + torch.arange(5.0, dtype=torch.float64).view(5, 1, 1, 1, 1)
        torch.testing.assert_close(volumes[b], expected)


@torch.no_grad()
def test_a_volume_depends_on_its_own_clip_alone(scores, maps):
    both = scores.class_volumes(maps, ATTRIBUTES)
    second = scores.class_volumes([h[1:] for h in maps], ATTRIBUTES[1:])
    torch.testing.assert_close(both[1:], second)


@torch.no_grad()
def test_padding_of_attributes_is_harmless(scores, maps):
    padded = torch.tensor([[0, -1], [4, 1]])
    torch.testing.assert_close(
        scores.class_volumes(maps, padded)[1], scores.class_volumes(maps, ATTRIBUTES)[1], rtol=0, atol=0
    )


def test_standardise(scores):
    maps = [5 + 3 * h for h in tiny_maps(50)]
    identity = scores.normalise(maps)
    assert all(torch.equal(a, b) for a, b in zip(identity, maps, strict=True))
    scores.standardise([h.mean((0, 2, 3, 4)) for h in maps], [h.std((0, 2, 3, 4)) for h in maps])
    for h, d in zip(scores.normalise(maps), CHANNELS, strict=True):
        torch.testing.assert_close(h.mean((0, 2, 3, 4)), torch.zeros(d, dtype=torch.float64), rtol=0, atol=1e-6)
        torch.testing.assert_close(h.std((0, 2, 3, 4)), torch.full((d,), d**-0.5, dtype=torch.float64))
        assert h.square().sum(1).mean() == pytest.approx(1, rel=0.01)


def test_a_dead_channel_stays_finite(scores):
    scores.standardise([torch.zeros(d) for d in CHANNELS], [torch.zeros(d) for d in CHANNELS])
    assert all(h.isfinite().all() for h in scores.normalise(tiny_maps()))


def test_the_maps_statistics_are_saved_and_the_windows_are_not(scores):
    names = set(scores.state_dict())
    assert {"mean0", "gain1", "attribute_bias", "class_weights.0"} <= names
    kinds = {name.rstrip("0123456789").rstrip(".") for name in names}
    assert kinds == {"mean", "gain", "attribute_bias", "class_weights", "attribute_weights"}
