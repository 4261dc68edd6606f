"""A real Chromium and a real `whytube serve` for tests of the page, and what people do on it.

`browser`, `page_server` and `opened` are fixtures; conftest.py offers them to all tests.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

STATIC = Path(__file__).parents[1] / "src" / "whytube" / "web" / "static"
AXE = Path(sys.prefix) / "axe" / "node_modules" / "axe-core" / "axe.min.js"
NOWHERE = "http://page.test"
TOKEN = "a-token-for-tests"
WAIT = 150_000  # milliseconds, on a machine that does other work too
TYPES = {".js": "text/javascript", ".css": "text/css", ".html": "text/html", ".svg": "image/svg+xml"}


def chromium() -> str:
    found = shutil.which("chromium") or shutil.which("google-chrome") or shutil.which("chromium-browser")
    if found is None:
        pytest.skip("needs Chromium")
    return found


@contextmanager
def started_browser():
    """Start Chromium; pages of it play videos without being touched first."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="needs playwright")
    with sync_api.sync_playwright() as playwright:
        quiet = ["--no-sandbox", "--autoplay-policy=no-user-gesture-required", "--force-color-profile=srgb"]
        browser = playwright.chromium.launch(executable_path=chromium(), args=quiet)
        yield browser
        browser.close()


def static_page(browser):
    """Open a page without a server, whose /static/ is that of the tree."""
    page = browser.new_page()

    def answer(route):
        path = STATIC / Path(route.request.url).name
        if "/static/" not in route.request.url:
            route.fulfill(body="<!doctype html><title>modules</title>", content_type="text/html")
        else:
            route.fulfill(body=path.read_bytes(), content_type=TYPES[path.suffix])

    page.route("**/*", answer)
    page.goto(NOWHERE)
    return page


class Server:
    """`whytube serve` as a process of its own, which can be stopped as Ctrl-C does and started again."""

    def __init__(self, store: Path, *options: str, token: str = "") -> None:
        self.store, self.options, self.token = store, options, token
        self.port, self.process = 0, None

    def start(self) -> None:
        """Start it, on the port that it had before."""
        words = [sys.executable, "-m", "whytube", "serve", "--port", str(self.port), "--store", str(self.store)]
        words += [*self.options, *(["--token", self.token] if self.token else [])]
        log = self.store.parent / f"{self.store.name}.log"
        with log.open("w") as out:
            self.process = subprocess.Popen(words, stdout=out, stderr=out, env={**os.environ, "PYTHONUNBUFFERED": "1"})
        deadline = time.monotonic() + 120
        while (found := re.search(r"http://\S+:(\d+)/", log.read_text())) is None:
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.stop()
                raise AssertionError(f"the server did not start: {log.read_text()}")
            time.sleep(0.1)
        self.port = int(found[1])

    def stop(self) -> None:
        """Stop it, and wait until it has."""
        self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@contextmanager
def serving(store: Path, *options: str, token: str = ""):
    """Run a server while a test needs it."""
    server = Server(store, *options, token=token)
    server.start()
    try:
        yield server
    finally:
        server.stop()


@pytest.fixture(scope="session")
def browser():
    with started_browser() as started:
        yield started


@pytest.fixture(scope="session")
def page_server(tmp_path_factory, browser):
    """Serve the demo model, with a token and one video in its folder."""
    folder = tmp_path_factory.mktemp("served")
    clips = folder / "clips"
    clips.mkdir()
    dance(clips / "from the folder.mp4", 2)
    with serving(folder / "store", "--videos", str(clips), token=TOKEN) as started:
        yield started


def dance(path: Path, index: int = 0) -> Path:
    """Write a clip of the embedded world as a file of 48 frames, three for each of the model's 16."""
    from whytube.data.world import World
    from whytube.video import write_video

    clip = World(size=96).batch("test", [index]).clips[0]
    return write_video(path, clip.repeat_interleave(3, dim=1), 24.0)


@pytest.fixture
def opened(browser, page_server):
    """Open the page with the token; the page must not complain in the console."""
    pages = []

    def make(path: str = "/", **options):
        context = browser.new_context(**{"viewport": {"width": 1360, "height": 900}, **options})
        page = context.new_page()
        pages.append(page)
        page.set_default_timeout(WAIT)
        page.problems = []
        page.on("pageerror", lambda error: page.problems.append(str(error)))
        page.on("console", lambda told: told.type == "error" and page.problems.append(told.text))
        page.goto(f"{page_server.address}{path}#token={TOKEN}")
        page.wait_for_selector("body[data-ready]")
        return page

    yield make
    for page in pages:
        page.context.close()
        assert page.problems == []


def example(page, name: str = "Gavotte"):
    """Take an example and wait for its predictions."""
    page.click(f".examples button:text-is('{name}')")
    page.wait_for_selector("#said:not([hidden])")


def ask(page, negative: str = "jive"):
    """Ask why not a class with little effort, and wait for the whole answer."""
    page.evaluate("document.querySelector('.options').open = true")
    page.select_option("[name=effort]", "quick")
    page.fill("[name=search]", negative)
    page.press("[name=search]", "Enter")
    page.wait_for_selector(".share:not([hidden])")


def fetched(page, path: str):
    return page.evaluate("async path => (await fetch(path)).json()", path)


def document(page) -> dict:
    return fetched(page, f"/api/results/{page.url.split('/r/')[1].split('?')[0]}")["document"]


def still(page, frame: int):
    """Stop at a frame, with the slider of the time line."""
    page.locator(".bed input").first.fill(str(frame))
    page.wait_for_function(
        "f => document.querySelector('video').seeking === false && document.querySelector('canvas').dataset.frame == f",
        arg=frame,
    )
