import json
import os
import subprocess
import sys

import pytest

from toy_explainer import saved_model, tiny_classifier, tiny_explainer
from toy_source import Tints
from whytube.cli import main
from whytube.cli.explain import print_profile
from whytube.video import write_video


@pytest.fixture
def asked(tmp_path, monkeypatch, capsys):
    """Explain a clip with a tiny model: a function from options to what is printed as JSON."""
    classifier = tiny_classifier(frames=4, size=(32, 32))
    folder = saved_model(tmp_path / "tiny", tiny_explainer(classifier=classifier))
    clip = write_video(tmp_path / "clip.mp4", Tints(size=32, frames=4).batch("test", [0]).clips[0], 8.0)

    def ask(*words):
        command = ["whytube", "explain", str(clip), "--model", str(folder), "--device", "cpu", "--json", *words]
        monkeypatch.setattr(sys, "argv", command)
        with pytest.raises(SystemExit) as end:
            main()
        said = capsys.readouterr()
        assert end.value.code == 0, said.err
        return json.loads(said.out)

    return ask


def volume(reason):
    boxes = reason["tube"]["boxes"]
    return sum((x2 - x1) * (y2 - y1) for x1, y1, x2, y2 in boxes) / (4 * 32 * 32)


def test_effort_by_name_and_number(asked):
    assert asked()["settings"]["effort"] == 16
    assert asked("--effort", "quick")["settings"]["effort"] == 6
    assert asked("--effort", "7")["settings"]["effort"] == 7
    every = asked("--all")
    assert {explanation["settings"]["effort"] for explanation in every} == {6}, "many questions: less for each"
    assert asked("--all", "--effort", "normal")[0]["settings"]["effort"] == 16


def test_tubes_keep_the_area(asked):
    found = asked("--area", "0.03", "--effort", "quick")
    assert found["settings"]["area"] == 0.03
    assert found["reasons"]
    rounding = 1e-4  # boxes are told to a hundredth of a pixel
    assert all(0 < volume(reason) <= 0.03 + rounding for reason in found["reasons"])
    large = asked("--area", "0.5", "--effort", "quick")
    assert max(volume(reason) for reason in large["reasons"]) > 0.03


def test_several_videos_have_the_effort_too(asked, tmp_path):
    out = tmp_path / "whys"
    asked("--out", str(out), "--effort", "quick")
    assert json.loads((out / "clip.json").read_text())["settings"]["effort"] == 6
    again = asked("--out", str(out), "--effort", "quick")
    assert "error" not in again[0], "the same question: kept"


def test_the_profile_adds_up(capsys):
    print_profile({"load": 0.5, "search": 1.5})
    said = capsys.readouterr()
    assert said.out == "", "stdout is for the answer"
    lines = [line.split() for line in said.err.splitlines()]
    assert lines == [
        ["seconds", "share"],
        ["load", "0.50", "25", "%"],
        ["search", "1.50", "75", "%"],
        ["total", "2.00", "100", "%"],
    ]


@pytest.mark.parametrize("words", [("--overlay", "clip.mp4"), ("--save", "clip.mp4"), ("--coco", "link.mp4")])
def test_the_video_that_is_explained_is_never_written_over(tmp_path, words):
    clip = write_video(tmp_path / "clip.mp4", Tints(size=32, frames=4).batch("test", [0]).clips[0], 8.0)
    (tmp_path / "link.mp4").symlink_to(clip)
    before = clip.read_bytes()
    command = [sys.executable, "-m", "whytube", "explain", "clip.mp4", "--overwrite", *words]
    ended = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert ended.returncode == 2
    assert ended.stderr == f"error: {words[1]} is the video that is explained: choose another name\n"
    assert clip.read_bytes() == before


@pytest.mark.parametrize(
    ("given", "found"),
    [({}, "10000 -"), ({"GOMP_SPINCOUNT": "7"}, "7 -"), ({"OMP_WAIT_POLICY": "ACTIVE"}, "- ACTIVE")],
)
def test_threads_that_wait_leave_the_cores_to_others_unless_the_user_decides(given, found):
    code = "import os, sys; sys.argv = ['whytube', '--help']; from whytube.__main__ import main\n"
    code += "try: main()\nexcept SystemExit: pass\n"
    code += "print(*(os.environ.get(name, '-') for name in ('GOMP_SPINCOUNT', 'OMP_WAIT_POLICY')))"
    own = {name: value for name, value in os.environ.items() if name not in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")}
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=own | given).stdout
    assert said.splitlines()[-1] == found
