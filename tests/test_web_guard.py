"""Each promise of security, against real servers."""

import http.client
import socket
import threading

import httpx
import pytest

from video_files import make_video
from web_server import run_apart, serving, until
from whytube.web.guard import HEADERS


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    """Give a server that others could reach, small limits, and a token."""
    words = ("--host", "0.0.0.0", "--max-mib", "1", "--allow-host", "why.example")
    with serving(tmp_path_factory.mktemp("store"), *words) as server:
        port = server.base.rpartition(":")[2]
        server.client.base_url = f"http://127.0.0.1:{port}"
        yield server


@pytest.fixture
def stranger(guarded):
    """Give a client without a token."""
    with httpx.Client(base_url=guarded.client.base_url) as client:
        yield client


def bearer(server):
    return {"authorization": f"Bearer {server.token}"}


def test_loopback_needs_no_token_and_prints_none(server):
    assert "#token" not in server.address
    assert server.base.startswith("http://127.0.0.1:")
    assert server.get("/api/videos").status_code == 200


def test_without_the_token_nothing_but_health_and_empty_pages(guarded, stranger):
    assert len(guarded.token) >= 32
    client = stranger
    assert client.get("/healthz").status_code == 200
    assert client.get("/").status_code == 200
    for method, path in (
        ("GET", "/api/model"),
        ("GET", "/api/videos"),
        ("POST", "/api/videos"),
        ("GET", f"/api/videos/{'0' * 32}/play"),
        ("GET", f"/api/results/{'0' * 32}"),
        ("GET", f"/api/jobs/{'0' * 32}/events"),
        ("POST", "/api/jobs"),
        ("POST", "/api/examples/gavotte"),
        ("DELETE", f"/api/videos/{'0' * 32}"),
    ):
        for headers in ({}, {"authorization": "Bearer wrong"}, {"cookie": "whytube_token=wrong"}, {"cookie": "]=;;\\"}):
            refused = client.request(method, path, headers=headers)
            assert refused.status_code == 401, (method, path, headers)
            assert refused.headers["www-authenticate"] == "Bearer"
            assert "token" in refused.json()["detail"]
    assert client.get("/api/videos", headers=bearer(guarded)).status_code == 200


def test_the_token_becomes_a_cookie_that_pages_elsewhere_cannot_use(guarded, stranger):
    client = stranger
    assert client.post("/api/session", json={"token": "wrong"}).status_code == 401
    opened = client.post("/api/session", json={"token": guarded.token})
    assert opened.status_code == 204
    cookie = opened.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert client.get("/api/videos").status_code == 200


def test_other_hosts_are_refused(server, guarded):
    """A page elsewhere may let its name point to this machine; its requests carry that name."""
    for name in ("evil.example", "evil.example:8000", "127.0.0.1.evil.example", "", "localhost.evil"):
        refused = server.get("/api/videos", headers={"host": name})
        assert refused.status_code == 400, name
        assert "Host" in refused.json()["detail"]
        assert server.get("/", headers={"host": name}).status_code == 400
    port = server.base.rpartition(":")[2]
    for name in ("localhost", f"localhost:{port}", f"[::1]:{port}", "LOCALHOST"):
        assert server.get("/api/videos", headers={"host": name}).status_code == 200
    assert server.get("/healthz", headers={"host": "10.0.0.7"}).status_code == 400
    for name in ("why.example", "10.0.0.7:80", "[fe80::1]", socket.gethostname()):
        assert guarded.get("/healthz", headers={"host": name}).status_code == 200
    assert guarded.get("/healthz", headers={"host": "evil.example"}).status_code == 400


def test_other_sites_cannot_write(server):
    video = server.example()["id"]
    body = {"kind": "classify", "video": video}
    own = server.base
    for headers in (
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": own.replace("http:", "http://evil.example#")},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ):
        refused = server.client.post("/api/jobs", json=body, headers=headers)
        assert refused.status_code == 403, headers
        assert "other sites" in refused.json()["detail"]
        assert server.client.delete(f"/api/videos/{video}", headers=headers).status_code == 403
    for headers in ({"origin": own}, {"sec-fetch-site": "same-origin", "origin": own}, {"sec-fetch-site": "none"}):
        assert server.client.post("/api/jobs", json=body, headers=headers).status_code in (200, 202)
    assert "access-control-allow-origin" not in server.get("/api/videos", headers={"origin": "http://evil"}).headers


def test_every_answer_carries_the_headers(server, guarded):
    found = [
        server.get(path) for path in ("/", "/healthz", "/openapi.json", "/static/index.html", "/none", "/api/model")
    ]
    found += [server.get("/", headers={"host": "evil"}), guarded.get("/api/model"), server.client.post("/api/jobs")]
    for answer in found:
        for name, value in HEADERS.items():
            assert answer.headers[name] == value
    policy = HEADERS["content-security-policy"]
    assert "unsafe" not in policy
    for part in ("default-src 'self'", "frame-ancestors 'none'", "object-src 'none'", "base-uri 'none'"):
        assert part in policy


def test_large_bodies_are_refused_while_they_come(guarded):
    """Whether their length is announced or not; the server does not read them to their end."""
    address = guarded.client.base_url.host, guarded.client.base_url.port
    announced = http.client.HTTPConnection(*address, timeout=30)
    announced.putrequest("POST", "/api/videos")
    for name, value in {**bearer(guarded), "content-length": str(50 << 30)}.items():
        announced.putheader(name, value)
    announced.endheaders()
    assert announced.getresponse().status == 413
    announced.close()

    def endless():
        yield b'--x\r\ncontent-disposition: form-data; name="file"; filename="a.mp4"\r\n\r\n'
        sent = 0
        while sent < 1 << 30:
            sent += 1 << 16
            told.append(sent)
            yield bytes(1 << 16)

    told = []
    try:
        headers = {**bearer(guarded), "content-type": "multipart/form-data; boundary=x"}
        answer = guarded.client.post("/api/videos", content=endless(), headers=headers)
        assert answer.status_code == 413
    except httpx.TransportError:  # the server has closed the connection before all was sent
        pass
    assert told[-1] < 1 << 29
    assert guarded.get("/healthz").status_code == 200


def test_files_above_the_limit_are_refused(guarded, tmp_path):
    noise = tmp_path / "noise.mp4"
    noise.write_bytes(bytes(1100 << 10))
    guarded.client.headers.update(bearer(guarded))
    refused = guarded.upload(noise)
    assert refused.status_code in (413, 422)
    assert "1 MiB" in refused.json()["detail"]
    taken = guarded.upload(make_video(tmp_path / "small.mp4", 4))
    del guarded.client.headers["authorization"]
    assert taken.status_code == 201


def test_many_who_send_nothing_do_not_stop_others(server):
    address = server.client.base_url.host, server.client.base_url.port
    idle = []
    for _ in range(30):
        connection = socket.create_connection(address)
        connection.sendall(b"POST /api/videos HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n")
        idle.append(connection)
    assert server.get("/healthz").status_code == 200
    assert server.get("/api/videos").status_code == 200
    for connection in idle:
        connection.close()


def test_a_body_that_stops_coming_is_given_up():
    import asyncio

    from starlette.exceptions import HTTPException

    from whytube.web.guard import _counted

    async def never():
        await asyncio.sleep(600)

    with pytest.raises(HTTPException) as told:
        run_apart(_counted(never, 10, 0.01)())
    assert told.value.status_code == 408


def test_uploads_at_the_same_time_are_bounded():
    import asyncio

    from whytube.web.guard import Guard
    from whytube.web.settings import Limits, Settings

    statuses = []

    async def run():
        free = asyncio.Event()

        async def app(scope, receive, send):
            await free.wait()

        async def send(message):
            if message["type"] == "http.response.start":
                statuses.append(message["status"])

        guard = Guard(app, Settings(model="demo", store=None, limits=Limits(uploads=2)))
        scope = {"type": "http", "method": "POST", "path": "/api/videos", "headers": [(b"host", b"localhost")]}
        tasks = [asyncio.create_task(guard(scope, None, send)) for _ in range(3)]
        while not statuses:
            await asyncio.sleep(0)
        free.set()
        await asyncio.gather(*tasks)

    run_apart(run())
    assert statuses == [429]


def test_a_playlist_reaches_nothing_else(server, tmp_path):
    """FFmpeg opens lists that name other files or servers; neither a request nor a file's content comes of it."""
    heard = []
    with socket.create_server(("127.0.0.1", 0)) as trap:
        trap.settimeout(0.1)
        port = trap.getsockname()[1]
        for number, text in enumerate(
            (
                f"#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\nhttp://127.0.0.1:{port}/x.ts\n#EXT-X-ENDLIST\n",
                "#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\nfile:///etc/passwd\n#EXT-X-ENDLIST\n",
                f"ffconcat version 1.0\nfile http://127.0.0.1:{port}/x.mp4\n",
                "ffconcat version 1.0\nfile /etc/passwd\n",
                f"v=0\no=- 0 0 IN IP4 127.0.0.1\ns=x\nc=IN IP4 127.0.0.1\nt=0 0\nm=video {port} RTP/AVP 96\n",
            )
        ):
            for ending in (".m3u8", ".mp4", ".ts"):
                listed = tmp_path / f"{number}{ending}"
                listed.write_text(text)
                refused = server.upload(listed)
                assert refused.status_code == 422
                assert "root:" not in refused.text
            try:
                heard.append(trap.accept())
            except TimeoutError:
                continue
    assert heard == []


def test_paths_in_requests_reach_no_file(server):
    port = server.client.base_url.port
    for path in (
        "/static/../app.py",
        "/static/%2e%2e/app.py",
        "/static/..%2fapp.py",
        "/static//etc/passwd",
        "/api/videos/..%2f..%2fstore.sqlite",
        "/api/videos/%2e%2e/play",
        "/api/results/../../store.sqlite",
        f"/api/results/{'0' * 32}/..%2f..%2fstore.sqlite",
        "/r/..%2f..%2fetc%2fpasswd",
        "//etc/passwd",
    ):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)  # sends the path as it is
        connection.request("GET", path)
        answer = connection.getresponse()
        text = answer.read()
        assert answer.status in (404, 422), path
        assert b"root:" not in text
        assert b"SQLite" not in text
        connection.close()


def test_a_websocket_is_not_answered(server):
    headers = {"connection": "upgrade", "upgrade": "websocket", "sec-websocket-key": "x", "sec-websocket-version": "13"}
    assert server.get("/api/videos", headers=headers).status_code in (200, 400, 403, 404, 426)
    assert server.get("/healthz").status_code == 200


def test_health_is_told_while_many_follow_jobs(server):
    """Followers do not use up what answers others."""
    video = server.example()["id"]
    job = server.done(kind="classify", video=video)["id"]
    found = []
    threads = [threading.Thread(target=lambda: found.append(server.follow(job))) for _ in range(20)]
    for thread in threads:
        thread.start()
    assert server.get("/healthz").json()["status"] == "ok"
    until(lambda: len(found) == 20)
    assert all(events[-1][1]["status"] == "done" for events in found)
    for thread in threads:
        thread.join()
