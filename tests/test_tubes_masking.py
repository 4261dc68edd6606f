import numpy as np
import pytest
import torch

from whytube.errors import ArgumentError
from whytube.tubes import FILLS, Eraser, Tube, box_masks, erase, erase_boxes, tube_mask


@pytest.fixture
def clips():
    return torch.rand(2, 3, 4, 10, 12, generator=torch.Generator().manual_seed(0))


@pytest.fixture
def mask():
    mask = torch.zeros(2, 4, 10, 12, dtype=torch.bool)
    mask[0, 1:, 2:5, 3:9] = True
    mask[1, 2, :4, :4] = True
    return mask


class TestMask:
    def test_at_own_resolution_a_box_is_a_slice_with_exclusive_edges(self):
        mask = tube_mask([Tube([5], [[3, 2, 9, 5]])], [4, 5], (10, 12), resolution=(10, 12))
        expected = torch.zeros(1, 2, 10, 12, dtype=torch.bool)
        expected[0, 1, 2:5, 3:9] = True
        assert mask.dtype == torch.bool
        assert torch.equal(mask, expected)

    def test_x_and_y_scale_apart_and_centres_decide(self):
        tube = Tube([0], [[0, 0, 160, 60]])
        mask = tube_mask([tube], [0], (240, 320), resolution=(4, 8))[0, 0]
        assert mask[0, :4].all()
        assert mask.sum() == 4
        narrow, wide = Tube([0], [[0, 0, 19, 60]]), Tube([0], [[0, 0, 21, 60]])
        assert tube_mask([narrow], [0], (240, 320), resolution=(4, 8)).sum() == 0
        assert tube_mask([wide], [0], (240, 320), resolution=(4, 8)).sum() == 1

    def test_each_clip_its_own_frames_and_size(self):
        tubes = [Tube([0, 2], [[0, 0, 4, 4], [4, 4, 8, 8]]), Tube([1], [[0, 0, 8, 16]]), Tube([], [])]
        mask = tube_mask(tubes, [[0, 2, 2], [0, 1, 2], [0, 1, 2]], [(8, 8), (16, 8), (5, 5)], resolution=(8, 8))
        assert mask.flatten(2).sum(2).tolist() == [[16, 16, 16], [0, 64, 0], [0, 0, 0]]
        assert torch.equal(mask[0, 1], mask[0, 2])

    def test_boxes_reaching_out_of_the_frame(self):
        mask = tube_mask([Tube([0], [[-5, -5, 100, 2]])], [0], (8, 8), resolution=(8, 8))
        assert mask[0, 0, :2].all()
        assert mask.sum() == 16

    def test_boxes_on_a_clip_are_masked_as_tubes_are(self):
        boxes = torch.tensor([[1.0, 0.0, 3.0, 2.0], [0.4, 0.6, 1.6, 1.4], [0.0, 0.0, 0.0, 0.0]])
        mask = box_masks(boxes, (2, 4))
        assert mask.int().tolist() == [[[0, 1, 1, 0]] * 2, [[0, 0, 0, 0]] * 2, [[0, 0, 0, 0]] * 2]
        tube = Tube([0, 1], boxes[:2].numpy())
        assert torch.equal(mask, tube_mask([tube], [0, 1, 2], (2, 4), resolution=(2, 4))[0])

    def test_no_tubes(self):
        assert tube_mask([], [0, 1], (8, 8), resolution=(4, 4)).shape == (0, 2, 4, 4)

    def test_wrong_shapes(self):
        with pytest.raises(ArgumentError, match=r"`indices` must be of shape \(T,\) or \(1, T\)"):
            tube_mask([Tube([], [])], np.zeros((2, 3)), (8, 8), resolution=(4, 4))
        with pytest.raises(ArgumentError, match="`size`"):
            tube_mask([Tube([], [])], [0], (8, 0), resolution=(4, 4))


class TestErase:
    @pytest.mark.parametrize("fill", FILLS)
    def test_nothing_outside_the_mask_changes(self, clips, mask, fill):
        before = clips.clone()
        erased = erase(clips, mask, fill=fill)
        outside = ~mask[:, None].expand_as(clips)
        assert torch.equal(clips, before)
        assert torch.equal(erased[outside], clips[outside])
        assert not torch.equal(erased, clips)
        assert erased.min() >= 0
        assert erased.max() <= 1
        assert torch.equal(erase(clips, torch.zeros_like(mask), fill=fill), clips)

    @pytest.mark.parametrize("fill", FILLS)
    def test_half_precision_and_empty_batch(self, clips, mask, fill):
        assert erase(clips.bfloat16(), mask, fill=fill).dtype == torch.bfloat16
        assert erase(clips[:0], mask[:0], fill=fill).shape == (0, 3, 4, 10, 12)

    def test_mean_is_per_clip_and_channel(self, clips, mask):
        erased = erase(clips, mask, fill="mean")
        assert torch.allclose(erased[0, :, 1, 2, 3], clips[0].mean(dim=(1, 2, 3)))
        assert torch.allclose(erased[1, :, 2, 0, 0], clips[1].mean(dim=(1, 2, 3)))

    def test_zero(self, clips, mask):
        assert erase(clips, mask, fill="zero")[0, :, 1:, 2:5, 3:9].abs().max() == 0

    def test_still_is_the_mean_over_time(self, clips, mask):
        erased = erase(clips, mask, fill="still")
        at = (0, slice(None), slice(1, None), 2, 3)
        assert torch.allclose(erased[at], clips[0, :, :, 2, 3].mean(1, keepdim=True).expand(-1, 3))
        frozen = clips[:, :, :1].expand_as(clips)
        assert torch.equal(erase(frozen, mask, fill="still"), frozen), "where nothing moves, nothing changes"

    def test_shift_is_what_is_half_a_frame_to_the_side(self, clips, mask):
        width = clips.shape[-1]
        erased = erase(clips, mask, fill="shift")
        assert torch.equal(erased[0, :, 1, 2, 3], clips[0, :, 1, 2, (3 + width - width // 2) % width])
        assert torch.equal(erased[0, :, 0, 0, 0], clips[0, :, 0, 0, 0])

    def test_noise_is_like_the_clip_and_always_the_same(self, clips, mask):
        erased = erase(clips, mask, fill="noise")
        assert torch.equal(erased, erase(clips.clone(), mask, fill="noise"))
        assert ((erased >= 0) & (erased <= 1)).all()
        masked = mask[:, None].expand_as(clips)
        assert torch.equal(erased[~masked], clips[~masked])
        inside = erased[masked]
        assert inside.std() > 0.5 * clips.std()
        assert abs(inside.mean() - clips.mean()) < 0.15

    def test_freeze_stops_motion_from_the_first_masked_frame(self, clips, mask):
        erased = erase(clips, mask, fill="freeze")
        for t in range(1, 4):
            assert torch.equal(erased[0, :, t, 2:5, 3:9], clips[0, :, 1, 2:5, 3:9])
        assert torch.equal(erased[1], clips[1])

    def test_blur_keeps_flat_pictures_and_flattens_others(self):
        everything = torch.ones(1, 1, 40, 60, dtype=torch.bool)
        flat = torch.full((1, 3, 1, 40, 60), 0.3)
        assert torch.allclose(erase(flat, everything, fill="blur"), flat, atol=1e-5)
        board = (torch.arange(40)[:, None] + torch.arange(60)).remainder(2).float().expand(1, 3, 1, 40, 60)
        assert erase(board, everything, fill="blur").std() < 0.02

    def test_blur_is_separable_and_symmetric(self):
        point = torch.zeros(1, 3, 1, 41, 41)
        point[..., 20, 20] = 1
        blurred = erase(point, torch.ones(1, 1, 41, 41, dtype=torch.bool), fill="blur")[0, 0, 0]
        assert torch.allclose(blurred, blurred.T, atol=1e-7)
        assert torch.allclose(blurred, blurred.flip(0), atol=1e-7)
        assert blurred.sum() == pytest.approx(1, abs=1e-3)

    def test_gradient_flows_to_what_is_seen(self, clips, mask):
        clips.requires_grad_(True)
        erase(clips, mask, fill="zero").sum().backward()
        assert torch.equal(clips.grad == 0, mask[:, None].expand_as(clips))

    def test_wrong_arguments(self, clips, mask):
        with pytest.raises(
            ArgumentError, match="one of 'mean', 'blur', 'freeze', 'zero', 'still', 'shift', 'noise', got 'red'"
        ):
            erase(clips, mask, fill="red")
        with pytest.raises(ArgumentError, match="`mask` must be bool"):
            erase(clips, mask.int())
        with pytest.raises(ArgumentError, match=r"`mask` must be of shape \(B, T, H, W\)"):
            erase(clips, mask[:, :2])
        with pytest.raises(ArgumentError, match=r"`clips` must be of shape"):
            erase(clips[0], mask)


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("fill", sorted(FILLS))
def test_an_eraser_erases_as_erase_does(fill, count):
    """Whole clips and blocks of them; a tube that covers no pixel has no block."""
    generator = torch.Generator().manual_seed(0)
    clips = torch.rand(count, 3, 5, 12, 16, generator=generator)
    whose = torch.arange(6) % count
    corner = torch.rand(6, 5, 2, generator=generator) * torch.tensor([12.0, 9])
    boxes = torch.cat([corner, corner + 4], -1)
    boxes[:, :2] = 0
    boxes[5] = torch.tensor([3.0, 3, 3.4, 9])
    wanted = erase_boxes(clips[whose], boxes, fill=fill)
    eraser = Eraser(clips, fill)
    erased, changed = eraser.whole(whose, boxes)
    torch.testing.assert_close(erased, wanted)
    assert changed.flatten().tolist() == [True] * 5 + [False]
    assert eraser.block(int(whose[5]), boxes[5]) is None
    for n in range(5):
        found, where = eraser.block(int(whose[n]), boxes[n])
        whole = clips[whose[n]].clone()
        whole[(..., *where)] = found[0]
        torch.testing.assert_close(whole, wanted[n])
        assert where[0] == slice(2, 5)
