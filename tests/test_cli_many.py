"""Several videos at the shell: one file each, going on after a broken one and where it stopped."""

import json
import os
import sys
from pathlib import Path

import pytest

from toy_explainer import saved_model, tiny_classifier, tiny_explainer
from whytube.cli import main
from whytube.cli.many import find_videos
from whytube.data.formats import explained, read_annotations
from whytube.data.world import World
from whytube.explanation import Explanation
from whytube.video import probe, write_png, write_video

CLASSES = ("jump", "walk", "swim")


@pytest.fixture(scope="module")
def clips():
    return World(size=64).batch("test", range(3)).clips


@pytest.fixture
def folder(tmp_path, clips, monkeypatch):
    """Two videos of one name, a folder of frames, a broken one, and what is none; with a model that answers fast."""
    (tmp_path / "videos" / "more").mkdir(parents=True)
    for clip, name in zip(clips, ("a.mp4", "b.avi", "more/a.mp4"), strict=True):
        write_video(tmp_path / "videos" / name, clip, 8.0)
    (tmp_path / "videos" / "broken.mp4").write_bytes(b"junk" * 99)
    (tmp_path / "videos" / "notes.txt").write_text("none")
    (tmp_path / "videos" / "frames").mkdir()
    for index, frame in enumerate(clips[0].permute(1, 2, 3, 0).mul(255).byte().numpy()[:4]):
        write_png(tmp_path / "videos" / "frames" / f"{index}.png", frame)
    saved_model(tmp_path / "model", tiny_explainer(classifier=tiny_classifier(CLASSES, frames=4, size=(32, 32))))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    return tmp_path


def run(capsys, monkeypatch, *words):
    """Call the command line in this process: its exit code, and what it said."""
    monkeypatch.setattr(sys, "argv", ["whytube", *words, "--device", "cpu"])
    code = ended()
    said = capsys.readouterr()
    return code, said.out, said.err


def ended():
    """Run the command line of sys.argv; return its exit code."""
    with pytest.raises(SystemExit) as end:
        main()
    return end.value.code or 0


def test_folders_are_searched_and_folders_of_frames_are_videos(folder):
    found = [str(path) for path in find_videos([Path("videos"), Path("videos/a.mp4"), Path("gone.mp4")])]
    assert found == [
        *(f"videos/{name}" for name in ("a.mp4", "b.avi", "broken.mp4", "frames", "more/a.mp4")),
        "gone.mp4",
    ]
    assert find_videos([Path("videos/frames")]) == [Path("videos/frames")]


def test_every_video_gets_its_file_and_a_broken_one_stops_nothing(folder, capsys, monkeypatch):
    words = ("explain", "videos", "--model", "model", "--out", "whys", "--overlay", "gif", "--sheet", "png")
    code, out, err = run(capsys, monkeypatch, *words)
    assert code == 2
    assert "1 of 5 videos failed, the others are done:\n  videos/broken.mp4 is not a video" in err
    assert "4 explained, 0 there already: whys" in err
    assert sorted(p.name for p in Path("whys").glob("*.json")) == ["a-2.json", "a.json", "b.json", "frames.json"]
    sources = {path.stem: Path(Explanation.load(path).source) for path in Path("whys").glob("*.json")}
    assert sources["a"] == folder / "videos" / "a.mp4"
    assert sources["a-2"] == folder / "videos" / "more" / "a.mp4"
    assert len(list(Path("whys").glob("*.gif"))) == len(list(Path("whys").glob("*-sheet.png"))) == 4
    assert probe("whys/b.gif").frames > 4
    assert out.count("\n") == 4
    assert out.startswith(f"videos/a.mp4: {Explanation.load('whys/a.json').sentence}\n")


def test_it_goes_on_where_it_stopped(folder, capsys, monkeypatch):
    words = ("explain", "videos/a.mp4", "videos/b.avi", "--model", "model", "--out", "whys", "--json")
    assert run(capsys, monkeypatch, "explain", "videos/more", "--model", "model", "--out", "whys")[0] == 0
    first = Path("whys/a.json").read_bytes()
    assert run(capsys, monkeypatch, *words)[0] == 0
    assert sorted(p.name for p in Path("whys").iterdir()) == ["a-2.json", "a.json", "b.json"], "the other a.mp4"
    before = {path: path.stat().st_mtime_ns for path in Path("whys").iterdir()}
    code, out, _ = run(capsys, monkeypatch, *words)
    assert code == 0
    assert {path: path.stat().st_mtime_ns for path in Path("whys").iterdir()} == before, "nothing was made again"
    assert Path("whys/a.json").read_bytes() == first
    assert [row["source"] for row in json.loads(out)] == [str(folder / "videos" / name) for name in ("a.mp4", "b.avi")]
    code, out, err = run(capsys, monkeypatch, *words, "-k", "1")
    assert code == 2
    assert "whys/a-2.json exists, of another question: choose another --out, or give --overwrite" in err
    assert all(row["error"] for row in json.loads(out)), "standard output stays JSON"
    assert run(capsys, monkeypatch, *words, "-k", "1", "--overwrite")[0] == 0
    assert Explanation.load("whys/b.json").settings["k"] == 1
    assert Explanation.load("whys/a.json").source == str(folder / "videos" / "more" / "a.mp4")


def test_another_model_or_another_video_is_not_taken_for_the_same(folder, clips, capsys, monkeypatch):
    words = ("explain", "videos/a.mp4", "--out", "whys", "--model")
    assert run(capsys, monkeypatch, *words, "model")[0] == 0
    other = tiny_classifier(CLASSES, frames=4, size=(32, 32), seed=1)
    saved_model(folder / "other", tiny_explainer(classifier=other))
    assert "a.json exists, of another model, model" in run(capsys, monkeypatch, *words, "other")[2]
    write_video("videos/a.mp4", clips[1], 8.0)
    assert "a.json exists, of another version of the video" in run(capsys, monkeypatch, *words, "model")[2]


def test_an_answer_to_another_question_is_not_taken_for_this_one(folder, capsys, monkeypatch):
    words = ("explain", "videos/a.mp4", "--out", "whys", "--model", "model", "--overwrite")
    assert run(capsys, monkeypatch, *words)[0] == 0
    likely = sorted(Explanation.load("whys/a.json").probabilities.items(), key=lambda row: -row[1])
    first, second, third = (name for name, _ in likely)
    for asked in (("--why", second), ("--why-not", third)):
        assert run(capsys, monkeypatch, *words, *asked)[0] == 0
        assert "a.json exists, of another question" in run(capsys, monkeypatch, *words[:-1])[2]
        assert "0 explained, 1 there already" in run(capsys, monkeypatch, *words[:-1], *asked)[2]
    assert run(capsys, monkeypatch, *words, "--why", first, "--why-not", second)[0] == 0
    assert "0 explained, 1 there already" in run(capsys, monkeypatch, *words[:-1])[2], "the same in other words"
    Path("model/explainer.safetensors").unlink()
    assert "a.json exists, of another question" in run(capsys, monkeypatch, *words[:-1])[2], "regions without words"


@pytest.mark.parametrize("command", ["explain", "classify"])
def test_errors_in_json_speak_of_options(folder, capsys, monkeypatch, command):
    whole = Path("videos/a.mp4").read_bytes()
    Path("cut.mp4").write_bytes(whole[: len(whole) * 3 // 4])
    code, out, _ = run(capsys, monkeypatch, command, "cut.mp4", "videos/a.mp4", "--model", "model", "--json")
    assert code == 2
    assert "or pass --salvage to use the frames that decode" in json.loads(out)[0]["error"]


def test_a_report_draws_on_no_other_video(folder, clips, capsys, monkeypatch):
    words = ("explain", "videos/a.mp4", "videos/b.avi", "--model", "model", "--out", "whys")
    assert run(capsys, monkeypatch, *words)[0] == 0
    report = ["whytube", "report", "whys", "--out", "page.html", "--overwrite"]
    for change in (lambda: write_video("videos/a.mp4", clips[1], 8.0), lambda: Path("videos/a.mp4").write_text("junk")):
        change()
        monkeypatch.setattr(sys, "argv", report)
        assert ended() == 0
        assert "a.mp4: The video has changed since it was explained." in capsys.readouterr().err
        page = Path("page.html").read_text()
        assert page.count("<video") == 1
        assert page.count("The video has changed since it was explained.") == 1


def test_a_pipe_in_the_place_of_a_video_is_not_waited_for(folder, capsys, monkeypatch):
    os.mkfifo("videos/frames/9.png")
    words = ("explain", "videos/a.mp4", "videos/frames", "--model", "model", "--out", "whys")
    assert run(capsys, monkeypatch, *words)[0] == 0
    Path("videos/a.mp4").unlink()
    os.mkfifo("videos/a.mp4")
    assert "a.json exists, of another version of the video" in run(capsys, monkeypatch, *words)[2]
    monkeypatch.setattr(sys, "argv", ["whytube", "report", "whys", "--out", "page.html"])
    assert ended() == 0
    assert "a.mp4: The video has changed since it was explained." in capsys.readouterr().err


def test_without_a_folder_to_write_to_answers_are_only_printed(folder, capsys, monkeypatch):
    code, out, _ = run(
        capsys, monkeypatch, "explain", "videos/a.mp4", "videos/broken.mp4", "--model", "model", "--json"
    )
    assert code == 2
    first, second = json.loads(out)
    assert first["source"] == str(folder / "videos" / "a.mp4")
    assert second["source"].endswith("broken.mp4")
    assert "not a video" in second["error"]


def test_classify_prints_the_top_classes(folder, capsys, monkeypatch):
    code, out, _ = run(capsys, monkeypatch, "classify", "videos/a.mp4", "--model", "model", "--top", "2")
    assert code == 0
    lines = out.splitlines()
    assert len(lines) == 2
    assert {line.split()[-1] for line in lines} < set(CLASSES)
    assert float(lines[0].split()[0]) >= float(lines[1].split()[0])
    code, out, err = run(capsys, monkeypatch, "classify", "videos", "--model", "model", "--json")
    assert code == 2
    assert "1 of 5 videos failed" in err
    rows = json.loads(out)
    assert len(rows) == 5
    assert sum("error" in row for row in rows) == 1
    assert rows[0]["model"] == "model"
    assert sum(rows[0]["probabilities"].values()) == pytest.approx(1, abs=1e-4)


def test_names_that_are_not_utf8_or_have_newlines_work(folder, capsys, monkeypatch):
    Path("odd").mkdir()
    names = [b"odd/caf\xe9.mp4", b"odd/new\nline.mp4", b"odd/" + 240 * b"n" + b".mp4"]
    for name in names:
        Path(os.fsdecode(name)).write_bytes(Path("videos/a.mp4").read_bytes())
    code, out, _ = run(capsys, monkeypatch, "explain", "odd", "--model", "model", "--out", "whys", "--overlay", "png")
    assert code == 0, out
    found = {Explanation.load(path).source for path in Path("whys").glob("*.json")}
    assert found == {str(folder / os.fsdecode(name)) for name in names}
    assert run(capsys, monkeypatch, "classify", "odd", "--model", "model")[0] == 0
    monkeypatch.setattr(sys, "argv", ["whytube", "report", "whys", "--out", "page.html"])
    assert ended() == 0
    assert Path("page.html").read_text(encoding="utf-8").count("<article") == 3


def test_one_video_as_pictures_and_coco(folder, capsys, monkeypatch):
    names = ("--overlay", "o.png", "--sheet", "s.png", "--coco", "c.json", "--save", "e.json", "--cvat", "c.xml")
    for style in ("boxes", "heat", "grad-cam"):
        words = ("explain", "videos/a.mp4", "--model", "model", *names, "--style", style, "--overwrite")
        assert run(capsys, monkeypatch, *words)[0] == 0, style
        assert probe("o.png").size == (446, 384) or probe("o.png").size[1] == 384
        assert probe("s.png").size[1] > 4 * 384
    assert json.loads(Path("c.json").read_text()) == Explanation.load("e.json").to_coco()
    assert read_annotations("c.xml", format="cvat") == [explained(Explanation.load("e.json"))]


def test_pictures_of_another_style_are_not_taken_for_the_same(folder, capsys, monkeypatch):
    words = ("explain", "videos/a.mp4", "--model", "model", "--out", "whys", "--sheet", "png")
    assert run(capsys, monkeypatch, *words)[0] == 0
    assert run(capsys, monkeypatch, *words, "--style", "heat")[0] == 0
    assert {path.name for path in Path("whys").glob("*.png")} == {"a-sheet.png", "a-heat-sheet.png"}


def test_what_decodes_of_a_damaged_file_is_drawn_on(folder, capsys, monkeypatch):
    Path("cut.mp4").write_bytes(Path("videos/a.mp4").read_bytes()[:-900])
    words = ("explain", "cut.mp4", "--model", "model", "--overlay", "o.mp4", "--sheet", "s.png", "--style", "grad-cam")
    assert run(capsys, monkeypatch, *words)[0] == 2
    code, _, err = run(capsys, monkeypatch, *words, "--salvage")
    assert code == 0, err
    assert 1 < probe("o.mp4").frames < 16
    assert probe("s.png").size[1] > 384


def test_a_video_of_one_frame_is_told_and_no_error(folder, clips, capsys, monkeypatch):
    write_video("one.mp4", clips[0][:, :1], 8.0)
    code, out, _ = run(capsys, monkeypatch, "explain", "one.mp4", "--model", "model")
    assert code == 0
    assert "(one frame alone, without any motion)" in out
