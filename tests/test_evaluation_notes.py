"""Rows that cannot differ say so, and columns without figures are explained or absent: in every table."""

from dataclasses import replace
from io import StringIO

import torch
from rich.console import Console

from studies.page import Found, filled
from studies.pool import pool
from toy_squares import WORDS, Adder, Knowing, Squares, WithoutBoxes
from whytube.cli.demo import print_results
from whytube.evaluation import evaluate, make_methods
from whytube.evaluation.methods import Centre, RandomAttribute, Remembered
from whytube.evaluation.results import Figure, Results
from whytube.report import write_report
from whytube.search.regions import RegionSearch

CONTROLS = ["random-attribute", "shuffled-attributes", "random-tube"]


class OneWord(Squares):
    """All squares are called "square"."""

    attribute_names = ("square",)
    table = torch.tensor([[1], [1], [1], [0]], dtype=torch.bool)

    def batch(self, split, indices, device="cpu"):
        shown = super().batch(split, indices, device)
        boxes = [{"square": next(iter(boxes.values()))} for boxes in shown.boxes]
        return replace(shown, boxes=boxes, attributes=self.table[shown.labels])


def measured(own, source, names=CONTROLS, model=None):
    model = model or Adder()
    methods = [own, *make_methods(names, model, source, like=own)]
    return evaluate(methods, model, source, count=3, fills=("mean",))


def printed(results):
    out = StringIO()
    print_results(results, Console(file=out, width=200))
    return out.getvalue()


def test_controls_of_words_say_that_their_tubes_are_the_same():
    results = measured(Knowing(), Squares(3))
    said = "`{}` has the tubes of `knowing`: only figures of words can differ."
    assert results.notes == [said.format("random-attribute"), said.format("shuffled-attributes")]
    assert said.format("shuffled-attributes") in printed(results)
    assert "random-tube`" not in printed(results)


def test_the_papers_protocol_is_printed_pair_by_pair():
    results = evaluate([Knowing(), Centre(WORDS)], Adder(), Squares(3), k=2)
    above, _, below = printed(results).partition("As in the paper: each pair i alone, filled with zeros")
    assert "zero, as in the paper" in above
    rows = [line.split() for line in below.splitlines()[2:6]]
    assert [row[:2] for row in rows] == [["knowing", "1"], ["knowing", "2"], ["centre", "1"], ["centre", "2"]]
    second = results.methods["knowing"].ranks[1]
    paths = ["fills.zero.negative_class_accuracy.top1", "fills.zero.negative_class_accuracy.top3"]
    paths += ["fills.zero.positive_drop", *(f"concept_accuracy.printed.top{top}" for top in (1, 3, 5)), "answered"]
    assert rows[1][2:] == [f"{second[path].mean:.2f}" for path in paths]


def shown(results):
    return filled("<!-- results: run one -->\n<!-- end -->", Found({"one": results}, {}, {}))


def test_results_without_zeros_say_so():
    said = printed(evaluate([Centre(WORDS)], Adder(), Squares(3), fills=("mean",)))
    head, row = said.splitlines()[:2]
    assert "zero, as in the paper" in head
    assert row.split()[3] == "-"
    assert "As in the paper: each pair" not in said


def test_with_one_word_its_controls_cannot_differ(tmp_path):
    results = measured(Centre(("square",)), OneWord(3))
    said = "`{}` cannot differ from `centre` here: it has the same tubes, and there is only one word."
    for name in CONTROLS[:2]:
        assert f"{said.format(name)} Its row says nothing." in results.notes
        assert said.format(name) in printed(results)
        assert said.format(name) in shown(results)
    results.save(tmp_path / "results.json")
    assert Results.load(tmp_path / "results.json").notes == results.notes
    page = write_report(tmp_path / "report.html", results=results).read_text()
    assert said.format("random-attribute").replace("`", "") in page
    assert page.count("cannot differ from") == 2, "not again among the versions"
    assert pool([results, results]).notes == results.notes


def test_where_each_clip_has_one_word_to_choose_a_control_says_so():
    class Sure(Knowing):
        name = "sure"

        def __call__(self, asked, k):
            regions = super().__call__(asked, k)
            return replace(regions, attribute_ids=torch.where(regions.attribute_ids >= 0, 3, -1))

    own, table = Sure(), torch.zeros(4, 4, dtype=torch.bool)
    table[:, 3] = True
    source = Squares(3)
    source.table = table
    control = RandomAttribute(own, table, present=True)
    (note,) = evaluate([own, control], Adder(), source, fills=("mean",)).notes
    assert note.startswith("`random-attribute` cannot differ from `sure` here")
    assert "no other word to say" in note


def test_a_method_without_words_is_told_and_its_controls_too():
    model = Adder()
    own = Remembered(RegionSearch(model))
    results = measured(own, Squares(3), model=model)
    assert any("shuffled-attributes` cannot differ" in note and "says no words" in note for note in results.notes)
    assert f"`{own.name}` says no words: it has no figures of words." in results.notes
    assert results.methods[own.name].figure("concept_accuracy.top1").mean is None, "no word is not a wrong word"
    assert results.methods["random-attribute"].figure("word_in_class").mean is not None
    assert "worded" not in results.methods[own.name].figures


def test_without_boxes_there_is_no_concept_column_and_it_is_said_why():
    results = measured(Centre(WORDS), WithoutBoxes(3), ["true-box"])
    text = printed(results)
    assert "word" not in text.splitlines()[0]
    assert "Concept accuracy is not measured: no clip has boxes of words." in text
    assert "`true-box` answered nothing and is left out: no clip has boxes of words." in text
    table = shown(results)
    assert "concept 1 / 3 / 5" not in table
    assert "true box IoU" not in table
    assert "- Concept accuracy is not measured: no clip has boxes of words." in table
    assert table.count("| - |") == 1, "zeros, which were not measured"


def test_where_the_classifier_is_wrong_it_is_said():
    class Wrong(Squares):
        def batch(self, split, indices, device="cpu"):
            shown = super().batch(split, indices, device)
            return replace(shown, labels=(shown.labels + 1) % 3)

    notes = measured(Centre(WORDS), Wrong(3), []).notes
    assert notes == ["Concept accuracy is not measured: the classifier is right on no clip that has boxes of words."]


def test_a_column_with_some_figures_has_dashes():
    results = measured(Centre(WORDS), Squares(3), [])
    drop = {"positive_drop": Figure(0.5)}
    bare = replace(results.methods["centre"], figures=drop)
    text = printed(replace(results, methods={**results.methods, "bare": bare}))
    assert text.splitlines()[2].split() == ["bare", "-", "-", "-", "0.50", "-", "-", "-", "-", "-"]


def test_results_without_notes_have_none():
    results = measured(Centre(WORDS), Squares(3), [])
    assert "notes" not in results.provenance
    assert results.notes == []
    assert replace(results, provenance={"notes": 7}).notes == []
