"""A real Chromium and a real `whytube serve`, for tests of the page."""

import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
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


@contextmanager
def serving(store: Path, *options: str):
    """Run `whytube serve` as a process of its own; gives its address. It is stopped as Ctrl-C stops it."""
    words = [sys.executable, "-m", "whytube", "serve", "--port", "0", "--store", str(store), *options]
    log = store.parent / f"{store.name}.log"
    with log.open("a") as out:
        process = subprocess.Popen(words, stdout=out, stderr=out, env={**os.environ, "PYTHONUNBUFFERED": "1"})
    begin = log.stat().st_size
    try:
        yield _address(process, log, begin)
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _address(process: subprocess.Popen, log: Path, begin: int) -> str:
    """Wait until the server answers."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        told = log.read_text()[begin:]
        urls = [word.rstrip(".,") for word in told.split() if word.startswith("http://")]
        if process.poll() is not None:
            raise AssertionError(f"the server ended: {told}")
        if urls:
            base = urls[0].split("#")[0].rstrip("/")
            try:
                with urllib.request.urlopen(f"{base}/healthz", timeout=5):
                    return urls[0]
            except OSError:
                pass
        time.sleep(0.1)
    raise AssertionError(f"the server did not start: {log.read_text()}")
