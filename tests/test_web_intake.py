import io

import pytest

from video_files import make_video
from whytube.data.layout.videos import VIDEO_SUFFIXES
from whytube.errors import VideoError
from whytube.web import intake
from whytube.web.intake import SUFFIXES, display_name


def test_every_ending_that_the_reader_takes_is_kept():
    assert VIDEO_SUFFIXES <= SUFFIXES
    assert intake._suffix("clip.MP4") == ".mp4"
    for odd in ("clip.exe", "clip", "../../etc/passwd", ".mp4/x", "a.mp4\0.sh", "x." + "m" * 300):
        assert intake._suffix(odd) == ""


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("clip.mp4", "clip.mp4"),
        ("C:\\videos\\clip.mp4", "clip.mp4"),
        ("../../../etc/passwd", "passwd"),
        ("a\nb\x1b[0m.mp4", "a\\nb\\x1b[0m.mp4"),
        ("<script>alert(1)<script>", "<script>alert(1)<script>"),
        ("", "video"),
        ("///", "video"),
        ("..", "video"),
        ("é" * 300, "é" * 120),
        ("bad\udce9.mp4", "bad?.mp4"),
    ],
)
def test_names_are_for_people(given, shown):
    assert display_name(given) == shown


def test_a_file_is_copied_with_its_hash_and_bounded(tmp_path):
    digest, size = intake._copy(io.BytesIO(b"abc"), tmp_path / "file", 10)
    assert (digest[:8], size) == ("ba7816bf", 3)
    with pytest.raises(VideoError, match="more than 1 MiB"):
        intake._copy(io.BytesIO(bytes(3 << 20)), tmp_path / "large", 1 << 20)
    with pytest.raises(VideoError, match="empty"):
        intake._copy(io.BytesIO(), tmp_path / "none", 10)


def test_the_operators_folder(server):
    """Only videos in it are offered, not what links lead to; a client names a key, never a path."""
    (server.folder / "inner").mkdir()
    make_video(server.folder / "inner" / "a.mp4", 6)
    make_video(server.folder / "b.webm", 6, codec="libvpx")
    (server.folder / "notes.txt").write_text("x")
    (server.folder / ".hidden.mp4").write_bytes(b"x")
    (server.folder / "link.mp4").symlink_to("/etc/passwd")
    (server.folder / "broken.mp4").write_bytes(b"no video")
    listed = {video["name"]: video["key"] for video in server.get("/api/folder").json()["videos"]}
    assert sorted(listed) == ["a.mp4", "b.webm", "broken.mp4"]
    taken = server.client.post(f"/api/folder/{listed['a.mp4']}")
    assert (taken.status_code, taken.json()["name"], taken.json()["frames"]) == (201, "a.mp4", 6)
    again = server.client.post(f"/api/folder/{listed['a.mp4']}")
    assert (again.status_code, again.json()) == (200, taken.json())
    broken = server.client.post(f"/api/folder/{listed['broken.mp4']}")
    assert broken.status_code == 422
    assert str(server.folder) not in broken.text
    assert server.client.post(f"/api/folder/{'0' * 32}").status_code == 404
    (server.folder / "b.webm").unlink()
    assert server.client.post(f"/api/folder/{listed['b.webm']}").status_code == 404


def test_an_example_is_rendered_once(server):
    names = [example["name"] for example in server.get("/api/examples").json()["examples"]]
    assert names == list(intake.EXAMPLES)
    first = server.client.post("/api/examples/minuet")
    again = server.client.post("/api/examples/minuet")
    assert (again.status_code, again.json()) == (200, first.json())
    assert first.json()["frames"] == 16
    assert server.client.post("/api/examples/pogo").status_code == 404
