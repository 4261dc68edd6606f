"""A real Chromium and a real `whytube serve`, for tests of the page."""

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
