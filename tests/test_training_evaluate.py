import pytest
import torch

from toy_source import Tints
from whytube.classifiers import C3DResNet
from whytube.errors import ArgumentError
from whytube.training import evaluate_classifier


class Always(C3DResNet):
    """Says the same class whatever it sees."""

    def forward(self, clips):
        return torch.eye(3, device=clips.device)[1].expand(len(clips), 3)


@pytest.fixture
def model():
    return Always(Tints.classes, width=1 / 16, frames=2, size=(16, 16))


def test_accuracy_and_confusion(model):
    accuracy, confusion = evaluate_classifier(model, Tints(), "test", 10, batch_size=4)
    assert accuracy == pytest.approx(0.3)
    assert confusion.tolist() == [[0, 4, 0], [0, 3, 0], [0, 3, 0]]
    assert model.training, "the mode is left as it was"
    model.blocks[0].eval()
    evaluate_classifier(model, Tints(), "test", 4)
    assert not model.blocks[0].training, "of every part"


def test_all_clips_where_they_have_an_end(model):
    assert evaluate_classifier(model, Tints(5), "test").confusion.sum() == 5
    assert evaluate_classifier(model, Tints(5), "test", 100).confusion.sum() == 5
    with pytest.raises(ArgumentError, match="`count` must be a number, as there is no end of clips in 'test'"):
        evaluate_classifier(model, Tints(), "test")
    with pytest.raises(ArgumentError, match="`count` must be an integer of at least 1, got 0"):
        evaluate_classifier(model, Tints(0), "test")
