import json
import re
import signal
import socket
import subprocess
import sys

import pytest

from web_server import Server, serving
from whytube.web.settings import default_store


def run(*words, code=None):
    start = [sys.executable, "-m", "whytube"] if code is None else [sys.executable, "-c", code]
    return subprocess.run([*start, "serve", *map(str, words)], capture_output=True, text=True, timeout=120)


def test_a_port_in_use_is_told_at_once(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as other:
        ended = run("--store", tmp_path, "--port", other.getsockname()[1])
    assert ended.returncode == 2
    assert re.fullmatch(
        r"error: cannot listen on 127\.0\.0\.1, port \d+: .*in use\. Choose another --port\n", ended.stderr
    )
    assert not list(tmp_path.iterdir()), "nothing was begun"


def test_a_model_that_is_not_there_is_told(tmp_path):
    ended = run("--store", tmp_path, "--port", 0, "--model", "dmeo")
    assert ended.returncode == 2
    assert ended.stderr.startswith("error: ")
    assert "demo" in ended.stderr
    assert ended.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--host", "256.1.1.1"], "cannot listen on 256.1.1.1"),
        (["--port", "70000"], "--port must be an integer from 0 to 65535"),
        (["--workers", "0"], "--workers must be"),
        (["--videos", "/nowhere"], "--videos must be a folder"),
        (["--token", "a b"], "--token must be 8 to 200 letters"),
        (["--store", "/dev/null/x"], "cannot make the folder"),
    ],
)
def test_wrong_options_are_told_in_one_line(tmp_path, words, said):
    ended = run("--store", tmp_path, "--port", 0, *words)
    assert ended.returncode == 2
    assert said in ended.stderr
    assert ended.stderr.count("\n") == 1


def test_without_the_extra_it_says_how_to_install_it(tmp_path):
    hide = (
        "import sys, importlib.util as u; find = u.find_spec; "
        "u.find_spec = lambda name, *rest: None if name == 'fastapi' else find(name, *rest); "
        "from whytube.__main__ import main; sys.argv[0] = 'whytube'; main()"
    )
    ended = run("--store", tmp_path, code=hide)
    assert ended.returncode == 2
    assert "pip install 'whytube[web]'" in ended.stderr


def test_two_servers_do_not_share_a_store(tmp_path):
    with serving(tmp_path):
        ended = run("--store", tmp_path, "--port", 0)
    assert ended.returncode == 2
    assert "in use by another server" in ended.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_is_an_orderly_end(tmp_path, number):
    server = Server(tmp_path)
    job = server.ask(kind="explain", video=server.example()["id"], effort=500).json()
    with server.client.stream("GET", f"/api/jobs/{job['id']}/events") as lines:
        next(lines.iter_lines())
        server.process.send_signal(number)
        assert server.process.wait(30) == 0, "also with somebody who follows a job"
    server._gone()
    assert server.errors == ""


def test_what_is_printed_as_json(tmp_path):
    words = [
        sys.executable,
        "-m",
        "whytube",
        "serve",
        "--store",
        tmp_path,
        "--port",
        "0",
        "--json",
        "--token",
        "12345678",
    ]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    text = "".join(iter(process.stdout.readline, "}\n")) + "}"
    process.send_signal(signal.SIGTERM)
    process.wait(30)
    process.stdout.close()
    told = json.loads(text)
    assert (told["model"], told["token"], told["store"]) == ("demo", "12345678", str(tmp_path))
    assert told["url"].endswith("/#token=12345678")


def test_where_things_are_kept(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert default_store() == tmp_path / "whytube"
    monkeypatch.delenv("XDG_DATA_HOME")
    assert default_store().parts[-3:] == (".local", "share", "whytube")
    monkeypatch.setattr(sys, "platform", "darwin")
    assert default_store().parts[-2:] == ("Application Support", "whytube")
