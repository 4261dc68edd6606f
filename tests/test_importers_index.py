import json
from pathlib import Path

import pytest

from video_files import make_video
from whytube.data.importers.index import Entry, hold_out, read_list, videos_under, without_ending, write_index
from whytube.data.layout import check_dataset, read_dataset
from whytube.data.rows import Problems
from whytube.data.tables import AttributeTable, read_class_rows
from whytube.errors import ArgumentError, DataError
from whytube.tubes import Tube


@pytest.fixture
def table(tmp_path) -> AttributeTable:
    (tmp_path / "table.csv").write_text("class,wet,fast\nsurf,1,1\nswim,1,0\n")
    return read_class_rows(tmp_path / "table.csv", Problems(tmp_path))


@pytest.fixture
def videos(tmp_path) -> Path:
    for name in ("surf/a.mp4", "swim/b.mp4"):
        (tmp_path / "videos" / name).parent.mkdir(parents=True)
        make_video(tmp_path / "videos" / name, 4)
    return tmp_path / "videos"


def entries(videos):
    boxes = {"actor": Tube([0, 2], [[1, 2, 30.126, 40], [5, 5, 5, 9]]), "wet": Tube([3], [[0, 0, 8, 9]])}
    return [
        Entry("b", videos / "swim/b.mp4", "swim", "test", "b"),
        Entry("a", videos / "surf/a.mp4", "surf", "train", "a", boxes),
    ]


def test_the_folder_is_a_data_set_that_points_to_the_videos(tmp_path, table, videos):
    listed = ["surf/a", "swim/b", "swim/gone"]
    made = write_index(tmp_path / "out", entries(videos), table=table, listed=listed, videos=videos, notes=["Mind it"])
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["attributes.csv", "boxes.csv", "manifest.csv"]
    assert check_dataset(tmp_path / "out").problems == ()
    data = read_dataset(tmp_path / "out")
    (item,) = data.items("train")
    assert item.path == videos / "surf/a.mp4"
    assert item.boxes["wet"].boxes.tolist() == [[0, 0, 8, 9]]
    assert item.boxes["actor"].frames.tolist() == [0], "a box without area is none"
    assert item.boxes["actor"].boxes.tolist() == [[1, 2, 30.13, 40]]
    assert (made.videos, made.missing) == ({"train": 1, "val": 0, "test": 1}, ("swim/gone",))
    assert (made.actors, made.tracks) == (1, 1)
    assert json.loads(json.dumps(made.to_dict()))["missing"] == ["swim/gone"]
    for told in ("2 videos (1 train, 1 test)", "1 listed videos are not on disk and left out: swim/gone", "Mind it"):
        assert told in str(made)


def test_relative_paths_move_with_the_videos(tmp_path, table, videos):
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    videos.rename(here / "videos")
    (tmp_path / "link").symlink_to(here, target_is_directory=True)
    for out, place in (("plain", here), ("linked", tmp_path / "link")):
        write_index(
            place / out, entries(place / "videos"), table=table, listed=[], videos=place / "videos", relative=True
        )
    assert "../videos/surf/a.mp4,surf,train" in (here / "plain/manifest.csv").read_text()
    here.rename(there)
    for out in ("plain", "linked"):
        assert read_dataset(there / out).count("train") == 1


def test_absolute_paths_do_not_depend_on_where_one_stands(tmp_path, table, videos, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_index("out", entries(Path("videos")), table=table, listed=[], videos=Path("videos"))
    monkeypatch.chdir("/")
    assert read_dataset(tmp_path / "out").count("test") == 1


def test_nothing_is_written_where_nothing_is_found_or_something_is(tmp_path, table, videos):
    with pytest.raises(
        DataError, match=r"none of the 1 listed videos is under .*for example .*/surf/z with its ending"
    ):
        write_index(tmp_path / "out", [], table=table, listed=["surf/z"], videos=videos)
    assert not (tmp_path / "out").exists()
    before = sorted(videos.rglob("*"))
    with pytest.raises(DataError, match="not an empty folder"):
        write_index(videos, entries(videos), table=table, listed=[], videos=videos)
    assert sorted(videos.rglob("*")) == before


def test_videos_are_found_by_class_and_name(tmp_path, videos):
    (videos / "surf/frames.of.it").mkdir()
    (videos / "surf/frames.of.it/0.png").touch()
    (videos / "surf/notes.txt").touch()
    (videos / "readme.mp4").touch()
    assert set(videos_under(videos)) == {"surf/a", "swim/b", "surf/frames.of.it"}
    assert without_ending("v_x.y.AVI") == "v_x.y"
    with pytest.raises(DataError, match="is not a folder"):
        videos_under(tmp_path / "none")


def test_whole_groups_of_every_class_are_held_out(tmp_path):
    made = [
        Entry(f"{group}_{n}", tmp_path, label, "test" if group == "g9" else "train", group)
        for label in ("surf", "swim")
        for group in ("g1", "g2", "g3", "g4", "g5", "g9")
        for n in range(4)
    ]
    held = hold_out(made, 0.4)
    assert [entry.split for entry in held] == [entry.split for entry in hold_out(made, 0.4)]
    for label in ("surf", "swim"):
        of_class = [entry for entry in held if entry.label == label]
        groups = {split: {e.group for e in of_class if e.split == split} for split in ("train", "val", "test")}
        assert len(groups["val"]) == 2
        assert len(groups["train"]) == 3
        assert groups["test"] == {"g9"}
        assert not groups["train"] & groups["val"]
    assert hold_out(made, 0.0) == made
    alone = [entry for entry in made if entry.group == "g1"]
    assert all(entry.split == "train" for entry in hold_out(alone, 0.9)), "one group stays"
    with pytest.raises(ArgumentError, match="`val` must be a share"):
        hold_out(made, 1.0)


def test_lists_keep_their_line_numbers(tmp_path):
    path = tmp_path / "list.txt"
    path.write_bytes(b"\xef\xbb\xbfa/b.avi 1\r\n\r\nc/d.avi\r\n")
    assert list(read_list(path)) == [(1, ["a/b.avi", "1"]), (3, ["c/d.avi"])]
    path.write_bytes(b"\xff\xfe")
    for bad in (path, tmp_path / "none.txt"):
        with pytest.raises(DataError, match="cannot read the list"):
            list(read_list(bad))
