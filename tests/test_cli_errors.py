"""What the command line says to a wrong input: through `main`, in this process."""

import sys
from pathlib import Path

import pytest

from whytube.cli import main, with_options
from whytube.data.world import World
from whytube.video import write_video


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Files and folders to go wrong with."""
    folder = tmp_path_factory.mktemp("work")
    for name in ("empty", "old", "wrong/videos/waltz"):
        (folder / name).mkdir(parents=True)
    clip = write_video(folder / "dance.mp4", World(size=128).batch("test", [3]).clips[0], 8.0)
    (folder / "cut.mp4").write_bytes(clip.read_bytes()[:-900])
    (folder / "junk.mp4").write_bytes(b"not a video" * 99)
    (folder / "results.json").write_text("{}")
    (folder / "mine").mkdir()
    (folder / "mine" / "notes.txt").touch()
    (folder / "my_model.py").write_text("from torch import nn\nclass Net(nn.Module): ...\ndef build(): return Net()\n")
    for name in ("report.html", "classifier.safetensors"):
        (folder / "old" / name).touch()
    (folder / "wrong" / "videos" / "waltz" / "a.mp4").touch()
    (folder / "wrong" / "attributes.csv").write_text("class,swaying\nwaltz,1\n" + "polka,perhaps\n" * 9)
    return folder


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("explain", "dance.mp4", "--not", "walz"), "Did you mean 'waltz'?"),
        (("explain", "nowhere.mp4"), "nowhere.mp4"),
        (("explain", "junk.mp4"), "junk.mp4"),
        (("explain", "dance.mp4", "--model", "demmo"), "Did you mean 'demo'?"),
        (("explain", "dance.mp4", "--why", "waltz", "--not", "waltz"), "another class than 'waltz'"),
        (("explain", "dance.mp4", "-k", "0"), "error: -k must be an integer of at least 1"),
        (
            ("explain", "dance.mp4", "--not", "Tango", "--why", "tango"),
            "error: --why-not must be another class than 'tango'",
        ),
        (("explain", "dance.mp4", "--not", "quickstep"), "or name a class A with --why"),
        (("explain", "cut.mp4"), "or pass --salvage to use the frames that decode"),
        (
            ("explain", "dance.mp4", "--overlay", "dance.mp4"),
            "dance.mp4 exists: choose another name, or give --overwrite",
        ),
        (("explain", "dance.mp4", "--save", "empty"), "it is a folder"),
        (("evaluate", "--data", "wrong"), "errors in all; `whytube data check --json` lists them"),
        (("report", "--out", "new.html"), "there is nothing to report"),
        (("report", "empty", "--out", "new.html"), "holds no explanations (.json)"),
        (("report", "--results", "results.json", "--out", "dance.mp4"), "exists: choose another name"),
        (("data", "export", "--out", "wrong"), "is not an empty folder"),
        (("demo", "--out", "old"), "report.html exists"),
        (
            ("train", "classifier", "--out", "old"),
            "classifier.safetensors exists: choose another name, go on with --resume",
        ),
        (("explain", "dance.mp4", "--effort", "quik"), "unknown effort 'quik'. Did you mean 'quick'?"),
        (("explain", "dance.mp4", "--effort", "0"), "error: --effort must be an integer of at least 1, got 0"),
        (("explain", "dance.mp4", "--effort", "2.5"), "unknown effort '2.5'"),
        (("explain", "dance.mp4", "junk.mp4", "--effort", "quik"), "Did you mean 'quick'?"),
        (("explain", "dance.mp4", "--area", "0"), "error: --area must be a fraction of the clip"),
        (("explain", "dance.mp4", "--area", "1.5"), "error: --area must be a fraction of the clip"),
        (("explain", "dance.mp4", "--area", "small"), "Invalid value for '--area'"),
        (("evaluate", "--effort", "quik"), "unknown effort 'quik'. Did you mean 'quick'?"),
        (("evaluate", "--effort", "0"), "error: --effort must be an integer of at least 1, got 0"),
        (("evaluate", "--tubes", "0"), "error: --tubes must be an integer of at least 1, got 0"),
        (("evaluate", "--area", "2"), "error: --area must be a fraction of the clip"),
        (("explain", "dance.mp4", "--overlay", "why.avi"), "--overlay must end in .mp4, .gif or .png, got why.avi"),
        (("explain", "dance.mp4", "--sheet", "why.gif"), "--sheet must end in .png, got why.gif"),
        (("explain", "dance.mp4", "--style", "arrows"), "unknown style 'arrows'. Known: boxes, grad-cam, heat"),
        (("explain", "dance.mp4", "--style", "het"), "unknown style 'het'. Did you mean 'heat'?"),
        (("explain", "dance.mp4", "dance.mp4", "--save", "a.json"), "--save, --coco and --cvat are for one video"),
        (("explain", "dance.mp4", "junk.mp4", "--overlay", "mp4"), "need --out DIR"),
        (
            ("explain", "dance.mp4", "--out", "whys", "--overlay", "why.mp4"),
            "--overlay must be mp4, gif, png with --out",
        ),
        (("explain", "wrong", "junk.mp4", "--not", "walz"), "Did you mean 'waltz'?"),
        (("classify", "junk.mp4"), "junk.mp4 is not a video"),
        (("classify", "dance.mp4", "--model", "demmo"), "Did you mean 'demo'?"),
        (("classify", "dance.mp4", "--top", "0"), "error: --top must be an integer of at least 1"),
        (("classify", "mine"), "the folder mine holds neither frames (.jpg, .png) nor videos"),
        (("models", "info", "demmo"), "Did you mean 'demo'?"),
        (("models", "info", "odl"), "unknown model 'odl'. Did you mean 'old'?"),
        (("models", "info", "wrong/vidoes"), "there is no such file. Did you mean wrong/videos?"),
        (("explain", "dance.mp4", "--model", "wrong/vidoes"), "Did you mean wrong/videos?"),
        (("explain", "dance.mp4", "--model", "my_modle.py:build"), "Did you mean my_model.py?"),
        (
            ("explain", "dance.mp4", "--model", "my_model.py:biuld"),
            "unknown name in my_model.py 'biuld'. Did you mean 'build'?",
        ),
        (("explain", "dance.mp4", "--model", "my_model.py:Netz"), "unknown name in my_model.py 'Netz'. Known: build"),
        (("evaluate", "--out", "dance.mp4"), "dance.mp4 exists: choose another name"),
        (("train", "classifier", "--out", "new", "--save", "dance.mp4"), "dance.mp4 exists: choose another name"),
        (("evaluate", "--data", "empty"), "empty"),
        (("data", "check", "nowhere"), "nowhere"),
        (("train", "classifier", "--out", "empty", "--recipe", "dem"), "Did you mean 'demo'?"),
        (("train", "explainer", "--out", "empty", "--classifier", "junk.mp4"), "junk.mp4"),
        (("explain", "dance.mp4", "--device", "gpu9"), "unknown device 'gpu9'"),
        (("explain", "dance.mp4", "--model", "empty"), "expected classifier.safetensors in it"),
        (("explain", "dance.mp4", "--model", "junk.py"), "expected FILE.py:NAME"),
        (("explain", "dance.mp4", "--save", "junk.mp4/why.json"), "cannot make the folder junk.mp4"),
        (("train", "classifier", "--out", "junk.mp4"), "cannot make the folder junk.mp4"),
        (("demo", "--out", "junk.mp4/new"), "cannot make the folder"),
    ],
)
def test_bad_input_is_named_and_nothing_is_written(words, message, folder, monkeypatch, capsys):
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "argv", ["whytube", *words])
    monkeypatch.setenv("COLUMNS", "200")
    with pytest.raises(SystemExit) as end:
        main()
    said = capsys.readouterr()
    assert end.value.code == 2, said
    assert message in said.err + said.out
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before


def test_parameters_in_messages_become_the_options_of_the_command():
    message = (
        "it is cut off. Pass `salvage=True`, `k`, `model=demo` or `why_not`; `radius=2`, `whytube data check` stay"
    )
    expected = "it is cut off. Pass --salvage, -k, --model demo or --why-not; `radius=2`, `whytube data check` stay"
    assert with_options(message, ["explain", "clip.mp4"]) == expected
    assert with_options("`salvage=True` and `lr`", ["train", "classifier"]) == "`salvage=True` and --lr"
    assert with_options("plain {text}", ["explain"]) == "plain {text}"
