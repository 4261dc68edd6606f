import json

import pytest

from layout_files import ATTRIBUTES, BOXES, SPLITS, make_dataset, write
from video_files import make_video
from whytube.data.layout import check_dataset
from whytube.errors import DataError


@pytest.fixture
def folder(tmp_path):
    return make_dataset(tmp_path)


def told(report, level):
    return [str(problem) for problem in report.problems if problem.level == level]


def test_good_data_has_no_problems_and_is_counted(folder):
    report = check_dataset(folder, deep=True)
    assert report.ok
    assert report.problems == ()
    rows = {row.split: (row.videos, row.classes, row.attributes, row.tracks, row.boxes) for row in report.statistics}
    assert rows == {"train": (2, 2, 3, 1, 2), "val": (1, 1, 2, 0, 0), "test": (1, 1, 3, 0, 0), "all": (4, 3, 3, 1, 2)}
    assert "train" in str(report)
    assert "errors: 0, warnings: 0" in str(report)


def test_every_problem_is_listed_and_survives_json(folder):
    write(folder, "boxes.csv", BOXES + "dunk/a,jumping,3,9,1,4,2\n" * 30)
    write(folder, "splits.csv", SPLITS + "dunk/zzz,train\n")
    report = check_dataset(folder)
    assert not report.ok
    assert len(told(report, "error")) == 31
    copy = json.loads(json.dumps(report.to_dict()))
    assert copy["ok"] is False
    assert copy["problems"][1]["file"] == "boxes.csv"
    assert copy["problems"][1]["line"] == 4


def test_videos_that_cannot_be_read_are_named(folder):
    (folder / "videos/dunk/b.mp4").write_bytes(b"not a video" * 100)
    (folder / "videos/surf/c.mp4").write_bytes(b"")
    whole = (folder / "videos/vault/d.mp4").read_bytes()
    (folder / "videos/vault/d.mp4").write_bytes(whole[: len(whole) * 2 // 3])
    errors = told(check_dataset(folder), "error")
    assert [line.split(":")[0] for line in errors] == ["videos/dunk/b.mp4", "videos/surf/c.mp4", "videos/vault/d.mp4"]
    assert "the video is an empty file" in errors[1]


def test_a_deep_check_decodes_every_frame(folder):
    path = folder / "videos/vault/d.mp4"
    data = bytearray(path.read_bytes())
    middle = len(data) // 2
    data[middle : middle + 600] = bytes(600)
    path.write_bytes(data)
    assert check_dataset(folder).ok
    errors = told(check_dataset(folder, deep=True), "error")
    assert len(errors) == 1
    assert errors[0].startswith("videos/vault/d.mp4: error: the video is damaged")


def test_boxes_are_compared_with_the_frames(folder):
    rows = (
        "dunk/a,indoor,0,70,1,80,9\ndunk/a,indoor,1,60,-9,80,9\ndunk/a,indoor,2,0,0,64.5,48\ndunk/a,indoor,20,1,1,4,4\n"
    )
    report = check_dataset(write(folder, "boxes.csv", BOXES + rows))
    (error,) = told(report, "error")
    assert error == "boxes.csv:4: error: the box 70,1,80,9 lies outside the frame of 64 x 48 pixels"
    late, partly = told(report, "warning")
    assert late == "boxes.csv:7: warning: frame 20 of 'indoor' does not exist: the video has 20 frames"
    assert partly.startswith("boxes.csv:5: warning: the box of 'indoor' reaches 16 pixels out of the frame")


def test_what_was_decided_is_a_warning(tmp_path):
    table = ATTRIBUTES.replace("vault,0,1,1", "vault,1,1,1").replace("indoor", "outdoor,nowhere")
    table = (
        "\n".join(line + ",0" if n else line for n, line in enumerate(table.split("\n")) if line) + "\nrow,0,0,1,0\n"
    )
    folder = make_dataset(tmp_path, attributes=table, splits=None, boxes=BOXES + "surf/c,jumping,0,1,1,4,4\n")
    (folder / "videos/dunk/notes.txt").touch()
    (folder / "videos/loose.mp4").touch()
    (folder / "videos/empty").mkdir()
    (folder / "videos/vault/deeper/still").mkdir(parents=True)
    (folder / "videos/frames").mkdir()
    (folder / "videos/frames/0.jpg").touch()
    report = check_dataset(folder)
    assert report.ok
    warnings = "\n".join(told(report, "warning"))
    for expected in (
        "videos/dunk/notes.txt: warning: .txt is not known as a video",
        "videos/loose.mp4: warning: a video outside a class folder",
        "videos/empty: warning: the class folder holds no videos",
        "videos/vault/deeper: warning: the folder holds no .jpg or .png frames",
        "videos/frames: warning: the class folder holds single frames",
        "no splits.csv: splits were drawn by name",
        "attributes.csv:4: warning: 'vault' has the same attributes as 'dunk'",
        "attributes.csv: warning: 1 of 4 classes have no videos: row",
        "no class has the attribute 'nowhere'",
        "boxes.csv:4: warning: 'videos/surf/c.mp4' has boxes of 'jumping' but not the attribute",
    ):
        assert expected in warnings


def test_videos_without_a_split_and_columns_without_a_use_are_told(folder):
    write(folder, "splits.csv", "video,split,spilt\ndunk/a,train,x\n")
    warnings = told(check_dataset(folder), "warning")
    assert warnings[0] == "splits.csv:1: warning: left out: unknown column 'spilt'. Did you mean 'split'?"
    assert "3 of 4 videos are in no split" in warnings[1]


def test_progress_is_reported(folder):
    calls = []
    check_dataset(folder, progress=lambda done, total: calls.append((done, total)))
    assert calls == [(1, 4), (2, 4), (3, 4), (4, 4)]


def test_no_folder(tmp_path):
    with pytest.raises(DataError, match="does not exist"):
        check_dataset(tmp_path / "none")


def test_the_actor_has_boxes_and_is_no_attribute(folder):
    rows = "dunk/b,actor,0,1,1,9,9\ndunk/b,actor,1,2,1,9,9\nsurf/c,actor,0,1,1,4,4\n"
    report = check_dataset(write(folder, "boxes.csv", BOXES + rows))
    assert report.problems == ()
    counts = {row.split: (row.tracks, row.boxes, row.actors) for row in report.statistics}
    assert counts == {"train": (1, 2, 1), "val": (0, 0, 0), "test": (0, 0, 1), "all": (1, 2, 2)}
    write(folder, "attributes.csv", ATTRIBUTES.replace("indoor", "actor"))
    (error,) = told(check_dataset(folder), "error")
    assert error.startswith("attributes.csv:1: error: 'actor' is the name of the actor's boxes in boxes.csv")


def test_problems_of_one_kind_are_one_line(folder):
    bad = "".join(f"dunk/a,jumping,{n},9,1,4,{n + 2}\n" for n in range(30)) + "dunk/a,jumpng,3,1,1,4,4\n"
    write(folder, "boxes.csv", BOXES + bad + "dunk/a,jumpin,3,1,1,4,4\n")
    report = check_dataset(folder)
    assert len(report.problems) == len(report.to_dict()["problems"]) == 32
    boxes, attributes = [line for line in str(report).splitlines() if ": error: " in line]
    assert boxes.startswith("boxes.csv:4: error: the box must have x1 < x2 and y1 < y2")
    assert boxes.endswith("(and 29 more like it: boxes.csv:5, boxes.csv:6, boxes.csv:7, ...)")
    assert attributes.endswith("'jumpng'. Did you mean 'jumping'? (and 1 more like it: boxes.csv:35)")
    assert "errors: 32, warnings: 0" in str(report)


@pytest.mark.parametrize("deep", [False, True])
@pytest.mark.parametrize("suffix", ["mp4", "mkv", "avi", "webm"])
def test_a_video_of_one_frame_is_told_by_its_name_and_not_by_its_boxes(tmp_path, suffix, deep):
    folder = make_dataset(tmp_path, boxes=BOXES + "".join(f"vault/d,indoor,{n},1,1,9,9\n" for n in range(20)))
    (folder / "videos/vault/d.mp4").unlink()
    make_video(folder / f"videos/vault/d.{suffix}", 1, codec={"webm": "libvpx", "avi": "mpeg4"}.get(suffix, "libx264"))
    report = check_dataset(folder, deep=deep)
    assert report.ok
    (warning,) = told(report, "warning")
    assert warning.startswith(f"videos/vault/d.{suffix}: warning: the video has only one frame: nothing moves in it")
    assert warning.endswith("(boxes.csv has 19 boxes at later frames)")


def test_many_videos_of_one_frame_are_one_line(folder):
    for name in ("dunk/b", "surf/c", "vault/d"):
        make_video(folder / f"videos/{name}.mp4", 1)
    write(folder, "boxes.csv", BOXES + "surf/c,actor,5,1,1,9,9\n")
    report = check_dataset(folder)
    assert len(report.to_dict()["problems"]) == 3
    (line,) = [line for line in str(report).splitlines() if "only one frame" in line]
    assert line.endswith("(and 2 more like it: videos/surf/c.mp4, videos/vault/d.mp4)")


def test_a_problem_that_repeats_with_and_without_an_addition_is_told_once(folder):
    rows = "dunk/a,indoor,20,1,1,4,4\n" + "".join(f"vault/d,indoor,{n},1,1,4,4\n" for n in (20, 21, 22))
    lines = str(check_dataset(write(folder, "boxes.csv", BOXES + rows))).splitlines()
    (late,) = [line for line in lines if "does not exist" in line]
    assert late.endswith("(and 1 more like it: boxes.csv:5)")
