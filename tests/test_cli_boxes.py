"""`whytube data import-boxes` and `export-boxes`: through `main`, in this process."""

import json
import sys

import pytest

from explanation_examples import explanation, reason
from layout_files import make_dataset
from whytube import read_dataset
from whytube.cli import main
from whytube.data.formats import FORMATS, Annotations, Box, Mark, Track, read_annotations, write_annotations

A = "videos/dunk/a.mp4"


@pytest.fixture
def run(tmp_path, capsys, monkeypatch):
    """Run a command in a folder with the data `data`; returns exit code, standard output and standard error."""
    make_dataset(tmp_path / "data")
    monkeypatch.chdir(tmp_path)

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["whytube", "data", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            main()
        return ended.value.code or 0, *capsys.readouterr()

    return run


def drawn(video=A, annotator="ann"):
    return Annotations(video, (48, 64), 20, 25.0, (Track("jumping", {18: Box(1, 2, 11, 12)}, annotator),))


@pytest.mark.parametrize("name", FORMATS)
def test_out_and_in_again(run, tmp_path, name):
    code, out, _ = run("export-boxes", "--data", "data", "--format", name, "--out", "boxes", "--json")
    assert code == 0
    assert json.loads(out) == {"out": "boxes", "files": ["boxes"], "videos": 1, "tracks": 1}
    before = read_dataset("data").videos[0].boxes["with ball"]
    (tmp_path / "data" / "boxes.csv").unlink()
    code, out, _ = run("import-boxes", "boxes", "--data", "data", "--format", name, "--json")
    assert code == 0
    assert json.loads(out) == {"folder": "data", "videos": 1, "tracks": 1, "boxes": 2, "marks": 0}
    after = read_dataset("data").videos[0].boxes["with ball"]
    assert (after.frames.tolist(), after.boxes.tolist()) == (before.frames.tolist(), before.boxes.tolist())


def test_several_videos_and_several_files(run):
    for number, one in enumerate([drawn(), drawn("videos/surf/c.mp4")]):
        write_annotations(f"{number}.xml", one, format="cvat")
    code, out, _ = run("import-boxes", "0.xml", "1.xml", "--data", "data", "--format", "cvat")
    assert (code, out) == (0, "data: took 4 boxes in 2 tracks and 1 marks, of 2 videos\n")
    code, out, _ = run("export-boxes", "--data", "data", "--format", "cvat", "--out", "all")
    assert (code, out) == (0, "wrote 3 tracks of 2 videos to all\n")
    assert run("export-boxes", "--data", "data", "--format", "cvat", "--out", "c.xml", "--video", "surf/c")[0] == 0
    (one,) = read_annotations("c.xml", format="cvat")
    assert (one.video, one.marks) == ("videos/surf/c.mp4", (Mark("jumping"),))


def test_which_video_and_which_annotator(run, tmp_path):
    """A list of BeaverDam names no video: its file is called so, or --video says it."""
    key = {"x": 1, "y": 2, "w": 10, "h": 10, "frame": 0.72, "continueInterpolation": True}
    (tmp_path / "a.json").write_text(json.dumps([{"keyframes": [key], "type": "jumping", "id": "1"}]))
    (tmp_path / "a.json").rename("b.json")
    words = ("import-boxes", "b.json", "--data", "data", "--format", "beaverdam")
    assert run(*words)[0] == 0
    assert run(*words, "--video", "dunk/a")[0] == 0
    assert [sorted(item.boxes) for item in read_dataset("data").videos[:2]] == [["jumping", "with ball"], ["jumping"]]
    both = Annotations(A, (48, 64), 20, None, drawn().tracks + drawn(annotator="bob").tracks)
    write_annotations("both.csv", both, format="tables")
    words = ("import-boxes", "both.csv", "--data", "data", "--format", "tables", "--annotator")
    assert run(*words, "bob")[0] == 0
    code, _, error = run(*words, "bo")
    assert code == 2
    assert "unknown annotator 'bo'. Did you mean 'bob'?" in error


def test_tubes_of_a_saved_explanation(run):
    explanation(reason("with ribbon")).save("why.json")
    words = ("export-boxes", "--explanation", "why.json", "--format", "cvat", "--out", "why.xml")
    assert run(*words) == (0, "wrote 1 tracks of 1 videos to why.xml\n", "")
    (one,) = read_annotations("why.xml", format="cvat")
    assert [(track.attribute, track.annotator) for track in one.tracks] == [("with ribbon", "whytube")]
    code, _, error = run(*words)
    assert code == 2
    assert "why.xml exists already. Choose another name, or pass --overwrite" in error
    assert run(*words, "--overwrite")[0] == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("import-boxes", "none.xml", "--data", "data", "--format", "cvat"), "cannot read none.xml: No such file"),
        (("import-boxes", "a.xml", "--data", "data", "--format", "cvta"), "--format must be one of 'cvat'"),
        (("import-boxes", "a.xml", "--data", "nowhere", "--format", "cvat"), "nowhere does not exist"),
        (
            ("import-boxes", "a.xml", "b.xml", "--data", "data", "--format", "cvat", "--video", "a"),
            "--video is for one file",
        ),
        (("import-boxes", "odd.xml", "--data", "data", "--format", "cvat"), "Give --video to say which one it is"),
        (("import-boxes", "odd.xml", "--data", "data", "--format", "coco"), "cut off, or not JSON"),
        (("import-boxes", "two.csv", "--data", "data", "--format", "tables", "--video", "a"), "and two.csv has 2"),
        (("export-boxes", "--data", "data", "--format", "cvat", "--out", "o", "--video", "x"), "unknown video 'x'"),
        (("export-boxes", "--format", "cvat", "--out", "o"), "give either --data with a folder, or --explanation"),
        (("export-boxes", "--data", "bare", "--format", "cvat", "--out", "o"), "bare has no boxes"),
    ],
)
def test_what_is_wrong_is_said(run, tmp_path, words, message):
    make_dataset(tmp_path / "bare", boxes=None)
    write_annotations("odd.xml", drawn("other.mp4"), format="cvat")
    write_annotations("two.csv", [drawn("x"), drawn("y")], format="tables")
    code, _, error = run(*words)
    assert code == 2
    assert message in " ".join(error.split())
