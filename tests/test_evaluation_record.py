import torch

from toy_squares import WORDS, Squares, ask
from whytube.evaluation.judge import Truth, judge
from whytube.evaluation.metrics import annotated_boxes
from whytube.evaluation.record import clip_records
from whytube.search.verify import Regions


def record_of(boxes, word):
    question, shown = ask(1, negatives=1)
    regions = Regions(boxes.view(1, 1, 1, 4, 4), torch.tensor([[[word]]]), torch.zeros(1, 1, 1))
    boxes_of, known = annotated_boxes(shown.boxes, WORDS, frames=4)
    truth = Truth(shown.labels, Squares.table, boxes_of, known, boxes_of[:, 0])
    after = torch.tensor([[0.1, 0.2, 0.6, 0.1], [0.3, 0.2, 0.2, 0.3]]).log().view(2, 1, 1, 1, 4)
    figures = judge(regions, question, truth, after=after, fills=("zero", "mean"))
    return clip_records([7], Squares(), question, regions, truth, figures, after)[0]


def test_span_and_mean_over_fills():
    boxes = torch.zeros(4, 4)
    boxes[1:3] = torch.tensor([1.04, 2, 3, 4])
    record = record_of(boxes, 1)
    (answer,) = record["questions"]
    assert record["index"] == 7
    assert answer["frames"] == [1, 3]
    assert answer["boxes"] == [[1.0, 2.0, 3.0, 4.0]] * 2
    assert answer["after"] == [0.2, 0.4], "p(A) and p(B), red and blue"


def test_no_answer():
    (answer,) = record_of(torch.zeros(4, 4), -1)["questions"]
    assert answer["word"] is None
    assert answer["frames"] == [0, 0]
    assert answer["boxes"] == []
