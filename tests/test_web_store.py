import pytest

from whytube.errors import DataError
from whytube.web.messages import Video
from whytube.web.store import Store, now


def video(ident="a" * 32, name="clip.mp4"):
    return Video(id=ident, name=name, frames=16, fps=8.0, duration=2.0, width=64, height=48, created=now(), bytes=9)


def add(store, ident="a" * 32):
    with store.receiving() as folder:
        (folder / "original").write_bytes(b"a video")
        return store.add_video(folder, video(ident), ident * 2)


@pytest.fixture
def store(tmp_path):
    made = Store(tmp_path / "store")
    yield made
    made.close()


def test_a_video_is_kept_once(store):
    first, new = add(store)
    assert new
    assert (store.video_folder(first.id) / "original").read_bytes() == b"a video"
    again, new = add(store)
    assert not new
    assert again == first == store.video(first.id)
    assert list(store.incoming.iterdir()) == []
    assert store.video_hash(first.id) == "a" * 64
    assert store.video("b" * 32) is None


def test_the_newest_come_first(store):
    for letter in "abc":
        add(store, letter * 32)
    assert [v.id[0] for v in store.list_videos(10, 0)] == ["c", "b", "a"]
    assert [v.id[0] for v in store.list_videos(1, 1)] == ["b"]


def test_a_video_goes_with_its_results(store):
    add(store)
    store.add_result("1" * 32, "a" * 32, {"kind": "explanation"})
    store.note_example("gavotte", "a" * 32)
    (store.result_folder("1" * 32) / "overlay.mp4").write_bytes(b"x")
    assert store.result("1" * 32) == ("a" * 32, {"kind": "explanation"})
    assert store.example("gavotte").id == "a" * 32
    assert store.delete_video("a" * 32)
    assert not store.delete_video("a" * 32)
    assert store.result("1" * 32) is None
    assert store.example("gavotte") is None
    assert list(store.results.iterdir()) == list(store.videos.iterdir()) == []
    store.add_result("2" * 32, "a" * 32, {})
    assert store.result("2" * 32) is None, "an answer about a deleted video is not kept"


def test_what_a_killed_server_left_is_swept(tmp_path):
    store = Store(tmp_path)
    add(store)
    store.add_result("1" * 32, "a" * 32, {})
    (store.result_folder("1" * 32) / "overlay.mp4").write_bytes(b"whole")
    (store.result_folder("1" * 32) / ".heat.mp4.0.part").write_bytes(b"half")
    (store.incoming / "half").mkdir()
    (store.incoming / "half" / "original").write_bytes(b"half")
    (store.videos / ("b" * 32)).mkdir()  # renamed, but killed before its row was written
    (store.results / ("2" * 32)).mkdir()
    store.close()
    again = Store(tmp_path)
    assert list(again.incoming.iterdir()) == []
    assert [p.name for p in again.videos.iterdir()] == ["a" * 32]
    assert [p.name for p in again.results.iterdir()] == ["1" * 32]
    assert [p.name for p in again.result_folder("1" * 32).iterdir()] == ["overlay.mp4"]
    again.close()


def test_two_servers_do_not_share_a_folder(store):
    with pytest.raises(DataError, match="in use by another server"):
        Store(store.folder)


def test_a_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(DataError, match="cannot make the folder"):
        Store(tmp_path / "file" / "store")
