import json
import os
import pickle
import sys
from pathlib import Path

import numpy as np
import pytest

from video_files import make_video
from whytube.cli import main
from whytube.data.importers import import_ucf101_24
from whytube.data.layout import check_dataset, read_dataset
from whytube.errors import ArgumentError, DataError

REAL = Path(__file__).resolve().parents[2] / "shared" / "data" / "ucf101_24"
NAMES = ("Biking/v_Biking_g01_c01", "Biking/v_Biking_g08_c01", "Surfing/v_Surfing_g09_c02", "Surfing/v_Surfing_g09_c03")
# Two persons, in bytes as in the real file: 200 + 100 must not wrap around to 44.
BOXES = {
    "one": np.array([[200, 10, 100, 50], [201, 10, 100, 50], [202, 10, 100, 50]], dtype=np.uint8),
    "two": np.array([[20, 100, 30, 130], [20, 100, 30, 131]], dtype=np.uint8),
}


def in_pickle(boxes=BOXES):
    tracks = [
        {"label": 2, "sf": 0, "ef": 3, "boxes": boxes["one"]},
        {"label": 2, "sf": 2, "ef": 4, "boxes": boxes["two"]},
    ]
    return {
        name: {"annotations": tracks[: 1 + (n == 0)], "numf": np.uint8(4), "label": 2} for n, name in enumerate(NAMES)
    }


def write_pickle(path, data):
    path.write_bytes(pickle.dumps(data, protocol=3))
    return path


@pytest.fixture
def given(tmp_path):
    """Three of four videos on disk, the split lists of all, and the boxes: the keywords of the importer."""
    for name in NAMES[:3]:
        (tmp_path / "UCF-101" / name).parent.mkdir(parents=True, exist_ok=True)
        make_video(tmp_path / "UCF-101" / f"{name}.avi", 4, height=240, width=320, codec="mpeg4")
    splits = tmp_path / "splits"
    splits.mkdir()
    lines = [f"{name}.avi 1\r\n" for name in (*NAMES[1:], "Archery/v_Archery_g08_c01")]
    (splits / "trainlist01.txt").write_text("".join(lines), newline="")
    (splits / "testlist01.txt").write_text(f"{NAMES[0]}.avi\r\n", newline="")
    boxes = write_pickle(tmp_path / "boxes.pkl", in_pickle())
    return {"videos": tmp_path / "UCF-101", "out": tmp_path / "out", "annotations": boxes, "splits": splits}


def test_videos_splits_and_persons_are_indexed(given):
    made = import_ucf101_24(**given)
    assert (made.videos, made.missing, made.actors) == ({"train": 2, "val": 0, "test": 1}, (NAMES[3],), 3)
    data = read_dataset(given["out"])
    assert len(data.classes) == 24
    (item,) = data.items("test")
    assert item.path.name == "v_Biking_g01_c01.avi"
    assert item.boxes["actor"].frames.tolist() == [0, 1, 2, 3]
    assert item.boxes["actor"].boxes.tolist() == [
        [200, 10, 300, 60],
        [201, 10, 301, 60],
        [20, 10, 302, 230],
        [20, 100, 50, 231],
    ]
    assert check_dataset(given["out"]).ok
    batch = data.source(frames=4, size=(120, 160)).batch("test", [0])
    assert batch.boxes[0]["actor"][0].tolist() == [100, 5, 150, 30]


def test_groups_are_held_out_whole(given):
    make_video(given["videos"] / f"{NAMES[3]}.avi", 4, codec="mpeg4")
    import_ucf101_24(**given, val=0.9)
    data = read_dataset(given["out"])
    assert data.count("train") == 3, "each class has one training group, which stays"


def test_a_pickle_that_would_run_something_does_not(given, tmp_path):
    class Malicious:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "was here"),)

    write_pickle(given["annotations"], {NAMES[0]: Malicious()})
    with pytest.raises(DataError, match="mkdir"):
        import_ucf101_24(**given)
    assert not (tmp_path / "was here").exists()
    assert not given["out"].exists()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([1, 2], "does not hold the boxes of UCF101-24"),
        ({NAMES[0]: {"boxes": 1}}, "does not hold the boxes of UCF101-24"),
        ({NAMES[0]: {"annotations": [{"sf": 0, "ef": 3, "boxes": "x"}]}}, "does not hold the boxes of UCF101-24"),
        ({NAMES[0]: {"annotations": [{"sf": 0, "ef": 9, "boxes": BOXES["one"]}]}}, r"has 9 boxes .* shape \(3, 4\)"),
        ({"Bikin/v": {"annotations": []}}, "Did you mean 'Biking'"),
    ],
)
def test_other_data_is_refused(given, data, message):
    write_pickle(given["annotations"], data)
    with pytest.raises(DataError, match=message):
        import_ucf101_24(**given)
    assert not given["out"].exists()


def test_wrong_arguments_and_files_are_named(given, tmp_path):
    for changed, message in (
        ({"split": 4}, "`split` must be an integer from 1 to 3"),
        ({"split": 2}, "cannot read the list .*trainlist02.txt"),
        ({"annotations": tmp_path / "boxes.csv"}, "`annotations` must be a .pkl or a .mat file"),
        ({"annotations": tmp_path / "none.pkl"}, "cannot read .*none.pkl: No such file"),
        ({"videos": tmp_path}, r"none of the 4 listed videos is under .*v_Biking_g01_c01 with its ending"),
    ):
        with pytest.raises((ArgumentError, DataError), match=message):
            import_ucf101_24(**{**given, **changed})
    (given["splits"] / "testlist01.txt").write_text(f"{NAMES[1]}.avi\n")
    with pytest.raises(DataError, match=r"testlist01.txt:1: .*listed already, in train"):
        import_ucf101_24(**given)


def test_videos_in_no_list_are_counted(given):
    (given["splits"] / "testlist01.txt").write_text("")
    assert "1 annotated videos are in no list of split 1" in str(import_ucf101_24(**given))


def test_the_matlab_file_says_the_same_as_the_pickle(given, tmp_path):
    scipy_io = pytest.importorskip("scipy.io")
    videos = np.zeros((1, len(NAMES)), dtype=[(key, object) for key in ("num_imgs", "name", "tubes")])
    for n, (name, video) in enumerate(in_pickle().items()):
        tubes = np.zeros(
            (1, len(video["annotations"])), dtype=[(key, object) for key in ("ef", "sf", "class", "boxes")]
        )
        for t, track in enumerate(video["annotations"]):
            # MATLAB counts from 1, and `ef` is the last frame.
            tubes[0, t] = (float(track["ef"]), float(track["sf"] + 1), 3.0, track["boxes"].astype(float))
        videos[0, n] = (4.0, name, tubes)
    scipy_io.savemat(tmp_path / "finalAnnots.mat", {"annot": videos})
    import_ucf101_24(**given)
    import_ucf101_24(**{**given, "out": tmp_path / "mat", "annotations": tmp_path / "finalAnnots.mat"})
    for name in ("manifest.csv", "boxes.csv", "attributes.csv"):
        assert (tmp_path / "mat" / name).read_text() == (given["out"] / name).read_text()


@pytest.mark.skipif(not REAL.is_dir(), reason="the data set is not at hand")
def test_the_real_files(tmp_path):
    given = {"annotations": REAL / "corrected_boxes.pkl", "splits": REAL / "splits"}
    made = import_ucf101_24(REAL / "videos", tmp_path / "ucf", **given)
    assert (made.videos, len(made.missing), made.actors) == ({"train": 10, "val": 0, "test": 6}, 3178, 16)
    report = check_dataset(tmp_path / "ucf")
    assert report.ok, str(report)
    batch = read_dataset(tmp_path / "ucf").source(frames=4).batch("test", [0])
    assert batch.boxes[0]["actor"].any()


@pytest.mark.skipif(not REAL.is_dir(), reason="the data set is not at hand")
def test_the_commands_of_the_pages_on_the_real_files(tmp_path, monkeypatch, capsys):
    def run(*words):
        monkeypatch.setattr(sys, "argv", ["whytube", "data", *map(str, words)])
        with pytest.raises(SystemExit) as end:
            main()
        said = capsys.readouterr()
        assert end.value.code == 0, said.err
        return json.loads(said.out)

    ucf = tmp_path / "ucf"
    given = ("--annotations", REAL / "corrected_boxes.pkl", "--splits", REAL / "splits")
    run("import", "ucf101-24", REAL / "videos", *given, "--out", ucf, "--json")
    found = run("check", ucf, "--deep", "--json")
    assert found["ok"]
    counts = {row["split"]: row["videos"] for row in found["statistics"]}
    assert (counts["train"], counts["test"]) == (10, 6)
    assert [one for one in found["problems"] if one["level"] == "error"] == []
