"""The runs written down in configs/ and studies/ are ones that the command line understands."""

import os
import subprocess
import tomllib
from pathlib import Path

import pytest
import typer

from whytube.cli import app
from whytube.cli.config import changed, read_changes
from whytube.evaluation.methods import CONTROLS, COUNTERPARTS, GROUPS, METHODS
from whytube.explainer.explainer import OBJECTIVES
from whytube.models import PRESETS, build_classifier, read_card
from whytube.models.files import shipped_names
from whytube.training import EXPLAINER_RECIPES, RECIPES

ROOT = Path(__file__).parent.parent
CONFIGS = sorted((ROOT / "configs").glob("*.toml"))
STUDIES = sorted((ROOT / "studies").glob("*.sh"))
RUNS = {"classifier": ("train", "classifier"), "explainer": ("train", "explainer"), "evaluate": ("evaluate",)}
"""Tables that a config may have, and their commands."""
ARGUMENTS = {"world": ("out",), "jhmdb": ("JHMDB", "out"), "opponent": ("out", "JHMDB")}
RECORDER = """#!/usr/bin/env bash
line=$(printf '%s\\t' "$@")
printf '%s\\n' "$line" >>"$CALLS"
[ -z "${FAILS:-}" ] || [[ "$*" != *"$FAILS"* ]]
"""


def parsed(*words):
    """Name and options of a command, read as the command line does, without running it."""
    command, rest = typer.main.get_command(app), list(words)
    while rest and rest[0] in getattr(command, "commands", {}):
        name = rest.pop(0)
        command = command.commands[name]
    assert not hasattr(command, "commands"), f"no command: {words}"
    return name, command.make_context(name, rest).params


def check_names(name, options):
    """Require recipes, presets, settings, objectives and methods that exist, in the options of a command."""
    if name == "classifier":
        check_network(options)
    elif name == "explainer":
        assert options["recipe"] in EXPLAINER_RECIPES
        assert options["objective"] in OBJECTIVES
        assert changed(EXPLAINER_RECIPES[options["recipe"]], read_changes(options["changes"]))[1] == {}
    elif name == "evaluate":
        assert {name for name in options["peers"].split(",") if name} <= {*METHODS, *CONTROLS, *GROUPS, *COUNTERPARTS}


def check_network(options):
    assert options["preset"] in PRESETS
    recipe, settings = changed(RECIPES[options["recipe"]], read_changes(options["changes"]))
    shipped = options["pretrained"] in shipped_names()
    network = read_card(options["pretrained"]).architecture if shipped else options["preset"]
    model = build_classifier(network, ["a", "b"], **settings)
    if recipe.freeze:
        model.freeze_below(recipe.freeze)
        assert any(not weight.requires_grad for weight in model.parameters())


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_a_config_names_what_exists(path):
    tables = tomllib.loads(path.read_text())
    assert tables
    assert set(tables) <= set(RUNS)
    for table in tables:
        out = () if table == "evaluate" else ("--out", "run")
        check_names(*parsed(*RUNS[table], "--config", str(path), *out))


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_the_commands_above_a_config_can_be_typed(path):
    lines = [line.lstrip("# ").split() for line in path.read_text().splitlines() if line.startswith("#   whytube ")]
    assert lines
    for _, *words in lines:
        check_names(*typed(words))


def typed(words):
    """Name and options of a command as a page prints it."""
    return parsed(*(str(ROOT / word) if word.startswith("configs/") else word for word in words))


@pytest.mark.parametrize("page", ["README.md", "docs/models.md", "docs/jhmdb.md", "docs/training.md"])
def test_the_runs_of_a_page_can_be_typed(page):
    text = (ROOT / page).read_text().replace("\\\n", " ")
    lines = [line.split("#")[0].split() for line in text.splitlines() if line.startswith("    whytube ")]
    lines += [line.split("#")[0].split() for line in text.splitlines() if line.startswith("whytube ")]
    runs = [words for _, *words in lines if words[0] in ("train", "evaluate", "data")]
    assert any(words[0] == "train" for words in runs)
    for words in runs:
        check_names(*typed(words))


def test_the_papers_run_is_the_papers():
    path = ROOT / "configs" / "ucf101-24-c3d.toml"
    tables = tomllib.loads(path.read_text())
    assert set(tables) == set(RUNS)
    (_, network), (_, words), (_, judged) = (
        parsed(*RUNS[table], "--config", str(path), *(() if table == "evaluate" else ("--out", "run")))
        for table in ("classifier", "explainer", "evaluate")
    )
    assert (network["preset"], network["recipe"]) == ("c3d-resnet", "paper")
    assert (words["objective"], words["recipe"]) == ("paper-sgd", "paper")
    for recipe, batch in ((RECIPES["paper"], 64), (EXPLAINER_RECIPES["paper"], 30)):
        settings = (recipe.optimizer, recipe.lr, recipe.momentum, recipe.weight_decay, recipe.batch_size)
        assert settings == ("sgd", 0.1, 0.9, 1e-3, batch)
    assert "zero" in judged["fills"].split(",")
    assert judged["area"] == 1
    assert {"centre", "detector-box"} <= set(judged["peers"].split(","))


@pytest.fixture
def record(tmp_path):
    """Return a function that runs a study with a recorder for whytube and python, and gives the calls."""
    recorder, calls = tmp_path / "recorder", tmp_path / "calls"
    recorder.write_text(RECORDER)
    recorder.chmod(0o755)

    def record(path, *words, fails="", whytube=recorder):
        environment = {
            **os.environ,
            "WHYTUBE": str(whytube),
            "PYTHON": str(recorder),
            "CALLS": str(calls),
            "FAILS": fails,
        }
        subprocess.run([path, *words], env=environment, cwd=tmp_path, check=True, timeout=60)
        return [line.rstrip("\t").split("\t") for line in calls.read_text().splitlines()]

    return record


@pytest.mark.parametrize("path", STUDIES, ids=lambda path: path.stem)
def test_a_study_calls_commands_that_exist(path, record):
    subprocess.run(["bash", "-n", path], check=True)
    calls = record(path, *ARGUMENTS[path.stem])
    put_together = [words[1] for words in calls if Path(words[0]).stem == "results"]
    found = [parsed(*words) for words in calls if not words[0].endswith(".py")]
    assert all((path.parent / Path(words[0]).name).exists() for words in calls if words[0].endswith(".py"))
    expected = {"jhmdb": {"pool"}, "world": {"pool", "curves", "right"}, "opponent": {"curves"}}
    assert set(put_together) == expected[path.stem], "of studies/results.py"
    trained = {"explainer"} if path.stem == "opponent" else {"classifier", "explainer"}
    assert {name for name, _ in found} >= trained | {"evaluate"}
    for name, options in found:
        check_names(name, options)


@pytest.mark.parametrize(
    ("study", "words", "fails"),
    [
        ("jhmdb", ("JHMDB", "out"), "out/i3d-1/paper"),
        ("jhmdb", ("JHMDB", "out"), "out/unerased-1"),
        ("jhmdb", ("JHMDB", "out"), "out/i3d-2"),
        ("world", ("out",), "out/curves/paper-sgd"),
        ("world", ("out",), "out/fc1-seed0"),
        ("world", ("out",), "out/unerased"),
        ("world", ("out",), "out/world-64-front-3.json"),
        ("opponent", ("out", "JHMDB"), "out/opponent-jhmdb/adamw-1e-3"),
        ("opponent", ("out", "JHMDB"), "out/opponent-demo/sgd-1e-3"),
    ],
)
def test_a_study_of_which_one_run_fails_has_failed(study, words, fails, record):
    with pytest.raises(subprocess.CalledProcessError):
        record(ROOT / "studies" / f"{study}.sh", *words, fails=fails)


STAGES = {
    "world": "networks controls curves unerased shipped",
    "jhmdb": "networks peers unerased boxed-paper boxed-unerased splits",
}


@pytest.mark.parametrize("study", STAGES)
def test_wherever_the_papers_objective_is_judged_the_rows_beside_it_are_too(study, record, monkeypatch, tmp_path):
    for split in "123":
        indexed = tmp_path / "out" / f"jhmdb-{split}"
        indexed.mkdir(parents=True)
        for name in ("attributes", "manifest", "boxes"):
            (indexed / f"{name}.csv").write_text("a,b,c\n")
    for name in ("boxed-unerased", "laptop-2", "laptop-3"):
        (tmp_path / "out" / name).mkdir()
    monkeypatch.setenv("STAGES", STAGES[study])
    calls = record(ROOT / "studies" / f"{study}.sh", *(("JHMDB", "out") if study == "jhmdb" else ("out",)))
    judged = [
        options for words in calls if words[0] == "evaluate" for options in [parsed(*words)[1]] if options["other"]
    ]
    files = [str(run["out"]) for run in judged]
    wanted = {
        "world": {
            "out/world-64.json",
            "out/world-64-peers.json",
            "out/world-64-negatives.json",
            "out/world-64-unerased.json",
        },
        "jhmdb": {f"out/jhmdb-{name}.json" for name in ("1", "2", "3", "peers", "unerased", "boxed-paper", "each-3")},
    }
    assert wanted[study] <= set(files)
    for run in judged:
        explainers = [Path(path.rpartition("=")[2]).parent.name for path in run["other"]]
        assert {"paper", "paper-sgd"} <= set(explainers), run["out"]
        assert {"ours-unverified", "paper+verified"} <= set(run["peers"].split(",")), run["out"]
        assert set(run["fills"].split(",")) == {"mean", "blur", "freeze", "zero"}, run["out"]


def test_the_shipped_demo_is_judged_in_all_its_tables(record, monkeypatch):
    for name, value in {"COUNT": "7", "STAGES": "shipped", "PAPER_BEST": "--lr 3e-4"}.items():
        monkeypatch.setenv(name, value)
    calls = record(ROOT / "studies" / "world.sh", "out")
    best, slow, letter = (parsed(*words)[1] for words in calls if words[:2] == ["train", "explainer"])
    assert (best["classifier"], best["objective"], best["lr"], best["clips"]) == ("demo", "paper", 3e-4, 15_000)
    assert (slow["objective"], slow["lr"], slow["clips"]) == ("paper", 1e-4, 15_000)
    assert slow["changes"] == ["optimizer=sgd"]
    assert (letter["classifier"], letter["objective"], letter["lr"]) == ("demo", "paper-sgd", None), "its own rate"
    judged = {str(options["out"]): options for _, options in (parsed(*w) for w in calls if w[0] == "evaluate")}
    assert set(judged) == {
        f"out/world-64{name}.json"
        for name in (
            *("", "-peers", "-negatives", "-random-weights"),
            *(f"-effort-{tubes}" for tubes in (4, 8, 16, 32, 64, 128, 192)),
            *(f"-front-{weight}" for weight in ("0", "0.3", "1", "3")),
        )
    }
    assert {options["model"] for options in judged.values()} == {"demo"}
    assert judged["out/world-64.json"]["count"] == 7
    assert judged["out/world-64-front-0.json"]["peers"] == ""
    assert judged["out/world-64-random-weights.json"]["random_weights"]


def test_controls_of_the_shipped_demo_are_for_a_cpu(record, monkeypatch):
    monkeypatch.setenv("STAGES", "shipped-controls")
    calls = record(ROOT / "studies" / "world.sh", "out")
    trained = [parsed(*words)[1] for words in calls if words[:2] == ["train", "classifier"]]
    assert [(run["seed"], run["random_labels"]) for run in trained] == [(1, False), (0, True)]
    curves, transfer, blank = (parsed(*words)[1] for words in calls if words[0] == "evaluate")
    assert (curves["curves"], curves["k"], curves["model"]) == (True, 3, "demo")
    assert transfer["judge_with"] == str(trained[0]["out"])
    assert "shuffled-scores" in transfer["peers"].split(",")
    assert blank["model"] == str(trained[1]["out"])
    explainer = next(parsed(*words)[1] for words in calls if words[:2] == ["train", "explainer"])
    assert explainer["out"] == trained[1]["out"], "with words, so that theirs can fall to chance"


@pytest.mark.parametrize(("said", "clips"), [("training diverged", [1500, 750, 375]), ("out of memory", [1500])])
def test_the_papers_run_to_the_letter_is_shorter_where_it_diverges(record, tmp_path, monkeypatch, said, clips):
    """Else a number that is not finite would end a study of hours; what is no divergence is a fault."""
    fails, tried = tmp_path / "fails", tmp_path / "tried"
    fails.write_text(
        "#!/usr/bin/env bash\n"
        f'if [[ "$*" == *paper-sgd\\ --recipe* ]]; then echo "$*" >>{tried}; fi\n'
        f'if [[ "$*" == *paper-sgd\\ --recipe*clips\\ 1500* || "$*" == *paper-sgd\\ --recipe*clips\\ 750* ]]; then\n'
        f'    echo "error: {said} before step 20" >&2; exit 2\nfi\n'
        f'exec {tmp_path / "recorder"} "$@"\n'
    )
    fails.chmod(0o755)
    monkeypatch.setenv("STAGES", "shipped")
    if len(clips) > 1:
        calls = record(ROOT / "studies" / "world.sh", "out", whytube=fails)
        assert sum(words[0] == "evaluate" for words in calls) == 15
    else:
        with pytest.raises(subprocess.CalledProcessError):
            record(ROOT / "studies" / "world.sh", "out", whytube=fails)
    runs = [parsed(*line.split())[1] for line in tried.read_text().splitlines()]
    assert [run["clips"] for run in runs] == clips
    assert [run["overwrite"] for run in runs] == [False, True, True][: len(clips)]


def test_the_opponent_is_swept_on_both_classifiers_and_judged_on_val(record, tmp_path):
    calls = record(ROOT / "studies" / "opponent.sh", "out", "JHMDB")
    runs = [parsed(*words)[1] for words in calls if words[:2] == ["train", "explainer"]]
    rates = {(run["changes"][0], run["lr"]) for run in runs}
    assert rates == {
        *(("optimizer=adamw", rate) for rate in (3e-4, 1e-3, 3e-3)),
        *(("optimizer=sgd", rate) for rate in (1e-5, 1e-4, 1e-3)),
    }
    assert {(run["objective"], run["clips"], run["distinct"]) for run in runs} == {("paper", 30_000, 2_000)}
    judged = [parsed(*words)[1] for words in calls if words[0] == "evaluate"]
    assert [(run["model"], run["data"], run["split"], run["count"]) for run in judged] == [
        ("demo", "world", "val", 48),
        ("jhmdb-i3d", "out/jhmdb-1-val", "val", 48),
    ]
    assert [len(run["other"]) for run in judged] == [6, 6]
    measured = [words for words in calls if words[0].endswith("objective_loss.py")]
    assert [words[words.index("--out") + 1] for words in measured] == [
        "out/paper-loss.json",
        "out/paper-loss-jhmdb.json",
    ]
    assert [words[words.index("--split") + 1] for words in measured] == ["val", "val"]


def test_lengths_of_the_opponents_training_may_differ(record, monkeypatch):
    monkeypatch.setenv("RUNS", "adamw:1e-3 adamw:1e-3:6000")
    monkeypatch.setenv("QUICK", "--clips 2000")
    monkeypatch.setenv("AT_ONCE", "1")
    calls = record(ROOT / "studies" / "opponent.sh", "out")
    runs = [parsed(*words)[1] for words in calls if words[:2] == ["train", "explainer"]]
    assert [(run["clips"], run["lr"], str(run["out"])) for run in runs] == [
        (2000, 1e-3, "out/opponent-demo/adamw-1e-3"),
        (6000, 1e-3, "out/opponent-demo/adamw-1e-3-6000"),
    ]


def test_a_run_of_sgd_that_diverges_is_left_out(record, tmp_path):
    """What says so is the log: any other end is a fault."""
    fails = tmp_path / "fails"
    fails.write_text(
        "#!/usr/bin/env bash\n"
        '[[ "$*" != *optimizer=sgd*1e-3* ]] || { echo "error: training diverged before step 20"; exit 2; }\n'
        f'exec {tmp_path / "recorder"} "$@"\n'
    )
    fails.chmod(0o755)
    calls = record(ROOT / "studies" / "opponent.sh", "out", whytube=fails)
    (judged,) = (parsed(*words)[1] for words in calls if words[0] == "evaluate")
    assert len(judged["other"]) == 5
    assert not any("sgd:1e-3" in name for name in judged["other"])


def test_networks_of_the_fc_study_are_trained_on_more_clips_until_they_are_right(record, monkeypatch):
    for name, value in {"SEEDS": "0", "FC": "3", "CLIPS": "64", "STAGES": "networks"}.items():
        monkeypatch.setenv(name, value)
    calls = record(ROOT / "studies" / "world.sh", "out", fails="results.py right")
    runs = [parsed(*words)[1] for words in calls if words[:2] == ["train", "classifier"]]
    assert [run["clips"] for run in runs] == [64, 128, 256, 512], (
        "twice as many each time, but no more than eight times"
    )
    assert [run["overwrite"] for run in runs] == [False, True, True, True]
    assert [run["pretrained"] for run in runs] == [None, *3 * ["out/fc3-seed0/classifier.safetensors"]], "it goes on"
    assert {(run["fc_layers"], run["val"]) for run in runs} == {(3, 480)}
    asked = [parsed(*words)[1] for words in calls if words[0] == "evaluate"]
    assert [(run["negatives"], run["k"]) for run in asked] == [(None, 1), ("all", 3)]


def test_the_paper_on_a_boxed_clip_of_every_class_is_judged_with_what_was_trained_for_it(record, monkeypatch, tmp_path):
    indexed = tmp_path / "out" / "jhmdb-1"
    indexed.mkdir(parents=True)
    (indexed / "attributes.csv").write_text("class,seated\nsit,1\nrun,0\n")
    rows = [
        "sit/a.mp4,sit,test",
        "sit/b.mp4,sit,test",
        "sit/c.mp4,sit,train",
        "run/d.mp4,run,test",
        "run/e.mp4,run,test",
    ]
    (indexed / "manifest.csv").write_text("\n".join(["path,class,split", *rows]) + "\n")
    boxes = [
        f"{clip},{name},0,1,1,2,2" for clip, name in (("sit/b", "seated"), ("sit/c", "seated"), ("run/d", "actor"))
    ]
    (indexed / "boxes.csv").write_text("\n".join(["video,attribute,frame,x1,y1,x2,y2", *boxes]) + "\n")
    monkeypatch.setenv("STAGES", "boxed-paper")
    calls = record(ROOT / "studies" / "jhmdb.sh", "JHMDB", "out")
    best, letter, judged = (parsed(*words)[1] for words in calls)
    assert (best["objective"], letter["objective"]) == ("paper", "paper-sgd")
    assert best["classifier"] == letter["classifier"] == judged["model"]
    assert judged["other"] == [str(trained["out"] / "explainer.safetensors") for trained in (best, letter)]
    assert {"ours-unverified", "paper+verified"} <= set(judged["peers"].split(","))
    assert "zero" in judged["fills"].split(",")
    kept = (tmp_path / judged["data"] / "manifest.csv").read_text().splitlines()[1:]
    assert kept == ["sit/b.mp4,sit,test", "run/d.mp4,run,test"], "with boxes of more than the actor, if any has"
    (tmp_path / "out" / "boxed-unerased").mkdir()
    monkeypatch.setenv("STAGES", "boxed-unerased")
    more = record(ROOT / "studies" / "jhmdb.sh", "JHMDB", "out")[len(calls) :]
    network, *explainers, again = (parsed(*words)[1] for words in more)
    assert "erase=0" in network["changes"]
    assert len(explainers) == 3
    assert (again["model"], again["data"], again["peers"]) == (str(network["out"]), judged["data"], judged["peers"])


def test_three_splits_on_a_cpu_are_pooled_once_all_are_judged(record, monkeypatch, tmp_path):
    for split in "123":
        indexed = tmp_path / "out" / f"jhmdb-{split}"
        indexed.mkdir(parents=True)
        (indexed / "attributes.csv").write_text("class,seated\nsit,1\n")
        (indexed / "manifest.csv").write_text("path,class,split\nsit/a.mp4,sit,test\n")
        (indexed / "boxes.csv").write_text("video,attribute,frame,x1,y1,x2,y2\n")
    monkeypatch.setenv("STAGES", "splits")
    calls = record(ROOT / "studies" / "jhmdb.sh", "JHMDB", "out")
    trained = [Path(parsed(*words)[1]["out"]).name for words in calls if words[:2] == ["train", "classifier"]]
    assert trained == ["laptop-2", "laptop-3"], "split 1 has the shipped classifier"
    judged = [parsed(*words)[1] for words in calls if words[0] == "evaluate"]
    assert [run["model"] for run in judged] == ["jhmdb-i3d", "out/laptop-2", "out/laptop-3"]
    assert len(calls) == 3 * 3 + 2 * 2, "nothing is pooled before all three have figures"
    for run in judged:
        (tmp_path / run["out"]).touch()
    monkeypatch.setenv("SPLITS", "3")
    *_, pooled = record(ROOT / "studies" / "jhmdb.sh", "JHMDB", "out")
    assert pooled[1:] == ["pool", *(str(run["out"]) for run in judged), "--out", "out/jhmdb-each.json"]


def test_networks_with_more_fc_layers_begin_with_the_convolutions_of_one(record, monkeypatch, tmp_path):
    for name, value in {"SEEDS": "0", "FC": "2 3", "CLIPS": "64", "STAGES": "networks"}.items():
        monkeypatch.setenv(name, value)
    one = tmp_path / "out" / "fc1-seed0" / "classifier.safetensors"
    one.parent.mkdir(parents=True)
    one.touch()
    calls = record(ROOT / "studies" / "world.sh", "out")
    runs = [parsed(*words)[1] for words in calls if words[:2] == ["train", "classifier"]]
    assert [(run["fc_layers"], run["pretrained"]) for run in runs] == [
        (layers, "out/fc1-seed0/classifier.safetensors") for layers in (2, 3)
    ]


@pytest.mark.parametrize("path", STUDIES, ids=lambda path: path.stem)
def test_a_study_without_arguments_says_what_it_wants(path):
    ended = subprocess.run([path], capture_output=True, text=True)
    assert ended.returncode != 0
    assert f"usage: studies/{path.name}" in ended.stderr
