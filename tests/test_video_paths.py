"""What a path may lead to: pipes, devices, loops, and names that are not UTF-8, too long or of two lines."""

import json
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

import corpus
from layout_files import make_dataset
from video_files import encode_image, make_video, picture
from whytube.data.layout import check_dataset
from whytube.errors import VideoError, printable
from whytube.video import iter_windows, opencv, probe, read_clip
from whytube.video.read import check_path

READERS = (read_clip, probe, lambda path: list(iter_windows(path)))
NOT_UTF8 = os.fsdecode(b"caf\xe9 \xff")


@pytest.fixture
def special(tmp_path):
    """Paths that are no files; reading some of them would never end."""
    os.mkfifo(tmp_path / "pipe.mp4")
    (tmp_path / "loop.mp4").symlink_to(tmp_path / "loop.mp4")
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "again").symlink_to(tmp_path, target_is_directory=True)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(os.path.relpath(tmp_path / "socket.mp4"))
        yield tmp_path


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("pipe.mp4", "is a pipe; expected a video file"),
        ("socket.mp4", "is a socket; expected"),
        ("loop.mp4", "cannot be read: .*symbolic links"),
        ("/dev/zero", "is a device; expected"),
        ("inner/again/inner", "holds neither videos nor frames"),
    ],
)
def test_what_is_no_file_is_refused_at_once(special, name, told):
    for read in READERS:
        with pytest.raises(VideoError, match=told):
            read(special / name)


def test_opencv_too(special):
    pytest.importorskip("cv2")
    for name in ("pipe.mp4", "/dev/zero"):
        with pytest.raises(VideoError, match="expected a video file"):
            opencv.probe(check_path(special / name))


def test_frames_of_a_folder_are_files(tmp_path):
    os.mkfifo(tmp_path / "0.png")
    (tmp_path / "1.png").symlink_to(tmp_path / "1.png")
    (tmp_path / "2.png").write_bytes(encode_image(picture(0)))
    assert probe(tmp_path).frames == 1


def test_a_data_set_with_them(tmp_path):
    folder = make_dataset(tmp_path / "data", splits=None)
    os.mkfifo(folder / "videos" / "dunk" / "pipe.mp4")
    (folder / "videos" / "dunk" / "loop.mp4").symlink_to("loop.mp4")
    (folder / "videos" / "surf" / "up").symlink_to(folder, target_is_directory=True)
    errors = {p.file: p.message for p in check_dataset(folder).problems if p.level == "error"}
    assert set(errors) == {"videos/dunk/pipe.mp4", "videos/dunk/loop.mp4"}
    assert "the video is a pipe" in errors["videos/dunk/pipe.mp4"]


@pytest.mark.parametrize("name", [NOT_UTF8, "two\nlines", "red\x1b[31m"])
def test_odd_names_are_read(tmp_path, name):
    path = tmp_path / f"{name}.mp4"
    shutil.copy(make_video(tmp_path / "plain.mp4", 4), path)
    assert read_clip(path, frames=4).indices.tolist() == [0, 1, 2, 3]
    folder = tmp_path / name
    folder.mkdir()
    (folder / f"{name}.png").write_bytes(encode_image(picture(0)))
    assert probe(folder).frames == 1
    (folder / f"{name}.png").write_bytes(b"nothing")
    with pytest.raises(VideoError) as caught:
        read_clip(folder)
    assert str(caught.value).isprintable()
    assert printable(name) in str(caught.value)


def test_names_that_cannot_be(tmp_path):
    for name in ("n" * 300, "nul\0.mp4"):
        for read in READERS:
            with pytest.raises(VideoError, match="cannot be read"):
                read(tmp_path / name)


def whytube(*words, cwd):
    """Run the command line; what it says is one line to a person, or JSON."""
    ran = subprocess.run(
        [sys.executable, "-m", "whytube", *words], cwd=cwd, capture_output=True, text=True, timeout=100
    )
    assert "Traceback" not in ran.stderr
    assert ran.returncode in (0, 2), ran.stderr
    return ran


def test_every_command_tells_such_a_name_in_one_line(tmp_path):
    words = [
        asked
        for name in (NOT_UTF8, "two\nlines", "red\x1b[31m", "n" * 300)
        for asked in (
            ("explain", f"{name}/none.mp4"),
            ("data", "check", name),
            ("data", "import", "jhmdb", name, "--out", f"{name}-out"),
            ("models", "info", name),
            ("evaluate", "--data", name),
            ("evaluate", "--model", name),
            ("train", "classifier", "--data", name, "--out", f"{name}-out"),
            ("report", name, "--out", f"{name}.html"),
        )
    ]
    script = (
        "import corpus, json, sys\nfor words in json.loads(sys.argv[1]): print(json.dumps(corpus.run_command(words)))"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])}
    told = subprocess.run(
        [sys.executable, "-c", script, json.dumps(words)], cwd=tmp_path, capture_output=True, text=True, env=environment
    )
    runs = [json.loads(line) for line in told.stdout.splitlines()]
    assert len(runs) == len(words), told.stderr
    for asked, run in zip(words, runs, strict=True):
        assert (run["code"], run["out"]) == (2, ""), (asked, run)
        assert corpus.broken("explain", run) is None, (asked, run)


@pytest.mark.parametrize("name", [NOT_UTF8, "two\nlines"])
def test_an_explanation_of_an_odd_name(tmp_path, name):
    shutil.copy(make_video(tmp_path / "plain.mp4", 4), tmp_path / f"{name}.mp4")
    outputs = ("--save", f"{name}.json", "--overlay", f"{name} shown.mp4")
    ran = whytube("explain", f"{name}.mp4", "--json", *outputs, cwd=tmp_path)
    assert json.loads(ran.stdout)["source"] == str(tmp_path / f"{name}.mp4")
    assert probe(tmp_path / f"{name} shown.mp4").frames == 4
    page = whytube("report", f"{name}.json", "--out", f"{name}.html", cwd=tmp_path)
    assert page.returncode == 0, page.stderr
    assert "<html" in (tmp_path / f"{name}.html").read_text(encoding="utf-8")


def test_a_data_set_of_odd_names(tmp_path):
    folder = make_dataset(tmp_path / NOT_UTF8, splits=None, boxes=None, attributes=None)
    shutil.copy(folder / "videos/dunk/a.mp4", folder / "videos" / "dunk" / f"two\nlines {NOT_UTF8}.mp4")
    (folder / "videos" / "dunk" / f"{NOT_UTF8}\n.mp4").write_text("no video")
    ran = whytube("data", "check", str(folder), cwd=tmp_path)
    assert "\\udcff\\n.mp4: error: the video is not a video" in ran.stdout
    assert len(json.loads(whytube("data", "check", str(folder), "--json", cwd=tmp_path).stdout)["problems"]) >= 1
