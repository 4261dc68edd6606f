import json
from pathlib import Path

import pytest

from video_files import make_video
from whytube.data.importers.index import Listing, hold_out, read_list, videos_under, without_ending, write_index
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


BOXES = {"actor": Tube([0, 2], [[1, 2, 30.126, 40], [5, 5, 5, 9]]), "wet": Tube([3], [[0, 0, 8, 9]])}


def listing(table, videos, *missing, **changed):
    """List swim/b in test and surf/a, which has boxes, in train; both are found, what is `missing` is not."""
    splits = {"swim/b": "test", "surf/a": "train"} | dict.fromkeys(missing, "test")
    found = {"swim/b": videos / "swim/b.mp4", "surf/a": videos / "surf/a.mp4"}
    boxes = {"surf/a": BOXES}
    given = {"splits": splits, "found": found, "group": str, "boxes": lambda name: boxes.get(name, {})} | changed
    return Listing(table=table, videos=videos, **given)


def test_the_folder_is_a_data_set_that_points_to_the_videos(tmp_path, table, videos):
    made = write_index(tmp_path / "out", listing(table, videos, "swim/gone", notes=["Mind it"]))
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
        write_index(place / out, listing(table, place / "videos"), relative=True)
    assert "../videos/surf/a.mp4,surf,train" in (here / "plain/manifest.csv").read_text()
    here.rename(there)
    for out in ("plain", "linked"):
        assert read_dataset(there / out).count("train") == 1


def test_absolute_paths_do_not_depend_on_where_one_stands(tmp_path, table, videos, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_index("out", listing(table, Path("videos")))
    monkeypatch.chdir("/")
    assert read_dataset(tmp_path / "out").count("test") == 1


def test_nothing_is_written_where_nothing_is_found_or_something_is(tmp_path, table, videos):
    with pytest.raises(
        DataError, match=r"none of the 1 listed videos is under .*for example .*/surf/z with its ending"
    ):
        write_index(tmp_path / "out", listing(table, videos, splits={"surf/z": "train"}))
    assert not (tmp_path / "out").exists()
    before = sorted(videos.rglob("*"))
    with pytest.raises(DataError, match="not an empty folder"):
        write_index(videos, listing(table, videos))
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


def test_whole_groups_of_every_class_are_held_out():
    def group(name):
        return name.partition("/")[2].partition("_")[0]

    made = {
        f"{label}/{group}_{n}": "test" if group == "g9" else "train"
        for label in ("surf", "swim")
        for group in ("g1", "g2", "g3", "g4", "g5", "g9")
        for n in range(4)
    }
    held = hold_out(made, 0.4, group=group)
    assert held == hold_out(made, 0.4, group=group)
    for label in ("surf", "swim"):
        of_class = {name: split for name, split in held.items() if name.startswith(label)}
        groups = {
            kind: {group(n) for n, split in of_class.items() if split == kind} for kind in ("train", "val", "test")
        }
        assert len(groups["val"]) == 2
        assert len(groups["train"]) == 3
        assert groups["test"] == {"g9"}
        assert not groups["train"] & groups["val"]
    assert hold_out(made, 0.0, group=group) == made
    alone = {name: split for name, split in made.items() if group(name) == "g1"}
    assert set(hold_out(alone, 0.9, group=group).values()) == {"train"}, "one group stays"
    with pytest.raises(ArgumentError, match="`val` must be a share"):
        hold_out(made, 1.0, group=group)


def test_lists_keep_their_line_numbers(tmp_path):
    path = tmp_path / "list.txt"
    path.write_bytes(b"\xef\xbb\xbfa/b.avi 1\r\n\r\nc/d.avi\r\n")
    assert list(read_list(path)) == [(f"{path}:1", ["a/b.avi", "1"]), (f"{path}:3", ["c/d.avi"])]
    path.write_bytes(b"\xff\xfe")
    for bad in (path, tmp_path / "none.txt"):
        with pytest.raises(DataError, match="cannot read the list"):
            list(read_list(bad))
