"""Damaged models, explanations, results and saved runs: they load, or say what is wrong with them."""

import json
import os
import struct
import subprocess
import sys

import pytest
from safetensors.torch import save_file

from damage import DEEP, ODD, damaged_json, damaged_model, damaged_tree, nest, variants
from explanation_examples import explanation, reason
from toy_explainer import tiny_classifier, tiny_explainer
from toy_source import Tints
from toy_squares import WORDS, Adder, Squares
from whytube.documents import build, parse_json
from whytube.errors import ArgumentError, DataError, ExplanationError, ModelError
from whytube.evaluation import Results, evaluate
from whytube.evaluation.methods import Centre, TrueBox
from whytube.explanation import Explanation
from whytube.models import load_classifier, load_explainer, read_card, save_classifier, save_explainer
from whytube.report import write_report
from whytube.training import Recipe, fit_classifier, fit_explainer
from whytube.training.history import History, Record
from whytube.tubes import Tube

QUICK = Recipe(clips=8, batch_size=4, optimizer="adamw", lr=0.01)


def outcomes(files, load, error):
    """Count what loads and what is refused with `error` and a message of one line; anything else is a failure."""
    loaded, said = 0, []
    for path in files:
        try:
            load(path)
            loaded += 1
        except error as problem:
            said.append(str(problem))
    assert all(message.strip() and "\n" not in message and len(message) < 2000 for message in said)
    return loaded, len(said)


def written(path, contents):
    for content in contents:
        path.write_bytes(content)
        yield path


def test_explanations(tmp_path):
    plain = explanation(reason("jumping"), reason("with ball", start=2)).to_dict()

    def load(path):
        loaded = Explanation.load(path)
        assert Explanation.from_dict(json.loads(json.dumps(loaded.to_dict()))).sentence

    files = written(tmp_path / "why.json", variants(lambda rng: damaged_json(plain, rng)))
    loaded, refused = outcomes(files, load, ExplanationError)
    assert loaded + refused == 1000
    assert refused > 700


def test_results(tmp_path):
    found = evaluate([Centre(WORDS), TrueBox()], Adder(), Squares(4), fills=("zero",), clips=True)
    plain = json.loads(json.dumps(found.to_dict()))

    def load(path):
        loaded = Results.load(path)
        json.dumps(loaded.to_dict(), allow_nan=False)
        write_report(tmp_path / "page.html", results=loaded)

    files = written(tmp_path / "results.json", variants(lambda rng: damaged_json(plain, rng)))
    loaded, refused = outcomes(files, load, DataError)
    assert loaded + refused == 1000
    assert refused > 500


def test_histories():
    plain = History([Record(4, 16, 0.1, 1.5, 0.5, 2.0), Record(8, 32, 0.1, 1.2, 0.6, 4.0, 0.5)], ["a note"]).to_dict()
    trees = variants(lambda rng: damaged_tree(plain, rng))
    loaded, refused = outcomes(trees, lambda tree: History.from_dict(tree).to_dict(), ArgumentError)
    assert loaded + refused == 1000
    assert refused > 700


def test_classifiers(tmp_path):
    told = {"provenance": {"data": "tints"}, "recipe": {"lr": 0.1}, "metrics": {"test accuracy": 0.5}}
    whole = save_classifier(tmp_path / "whole.safetensors", tiny_classifier(), **told)

    def load(path):
        json.dumps(read_card(path).metrics)
        load_classifier(path)

    files = written(tmp_path / "classifier.safetensors", variants(lambda rng: damaged_model(whole, rng)))
    loaded, refused = outcomes(files, load, ModelError)
    assert loaded + refused == 1000
    assert refused > 500


def test_explainers(tmp_path):
    explainer = tiny_explainer("two-sided")
    whole = save_explainer(tmp_path / "whole.safetensors", explainer, provenance={"data": "tints"})
    files = written(tmp_path / "explainer.safetensors", variants(lambda rng: damaged_model(whole, rng)))
    loaded, refused = outcomes(files, lambda path: load_explainer(path, explainer.classifier), ModelError)
    assert loaded + refused == 1000
    assert refused > 500


@pytest.mark.parametrize(("fit", "name"), [(fit_classifier, "run"), (fit_explainer, "explainer_run")])
def test_saved_runs(fit, name, tmp_path):
    fit(tiny_classifier(), Tints(), QUICK, out_dir=tmp_path)
    path, whole = tmp_path / f"{name}.safetensors", tmp_path / "whole.safetensors"
    path.rename(whole)
    more = Recipe(clips=12, batch_size=4, optimizer="adamw", lr=0.01)

    def resume(_):
        fit(tiny_classifier(), Tints(), QUICK, out_dir=tmp_path, resume=True)

    files = written(path, variants(lambda rng: damaged_model(whole, rng)))
    loaded, refused = outcomes(files, resume, ModelError)
    assert loaded + refused == 1000
    assert refused > 500
    path.write_bytes(whole.read_bytes())
    with pytest.raises(ModelError, match="its clips is 8, expected 12"):
        fit(tiny_classifier(), Tints(), more, out_dir=tmp_path, resume=True)


def test_states_of_evaluations(tmp_path):
    path, whole = tmp_path / "state.safetensors", tmp_path / "whole.safetensors"

    def run(path, progress=None):
        asked = {"fills": ("zero",), "batch_size": 2, "clips": True, "state": path, "progress": progress}
        evaluate([Centre(WORDS), TrueBox()], Adder(), Squares(4), resume=True, **asked)

    run(whole)
    files = written(path, variants(lambda rng: damaged_model(whole, rng)))
    loaded, refused = outcomes(files, run, ModelError)
    assert loaded + refused == 1000
    assert refused > 500


@pytest.mark.parametrize(
    ("change", "place"),
    [
        (lambda e: e["reasons"][1]["tube"].update(boxes="all"), "`reasons[1].tube.boxes` must be a list"),
        (lambda e: e["reasons"][1]["tube"].update(frames=[10**400]), "`reasons[1].tube.frames` must be a list of int"),
        (lambda e: e["reasons"][0]["tube"].pop("boxes"), "`reasons[0].tube.boxes` is missing"),
        (lambda e: e["reasons"][0].update(score=float("inf")), "`reasons[0].score` must be a finite number, got inf"),
        (lambda e: e["reasons"][0]["evidence"][1].update(fill=3), "`reasons[0].evidence[1].fill` must be text, got 3"),
        (lambda e: e["reasons"][0]["evidence"][1].update(positive_after=7), "reasons[0].evidence[1]: `positive_after`"),
        (lambda e: e.update(size=[3]), "`size` must be 2 values, got [3]"),
        (lambda e: e.update(frames=[True]), "`frames[0]` must be an integer"),
        (lambda e: e.update(settings={"a": nest(60)}), "`settings.a` must be nested at most"),
        (lambda e: e.update(reasons={}), "`reasons` must be a list"),
        (lambda e: e.update(shoes=1), "`shoes` is not known here"),
    ],
)
def test_the_place_is_named(change, place, tmp_path):
    plain = explanation(reason("jumping"), reason("with ball")).to_dict()
    change(plain)
    (tmp_path / "why.json").write_text(json.dumps(plain))
    with pytest.raises(ExplanationError) as caught:
        Explanation.load(tmp_path / "why.json")
    assert place in str(caught.value)


def test_what_json_allows_and_what_not():
    for text, message in (
        (DEEP, "nested too deeply"),
        ('{"a": 1, "a": 2}', "names a key twice"),
        (b"\xff\xfe\x00", "codec"),
        ("9" * 5000, "digits"),
        ("", "Expecting value"),
    ):
        with pytest.raises(ValueError, match=message):
            parse_json(text)
    assert parse_json('{"a": [1, 2.5, null, true, "b"]}') == {"a": [1, 2.5, None, True, "b"]}
    for odd in ODD:
        with pytest.raises(ArgumentError):
            build(Tube, {"frames": odd, "boxes": [[0, 0, 1, 1]]})
    assert len(build(Tube, {"frames": [], "boxes": []})) == 0
    assert build(tuple[int, ...], [1, 2]) == (1, 2)
    assert build(list[float | None], [1, None]) == [1.0, None]


def command(*words, cwd):
    environment = os.environ | {"COLUMNS": "500", "OMP_NUM_THREADS": "1"}
    line = [sys.executable, "-m", "whytube", *map(str, words)]
    return subprocess.run(line, cwd=cwd, capture_output=True, text=True, env=environment, timeout=120, check=False)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("report", "deep.json", "--out", "page.html"), "deep.json: cut off, or not JSON (nested too deeply)"),
        (("report", "infinite.json", "--out", "page.html"), "`fps` must be a finite number, got inf"),
        (("report", "digits.json", "--out", "page.html"), "`frames[0]` must be an integer of 64 bits"),
        (("report", "--results", "deep.json", "--out", "page.html"), "nested too deeply"),
        (("report", "--results", "list.json", "--out", "page.html"), "is not results of an evaluation"),
        (("models", "info", "deep.safetensors"), "its whytube header is damaged (nested too deeply)"),
        (("models", "info", "types.safetensors"), "its card is damaged (`classes` must be a list, got 7)"),
        (("models", "info", "long.safetensors"), "damaged, cut off, or not safetensors"),
        (("explain", "clip.mp4", "--model", "types.safetensors"), "its card is damaged"),
        (("explain", "clip.mp4", "--model", "missing.safetensors"), "its weights do not fit its settings. Error"),
        (("evaluate", "--model", "missing.safetensors"), "its weights do not fit its settings. Error"),
        (("train", "classifier", "--out", ".", "--resume"), "run.safetensors: its saved state is damaged"),
    ],
)
def test_from_the_command_line(words, message, tmp_path):
    plain = explanation(reason("jumping")).to_dict()
    (tmp_path / "deep.json").write_text(DEEP)
    (tmp_path / "list.json").write_text("[]")
    (tmp_path / "infinite.json").write_text(json.dumps(plain | {"fps": float("inf")}))
    (tmp_path / "digits.json").write_text(json.dumps(plain | {"frames": [10**400]}))
    whole = save_classifier(tmp_path / "whole.safetensors", tiny_classifier(), provenance={})
    card = json.loads(json.dumps(read_card(whole).__dict__)) | {"schema": 1, "kind": "classifier"}
    weights = tiny_classifier().state_dict()
    save_file(weights, tmp_path / "deep.safetensors", {"whytube": DEEP})
    save_file(weights, tmp_path / "types.safetensors", {"whytube": json.dumps(card | {"classes": 7})})
    few = dict(list(weights.items())[1:])
    save_file(few, tmp_path / "missing.safetensors", {"whytube": json.dumps(card)})
    save_file(few, tmp_path / "run.safetensors", {"whytube": '{"schema": 1, "kind": "training run", "step": 1e9}'})
    (tmp_path / "long.safetensors").write_bytes(struct.pack("<Q", 2**60) + b"{}")
    ended = command(*words, "--json", cwd=tmp_path)
    assert ended.returncode == 2, ended.stderr
    said = [line for line in ended.stderr.splitlines() if not line.startswith(("The demo model", "training: "))]
    assert len(said) == 1, ended.stderr
    assert message in said[0]
    assert ended.stdout == ""
