"""Which videos SOURCE stands for."""

import pyarrow as pa
import pytest
from pyarrow import parquet

from whytube.bulk.listing import Listed, list_videos, open_address
from whytube.errors import ArgumentError, DataError


@pytest.fixture
def folder(tmp_path):
    for name in ("b.mp4", "a.avi", "deep/c.mkv", "notes.txt"):
        path = tmp_path / "videos" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x")
    return tmp_path / "videos"


def names(listed, folder):
    return [one.video.removeprefix(f"{folder}/") for one in listed]


def test_a_folder_and_a_pattern(folder):
    assert names(list_videos(str(folder)), folder) == ["a.avi", "b.mp4", "deep/c.mkv"]
    assert names(list_videos(f"{folder}/*.mp4"), folder) == ["b.mp4"]
    assert names(list_videos(f"{folder}/**/*.mkv"), folder) == ["deep/c.mkv"]
    with pytest.raises(ArgumentError, match="no file fits"):
        list_videos(f"{folder}/*.webm")
    with pytest.raises(ArgumentError, match="cannot find"):
        list_videos(f"{folder}/gone")


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_manifest(folder, ending):
    path = folder.parent / f"list.{ending}"
    rows = {
        "video": ["videos/b.mp4", f"{folder}/a.avi", "videos/b.mp4", "s3://bucket/x.mp4"],
        "class": ["jump", "", "jump", "run"],
    }
    if ending == "csv":
        path.write_text("class,video\n" + "".join(f"{c},{v}\n" for v, c in zip(*rows.values(), strict=True)))
    else:
        parquet.write_table(pa.table(rows), path)
    assert list_videos(str(path)) == [
        Listed(f"{folder}/b.mp4", "jump"),
        Listed(f"{folder}/a.avi", ""),
        Listed(f"{folder}/b.mp4", "jump"),
        Listed("s3://bucket/x.mp4", "run"),
    ]


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.csv", b"path\nx.mp4\n", "has no column `video`"),
        ("a.csv", b"video\n", "lists no video"),
        ("a.csv", b"", "has no column `video`"),
        ("a.csv", b"video,class\n,jump\n", "row 2: the column `video` is empty"),
        ("a.csv", b"video\n\xff\xfe\n", "cannot read the manifest"),
        ("a.parquet", b"no parquet", "cannot read the manifest"),
        ("gone.csv", None, "cannot read the manifest .*gone.csv: No such file or directory$"),
        ("a.csv", b"video;class\na.mp4;walk\n", "has no column `video`, but 'video;class'"),
    ],
)
def test_wrong_manifests(tmp_path, name, content, said):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=said):
        list_videos(str(tmp_path / name))


def test_a_pattern_of_folders_finds_the_videos_in_them(folder):
    inside = [str(folder / name) for name in ("a.avi", "b.mp4", "deep/c.mkv")]
    assert sorted(one.video for one in list_videos(f"{folder}/*")) == inside
    assert sorted(one.video for one in list_videos(f"{folder}/**")) == inside, "each once"
    (folder / "notes.txt").write_text("none")
    assert [one.video for one in list_videos(f"{folder}/*.txt")] == [str(folder / "notes.txt")], "asked for by name"
    (folder / "empty").mkdir()
    with pytest.raises(ArgumentError, match="no video fits"):
        list_videos(f"{folder}/e*")


def test_rows_of_a_parquet_manifest_are_counted_from_one(tmp_path):
    parquet.write_table(pa.table({"video": ["a.mp4", ""]}), tmp_path / "list.parquet")
    with pytest.raises(DataError, match="row 2: the column `video` is empty"):
        list_videos(str(tmp_path / "list.parquet"))


@pytest.mark.parametrize(
    "pattern", ["*", "**", "*.mp4", "**/*.mp4", "**/*.mkv", "d*", "deep/*", "*/*", "*.*", "[ab].*"]
)
def test_a_pattern_means_the_same_here_and_in_a_store(folder, pattern):
    (folder / "deep" / "d.mp4").write_bytes(b"x")
    here = sorted(names(list_videos(f"{folder}/{pattern}"), folder))
    there = sorted(names(list_videos(f"file://{folder}/{pattern}"), f"file://{folder}"))
    assert here == there
    assert here, "none would be the same, too"
    assert "notes.txt" not in here


@pytest.mark.parametrize("name", ["100%.mp4", "p%20q.mp4", "q?a=1.mp4", "a b#c.mp4"])
def test_names_in_a_manifest_in_a_store_are_names(folder, name):
    (folder / name).write_bytes(b"odd")
    (folder / "list.csv").write_text(f"video\n{name}\n")
    (listed,) = list_videos(f"file://{folder}/list.csv")
    system, path = open_address(listed.video)
    with system.open_input_stream(path) as file:
        assert file.read() == b"odd"


def test_addresses_are_listed_through_pyarrow(folder):
    root = f"file://{folder}"
    assert [one.video for one in list_videos(root)] == [f"{root}/a.avi", f"{root}/b.mp4", f"{root}/deep/c.mkv"]
    assert [one.video for one in list_videos(f"{root}/*.mp4")] == [f"{root}/b.mp4"]
    assert [one.video for one in list_videos(f"{root}/b.mp4")] == [f"{root}/b.mp4"]
    system, path = open_address(f"{root}/b.mp4")
    with system.open_input_stream(path) as file:
        assert file.read() == b"x"
    with pytest.raises(ArgumentError, match="there is no video at"):
        list_videos(f"{root}/*.webm")
    with pytest.raises(DataError, match="cannot use the address"):
        list_videos("nosuch://bucket/videos")
