import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from studies.pool import pool
from whytube.errors import ArgumentError
from whytube.evaluation.results import ClassifierResults, Comparison, Figure, MethodResults, Results

PROGRAM = Path(__file__).parent.parent / "studies" / "results.py"


def result(seed, accuracy, drop):
    figures = {path: Figure(drop, 0, 1) for path in ("negative_class_accuracy.top1", "negative_class_accuracy.top3")}
    figures |= {"positive_drop": Figure(drop, 0, 1), "concept_accuracy.top1": Figure()}
    curves = {f"curve.top{top}": [Figure(drop), Figure(1.0)] for top in (1, 3)}
    method = MethodResults(figures, curves, [{"positive_drop": Figure(drop)}], [0, 3])
    origin = {"seed": seed, "commit": "abc", "settings": {"data": "Squares"}}
    return Results(ClassifierResults(Figure(accuracy), 3, "adder"), {"centre": method}, origin)


def test_pooling_keeps_the_form():
    runs = [result(0, 0.9, 0.1), result(1, 0.8, 0.2), result(2, 0.7, 0.6)]
    pooled = pool(runs)
    centre = pooled.methods["centre"]
    assert set(centre.to_dict()) == set(runs[0].methods["centre"].to_dict())
    drop = centre.figure("positive_drop")
    assert drop.mean == pytest.approx(0.3)
    assert 0.1 <= drop.low < 0.3 < drop.high <= 0.6
    assert centre.figure("concept_accuracy.top1") == Figure()
    assert [point.mean for point in centre.curves["curve.top1"]] == [pytest.approx(0.3), 1.0]
    assert centre.curves["curve.top1"][1] == Figure(1, 1, 1)
    assert centre.ranks == [{"positive_drop": drop}]
    assert centre.tube_lengths == [0, 9]
    accuracy = pooled.classifier.accuracy
    assert accuracy.mean == pytest.approx(0.8)
    assert pooled.classifier.accuracies == [0.9, 0.8, 0.7]
    assert 0.7 <= accuracy.low < 0.8 < accuracy.high <= 0.9
    assert pooled.classifier.classes == 3
    assert pooled.provenance == {"seed": [0, 1, 2], "commit": "abc", "settings": {"data": "Squares"}}
    assert Results.from_dict(pooled.to_dict()) == pooled


def test_differences_are_pooled_with_their_range():
    runs = []
    for seed, difference in enumerate((0.1, 0.4, 0.1)):
        told = {"positive_drop": Comparison(difference, 0.0, 0.5, 0.01 * (seed + 1))}
        others = {"centre": told, "grad-cam": {}} if seed else {"centre": told}
        runs.append(replace(result(seed, 0.9, 0.1), comparisons={"ours": others}))
    pooled = pool(runs)
    assert pooled.comparisons == {"ours": {"centre": {"positive_drop": Comparison(0.2, 0.1, 0.4, 0.03)}}}
    assert pool(runs[:1]).comparisons == runs[0].comparisons
    assert pool([*runs, result(3, 0.9, 0.1)]).comparisons == {}
    assert Results.from_dict(pooled.to_dict()) == pooled


def test_what_measured_is_listed_where_it_differs():
    one, other = result(0, 0.9, 0.1), result(1, 0.9, 0.1).with_provenance(commit="def+", reader="PyAV")
    origin = pool([one.with_provenance(reader="PyAV"), other]).provenance
    assert origin["commit"] == ["abc", "def+"]
    assert origin["reader"] == "PyAV"


def test_counts_of_every_run_are_kept_and_other_notes_come_once():
    shrunk, said = "`centre`: 3 of 3 tubes were above the area and were shrunk to it.", "`x` says no words."
    runs = [result(seed, 0.9, 0.1).with_provenance(notes=[shrunk, said]) for seed in range(2)]
    assert pool(runs).provenance["notes"] == [shrunk, said, shrunk]


def test_splits_are_listed_where_they_differ():
    runs = [result(0, 0.9, 0.1), result(0, 0.8, 0.2)]
    runs = [
        run.with_provenance(data=f"jhmdb-{split}", model="i3d", model_hash=f"{split}{split}")
        for split, run in enumerate(runs)
    ]
    origin = pool(runs).provenance
    assert origin["seed"] == [0, 0]
    assert origin["data"] == ["jhmdb-0", "jhmdb-1"]
    assert origin["model"] == "i3d"
    assert origin["model_hash"] == [f"{split}{split}" for split in range(len(runs))], "three networks, three hashes"
    assert origin["settings"] == {"data": "Squares"}
    runs[1] = runs[1].with_provenance(settings={"data": "World"})
    assert pool(runs).provenance["settings"]["data"] == ["Squares", "World"]


def test_numbers_of_clips_are_listed_where_they_differ():
    one, two = result(0, 0.9, 0.1), result(1, 0.8, 0.2)
    for run, clips in ((one, 268), (two, 50)):
        run.provenance["settings"]["clips"] = clips
    assert pool([one, two]).provenance["settings"]["clips"] == [268, 50]
    assert pool([one, one]).provenance["settings"]["clips"] == 268


def test_runs_must_have_the_same_methods():
    run, other = result(0, 0.9, 0.1), result(1, 0.9, 0.1)
    more = Results(other.classifier, {**other.methods, "grad-cam": other.methods["centre"]}, other.provenance)
    with pytest.raises(ArgumentError, match="`results` must be of the same methods"):
        pool([run, more])
    with pytest.raises(ArgumentError, match="`results` must be at least one"):
        pool([])


def run_program(*words):
    return subprocess.run([sys.executable, PROGRAM, *map(str, words)], capture_output=True, text=True)


def test_methods_that_not_all_runs_have_are_left_out_on_request():
    one, two = result(0, 0.9, 0.1), result(1, 0.8, 0.3)
    notes = {"notes": ["`further` is told of.", "`centre` is told of."]}
    methods = {"further": two.methods["centre"], **two.methods}
    more = replace(two, methods=methods, provenance={**two.provenance, **notes})
    with pytest.raises(ArgumentError, match="of the same methods"):
        pool([one, more])
    pooled = pool([one, more], common=True)
    assert list(pooled.methods) == ["centre"]
    assert pooled.methods["centre"].figure("positive_drop").mean == pytest.approx(0.2)
    assert pooled.provenance["notes"] == ["Not in all runs, and left out: further.", "`centre` is told of."]
    assert pool([one, two], common=True) == pool([one, two])


def test_the_program_pools_and_collects(tmp_path):
    for seed in (0, 1):
        result(seed, 0.9, 0.1).save(tmp_path / f"{seed}.json")
    out = tmp_path / "pooled.json"
    done = run_program("pool", tmp_path / "0.json", tmp_path / "1.json", "--out", out)
    assert done.returncode == 0, done.stderr
    assert "centre" in done.stdout
    assert Results.load(out).provenance["seed"] == [0, 1]
    history = {"records": [{"step": 0, "loss": 2.0, "seconds": 1}, {"step": 9, "loss": 1.0, "seconds": 2}]}
    (tmp_path / "train.json").write_text(json.dumps({"history": history, "provenance": {"table": "permuted"}}))
    done = run_program("curves", f"a = b={tmp_path / 'train.json'}", "--out", out)
    assert done.returncode == 0, done.stderr
    assert "| a = b | 2 | 1 | 9 | - |" in done.stdout
    found = json.loads(out.read_text())
    assert found["curves"]["a = b"][1] == {"step": 9, "loss": 1.0}
    assert found["provenance"]["a = b"]["table"] == "permuted"


def test_the_program_refuses_what_is_no_result(tmp_path):
    (tmp_path / "other.json").write_text("{}")
    for words, message in (
        (("pool", tmp_path / "other.json"), "other.json is not results of an evaluation"),
        (("curves", tmp_path / "other.json"), "expected TITLE=FILE"),
        (("curves", f"a={tmp_path / 'other.json'}"), "other.json holds no history"),
        (("pages", tmp_path / "empty", "page.md", "--images", tmp_path), "there are no results"),
    ):
        done = run_program(*words, *(() if words[0] == "pages" else ("--out", tmp_path / "out")))
        assert done.returncode == 2
        assert message in done.stderr
