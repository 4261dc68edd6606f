import base64
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

from explanation_examples import FRAMES, clip, explanation, reason
from toy_squares import WORDS, Adder, Knowing, Squares, WithoutBoxes
from whytube.errors import ExplanationError
from whytube.evaluation import evaluate
from whytube.evaluation.methods import Centre, TrueBox
from whytube.evaluation.results import ClassifierResults, Figure, MethodResults, Results
from whytube.explanation import FIT_RULE, GUESS_RULE, RULE
from whytube.report import notebook_html, overlay_video, write_report
from whytube.report.charts import histogram, line_chart
from whytube.video import probe, write_video

NASTY = "<script>alert('x')</script>\"&$title"
OURS = MethodResults(
    {
        "negative_class_accuracy.top1": Figure(0.52, 0.48, 0.56),
        "negative_class_accuracy.top3": Figure(0.74),
        "positive_drop": Figure(0.8),
        "concept_accuracy.top1": Figure(0.9),
        "tube_area": Figure(0.05),
    },
    {"curve.top1": [Figure(0.52), Figure(0.5), Figure(0.45)], "curve.top3": [Figure(0.74), Figure(0.7), Figure(0.66)]},
    [],
    [0, 0, 0, 1, 3],
)
CENTRE = replace(
    OURS, figures={**OURS.figures, "concept_accuracy.top1": Figure()}, curves={path: [] for path in OURS.curves}
)
RESULTS = Results(
    ClassifierResults(Figure(0.943), 3, "adder"),
    {"ours": OURS, "centre": CENTRE},
    {"commit": "abc123", "seed": 0, "device": None, "versions": {"torch": "2.13"}},
)
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


def test_a_guess_is_told_with_its_rule(tmp_path):
    why = replace(explanation(reason("with cat")), probabilities={"waltz": 0.2, "<b>": 0.16, "polka": 0.1})
    page = report(tmp_path, explanations=[(why, b"")])
    assert "guessed as waltz (20 %), hardly more than <b> (16 %); asked why waltz, not polka" in page.text
    assert GUESS_RULE in page.text
    assert GUESS_RULE not in report(tmp_path, explanations=[(explanation(reason("with cat")), b"")]).text


def test_what_moved_nothing_is_only_tried(tmp_path):
    page = report(tmp_path, explanations=[(explanation(reason("still", moved=False)), b"")])
    assert "Tried, without moving the decision:" in page.text
    assert not any("open" in attributes for tag, attributes in page.tags if tag == "details")
    assert "Tried" not in report(tmp_path, explanations=[(explanation(reason("with cat")), b"")]).text


def test_results_of_another_model_are_left_out_and_told(tmp_path):
    def page(*models, **provenance):
        whys = [(replace(explanation(reason("with cat")), model=m, model_hash=h), b"") for m, h in models]
        return report(tmp_path, explanations=whys, results=RESULTS.with_provenance(**provenance)).text

    mine = ("mine", "12" * 32)
    for provenance in ({"model": "mine"}, {"model": "moved", "model_hash": mine[1]}, {}):
        found = page(mine, mine, **provenance)
        assert "94.3%" in found
        assert "left out" not in found
        assert "model mine" in found
    for provenance in ({"model": "other"}, {"model": "mine", "model_hash": "34" * 32}, {"model": ["mine", "other"]}):
        found = page(mine, **provenance)
        assert "94.3%" not in found
        assert "abc123" not in found
        assert "The results were left out: they are of" in found
    both = page(mine, ("other", "34" * 32), model="mine", model_hash=mine[1])
    assert "94.3%" not in both
    assert "negative class accuracy" not in both
    assert "These clips were explained with 2 models; each names its own." in both
    assert f"model mine ({mine[1][:12]})" in both
    assert f"model other ({'34' * 6})" in both
    assert "they are of the model mine, and the clips were explained with mine and other" in both


def test_a_card_without_its_video_says_so(tmp_path):
    gone = replace(explanation(reason("with cat")), source=str(tmp_path / "gone.mp4"))
    page = report(tmp_path, explanations=[(gone, None)])
    assert page.count("video") == 0
    assert f"The video is no longer at {gone.source}." in page.text
    (tmp_path / "new.mp4").write_bytes(b"other")
    long = replace(gone, source="/" + 300 * "x")
    assert "The video is no longer at /xxx" in report(tmp_path, explanations=[(long, None)]).text
    changed = replace(gone, source=str(tmp_path / "new.mp4"), video_hash="12" * 32)
    assert "The video has changed since it was explained." in report(tmp_path, explanations=[(changed, b"")]).text


class TestNotebook:
    def test_it_shows_the_clip_the_sentence_and_the_evidence(self, tmp_path):
        source = write_video(tmp_path / "a.mp4", clip(), 25)
        why = replace(explanation(reason("with cat")), source=str(source), frames=tuple(range(FRAMES)))
        html = why._repr_html_()
        page = Outline(html)
        (video,) = (attributes for tag, attributes in page.tags if tag == "video")
        content = base64.b64decode(video["src"].removeprefix("data:video/mp4;base64,"))
        (tmp_path / "o.mp4").write_bytes(content)
        assert probe(tmp_path / "o.mp4").frames == FRAMES
        assert max(probe(tmp_path / "o.mp4").size) <= 500
        assert "classified as waltz, not polka, because of with cat" in page.text
        assert "0.90 → 0.30" in page.text
        assert "decision turns" in page.text
        assert len(html) < 200_000
        assert page.count("script") == page.count("link") == 0
        assert html.count("<style>") == 1
        style = html.partition("<style>")[2].partition("</style>")[0].strip()
        assert style.startswith(".whytube {"), "its rules are for itself, not for the notebook"
        assert style.count("{") == style.count("}")
        assert ":root" not in style

    def test_it_works_without_its_video(self, tmp_path):
        gone = replace(explanation(reason("with cat")), source=str(tmp_path / "gone.mp4"))
        page = Outline(gone._repr_html_())
        assert page.count("video") == 0
        assert "The video is no longer at" in page.text
        assert "0.90 → 0.30" in page.text
        assert "given as an array" in replace(gone, source="array")._repr_html_()

    def test_it_shows_no_other_video_and_no_damage(self, tmp_path):
        source = write_video(tmp_path / "a.mp4", clip(), 25)
        why = replace(explanation(reason("with cat")), source=str(source), video_hash="12" * 32)
        assert "has changed since it was explained" in why._repr_html_()
        source.write_bytes(b"junk" * 99)
        page = Outline(replace(why, video_hash="")._repr_html_())
        assert page.count("video") == 0
        assert "The clip cannot be shown:" in page.text

    def test_names_cannot_break_it(self):
        why = explanation(reason(NASTY), positive=NASTY, negative=NASTY + "!")
        page = Outline(replace(why, source=f"/{NASTY}", model=NASTY)._repr_html_())
        assert page.count("script") == 0
        assert page.text.count(NASTY) > 5


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
    results = replace(RESULTS, methods={NASTY: OURS}, provenance={NASTY: NASTY, "versions": {NASTY: NASTY}})
    page = report(tmp_path, explanations=[(why, b"")], results=results, title=NASTY)
    assert page.count("script") == 1
    assert page.text.count(NASTY) > 10


def test_everything_is_optional(tmp_path):
    assert report(tmp_path).count("section") == 0
    assert report(tmp_path, results=replace(RESULTS, methods={}, provenance={})).count("section") == 0
    page = report(tmp_path, results=replace(RESULTS, methods={"centre": CENTRE}))
    assert page.count("table") == 1
    assert page.count("svg") == 3, "two swatches and the lengths: there are no curves"
    for absent in ("None", "nan", "concept"):
        assert absent not in page.text


@pytest.fixture(scope="module")
def evaluated():
    """Give what `evaluate` really gives."""
    source = Squares(6)
    return evaluate([Centre(WORDS), TrueBox()], Adder(), source, fills=("zero",))


def test_lengths_of_tubes_are_those_of_the_evaluation(tmp_path, evaluated):
    assert evaluated.methods["centre"].tube_lengths == [0, 0, 0, 0, 18], "18 tubes of all 4 frames"
    page = report(tmp_path, results=evaluated)
    labels = [attributes["aria-label"] for tag, attributes in page.tags if tag == "svg" and "aria-label" in attributes]
    assert "Lengths of the tubes of centre, from 1 to 4 frames; mean 4.0" in labels
    assert "4 frames: 100%" in page.text
    shorter = replace(evaluated.methods["centre"], tube_lengths=[5, 1, 0, 3, 0])
    page = report(tmp_path, results=replace(evaluated, methods={"centre": shorter}))
    assert "mean 2.5" in page.text, "no tube has no length"
    assert "1 frames: 25%" in page.text
    assert "3 frames: 75%" in page.text


def test_the_table_says_what_the_evaluation_measured(tmp_path, evaluated):
    page = report(tmp_path, results=evaluated)
    hints = [attributes["title"] for tag, attributes in page.tags if tag == "abbr"]
    assert "the word is among the three annotated attributes that the tube overlaps most" in hints
    assert len(hints) == 9 + 3 + 3
    assert "B rises most; filled with zeros, which some methods have seen" in hints
    assert page.count("polyline") == 2 * 4, "top 1 and top 3, and both with zeros alone"
    assert "Negative class accuracy, top 3, zero, as in the paper" in page.text
    means = [evaluated.methods["true-box"].figure(f"concept_accuracy.top{top}").mean for top in (1, 3, 5)]
    for mean in means:
        assert f"{mean:.2f}" in page.text


def test_each_of_several_pairs_has_a_row(tmp_path, evaluated):
    assert "Each pair alone" not in report(tmp_path, results=evaluated).text, "there is one"
    found = evaluate([Centre(WORDS), Knowing()], Adder(), Squares(6), k=2)
    page = report(tmp_path, results=found)
    assert page.count("table") == 2
    rows = page.text.partition("Each pair alone")[2].partition("Lengths")[0]
    assert rows.count("centre") == rows.count("knowing") == 2
    second = found.methods["knowing"].ranks[1]["fills.zero.negative_class_accuracy.top3"].mean
    assert f"{second:.2f}" in rows


def test_results_of_earlier_versions_have_dashes_for_zeros(tmp_path, evaluated):
    old = {
        name: replace(
            method,
            figures={path: figure for path, figure in method.figures.items() if not path.startswith("fills.zero")},
            curves={path: curve for path, curve in method.curves.items() if not path.startswith("fills.zero")},
        )
        for name, method in evaluated.methods.items()
    }
    page = report(tmp_path, results=replace(evaluated, methods=old))
    assert "zero, as in the paper: p(A) falls" in page.text
    assert sum(attributes.get("class") == "absent" for _, attributes in page.tags) == 2 * 3
    assert page.count("polyline") == 4


def test_without_boxes_the_table_has_no_concepts_and_no_true_box(tmp_path):
    source = WithoutBoxes(3)
    page = report(tmp_path, results=evaluate([Centre(WORDS), TrueBox()], Adder(), source))
    assert "centre" in page.text
    assert page.text.count("true-box") == 1, "where it is said to be left out"
    assert "Concept accuracy is not measured: no clip has boxes of words." in page.text
    assert "concept" not in page.text


def test_videos_come_as_bytes_or_as_files(tmp_path):
    (tmp_path / "a.mp4").write_bytes(b"one")
    first = write_report(tmp_path / "a.html", explanations=[(explanation(), tmp_path / "a.mp4")]).read_text()
    assert first == write_report(tmp_path / "b.html", explanations=[(explanation(), b"one")]).read_text()
    with pytest.raises(ExplanationError, match=r"gone\.mp4"):
        write_report(tmp_path / "c.html", explanations=[(explanation(), tmp_path / "gone.mp4")])
    with pytest.raises(ExplanationError, match="cannot write"):
        write_report(tmp_path / "none" / "c.html")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.html", "a.mp4", "b.html"]


def test_charts_of_nothing_are_nothing():
    assert line_chart({"a": [None], "b": []}, title="", x_label="") == ""
    assert histogram([], title="", colour=0) == histogram([3], title="", colour=0) == ""
    assert histogram([0, 2, *[0] * 298, 1], title="", colour=9).count("<rect") == 2
    gap = line_chart({"a": [0.5, None, 0.4]}, title="t", x_label="x")
    assert gap.count("<circle") == 2
    assert "a: 0.50 to 0.40" in gap
    single = line_chart({**{str(n): [] for n in range(9)}, "a": [0.0]}, title="t", x_label="x")
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


def test_the_page_says_how_well_words_fit(tmp_path):
    plain, fitting = explanation(reason("with cat")), explanation(replace(reason("with cat"), fit=0.834))
    for why, said in ((plain, False), (fitting, True)):
        page = write_report(tmp_path / "r.html", explanations=[(why, None)]).read_text()
        assert ("the word fits: 83 %" in page) == said
        assert (FIT_RULE[:60] in page) == said
    assert "the word fits: 83 %" in notebook_html(fitting)
