import json
import shutil
import subprocess
import threading
from contextlib import contextmanager
from dataclasses import replace
from html.parser import HTMLParser
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import Queue

import pytest

from explanation_examples import clip, explanation, reason
from whytube.errors import ExplanationError
from whytube.explanation import RULE
from whytube.report import overlay_video, write_report
from whytube.report.charts import Line, histogram, line_chart
from whytube.report.results import curves, lengths, measure

NASTY = "<script>alert('x')</script>\"&$title"
RESULTS = {
    "classifier": {"accuracy": 0.943},
    "methods": {
        "ours": {
            "negative_class_accuracy": {"top1": {"mean": 0.52, "low": 0.48, "high": 0.56}, "top3": 0.74},
            "positive_drop": 0.8,
            "concept_accuracy": {"top1": 0.9, "top3": 0.95, "top5": 1.0},
            "tube_area": 0.05,
            "tube_frames": 9.5,
            "curve": {"negatives": [1, 2, 3], "top1": [0.52, 0.5, 0.45], "top3": [0.74, 0.7, 0.66]},
            "tube_lengths": [3, 9, 9, 16],
        },
        "centre": {"negative_class_accuracy": {"top1": 0.2, "top3": None}, "concept_accuracy": None, "curve": None},
    },
    "provenance": {"commit": "abc123", "seed": 0, "device": None, "versions": {"torch": "2.13"}},
}
VOID = {"meta", "link", "br", "img", "input", "hr"}


class Outline(HTMLParser):
    """Every tag with its attributes, the text between them, and whether all that were opened are closed in turn."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self._open: list[str] = []
        self.feed(page)
        assert not self._open

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self._open.pop() == tag

    def handle_data(self, data):
        if self._open and self._open[-1] not in ("style", "script"):
            self.text += data

    def count(self, tag: str) -> int:
        return sum(name == tag for name, _ in self.tags)


def report(tmp_path, **parts) -> Outline:
    return Outline(write_report(tmp_path / "report.html", **parts).read_text(encoding="utf-8"))


def test_whole_report(tmp_path):
    whys = [(explanation(reason("with cat"), reason("still", moved=False)), b"one"), (explanation(), b"two")]
    page = report(tmp_path, explanations=whys, results=RESULTS, title="Dances")
    assert page.count("video") == 2
    assert page.count("article") == 2
    assert "classified as waltz, not polka, because of with cat" in page.text
    assert "classified as waltz, not polka; no region explains this" in page.text
    assert "0.90 → 0.30" in page.text
    assert "score +1.50" in page.text
    assert "decision turns" in page.text
    assert "decision stays" in page.text
    assert RULE in page.text
    assert "0.48\N{EN DASH}0.56" in page.text
    assert "94.3%" in page.text
    assert "abc123" in page.text
    assert page.count("polyline") == 2, "one line with points in each of two charts"
    opened = [attributes for tag, attributes in page.tags if tag == "details" and attributes["class"] == "reason"]
    assert ["open" in attributes for attributes in opened] == [True, False]


def test_the_page_claims_no_more_than_was_done(tmp_path):
    guess = replace(reason("mat"), evidence=())
    checked = report(tmp_path, explanations=[(explanation(reason("with cat")), b"")]).text
    assert "really masked" in checked
    assert "not checked" not in checked
    assert "were not checked" in report(tmp_path, explanations=[(explanation(reason("with cat"), guess), b"")]).text
    assert "really masked" not in report(tmp_path, explanations=[(explanation(guess), b"")]).text
    assert "mask" not in report(tmp_path).text


def test_nothing_is_fetched(tmp_path):
    page = report(tmp_path, explanations=[(explanation(reason("with cat")), b"video")], results=RESULTS)
    for tag, attributes in page.tags:
        for name in ("src", "href", "action", "data", "poster", "srcset"):
            assert (attributes.get(name) or "data:").startswith("data:"), (tag, name)
    text = (tmp_path / "report.html").read_text()
    assert "@import" not in text
    assert "url(" not in text


def test_names_cannot_break_the_page(tmp_path):
    why = explanation(reason(NASTY), positive=NASTY, negative=NASTY + "!")
    methods = {NASTY: RESULTS["methods"]["ours"]}
    results = RESULTS | {"methods": methods, "provenance": {NASTY: NASTY, "versions": {NASTY: NASTY}}}
    page = report(tmp_path, explanations=[(why, b"")], results=results, title=NASTY)
    assert page.count("script") == 1
    assert page.text.count(NASTY) > 10


def test_everything_is_optional(tmp_path):
    assert report(tmp_path).count("section") == 0
    for results in ({}, {"methods": None}, {"methods": {"ours": None}}, {"classifier": None, "provenance": None}):
        assert report(tmp_path, results=results).count("section") == 0
    page = report(tmp_path, results={"methods": {"a": {"positive_drop": 0.5}, "b": {"tube_frames": float("nan")}}})
    assert page.count("table") == 1
    assert page.count("svg") == 2, "only the swatches"
    for absent in ("None", "nan"):
        assert absent not in page.text


def test_videos_come_as_bytes_or_as_files(tmp_path):
    (tmp_path / "a.mp4").write_bytes(b"one")
    first = write_report(tmp_path / "a.html", explanations=[(explanation(), tmp_path / "a.mp4")]).read_text()
    assert first == write_report(tmp_path / "b.html", explanations=[(explanation(), b"one")]).read_text()
    with pytest.raises(ExplanationError, match=r"gone\.mp4"):
        write_report(tmp_path / "c.html", explanations=[(explanation(), tmp_path / "gone.mp4")])
    with pytest.raises(ExplanationError, match="cannot write"):
        write_report(tmp_path / "none" / "c.html")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.html", "a.mp4", "b.html"]


def test_measures_are_read_in_all_their_forms():
    path = ("negative_class_accuracy", "top1")
    for given in ({"mean": 0.5, "low": 0.4, "high": 0.6}, {"value": 0.5, "interval": [0.4, 0.6]}):
        found = measure({"negative_class_accuracy": {"top1": given}}, path)
        assert (found.value, found.low, found.high) == (0.5, 0.4, 0.6)
    beside = {"tube_area": 0.5, "intervals": {"tube_area": [0.4, 0.6]}}
    assert measure(beside, ("tube_area",)).high == 0.6
    assert measure({"tube_area": 0.5}, ("tube_area",)).low is None
    assert measure({"tube_area": True}, ("tube_area",)) is None
    assert measure({}, path) is None


def test_curves_and_lengths_are_read_in_both_forms():
    columns = {"m": {"curve": {"negatives": [1, 3], "top1": [0.5, None]}}}
    points = {"m": {"curve": [{"negatives": 1, "top1": 0.5}, {"negatives": 3, "top1": None}]}}
    assert curves(columns, "top1") == curves(points, "top1") == [Line("m", [1, 3], [0.5, None])]
    assert curves({"m": {"curve": {"top1": [0.5, 0.4]}}}, "top1")[0].points == [(1, 0.5), (2, 0.4)]
    assert lengths({"tube_lengths": [3, 3, 5]}) == lengths({"tube_lengths": {"3": 2, "5": 1, "9": 0}})
    assert not lengths({})


def test_charts_of_nothing_are_nothing():
    assert line_chart([Line("a", [1], [None])], title="", x_label="", order=["a"]) == ""
    assert histogram({}, title="", longest=0, colour=0) == ""
    assert histogram({1: 2, 300: 1}, title="", longest=300, colour=9).count("<rect") == 2
    single = line_chart([Line("a", [1], [0.0])], title="t", x_label="x", order=["b"] * 9 + ["a"])
    assert "dashed" in single


PROBE = """<script>window.problems = [];
addEventListener("error", e => problems.push(String(e.message)), true);
addEventListener("securitypolicyviolation", e => problems.push(e.violatedDirective));
console.error = (...words) => problems.push(words.join(" "));
</script>"""
WATCH = """<!doctype html><iframe src="/report" style="width:1200px;height:900px"></iframe><script>
const page = document.querySelector("iframe");
const send = seen => fetch("/seen", { method: "POST", body: JSON.stringify(seen) });
const look = tries => {
  const videos = [...page.contentDocument.querySelectorAll("video")];
  const times = videos.map(v => v.currentTime);
  if (tries > 0 && !(times[0] > 0.1)) return setTimeout(look, 100, tries - 1);
  send({ times, width: videos.map(v => v.videoWidth), problems: page.contentWindow.problems,
         overflow: page.contentDocument.documentElement.scrollWidth });
};
page.onload = () => look(150);
</script>"""


@contextmanager
def served(page: str):
    """Serve a page with a probe in it, and a page that watches it; gives the address and what it saw."""
    seen: Queue[dict] = Queue()
    bodies = {"/report": page.replace("<head>", "<head>" + PROBE, 1), "/": WATCH}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            body = bodies.get(self.path, "").encode()
            self.send_response(200 if body else 404)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_POST(self):
            seen.put(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *words):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/", seen
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.browser
def test_videos_play_in_a_browser(tmp_path):
    browser = shutil.which("chromium") or shutil.which("google-chrome") or shutil.which("chromium-browser")
    if browser is None:
        pytest.skip("needs Chromium")
    why = explanation(reason("with cat"))
    video = overlay_video(clip(), why, tmp_path / "o.mp4", slow=3)
    page = write_report(tmp_path / "r.html", explanations=[(why, video)] * 8, results=RESULTS).read_text()
    quiet = "--headless --no-sandbox --disable-gpu --disable-background-networking --disable-sync --no-first-run"
    with served(page) as (address, seen):
        words = [browser, *quiet.split(), "--window-size=1300,1000", f"--user-data-dir={tmp_path / 'profile'}", address]
        process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            found = seen.get(timeout=60)
        finally:
            process.terminate()
            process.wait(timeout=20)
    assert found["problems"] == []
    assert found["times"][0] > 0.1, "the clip in view plays"
    assert found["times"][-1] == 0, "the last one, far below, waits"
    assert found["overflow"] <= 1200
