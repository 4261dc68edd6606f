"""Videos in an object store that speaks S3, over HTTP: listed, fetched, explained, and what goes wrong with it."""

import json

import pyarrow as pa
import pytest
from moto.server import ThreadedMotoServer
from pyarrow import dataset, fs, parquet
from typer.testing import CliRunner

from bulk_faults import MODEL, alike, make_videos
from whytube.bulk.listing import Listed, list_videos
from whytube.bulk.output import Asked, Output
from whytube.bulk.page import explanation_of
from whytube.bulk.query import Answers
from whytube.bulk.work import Work
from whytube.cli import app
from whytube.errors import ArgumentError, DataError

KEYS = ("b.mp4", "a.mp4", "deep/with blank.mp4", "deep/50%25, #1.mp4", "broken.mp4", "notes.txt")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bulk")
    (folder / "tiny.py").write_text(MODEL)
    make_videos(folder / "videos", 7)
    return folder


@pytest.fixture(scope="module")
def settings():
    """Give what an address needs to reach the store."""
    server = ThreadedMotoServer("127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {"ACCESS_KEY_ID": "x", "SECRET_ACCESS_KEY": "y", "EC2_METADATA_DISABLED": "true"}.items():
            patch.setenv(f"AWS_{name}", value)
        yield f"?endpoint_override=http://{host}:{port}"
    server.stop()


@pytest.fixture(scope="module")
def store(settings, made):
    system, _ = fs.FileSystem.from_uri(f"s3://bucket{settings}&allow_bucket_creation=true")
    system.create_dir("bucket")
    videos = sorted((made / "videos").iterdir())
    for place, key in enumerate(KEYS):
        put(system, key, (videos[6] if key == "broken.mp4" else videos[place]).read_bytes())
    put(system, "list.csv", b"video,class\na.mp4,red\ndeep/with blank.mp4,blue\ngone.mp4,\n")
    table = pa.BufferOutputStream()
    parquet.write_table(pa.table({"video": ["b.mp4"], "class": ["green"]}), table)
    put(system, "list.parquet", table.getvalue().to_pybytes())
    return system


def put(system, key, content):
    with system.open_output_stream(f"bucket/clips/{key}") as file:
        file.write(content)


def worked(made, out, listed):
    asked = Asked(model=f"{made / 'tiny.py'}:build", model_hash="", k=1, effort=2)
    output = Output(out)
    for shard in range(len(output.open(asked, listed, {}))):
        Work(output, asked)(shard)
    return tuple(
        dataset.dataset(sorted((out / name).glob("*.parquet"))).to_table().to_pylist()
        for name in ("reasons", "failures")
    )


def test_a_bucket_is_listed(store, settings):
    root = "s3://bucket/clips"
    everything = ["a.mp4", "b.mp4", "broken.mp4", "deep/50%2525%2C%20%231.mp4", "deep/with%20blank.mp4"]
    for source in (root, f"{root}/"):
        assert list_videos(source + settings) == [Listed(f"{root}/{key}{settings}") for key in everything]
    assert list_videos(f"{root}/?.mp4{settings}") == [Listed(f"{root}/{key}{settings}") for key in everything[:2]]
    assert list_videos(f"{root}/deep/w*k.mp4{settings}") == [Listed(f"{root}/{everything[4]}{settings}")]
    assert list_videos(f"{root}/deep/with blank.mp4{settings}") == [Listed(f"{root}/deep/with blank.mp4{settings}")]


def test_what_is_not_there_is_told(store, settings):
    with pytest.raises(ArgumentError, match=r"there is no video at s3://bucket/clips/[*]"):
        list_videos(f"s3://bucket/clips/*.webm{settings}")
    with pytest.raises(DataError, match=r"cannot list s3://bucket/gone.*does not exist"):
        list_videos(f"s3://bucket/gone{settings}")
    with pytest.raises(DataError, match=r"cannot list s3://nowhere/clips.*(?i:bucket does not exist)"):
        list_videos(f"s3://nowhere/clips{settings}")
    with pytest.raises(DataError, match=r"cannot read the manifest s3://bucket/gone\.csv.*does not exist"):
        list_videos(f"s3://bucket/gone.csv{settings}")
    with pytest.raises(DataError, match=r"cannot use the address s3://bucket/clips\?colour=red"):
        list_videos("s3://bucket/clips?colour=red")


def test_a_store_that_refuses_is_told(settings):
    with pytest.raises(DataError, match=r"cannot list s3://bucket/clips.*connect"):
        list_videos("s3://bucket/clips?endpoint_override=http://127.0.0.1:1")


def test_a_manifest_in_a_store(store, settings):
    root = "s3://bucket/clips"
    assert list_videos(f"{root}/list.csv{settings}") == [
        Listed(f"{root}/a.mp4{settings}", "red"),
        Listed(f"{root}/deep/with%20blank.mp4{settings}", "blue"),
        Listed(f"{root}/gone.mp4{settings}"),
    ]
    assert list_videos(f"{root}/list.parquet{settings}") == [Listed(f"{root}/b.mp4{settings}", "green")]


def test_videos_of_a_store_are_explained_as_those_of_a_folder(store, settings, made, tmp_path):
    found, failures = worked(made, tmp_path / "out", list_videos(f"s3://bucket/clips{settings}"))
    first = str(sorted((made / "videos").iterdir())[1])
    plain, _ = worked(made, tmp_path / "plain", [Listed(first)])
    assert len(found) == 4
    assert alike(found[0] | {"video": ""}, plain[0] | {"video": ""})
    assert [row["video"] for row in failures] == [f"s3://bucket/clips/broken.mp4{settings}"]
    assert failures[0]["error"].startswith("s3://bucket/clips/broken.mp4?")
    assert explanation_of(found[2], "a", "b").source == "50%25, #1.mp4"
    assert Answers(tmp_path / "out").summary()["totals"]["explained"] == 4


def test_keys_that_are_gone_and_stores_that_refuse_are_failures(store, settings, made, tmp_path):
    refused = "s3://bucket/a.mp4?endpoint_override=http://127.0.0.1:1"
    listed = [*list_videos(f"s3://bucket/clips/list.csv{settings}"), Listed(refused)]
    found, failures = worked(made, tmp_path / "out", listed)
    assert [row["label"] for row in found] == ["red", "blue"]
    assert failures[0]["error"].startswith(f"cannot read s3://bucket/clips/gone.mp4{settings}: ")
    assert "does not exist" in failures[0]["error"]
    assert failures[1]["error"].startswith(f"cannot read {refused}: ")
    assert "connect" in failures[1]["error"]


def test_the_command(store, settings, made, tmp_path):
    words = ["bulk", f"s3://bucket/clips/**/*.mp4{settings}", "--model", f"{made / 'tiny.py'}:build"]
    words += ["--out", str(tmp_path / "out"), "--workers", "0", "--json"]
    said = CliRunner().invoke(app, words, catch_exceptions=False).stdout
    assert json.loads(said) == {"videos": 5, "explained": 4, "failed": 1, "before": 0}
