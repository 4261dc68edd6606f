import json
from pathlib import Path

import numpy as np
import pytest

from video_files import encode_image, make_video, picture
from whytube.data.importers import import_jhmdb
from whytube.data.importers.jhmdb import PART_BOXES
from whytube.data.layout import check_dataset, read_dataset
from whytube.data.tables import read_table
from whytube.errors import ArgumentError, DataError

REAL = Path(__file__).resolve().parents[2] / "shared" / "data" / "jhmdb"
GOLF, JUMP, GONE = (
    "golf/Swing_golf_f_nm_np1_ri_med_0",
    "jump/Fun_jump_f_cm_np1_le_med_0",
    "jump/Gone_jump_f_cm_np1_le_med_1",
)
PARTS = {
    GOLF: {
        "0": {"ball": [1, 2, 5, 6], "hands": [10, 10, 20, 20], "arms": [8, 8, 30, 22], "head": [0, 0, 9, 9]},
        "3": {"club": [12, 12, 40, 44]},
    },
    JUMP: {"1": {"feet": [1, 1, 9, 9], "ball": [3, 3, 5, 5]}},
}
ACTORS = {name: np.array([[1, 2, 30, 40]] * 4, dtype=np.int16) for name in (GOLF, JUMP)}


@pytest.fixture
def pack(tmp_path):
    """Two of three clips on disk; golf is in the test split of split 1 and trained on in split 2."""
    folder = tmp_path / "pack"
    for name in (GOLF, JUMP):
        (folder / "clips" / name).parent.mkdir(parents=True)
        make_video(folder / "clips" / f"{name}.mp4", 4)
    rows = [f"{GOLF},golf,4,test,train", f"{JUMP},jump,4,train,test", f"{GONE},jump,4,train,test"]
    (folder / "clips.csv").write_text("\n".join(["clip,class,frames,split1,split2", *rows]) + "\n")
    np.savez(folder / "actor_boxes.npz", **ACTORS)
    (folder / "part_boxes.json").write_text(json.dumps(PARTS))
    return folder


def official(folder, *, images=False, golf=GOLF):
    """Write the same clips as J-HMDB is distributed."""
    for name, mark in ((golf, 2), (JUMP, 1)):
        label, _, clip = name.partition("/")
        if images:
            place = folder / "Rename_Images" / name
            place.mkdir(parents=True)
            for n in range(4):
                (place / f"{n + 1:05d}.png").write_bytes(encode_image(picture(n)))
        else:
            (folder / "ReCompress_Videos" / label).mkdir(parents=True)
            make_video(folder / "ReCompress_Videos" / f"{name}.avi", 4, codec="mpeg4")
        (folder / "splits").mkdir(exist_ok=True)
        (folder / "splits" / f"{label}_test_split1.txt").write_text(f"{clip}.avi {mark}\n")
    for label in set(read_table("jhmdb").classes) - {"golf", "jump"}:
        (folder / "splits" / f"{label}_test_split1.txt").write_text("")
    return folder


def test_the_pack_is_indexed_with_actors_and_parts(pack, tmp_path):
    made = import_jhmdb(pack, tmp_path / "out")
    assert (made.videos, made.missing, made.actors) == ({"train": 1, "val": 0, "test": 1}, (GONE,), 2)
    assert check_dataset(tmp_path / "out").ok
    data = read_dataset(tmp_path / "out")
    (golf,) = data.items("test")
    attributes = [name for name in golf.boxes if name != "actor"]
    table = read_table("jhmdb")
    assert all(table.row("golf")[table.attribute_names.index(name)] for name in attributes)
    assert {"with ball", "with swung stick", "hands together"} <= set(attributes)
    assert golf.boxes["with swung stick"].frames.tolist() == [3]
    assert golf.boxes["with ball"].boxes.tolist() == [[1, 2, 5, 6]]
    assert golf.boxes["actor"].boxes.tolist() == [[1, 2, 30, 40]] * 4
    (jump,) = data.items("train")
    assert set(jump.boxes) == {"actor"}, "boxes for evaluation are never on training clips"


def test_training_clips_get_the_boxes_for_training(pack, tmp_path):
    drawn = {JUMP: {"0": {"feet": [1, 2, 3, 4]}}, GOLF: {"0": {"ball": [9, 9, 12, 12]}}}
    (pack / "part_boxes_train.json").write_text(json.dumps(drawn))
    import_jhmdb(pack, tmp_path / "one")
    data = read_dataset(tmp_path / "one")
    (jump,), (golf,) = data.items("train"), data.items("test")
    assert jump.boxes["feet off the ground"].boxes.tolist() == [[1, 2, 3, 4]]
    assert golf.boxes["with ball"].boxes.tolist() == [[1, 2, 5, 6]], "a test clip keeps its boxes for evaluation"
    import_jhmdb(pack, tmp_path / "two", split=2)
    data = read_dataset(tmp_path / "two")
    (golf,), (jump,) = data.items("train"), data.items("test")
    assert golf.boxes["with ball"].boxes.tolist() == [[9, 9, 12, 12]], "split 2 trains on golf"
    assert jump.boxes["feet off the ground"].boxes.tolist() != [[1, 2, 3, 4]], "and tests on jump"


def test_another_split_has_its_own_parts(pack, tmp_path):
    import_jhmdb(pack, tmp_path / "out", split=2)
    data = read_dataset(tmp_path / "out")
    assert set(data.items("train")[0].boxes) == {"actor"}
    (jump,) = data.items("test")
    assert "feet off the ground" in jump.boxes
    assert "with ball" not in jump.boxes, "a jump has no ball by its class"


@pytest.mark.parametrize("images", [False, True])
def test_the_official_folders_are_indexed(tmp_path, images):
    made = import_jhmdb(official(tmp_path / "JHMDB", images=images), tmp_path / "out")
    assert (made.videos, made.missing, made.notes) == ({"train": 1, "val": 0, "test": 1}, (), ())
    assert check_dataset(tmp_path / "out").ok
    batch = read_dataset(tmp_path / "out").source(frames=4, size=(48, 64)).batch("test", [0])
    assert batch.labels.tolist() == [read_table("jhmdb").classes.index("golf")]


@pytest.mark.parametrize(("part", "clips"), [("test", 63), ("train", 105)])
def test_shipped_part_boxes_cover_every_class(part, clips):
    shipped = json.loads(PART_BOXES[part].read_text())
    assert len(shipped) == clips
    assert {len(frames) for frames in shipped.values()} == {3}
    assert {name.partition("/")[0] for name in shipped} == set(read_table("jhmdb").classes)
    corners = [box for frames in shipped.values() for labels in frames.values() for box in labels.values()]
    assert all(0 <= x1 < x2 <= 320 and 0 <= y1 < y2 <= 240 for x1, y1, x2, y2 in corners)


def test_shipped_part_boxes_stand_in_where_the_folder_has_none(pack, tmp_path):
    shipped = json.loads(PART_BOXES["test"].read_text())
    name = next(name for name in shipped if name.startswith("golf/"))
    import_jhmdb(official(tmp_path / "JHMDB", golf=name), tmp_path / "out")
    (golf,) = read_dataset(tmp_path / "out").items("test")
    balls = {int(frame): labels["ball"] for frame, labels in shipped[name].items() if "ball" in labels}
    assert balls
    assert dict(zip(golf.boxes["with ball"].frames.tolist(), golf.boxes["with ball"].boxes.tolist(), strict=True)) == (
        balls
    )
    (pack / "part_boxes.json").unlink()
    assert import_jhmdb(pack, tmp_path / "none").tracks == 0, "none of the pack's clips is among the shipped ones"


@pytest.mark.skipif(not REAL.is_dir(), reason="the data set is not at hand")
@pytest.mark.parametrize(("part", "name"), [("test", "part_boxes.json"), ("train", "part_boxes_train.json")])
def test_shipped_part_boxes_are_of_their_part_of_split_1(part, name):
    lines = (REAL / "clips.csv").read_text().splitlines()
    marks = {cells[0]: cells[3] for cells in (line.split(",") for line in lines)}
    assert lines[0].split(",")[3] == "split1"
    shipped = json.loads(PART_BOXES[part].read_text())
    assert {marks[clip] for clip in shipped} == {part}
    assert shipped == json.loads((REAL / name).read_text())


def test_masks_become_boxes_of_the_actor(tmp_path):
    scipy_io = pytest.importorskip("scipy.io")
    folder = official(tmp_path / "JHMDB")
    masks = np.zeros((48, 64, 4), dtype=np.uint8)
    masks[10:20, 5:9, 0] = 1
    masks[12:30, 7:8, 2] = 1
    masks[40, 40, 2] = 1
    (folder / "puppet_mask" / GOLF).mkdir(parents=True)
    scipy_io.savemat(folder / "puppet_mask" / GOLF / "puppet_mask.mat", {"part_mask": masks})
    assert import_jhmdb(folder, tmp_path / "out").actors == 1
    (golf,) = read_dataset(tmp_path / "out").items("test")
    assert golf.boxes["actor"].frames.tolist() == [0, 2]
    assert golf.boxes["actor"].boxes.tolist() == [[5, 10, 9, 20], [7, 12, 41, 41]]


def test_without_scipy_masks_are_left_out_and_told(tmp_path, monkeypatch):
    folder = official(tmp_path / "JHMDB")
    (folder / "puppet_mask").mkdir()
    monkeypatch.setattr("whytube.data.importers.mat.find_spec", lambda name: None)
    made = import_jhmdb(folder, tmp_path / "out")
    assert made.actors == 0
    assert "puppet_mask/ needs scipy, pip install 'whytube[mat]'" in str(made)


def test_wrong_folders_and_files_are_named(pack, tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match=r"does not hold J-HMDB; expected clips\.csv, or ReCompress_Videos/"):
        import_jhmdb(tmp_path / "empty", tmp_path / "out")
    with pytest.raises(ArgumentError, match="`split` must be an integer from 1 to 3"):
        import_jhmdb(pack, tmp_path / "out", split=0)
    with pytest.raises(DataError, match=r"header must have clip,split3"):
        import_jhmdb(pack, tmp_path / "out", split=3)
    (pack / "actor_boxes.npz").write_bytes(b"no boxes")
    with pytest.raises(DataError, match=r"cannot read the boxes of .*actor_boxes\.npz"):
        import_jhmdb(pack, tmp_path / "out")
    np.savez(pack / "actor_boxes.npz", **{GOLF: np.array([{}], dtype=object)})
    with pytest.raises(DataError, match="allow_pickle"):
        import_jhmdb(pack, tmp_path / "out")
    (pack / "actor_boxes.npz").unlink()
    for text in ("[", "[]", '{"a": {"0": {"head": [1, 2, 3]}}}', '{"a": {"first": {}}}'):
        (pack / "part_boxes.json").write_text(text)
        with pytest.raises(DataError, match="cannot read the part boxes"):
            import_jhmdb(pack, tmp_path / "out")
    folder = official(tmp_path / "JHMDB")
    (folder / "splits/golf_test_split1.txt").write_text("x.avi 3\n")
    with pytest.raises(DataError, match=r"golf_test_split1.txt:1: expected a video and 1 \(train\) or 2 \(test\)"):
        import_jhmdb(folder, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.skipif(not REAL.is_dir(), reason="the data set is not at hand")
def test_the_real_pack(tmp_path):
    made = import_jhmdb(REAL, tmp_path / "out")
    assert (made.videos, made.missing, made.actors) == ({"train": 660, "val": 0, "test": 268}, (), 928)
    data = read_dataset(tmp_path / "out")
    boxed = [item for item in data.videos if len(item.boxes) > 1]
    assert len(boxed) == 63 + 105
    assert sum(item.split == "test" for item in boxed) == 63
    assert {item.split for item in boxed} == {"test", "train"}
    tracks = [tube for item in boxed for name, tube in item.boxes.items() if name != "actor"]
    assert len(tracks) == made.tracks
    assert all(len(tube) <= 3 for tube in tracks), "three frames of a clip are labelled"
    held = import_jhmdb(REAL, tmp_path / "held", val=0.1)
    assert held.videos["train"] + held.videos["val"] == 660
    assert 50 <= held.videos["val"] <= 80
