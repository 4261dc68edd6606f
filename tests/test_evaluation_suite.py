import json

import pytest
import torch

from toy_source import Tints
from toy_squares import WORDS, Adder, Knowing, Squares, WithoutBoxes
from whytube.classifiers import C3DResNet
from whytube.data.source import ACTOR
from whytube.data.world import World
from whytube.errors import ArgumentError
from whytube.evaluation import METHODS, evaluate, make_methods
from whytube.evaluation.methods import Centre, RandomTube, ShuffledAttributes, TrueBox


@pytest.fixture(scope="module")
def found():
    source, model = Squares(9), Adder()
    methods = make_methods(METHODS, model, source)
    methods.append(ShuffledAttributes(Knowing(), len(WORDS)))
    return evaluate(methods, model, source, batch_size=4, fills=("zero", "mean"), clips=True).to_dict()


def test_the_form_of_the_results(found):
    assert list(found) == ["classifier", "methods", "provenance", "comparisons"]
    assert found["classifier"]["accuracy"] == 1
    assert list(found["methods"]) == [*METHODS, "shuffled-attributes"]
    for results in found["methods"].values():
        assert set(results["negative_class_accuracy"]) == {"top1", "top3"}
        assert set(results["concept_accuracy"]) == {"top1", "top3", "top5", "tied", "printed"}
        assert set(results["fills"]) == {"zero", "mean"}
        assert 0 <= results["positive_drop"] <= 1
        assert results["intervals"]["concept_accuracy"]["top5"][0] <= results["concept_accuracy"]["top5"]
        assert len(results["curve"]["top3"]) == 3
        assert len(results["tube_lengths"]) == 5
        assert sum(results["tube_lengths"]) == 9 * 3
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    settings = found["provenance"]["settings"]
    assert settings == {
        "data": "Squares",
        "split": "test",
        "clips": 9,
        "negatives": 3,
        "k": 1,
        "fills": ["zero", "mean"],
        "seen_fills": ["zero"],
    }
    costs = {name: results["masked_clips"] for name, results in found["methods"].items()}
    assert costs["grad-cam"] == pytest.approx(3), "what a question costs that is asked alone"
    assert costs["random-verified"] == pytest.approx(2 * 16), "each of sixteen tubes with two fills"
    assert costs["grad-cam-verified"] == pytest.approx(3 + 2 * 16)
    for name in ("centre", "random-tube", "true-box", "detector-box", "shuffled-attributes"):
        assert costs[name] == 0
    assert list(found["comparisons"]["centre"]) == [name for name in found["methods"] if name != "centre"]


def test_the_papers_fill_is_measured_without_being_asked_for_and_counted():
    model, source = Adder(), Squares(3)
    found = evaluate([Centre(WORDS)], model, source)
    assert found.provenance["settings"]["fills"] == ["mean", "blur", "freeze", "zero"]
    assert found.seen_fills == ["zero"]
    centre, plain = found.methods["centre"], found.to_dict()["methods"]["centre"]
    unseen = [plain["fills"][fill]["change"]["positive"] for fill in ("mean", "blur", "freeze")]
    assert centre.figure("change.positive").mean == pytest.approx(sum(unseen) / 3, abs=1e-5), "zero does not count"
    assert found.provenance["judging_clips"] == 3 * 4, "the one tube of each clip, with each of four fills"
    cheaper = evaluate([Centre(WORDS)], model, source, fills=("mean", "blur", "freeze"))
    assert cheaper.provenance["judging_clips"] == 3 * 3
    assert cheaper.methods["centre"].figure("fills.zero.positive_drop").mean is None


def test_all_negatives_are_the_papers_curve():
    model, source = Adder(), Squares(6)
    found = evaluate([Knowing(), Centre(WORDS)], model, source, negatives="all", k=2, clips=True)
    assert found.provenance["settings"]["negatives"] == 3
    for method in found.methods.values():
        for path in ("curve.top1", "fills.zero.curve.top1", "fills.zero.curve.top3"):
            assert len(method.curves[path]) == 3
        last = method.curves["fills.zero.curve.top1"][-1]
        assert last == method.figure("fills.zero.negative_class_accuracy.top1")
        assert len(method.ranks) == 2
        assert method.ranks[0]["fills.zero.positive_drop"] == method.figure("fills.zero.positive_drop")
    for record, shown in zip(found.methods["knowing"].clips, source.batch("test", range(6)).clips, strict=True):
        probable = model.eval()(shown[None]).softmax(1)[0]
        order = [source.classes[c] for c in probable.argsort(descending=True)]
        assert [record["positive"], *(q["negative"] for q in record["questions"])] == order, "most probable first"


def test_what_must_hold_does(found):
    methods = found["methods"]
    assert methods["true-box"]["concept_accuracy"]["top1"] == 1
    assert methods["true-box"]["true_box_iou"] == 1
    assert methods["true-box"]["word_separates"] == 1
    assert methods["shuffled-attributes"]["concept_accuracy"]["top5"] < 0.5
    assert methods["grad-cam"]["positive_drop"] == 1, "the bright square makes the class"
    assert methods["centre"]["tube_area"] == pytest.approx((32 / 112) ** 2, abs=1e-4)
    assert methods["centre"]["curve"]["top3"] == [1, 1, 1], "three of three negatives"


def test_records(found):
    record = found["methods"]["true-box"]["clips"][0]
    assert (record["index"], record["class"], record["positive"]) == (0, "red", "red")
    answer = record["questions"][0]
    assert answer["negative"] == "blue"
    assert answer["word"] == "green square", "blue clips have a red square too"
    assert answer["frames"] == [0, 4]
    assert answer["boxes"][0] == [20, 12, 28, 20]
    assert answer["before"][0] > answer["before"][1]
    assert answer["after"][0] > answer["before"][0]
    assert answer["figures"]["positive_drop"] == 0
    assert len(found["methods"]["centre"]["clips"]) == 9


def test_batches_do_not_matter():
    source, model = Squares(), Adder()
    methods = [Centre(WORDS), RandomTube(source.table, like=Knowing())]
    one, many = (
        evaluate(methods, model, source, count=6, batch_size=size, fills=("zero",)).to_dict() for size in (6, 1)
    )
    for name, results in one["methods"].items():
        same = many["methods"][name]
        for figure in ("concept_accuracy", "positive_drop", "tube_area", "word_separates", "tube_lengths"):
            assert results[figure] == same[figure], (name, figure)
        assert results["change"] == pytest.approx(same["change"], abs=1e-5)
    assert one["methods"]["centre"]["clips"] is None


def test_modes_and_progress():
    model, seen = Adder().train(), []
    evaluate([Centre(WORDS)], model, Squares(5), batch_size=2, progress=lambda *step: seen.append(step))
    assert seen == [(2, 5), (4, 5), (5, 5)]
    assert model.training
    assert model.scale.grad is None


def test_controls_on_the_same_tubes_cost_no_run():
    model, source = Adder(), Squares(3)
    true = Knowing()
    evaluate([true], model, source, fills=("zero",))
    alone, model.seen = model.seen, 0
    evaluate([true, ShuffledAttributes(true, len(WORDS))], model, source, fills=("zero",))
    assert model.seen == alone


def test_clips_without_boxes():
    source = Tints(3, size=32, frames=2)
    model = C3DResNet(source.classes, width=1 / 16, frames=2, size=(32, 32))
    found = evaluate([Centre(source.attribute_names)], model, source, negatives=2)
    results = found.to_dict()["methods"]["centre"]
    assert results["concept_accuracy"] == {
        "top1": None,
        "top3": None,
        "top5": None,
        "tied": {"top1": None, "top3": None},
        "printed": {"top1": None, "top3": None, "top5": None},
    }
    assert results["true_box_iou"] is None
    assert results["actor_iou"] is None
    assert results["tube_change"] == 0, "the centre is the same whatever B is"
    assert results["intervals"]["concept_accuracy"]["top1"] == [None, None]
    assert results["negative_class_accuracy"]["top3"] == 1


def test_a_method_without_any_answer_is_left_out():
    model, source = Adder(), WithoutBoxes(3)
    methods = make_methods(["centre", "true-box", "detector-box"], model, source)
    assert list(evaluate(methods, model, source, fills=("zero",)).methods) == ["centre"]


class Acting(Squares):
    """Squares in which the left one has an actor's box."""

    def batch(self, split, indices, device="cpu"):
        shown = super().batch(split, indices, device)
        for label, boxes in zip(shown.labels, shown.boxes, strict=True):
            boxes[ACTOR] = boxes[WORDS[label]]
        return shown


def test_the_actor_is_no_attribute():
    source = Acting(3)
    found = evaluate([TrueBox()], Adder(), source, negatives=1, fills=("zero",))
    plain = evaluate([TrueBox()], Adder(), Squares(3), negatives=1, fills=("zero",))
    ours, theirs = (results.to_dict()["methods"]["true-box"] for results in (found, plain))
    assert 0 < ours["actor_iou"] < ours["true_box_iou"] == 1
    assert theirs["actor_iou"] is theirs["actor_pointing"] is None
    assert ours["concept_accuracy"] == theirs["concept_accuracy"]


def test_the_world_with_a_tiny_network():
    torch.manual_seed(0)
    world = World(size=32, frames=4)
    model = C3DResNet(world.classes, width=1 / 16, frames=4, size=(32, 32))
    found = evaluate(make_methods(METHODS, model, world), model, world, count=4, k=2, batch_size=3).to_dict()
    json.dumps(found, allow_nan=False)
    assert found["provenance"]["settings"]["data"] == "World(size=32, frames=4, seed=0)"
    assert found["classifier"]["settings"]["fc_layers"] == 1
    for results in found["methods"].values():
        assert len(results["ranks"]) == 2


def test_wrong_arguments():
    model, source = Adder(), Squares(3)
    centre = Centre(WORDS)
    with pytest.raises(ArgumentError, match="`methods` must be at least one, each with a name of its own"):
        evaluate([centre, centre], model, source)
    with pytest.raises(ArgumentError, match="`source` must be of the classifier's classes"):
        evaluate([centre], Adder(("a", "b", "c", "d")), source)
    with pytest.raises(ArgumentError, match="`fills` must be one of"):
        evaluate([centre], model, source, fills=("grey",))
    with pytest.raises(ArgumentError, match="`fills` must be at least one of mean"):
        evaluate([centre], model, source, fills=())
    with pytest.raises(ArgumentError, match="`negatives` must be an integer from 1 to 3, got 4"):
        evaluate([centre], model, source, negatives=4)
    with pytest.raises(ArgumentError, match="`negatives` must be all, or an integer from 1 to 3, got 'some'"):
        evaluate([centre], model, source, negatives="some")
    with pytest.raises(ArgumentError, match="`count` must be a number"):
        evaluate([centre], model, Squares())
