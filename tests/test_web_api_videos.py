import numpy as np
import pytest

from video_files import make_video
from whytube.video import read_clip, write_video


def test_upload_describe_play_delete(server, tmp_path):
    path = make_video(tmp_path / "my clip.avi", 20, codec="mpeg4", height=50, width=70)
    sent = server.upload(path)
    assert sent.status_code == 201
    video = sent.json()
    assert (video["name"], video["frames"], video["fps"]) == ("my clip.avi", 20, 25.0)
    assert (video["width"], video["height"], video["bytes"]) == (70, 50, path.stat().st_size)
    assert video["duration"] == pytest.approx(0.8)
    again = server.upload(path, name="other.avi")
    assert (again.status_code, again.json()) == (200, video), "the same bytes are the same video"
    assert server.get(f"/api/videos/{video['id']}").json() == video
    listed = server.get("/api/videos", params={"limit": 1}).json()["videos"]
    assert listed == [video]
    assert server.get("/api/videos", params={"limit": 1, "offset": 10_000}).json() == {"videos": []}
    whole = server.get(f"/api/videos/{video['id']}/play")
    assert (whole.status_code, whole.headers["content-type"]) == (200, "video/mp4")
    part = server.get(f"/api/videos/{video['id']}/play", headers={"range": "bytes=10-19"})
    assert part.status_code == 206
    assert part.content == whole.content[10:20]
    assert part.headers["content-range"] == f"bytes 10-19/{len(whole.content)}"
    (tmp_path / "play.mp4").write_bytes(whole.content)
    assert read_clip(tmp_path / "play.mp4", frames=20).indices.tolist() == list(range(20))
    assert server.client.delete(f"/api/videos/{video['id']}").status_code == 204
    for path in ("", "/play"):
        assert server.get(f"/api/videos/{video['id']}{path}").status_code == 404
    assert server.client.delete(f"/api/videos/{video['id']}").status_code == 404
    assert not (server.store / "videos" / video["id"]).exists()


def test_a_video_goes_with_its_jobs_and_results(server, tmp_path):
    rng = np.random.default_rng(0)
    frames = (rng.random((16, 64, 64, 3)) * 255).astype(np.uint8)
    video = server.upload(write_video(tmp_path / "noise.mp4", iter(frames), 8.0)).json()["id"]
    job = server.done(kind="explain", video=video, effort=2, k=1)
    assert server.get(f"/api/results/{job['result']}").status_code == 200
    waiting = server.ask(kind="explain", video=video, effort=300).json()
    assert server.client.delete(f"/api/videos/{video}").status_code == 204
    assert server.get(f"/api/results/{job['result']}").status_code == 404
    assert server.get(f"/api/jobs/{job['id']}").status_code == 404
    assert server.get(f"/api/jobs/{waiting['id']}").status_code == 404
    assert server.upload(tmp_path / "noise.mp4").status_code == 201, "it may come again"
    assert server.done(kind="explain", video=video, effort=2, k=1)["id"] != job["id"]


@pytest.mark.parametrize(
    ("content", "said"),
    [(b"", "empty"), (b"hello, world", "not a video"), (bytes(5000), "not a video"), (b"RIFF" + bytes(400), "not a")],
)
def test_what_is_no_video_is_refused_with_a_reason(server, tmp_path, content, said):
    (tmp_path / "clip.mp4").write_bytes(content)
    refused = server.upload(tmp_path / "clip.mp4")
    assert refused.status_code == 422
    assert said in refused.json()["detail"]
    assert str(server.store) not in refused.text
    assert list((server.store / "incoming").iterdir()) == []


def test_a_damaged_video_is_refused_with_a_reason(server, tmp_path):
    path = make_video(tmp_path / "clip.mkv", 60)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    refused = server.upload(path)
    assert refused.status_code == 422
    assert refused.json()["detail"].startswith("clip.mkv ")
    assert "salvage" not in refused.text, "an option that the page has not"


@pytest.mark.parametrize(
    "body", [{"content": b"x"}, {"data": {"file": "text"}}, {"files": {"other": b"x"}}, {"json": {}}]
)
def test_bodies_without_a_file(server, body):
    refused = server.client.post("/api/videos", **body)
    assert refused.status_code == 422
    assert "file" in refused.json()["detail"]


def test_names_of_users_come_back_as_they_are(server, tmp_path):
    """They are data: whoever shows them has to escape them."""
    name = '"><img src=x onerror=alert(1)>.mp4'
    video = server.upload(make_video(tmp_path / "a.mp4", 5), name=name).json()
    assert video["name"].endswith("onerror=alert(1)>.mp4")
    assert server.get("/api/videos").headers["content-type"] == "application/json"
