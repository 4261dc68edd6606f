import pytest
import torch

from toy_squares import FRAMES, WORDS, Adder, Knowing, Squares, ask
from whytube.evaluation import Results, evaluate
from whytube.evaluation.curves import curve_points, under, whole_curves
from whytube.evaluation.methods import Centre
from whytube.tubes import erase_boxes


@torch.no_grad()
def test_regions_are_masked_and_shown_one_after_the_other():
    question, shown = ask(1, negatives=1)
    model = Adder().eval()
    tracks = [torch.from_numpy(shown.boxes[0][WORDS[colour]]).float() for colour in (0, 1)]
    boxes = torch.stack(tracks).view(1, 1, 2, FRAMES, 4)
    found = whole_curves(curve_points(model, question, boxes, fills=("zero",)))
    a, b = int(question.positive[0]), int(question.negative[0, 0])
    plain = question.features.logits.double().softmax(1)[0]
    assert found["deletion.positive"][0, 0, 0] == pytest.approx(float(plain[a]))
    first = model(erase_boxes(question.clips, boxes[:, 0, 0], fill="zero")).double().softmax(1)[0]
    both = erase_boxes(erase_boxes(question.clips, boxes[:, 0, 0], fill="zero"), boxes[:, 0, 1], fill="zero")
    second = model(both).double().softmax(1)[0]
    for of, place in (("positive", a), ("negative", b)):
        expected = [float(p[place]) for p in (plain, first, second)]
        assert found[f"deletion.{of}"].flatten().tolist() == pytest.approx(expected, abs=1e-6)
    empty = model(torch.zeros_like(question.clips)).double().softmax(1)[0]
    only = question.clips - erase_boxes(question.clips, boxes[:, 0, 0], fill="zero")
    kept = model(only).double().softmax(1)[0]
    assert found["insertion.positive"][0, 0, :2].tolist() == pytest.approx([float(empty[a]), float(kept[a])], abs=1e-6)
    assert found["insertion.positive"][0, 0, 1] > found["insertion.positive"][0, 0, 0], "the bright square makes A"


@torch.no_grad()
def test_curves_of_logarithms_and_of_fills_that_were_seen():
    question, shown = ask(1, negatives=1)
    model = Adder().eval()
    boxes = torch.from_numpy(shown.boxes[0][WORDS[0]]).float().view(1, 1, 1, FRAMES, 4)
    found = whole_curves(curve_points(model, question, boxes, fills=("mean", "blur"), seen=("zero",)))
    a = int(question.positive[0])
    logs = {
        fill: float(model(erase_boxes(question.clips, boxes[:, 0, 0], fill=fill)).double().log_softmax(1)[0, a])
        for fill in ("mean", "blur", "zero")
    }
    (told,) = found["log_probability.deletion.positive"][0, 0, 1:].tolist()
    assert told == pytest.approx((logs["mean"] + logs["blur"]) / 2, abs=1e-6), "the mean of logarithms"
    assert float(found["deletion.positive"][0, 0, 1].log()) > told, "not the logarithm of the mean"
    for kind, expected in (("", torch.tensor(logs["zero"]).exp()), ("log_probability.", logs["zero"])):
        assert float(found[f"fills.zero.{kind}deletion.positive"][0, 0, 1]) == pytest.approx(float(expected), abs=1e-6)


def test_area_under_a_curve():
    assert under(torch.tensor([1.0, 0.0])) == 0.5
    assert under(torch.tensor([1.0, 1.0, 0.0])) == 0.75
    assert whole_curves({"tube_area": torch.zeros(1, 1, 1)}) == {}


def test_results_have_them_only_where_asked(tmp_path):
    model, source, methods = Adder(), Squares(3), [Knowing(), Centre(WORDS)]
    plain = evaluate(methods, model, source, k=2, fills=("zero", "mean"), negatives=2)
    runs, model.seen = model.seen, 0
    results = evaluate(methods, model, source, k=2, fills=("zero", "mean"), negatives=2, curves=True)
    assert model.seen > runs
    assert "deletion.positive" not in plain.methods["centre"].figures
    found = results.methods["knowing"]
    curve = found.curves["deletion.curve.positive"]
    assert len(curve) == 3, "before, and after each of two regions"
    means = [point.mean for point in curve]
    assert found.figure("deletion.positive").mean == pytest.approx((means[0] + 2 * means[1] + means[2]) / 4, abs=1e-5)
    assert found.figure("insertion.negative").low is not None
    assert found.figure("log_probability.deletion.positive").mean < 0
    assert found.figure("fills.zero.insertion.positive").mean is not None
    assert len(found.curves["fills.zero.deletion.curve.positive"]) == 3
    assert {path: found.figures[path] for path in plain.methods["knowing"].figures} == plain.methods["knowing"].figures
    assert not any("points" in path or "start" in path for path in found.figures)
    assert Results.load(results.save(tmp_path / "results.json")) == results
