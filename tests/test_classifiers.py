import pytest
import torch

from whytube.classifiers import C3DResNet, Features, VideoClassifier
from whytube.errors import ArgumentError
from whytube.models import build_classifier


class Mean(VideoClassifier):
    """Judges by mean colour: the smallest classifier there is."""

    architecture = "mean"

    def __init__(self, classes):
        super().__init__(classes, frames=2, size=(8, 6))
        self.head = torch.nn.Linear(3, len(self.classes))

    @property
    def settings(self):
        return {}

    def features(self, clips):
        if clips.shape[0] == 0:
            raise RuntimeError("no clips")
        return Features(self.head(self.check_clips(clips).mean((2, 3, 4))), (clips, clips[..., ::2, ::2]))


def test_classes_by_name():
    model = Mean(["LongJump", "HighJump"])
    assert model.classes == ("LongJump", "HighJump")
    assert model.class_index("HighJump") == 1
    with pytest.raises(ArgumentError, match=r"unknown class 'Long jmp'\. Did you mean 'LongJump'\?"):
        model.class_index("Long jmp")


@pytest.mark.parametrize("classes", [["one"], ["a", "a"], "ab", ["a", ""], ["a", 3]])
def test_classes_must_be_two_different_names(classes):
    with pytest.raises(ArgumentError, match="`classes` must be at least two different names"):
        Mean(classes)


def test_forward_is_the_logits_of_features():
    model = Mean(["a", "b", "c"])
    clips = torch.rand(4, 3, 2, 8, 6)
    assert torch.equal(model(clips), model.features(clips).logits)
    assert model(clips).shape == (4, 3)


def test_map_shapes_leave_the_mode_alone():
    model = Mean(["a", "b"])
    assert model.map_shapes() == ((3, 2, 8, 6), (3, 2, 4, 3))
    assert model.training
    model.eval().map_shapes()
    assert not model.training


def test_clips_of_another_shape_are_refused():
    with pytest.raises(ArgumentError, match=r"`clips` must be of shape \(B, 3, 2, 8, 6\), got \(1, 2, 3, 8, 6\)"):
        Mean(["a", "b"])(torch.rand(1, 2, 3, 8, 6))
    with pytest.raises(ArgumentError, match=r"must be a floating-point tensor, got torch\.uint8"):
        Mean(["a", "b"])(torch.zeros(1, 3, 2, 8, 6, dtype=torch.uint8))


def test_presets_have_the_sizes_they_promise():
    paper = build_classifier("c3d-resnet", ["a", "b"])
    assert (paper.frames, paper.size) == (16, (112, 112))
    small = build_classifier("c3d-resnet-small", ["a", "b"])
    assert isinstance(small, C3DResNet)
    assert small.size == (64, 64)
    fine, coarse = small.map_shapes()
    assert fine == (32, 16, 16, 16)
    assert coarse == (64, 16, 8, 8)


def test_the_seed_decides_the_weights_and_the_global_state_stays():
    torch.manual_seed(3)
    before = torch.random.get_rng_state()
    first, again, other = (build_classifier("c3d-resnet-small", ["a", "b"], seed=s, width=0.1) for s in (0, 0, 1))
    assert torch.equal(first.stem.weight, again.stem.weight)
    assert not torch.equal(first.stem.weight, other.stem.weight)
    assert torch.equal(torch.random.get_rng_state(), before)


def test_unknown_preset():
    with pytest.raises(ArgumentError, match=r"unknown classifier preset 'c3d-resnet-smal'\. Did you mean"):
        build_classifier("c3d-resnet-smal", ["a", "b"])
