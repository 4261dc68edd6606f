"""The command line from the outside: a process, its output, its exit code."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import typer

import whytube
from layout_files import make_dataset
from video_files import make_seq
from whytube.cli import app
from whytube.data.world import World
from whytube.errors import WhytubeError
from whytube.explanation import Explanation
from whytube.models import load_model
from whytube.video import read_clip, write_video

ROOT = Path(__file__).parent.parent


def run(*words: object, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "whytube", *map(str, words)]
    environment = {**os.environ, "COLUMNS": "200"}
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=environment)


@pytest.fixture(scope="module")
def clip(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("clips") / "dance.mp4"
    return write_video(path, World(size=128).batch("test", [3]).clips[0], 8.0)


def commands(command=None, *words):
    """Yield every command, with the words that call it."""
    command = command or typer.main.get_command(app)
    if not hasattr(command, "commands"):
        yield command, words
    for name, inner in getattr(command, "commands", {}).items():
        yield from commands(inner, *words, name)


def test_version_and_help():
    assert run("--version").stdout.strip() == f"whytube {whytube.__version__}"
    for _, words in commands():
        result = run(*words, "--help")
        assert result.returncode == 0
        assert "Example" in result.stdout
        assert " --json  " in result.stdout, "every command can print its result as JSON"


def test_help_names_arguments_and_values_for_people():
    said = run("explain", "--help").stdout
    assert "explain [OPTIONS] {VIDEO}..." in said
    for shown in ("  VIDEO  ", "--model MODEL", "--why CLASS", "-k N", "--save FILE", "--out DIR", "--device DEVICE"):
        assert shown in said
    assert "<" not in said, "no name of a type"
    assert "<" not in run("classify", "--help").stdout + run("report", "--help").stdout


def test_flags_have_one_name_and_take_no_value():
    for command, words in commands():
        flags = {param.name: param for param in command.params if getattr(param, "is_flag", False)}
        assert flags["as_json"].opts == ["--json"], words
        assert not any(flag.secondary_opts for flag in flags.values()), words


def callbacks(group=app):
    for command in group.registered_commands:
        yield command.callback
    for inner in group.registered_groups:
        yield from callbacks(inner.typer_instance)


def test_an_option_called_like_its_value_has_a_name_of_its_own():
    """Without one, typer 0.27 calls `--device DEVICE` --DEVICE."""
    seen = 0
    for callback in callbacks():
        for name, param in typer.main.get_params_from_function(callback).items():
            if isinstance(param.default, typer.models.OptionInfo) and param.default.metavar == name.upper():
                seen += 1
                assert f"--{name}" in (param.default.param_decls or ()), (callback, name)
    assert seen > 5


def test_help_answers_without_torch_and_numpy():
    script = (
        "import sys; from whytube.cli import main; sys.argv = ['whytube', '--help']\n"
        "try: main()\n"
        "except SystemExit: print('loaded', *sorted(sys.modules))"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    loaded = result.stdout.partition("loaded ")[2].split()
    assert "whytube.cli" in loaded
    assert not {"torch", "numpy"} & set(loaded)


def test_explain_prints_a_sentence_and_its_evidence(clip):
    result = run("explain", clip, "--device", "cpu", "--profile")
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("classified as ")
    assert result.stdout.splitlines()[1].startswith("Hide ")
    assert "→" in result.stdout
    assert "only the 24 dances" in result.stderr
    stages = [line.split("  ")[0].strip() for line in result.stderr.splitlines()[2:]]
    assert stages == (
        [
            "import",
            "load model",
            "read video",
            "classify",
            "search",
            "verify",
            "hash",
            "other",
            "write and print",
            "total",
        ]
    )


def test_explain_against_every_other_class(clip):
    result = run("explain", clip, "--all", "--json", "-k", 1)
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout)
    assert len({one["negative"] for one in found}) == len(found) == 23
    refused = run("explain", clip, "--all", "--not", "waltz")
    assert refused.returncode == 2
    assert "leave out --why-not" in refused.stderr


def test_explain_as_json_saves_and_draws(clip, tmp_path):
    saved, overlay = tmp_path / "why.json", tmp_path / "why.mp4"
    words = ("--json", "--save", saved, "--overlay", overlay, "-k", 1, "--not", "waltz", "--device", "cpu")
    result = run("explain", clip, *words)
    assert result.returncode == 0, result.stderr
    answer = json.loads(result.stdout)
    assert answer["negative"] == "waltz"
    assert answer["sentence"].startswith("classified as ")
    (reason,) = answer["reasons"]
    assert {"attribute", "score", "tube", "evidence"} <= set(reason)
    assert {"frames", "times", "boxes"} <= set(reason["tube"])
    assert max(max(box) for box in reason["tube"]["boxes"]) <= 128
    assert Explanation.load(saved).negative == "waltz"
    assert read_clip(overlay).frames.shape[1] == 16
    report = tmp_path / "report.html"
    words = ("report", tmp_path, "--results", ROOT / "results" / "world-fc2.json", "--out", report)
    result = run(*words, "--json")
    assert result.returncode == 0, result.stderr
    assert "waltz" in report.read_text()
    said = json.loads(result.stdout)
    assert [e["sentence"] for e in said["explanations"]] == [answer["sentence"]]
    assert said["explanations"][0]["model"] == "demo"
    assert "they are of the model fc2-seed0, and the clips were explained with demo" in said["results_left_out"]
    assert said["results_left_out"] in result.stderr
    assert run("report", saved, *words[2:]).returncode == 2, "the page is there"
    assert run("report", saved, *words[2:], "--overwrite").returncode == 0


def test_a_wrong_input_ends_the_process_with_its_message_and_2(clip):
    result = run("explain", clip, "--not", "walz")
    assert result.returncode == 2
    assert result.stdout == ""
    assert result.stderr.endswith("error: unknown class 'walz'. Did you mean 'waltz'?\n")


def test_the_world_as_files_is_data_like_any_other(tmp_path):
    data, model = tmp_path / "world", tmp_path / "model"
    result = run("data", "export", "--out", data, "--count", 48, "--size", 64, "--json")
    assert result.returncode == 0, result.stderr
    assert result.stderr == "", "a bar leaves nothing in a log"
    assert json.loads(result.stdout)["count"] == 48
    checked = run("data", "check", data, "--json")
    assert checked.returncode == 0, checked.stdout
    assert json.loads(checked.stdout)["ok"]
    words = ("--data", data, "--out", model, "--device", "cpu")
    result = run("train", "classifier", *words, "--clips", 16, "--test", 4, "--save", tmp_path / "fit.json", "--json")
    assert result.returncode == 0, result.stderr
    assert json.loads((tmp_path / "fit.json").read_text())["history"]["records"]
    assert json.loads(result.stdout) == json.loads((tmp_path / "fit.json").read_text())
    result = run("train", "explainer", *words, "--clips", 30, "--objective", "two-sided")
    assert result.returncode == 0, result.stderr
    out = tmp_path / "results.json"
    words = ("--model", model, "--data", data, "--count", 2, "--negatives", 2, "--peers", "centre,random-tube")
    result = run("evaluate", *words, "--fills", "mean", "--device", "cpu", "--out", out, "--json")
    assert result.returncode == 0, result.stderr
    found = json.loads(out.read_text())
    assert json.loads(result.stdout) == found
    assert set(found["methods"]) == {"two-sided", "centre", "random-tube"}
    assert 0 <= found["methods"]["centre"]["negative_class_accuracy"]["top3"] <= 1
    permuted = tmp_path / "permuted"
    words = ("--classifier", model / "classifier.safetensors", "--data", data, "--out", permuted, "--device", "cpu")
    words += ("--clips", 30, "--set", "masked_runs=96")
    result = run("train", "explainer", *words, "--permuted-table", "--save", tmp_path / "permuted.json")
    assert result.returncode == 0, result.stderr
    words = ("--model", model, "--with", f"permuted={permuted / 'explainer.safetensors'}", "--data", data)
    result = run(
        "evaluate",
        *words,
        "--count",
        2,
        "--peers",
        "centre,hires-cam-verified",
        "--tubes",
        3,
        "--device",
        "cpu",
        "--out",
        out,
        "--overwrite",
    )
    assert result.returncode == 0, result.stderr
    assert set(json.loads(out.read_text())["methods"]) == {"two-sided", "permuted", "centre", "hires-cam-verified"}
    assert json.loads((tmp_path / "permuted.json").read_text())["provenance"]["table"] == "permuted"


def test_a_public_data_set_is_indexed_where_it_lies(tmp_path):
    names = ("vault/aaaaaaaaaaa_00001_00009", "vault/bbbbbbbbbbb_00001_00009")
    (tmp_path / "olympic/vault").mkdir(parents=True)
    for name, split in zip(names, ("train", "test"), strict=True):
        make_seq(tmp_path / f"olympic/{name}.seq", 3)
        (tmp_path / f"{split}.txt").write_text(f"{name}\n")
    words = ("data", "import", "olympic-sports", "olympic", "--train", "train.txt", "--test", "test.txt", "--relative")
    result = run(*words, "--out", "index", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert "index: 2 videos (1 train, 1 test)" in result.stdout
    result = run(*words, "--out", "again", "--json", cwd=tmp_path)
    assert json.loads(result.stdout)["videos"] == {"train": 1, "val": 0, "test": 1}
    assert run("data", "check", "index", cwd=tmp_path).returncode == 0
    again = run(*words, "--out", "index", cwd=tmp_path)
    assert again.returncode == 2
    assert "not an empty folder" in again.stderr


OWN = """
import torch
from torch import nn
import whytube

def build():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv3d(3, 4, 4, 4), nn.ReLU(), nn.AdaptiveAvgPool3d(1), nn.Flatten(), nn.Linear(4, 2))
    return whytube.wrap(net, classes=["jump", "run"], frames=4, size=(32, 32))

made = build()
text = "no model"

def fails():
    return 1 / 0
"""


@pytest.mark.parametrize("name", ["build", "made"])
def test_explain_with_a_network_of_ones_own(clip, tmp_path, name):
    (tmp_path / "mine.py").write_text(OWN)
    result = run("explain", clip, "--model", f"{tmp_path / 'mine.py'}:{name}", "--device", "cpu", "--json")
    assert result.returncode == 0, result.stderr
    answer = json.loads(result.stdout)
    assert set(answer["probabilities"]) == {"jump", "run"}
    assert answer["reasons"]
    assert all(reason["attribute"] == "" for reason in answer["reasons"])


def test_a_classifier_may_come_from_ones_own_explainer(tmp_path):
    (tmp_path / "mine.py").write_text('import whytube\n\nmade = whytube.load_model("demo")\n')
    found = load_model(f"{tmp_path / 'mine.py'}:made", device="cpu").classifier
    assert not found.training
    assert found.classes == World().classes


def test_words_are_learnt_for_a_network_of_ones_own_and_measured(tmp_path):
    (tmp_path / "mine.py").write_text(
        OWN.replace('["jump", "run"]', '["dunk", "surf", "vault"]').replace("4, 2))", "4, 3))")
    )
    data, mine, run_dir = make_dataset(tmp_path / "data"), f"{tmp_path / 'mine.py'}:build", tmp_path / "run"
    words = ("--data", data, "--device", "cpu")
    result = run("train", "explainer", "--classifier", mine, *words, "--clips", 30, "--out", run_dir)
    assert result.returncode == 0, result.stderr
    words += ("--model", mine, "--with", run_dir / "explainer.safetensors", "--negatives", 2, "--count", 0)
    result = run("evaluate", *words, "--out", tmp_path / "found.json")
    assert result.returncode == 0, result.stderr
    found = json.loads((tmp_path / "found.json").read_text())
    assert {"ours-regions", "ours", "grad-cam", "random-tube"} <= set(found["methods"])
    assert found["methods"]["ours-regions"]["word_in_class"] is None, "it says no words"
    assert found["provenance"]["model"] == "mine.py:build"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("mine.py:biuld", "Did you mean 'build'?"),
        ("mine.py:text", "must give a VideoClassifier (see whytube.wrap) or an Explainer, got str"),
        ("mine.py:fails", "failed with ZeroDivisionError: division by zero (line 15 of mine.py)"),
        ("none.py:build", "there is no such file"),
    ],
)
def test_files_that_give_no_network(tmp_path, name, message):
    (tmp_path / "mine.py").write_text(OWN)
    with pytest.raises(WhytubeError) as error:
        load_model(str(tmp_path / name), device="cpu")
    assert message in str(error.value)
