"""The annotating page in a real Chromium, with a real server: drawing, keys, tabs, drafts, zoom, names, files."""

import json
import time

import httpx
import pytest

from browsing import AXE, serving
from web_drawn import clips_with, draw, upload_clips
from whytube.data.formats import FORMATS

pytestmark = pytest.mark.browser
WIDE = {"width": 1400, "height": 900}
NARROW = {"width": 390, "height": 844}
BAD = "<img src=x onerror=window.hacked=1>"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    with (
        serving(tmp_path_factory.mktemp("annotate") / "store") as server,
        httpx.Client(base_url=server.address, timeout=120) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def video(site):
    return site.post("/api/examples/gavotte").raise_for_status().json()


class Page:
    """The page with a video, whose boxes are drawn by a person of a name that no other test has."""

    def __init__(self, browser, site, video, name, *, size=WIDE, **options):
        self.context = browser.new_context(viewport=size, reduced_motion="reduce", **options)
        self.context.add_init_script(f"localStorage.setItem('whytube.annotator', {json.dumps(name)})")
        self.page, self.site, self.video, self.name = self.context.new_page(), site, video, name
        self.wrong = []
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))
        self.page.goto(f"{site.base_url}/annotate?video={video['id']}")
        self.until("window.annotate?.state && window.annotate.player.video.readyState >= 2")
        self.until("window.annotate.drafts.size > 0")

    def until(self, script, arg=None):
        """Wait until a script says so; the page's policy forbids that Chromium waits by itself."""
        deadline = time.monotonic() + 60
        while not self.page.evaluate(script if script.split()[0] in ("frame", "name") else f"() => {script}", arg):
            assert time.monotonic() < deadline, script
            self.page.wait_for_timeout(30)

    def word(self, name):
        self.page.evaluate("word => annotate.choose(word)", name)

    def seek(self, frame):
        self.page.evaluate("frame => annotate.seek(frame)", frame)
        self.until("frame => annotate.frame === frame", arg=frame)

    def at(self, x, y):
        """Where a pixel of the video is on the screen."""
        return self.page.evaluate(
            "([x, y]) => { const { view, canvas } = annotate.stage; const edge = canvas.getBoundingClientRect();"
            "return [edge.left + view.x + x * view.scale, edge.top + view.y + y * view.scale]; }",
            [x, y],
        )

    def drag(self, start, end):
        mouse = self.page.mouse
        mouse.move(*self.at(*start))
        mouse.down()
        mouse.move(*self.at((start[0] + end[0]) / 2, (start[1] + end[1]) / 2))
        mouse.move(*self.at(*end))
        mouse.up()

    def settle(self):
        self.until("annotate.sync.settled && document.querySelector('#saved').dataset.state === 'saved'")

    def press(self, *keys):
        self.page.focus("#board")
        for key in keys:
            self.page.keyboard.press(key)

    def track(self, word, number=1):
        """Ask the server for key frames: frame -> (box, outside)."""
        self.settle()
        told = self.site.get(f"/api/annotations/{self.video['id']}").json()["tracks"]
        keys = [t["keys"] for t in told if (t["annotator"], t["attribute"], t["track"]) == (self.name, word, number)]
        return {key["frame"]: (key["box"], key["outside"]) for key in keys[0]} if keys else {}

    def shown(self):
        """Boxes on the canvas: word -> box."""
        boxes = json.loads(self.page.get_attribute("#board canvas", "data-boxes"))
        return {json.loads(name)[0]: box for name, *box in boxes}

    def close(self):
        self.context.close()
        assert not self.wrong


@pytest.fixture
def opened(browser, site, video, request):
    pages = []

    def start(name=None, video=video, **options):
        pages.append(Page(browser, site, video, name or request.node.name[:60], **options))
        return pages[-1]

    yield start
    for page in pages:
        page.close()


def near(box, expected, slack=1.5):
    return box is not None and all(abs(a - b) <= slack for a, b in zip(box, expected, strict=True))


def test_boxes_are_drawn_interpolated_taken_back_and_kept(opened):
    page = opened()
    page.page.uncheck("#show-drafts")
    page.word("rocking")
    page.seek(2)
    page.drag((20, 30), (80, 90))
    page.seek(10)
    page.drag((50, 60), (90, 100))  # the held box is moved as it is
    keys = page.track("rocking")
    assert near(keys[2][0], [20, 30, 80, 90])
    assert near(keys[10][0], [60, 70, 120, 130])
    page.seek(6)
    assert near(page.shown()["rocking"], [40, 50, 100, 110]), "half way"
    page.drag((100, 110), (110, 120))  # its corner
    assert near(page.track("rocking")[6][0], [40, 50, 110, 120])
    page.press("Control+z")
    assert list(page.track("rocking")) == [2, 10]
    page.press("Control+Shift+z")
    assert list(page.track("rocking")) == [2, 6, 10]
    page.seek(15)
    assert near(page.shown()["rocking"], [60, 70, 120, 130]), "held"
    page.press("o")
    assert page.track("rocking")[15][1] is True
    assert "rocking" not in page.shown()
    again = opened(page.name)
    assert again.page.locator(".time").count() == 1
    assert again.page.locator(".tick").count() == 4


def test_words_are_marked_with_two_buttons(opened):
    page = opened()
    row = page.page.locator(".word", has_text="with moon")
    row.locator(".yes").click()
    page.page.locator(".word", has_text="with fish").locator(".no").click()
    page.settle()
    marks = page.site.get(f"/api/annotations/{page.video['id']}").json()["marks"]
    own = {mark["attribute"]: mark["value"] for mark in marks if mark["annotator"] == page.name}
    assert own == {"with moon": "has", "with fish": "has_not"}
    assert row.locator(".yes").get_attribute("aria-pressed") == "true"
    row.locator(".yes").click()
    page.settle()
    assert row.locator(".yes").get_attribute("aria-pressed") == "false"
    page.page.select_option("#label", "waltz")
    page.settle()
    assert page.site.get(f"/api/annotations/{page.video['id']}").json()["label"]["label"] == "waltz"


def test_everything_can_be_done_with_keys(opened):
    page = opened()
    page.page.uncheck("#show-drafts")
    page.word("with moon")
    page.press("n")
    box = page.track("with moon")[0][0]
    page.press("ArrowRight", "ArrowRight", "ArrowDown", "Shift+ArrowDown")
    page.until("annotate.nudging === null")
    moved = page.track("with moon")[0][0]
    assert [b - a for a, b in zip(box, moved, strict=True)] == [2, 11, 2, 11]
    page.press("Alt+ArrowLeft")
    page.press(".", ".", ".")  # going on saves it
    assert page.track("with moon")[0][0] == [*moved[:2], moved[2] - 1, moved[3]]
    page.press("k")
    assert list(page.track("with moon")) == [0, 3]
    page.press("p")
    assert page.page.locator("#chosen .state").inner_text() == "Key frame here, partly hidden."
    page.press("[")
    page.until("annotate.frame === 0")
    page.press("Delete")
    assert list(page.track("with moon")) == [3]
    page.press("Shift+Delete")
    assert page.track("with moon") == {}
    page.press("y")
    page.settle()
    assert page.page.locator(".word.chosen .yes").get_attribute("aria-pressed") == "true"
    page.press("?")
    assert page.page.locator("#help").is_visible()
    page.page.keyboard.press("Escape")
    page.press("s")
    assert page.page.locator("#chosen-name").inner_text() != "with moon"


def test_keys_are_meant_for_the_frame_that_is_on_its_way(opened):
    page = opened()
    page.page.uncheck("#show-drafts")
    page.word("with moon")
    page.press("n")
    assert list(page.track("with moon")) == [0]
    at_once = "(...names) => { for (const name of names) annotate.do(name); return annotate.player.video.seeking; }"
    assert page.page.evaluate(f"() => ({at_once})('next', 'next', 'next', 'key')"), "the frame was there already"
    assert list(page.track("with moon")) == [0, 3]
    page.until("annotate.frame === 3")
    page.page.evaluate(f"() => ({at_once})('far-next', 'key-back', 'key-back', 'delete-key')")
    assert list(page.track("with moon")) == [3]
    page.until("annotate.frame === 0")
    box = page.track("with moon")[3][0]
    page.page.evaluate("() => { annotate.player.step(3); annotate.nudge(1, 0); annotate.nudge(1, 2); }")
    page.until("annotate.frame === 3 && annotate.nudging === null")
    assert page.track("with moon") == {3: ([box[0] + 2, box[1] + 2, box[2] + 2, box[3] + 2], False)}


def test_the_draft_is_taken_or_dragged_where_it_belongs(opened):
    page = opened()
    page.word("with moon")
    assert page.page.locator(".draft").is_visible()
    page.press("a")
    taken = page.track("with moon")
    assert 1 <= len(taken) <= 7
    assert page.page.locator(".draft").is_hidden()
    page.press("Control+z")
    assert page.track("with moon") == {}
    frame = page.page.evaluate("annotate.drafts.get('with moon').keys[0].frame")
    page.seek(frame)
    x1, y1, x2, y2 = page.shown()["with moon"]
    middle = ((x1 + x2) / 2, (y1 + y2) / 2)
    page.drag(middle, (middle[0] + 12, middle[1] + 9))
    corrected = page.track("with moon")
    assert len(corrected) == len(taken)
    assert near(corrected[frame][0], [x1 + 12, y1 + 9, x2 + 12, y2 + 9])
    page.press("Control+z")
    assert page.track("with moon") == {}, "taking and moving is one action"


def test_zoom_and_pan_keep_boxes_where_they_are(opened):
    page = opened()
    page.page.uncheck("#show-drafts")
    page.word("rocking")
    page.page.mouse.move(*page.at(60, 60))
    page.page.mouse.wheel(0, -600)
    assert float(page.page.get_attribute("#board", "data-zoom")) > 2
    page.drag((50, 50), (70, 75))
    assert near(page.track("rocking")[0][0], [50, 50, 70, 75])
    before = page.at(50, 50)
    page.page.focus("#board")
    page.page.keyboard.down(" ")
    page.drag((60, 60), (70, 60))
    page.page.keyboard.up(" ")
    assert page.at(50, 50)[0] > before[0] + 5
    assert list(page.track("rocking")) == [0]
    assert near(page.track("rocking")[0][0], [50, 50, 70, 75])
    page.press("0")
    assert float(page.page.get_attribute("#board", "data-zoom")) == 1


def test_two_tabs_stay_in_step_and_lose_no_box(opened):
    first = opened("two tabs")
    second = opened("two tabs")
    for page in (first, second):
        page.page.uncheck("#show-drafts")
        page.word("rocking")
    first.drag((20, 20), (60, 60))
    first.settle()
    second.until("annotate.state.tracks.some(t => t.annotator === 'two tabs')")
    assert near(second.shown()["rocking"], [20, 20, 60, 60])
    # The second tab hears nothing for a while, and draws on what it saw.
    second.page.evaluate("annotate.sync.events.close()")
    first.seek(8)
    first.drag((40, 40), (90, 40))
    first.settle()
    second.seek(4)
    second.drag((40, 40), (45, 70))
    second.settle()
    assert sorted(first.track("rocking")) == [0, 4, 8]
    assert second.page.evaluate("annotate.state.tracks.find(t => t.annotator === 'two tabs').keys.length") == 3
    first.until("annotate.state.tracks.find(t => t.annotator === 'two tabs').keys.length === 3")


def test_what_cannot_be_sent_is_kept_and_sent_again(opened):
    page = opened()
    page.page.uncheck("#show-drafts")
    page.word("rocking")
    page.page.route("**/actions", lambda route: route.abort())
    page.drag((20, 20), (60, 60))
    page.until("document.querySelector('#saved').dataset.state === 'waiting'")
    page.seek(5)
    page.drag((40, 40), (50, 50))
    assert near(page.shown()["rocking"], [30, 30, 70, 70]), "seen though it is not saved"
    page.page.unroute("**/actions")
    assert sorted(page.track("rocking")) == [0, 5]


@pytest.mark.parametrize("name", [BAD, "🐈 " + "very " * 50, "e\u0301 שלום"])
def test_names_are_only_text(opened, name):
    page = opened(name[:60])
    page.page.fill(".find input", name)
    page.page.keyboard.press("Enter")
    chosen = page.page.locator("#chosen-name")
    page.until("name => document.querySelector('#chosen-name').textContent === name", arg=name.strip())
    page.page.uncheck("#show-drafts")
    page.drag((20, 20), (60, 60))
    assert list(page.track(name.strip())) == [0]
    assert chosen.inner_text().split() == name.split()
    assert page.page.evaluate("window.hacked") is None
    assert page.page.locator("img").count() == 0
    assert page.page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_touch_draws_and_pinches(opened):
    page = opened(size=NARROW, has_touch=True, is_mobile=True)
    page.page.evaluate("document.querySelector('#show-drafts').click()")
    page.word("rocking")
    page.page.evaluate("document.querySelector('#board').scrollIntoView()")
    client = page.context.new_cdp_session(page.page)

    def touch(kind, *points):
        spots = [{"x": x, "y": y, "id": n} for n, (x, y) in enumerate(points)]
        client.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": spots})

    touch("touchStart", page.at(30, 30))
    touch("touchMove", page.at(60, 60))
    touch("touchMove", page.at(100, 90))
    touch("touchEnd")
    assert near(page.track("rocking")[0][0], [30, 30, 100, 90], 2)
    touch("touchStart", page.at(90, 90), page.at(110, 110))
    touch("touchMove", page.at(60, 60), page.at(140, 140))
    touch("touchEnd")
    assert float(page.page.get_attribute("#board", "data-zoom")) > 1.5
    assert list(page.track("rocking")) == [0]
    assert page.page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_an_export_is_read_back(opened, tmp_path):
    page = opened("exporting")
    page.page.uncheck("#show-drafts")
    page.word("rocking")
    page.drag((20, 30), (80, 90))
    page.settle()
    page.page.evaluate("annotate.refresh()")
    for name, form in FORMATS.items():
        page.page.click("[data-do=files]")
        page.page.select_option(".export [name=format]", name)
        page.page.select_option(".export [name=which]", "this")
        page.page.select_option(".export [name=annotator]", "exporting")
        with page.page.expect_download() as download:
            page.page.click(".export button")
        path = tmp_path / download.value.suggested_filename
        download.value.save_as(path)
        (one,) = form.read(path.read_bytes(), None)
        (track,) = one.tracks
        assert (one.video, one.frames, track.attribute, track.annotator) == ("gavotte.mp4", 16, "rocking", "exporting")
        assert near(track.keyframes[0].corners, [20, 30, 80, 90])
        page.page.select_option(".import [name=format]", name)
        page.page.set_input_files(".import [name=file]", path)
        page.page.click(".import button")
        page.page.wait_for_selector("#files .told:has-text('1 were there already')")
        page.page.click("#files [data-do=close]")


def test_one_button_teaches_a_new_word_and_shows_what_that_brought(opened, site, tmp_path):
    clips = clips_with("with star", 4)
    ids = upload_clips(site, tmp_path, clips)
    for ident, (_, _, boxes) in zip(ids, clips, strict=True):
        draw(site, ident, "five-pointed", boxes, annotator="teacher")
    page = opened("teacher", video={"id": ids[0]})
    page.page.evaluate("annotate.teaching.options = { steps: 20 }")
    page.page.click("[data-do=teach]")
    page.page.click("#teaching [data-do=start]")
    page.page.wait_for_selector("#teaching .result", timeout=120_000)
    row = page.page.locator("#teaching tbody tr", has_text="five-pointed")
    assert "new" in row.inner_text()
    assert row.locator(".better").count() >= 2, row.inner_text()
    assert row.locator("td").last.inner_text() == "64"
    assert page.page.locator("#teaching .asked p").first.inner_text().startswith("classified as")
    page.page.click("#teaching [data-do=use]")
    page.page.wait_for_selector("#teaching :text('This model answers now.')")
    assert "five-pointed" in site.get("/api/model").json()["attributes"]
    page.page.click("#teaching [data-do=close]")
    other = opened("pupil")  # another video: the model now has a draft of the word
    assert other.page.evaluate("annotate.drafts.has('five-pointed')")
    other.page.click("[data-do=teach]")
    other.page.click("#teaching .models label:has-text('as it was')")
    other.page.wait_for_selector("#teaching .models label:has-text('as it was') :checked")
    other.until("!annotate.overview.words.find(({ word }) => word === 'five-pointed').known")
    assert "five-pointed" not in site.get("/api/model").json()["attributes"]


def test_agreement_is_shown(opened):
    for name, box in (("first rater", [20, 20, 60, 60]), ("second rater", [20, 20, 60, 40])):
        page = opened(name)
        action = {"type": "set_key", "attribute": "rocking", "frame": 0, "box": box}
        page.page.evaluate("action => annotate.act(action)", action)
        page.settle()
    page.page.click("[data-do=agreement]")
    row = page.page.locator("#agreeing tr", has_text="first rater and second rater")
    row.wait_for()
    assert "0.50 (1 words in videos, 1 frames)" in row.inner_text()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
def test_nothing_is_in_the_way_of_people_with_disabilities(opened, size, scheme):
    if not AXE.is_file():
        pytest.skip("needs axe-core")
    page = opened(size=size, color_scheme=scheme)
    page.word("with moon")
    page.press("a")
    page.settle()
    page.context.set_default_timeout(60_000)
    page.page.evaluate(AXE.read_text())

    def wrong():
        found = page.page.evaluate("axe.run().then(found => found.violations)")
        return [(rule["id"], [node["html"][:120] for node in rule["nodes"]]) for rule in found]

    assert wrong() == []
    for opener, dialog in (("teach", "#teaching"), ("files", "#files"), ("agreement", "#agreeing"), ("help", "#help")):
        page.page.evaluate("name => document.querySelector(`[data-do=${name}]`).click()", opener)
        page.page.wait_for_selector(f"{dialog}[open]")
        page.page.wait_for_timeout(200)
        assert wrong() == []
        page.page.evaluate("dialog => document.querySelector(dialog).close()", dialog)
