"""The page where one asks, in a real Chromium against a real server with the demo model."""

import json
import re

import numpy as np
import pytest

from browsing import AXE, serving, started_browser
from whytube.data.world import World
from whytube.explanation import Explanation
from whytube.report.draw import boxes_between, reason_colour
from whytube.video import probe, write_video

pytestmark = pytest.mark.browser
TOKEN = "a-token-for-tests"
NASTY = "<img src=x onerror=hit()>.mp4"
WAIT = 150_000  # milliseconds, on a machine that does other work too


@pytest.fixture(scope="module")
def browser():
    with started_browser() as started:
        started.contexts_seen = []
        yield started


@pytest.fixture(scope="module")
def server(tmp_path_factory, browser):
    folder = tmp_path_factory.mktemp("served")
    clips = folder / "clips"
    clips.mkdir()
    video(clips / "from the folder.mp4", 2)
    with serving(folder / "store", "--videos", str(clips), token=TOKEN) as started:
        yield started


def video(path, index: int):
    """Write a clip of the embedded world as a file, three frames for each that the model samples."""
    clip = World(size=96).batch("test", [index]).clips[0]
    return write_video(path, clip.repeat_interleave(3, dim=1), 24.0)


@pytest.fixture
def opened(browser, server):
    """Open the page with the token; the page must not complain in the console."""
    contexts = []

    def make(path: str = "/", **options):
        context = browser.new_context(**{"viewport": {"width": 1360, "height": 900}, **options})
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(WAIT)
        page.problems = []
        page.on("pageerror", lambda error: page.problems.append(str(error)))
        page.on("console", lambda told: told.type == "error" and page.problems.append(told.text))
        page.goto(f"{server.address}{path}#token={TOKEN}")
        page.wait_for_selector("body[data-ready]")
        return page

    yield make
    for context in contexts:
        for page in context.pages:
            assert page.problems == []
        context.close()


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


SCAN = """([selector, colour, x, y]) => {
  const canvas = document.querySelector(selector);
  const {width, height} = canvas;
  const pixels = canvas.getContext("2d").getImageData(0, 0, width, height).data;
  const same = (i) => pixels[i + 3] > 250 && colour.every((c, j) => Math.abs(pixels[i + j] - c) < 8);
  const runs = (length, at) => {
    const found = [];
    for (let i = 0; i < length; i += 1) {
      if (!same(4 * at(i))) continue;
      if (found.length && found.at(-1)[1] === i) found.at(-1)[1] = i + 1; else found.push([i, i + 1]);
    }
    return found;
  };
  return {width, height, across: runs(width, i => Math.round(y * height) * width + i),
          down: runs(height, i => i * width + Math.round(x * width))};
}"""


def drawn_box(page, rank: int, box, size) -> list[float]:
    """Find the outline of a reason on the canvas: x1 y1 x2 y2 in pixels of the video, by the runs of its colour.

    It is looked for on the lines through the middle of `box`; a line is at most 6 pixels thick, a label is thicker.
    """
    height, width = size
    middle = [(box[0] + box[2]) / 2 / width, (box[1] + box[3]) / 2 / height]
    seen = page.evaluate(SCAN, ["canvas", list(reason_colour(rank)), *middle])
    thin = {side: [run for run in seen[side] if run[1] - run[0] <= 6] for side in ("across", "down")}
    x, y = width / seen["width"], height / seen["height"]
    across, down = thin["across"], thin["down"]
    return [across[0][0] * x, down[0][0] * y, across[-1][1] * x, down[-1][1] * y]


def clear_reason(page, why: dict, rank: int):
    """Let only one reason stand out, so that no other line crosses it."""
    if page.get_attribute(f"[data-focus=reason-{rank}]", "aria-pressed") == "false":
        page.click(f"[data-focus=reason-{rank}]")
    page.mouse.move(5, 5)


def test_from_a_file_to_reasons(opened, tmp_path):
    page = opened()
    assert page.url.endswith("/"), "the token is gone from the address"
    seen = []
    page.on("request", lambda request: seen.append(request.url))
    page.set_input_files("input[type=file]", video(tmp_path / NASTY, 0))
    page.wait_for_selector("#said:not([hidden])")
    assert page.inner_text("#ask h1") == NASTY
    assert page.evaluate("window.hit") is None
    video_id = page.url.split("video=")[1]
    held = fetched(page, f"/api/videos/{video_id}")
    assert (held["frames"], held["width"]) == (48, 96)
    job = page.evaluate(
        "async v => (await fetch('/api/jobs', {method: 'POST', headers: {'Content-Type': 'application/json'},"
        " body: JSON.stringify({kind: 'classify', video: v})})).json()",
        video_id,
    )
    ranked = list(job["value"]["probabilities"])
    assert page.locator(".classes .name").all_inner_texts() == ranked[:6], "the most probable first"
    assert f"The network says {ranked[0]}" in page.inner_text("#said")
    assert page.locator(".class.a .name").inner_text() == ranked[0]
    page.click("text=Show all 24")
    assert page.locator(".classes li").count() == 24
    page.fill("[name=search]", ranked[3][:4].upper())
    assert ranked[3] in page.locator(".classes .name").all_inner_texts()
    page.fill("[name=search]", "")
    page.select_option("[name=effort]", "quick")
    page.select_option("[name=k]", "3")
    page.get_by_role("button", name=f"why not {ranked[1]}?").click()
    page.wait_for_selector(".share:not([hidden])")
    why = document(page)
    assert (why["positive"], why["negative"]) == (ranked[0], ranked[1])
    assert (why["settings"]["k"], why["settings"]["effort"]) == (3, 6)
    assert page.inner_text(".sentence").lower() == why["sentence"].replace('"', "").lower()
    assert page.locator(".reason").count() == len(why["reasons"])
    for rank, reason in enumerate(Explanation.from_dict(why).reasons):
        item = page.locator(".reason").nth(rank)
        told = item.inner_text().replace("\u00a0", " ")
        assert (reason.attribute or "a region without a word") in told
        assert reason.fit_text in told
        assert {"turns": "overtakes", "moves": "clearly moves"}.get(reason.verdict, reason.verdict) in told
        bars = item.locator(".bar").evaluate_all(
            "all => all.map(bar => ['--before', '--after'].map(name => parseFloat(bar.style.getPropertyValue(name)) / 100))"
        )
        sides = [
            [(e.positive_before, e.positive_after), (e.negative_before, e.negative_after)] for e in reason.evidence
        ]
        np.testing.assert_allclose(bars, np.array(sides).reshape(-1, 2), atol=1e-6)
        words = item.locator(".change").all_inner_texts()
        numbers = [[float(n) for n in re.findall(r"\d+", text)] for text in words]
        np.testing.assert_allclose(numbers, 100 * np.array(bars), atol=1.0)
    assert not [url for url in seen if page.url.split("/r/")[0] not in url], "nothing is loaded from elsewhere"


def test_answers_come_while_the_search_goes_on(opened):
    page = opened()
    example(page, "Twist")
    page.evaluate(
        """() => { window.told = []; new MutationObserver(() => window.told.push({
             sentence: document.querySelector(".sentence").textContent,
             reasons: document.querySelectorAll(".reason").length,
             busy: !document.querySelector(".answer > .work").hidden,
             what: document.querySelector(".answer .what").textContent,
        })).observe(document.querySelector(".answer"), {subtree: true, childList: true, characterData: true}); }"""
    )
    ask(page, "tango")
    told = page.evaluate("window.told")
    early = [state for state in told if state["busy"] and state["reasons"]]
    assert early, "reasons are there before the search is over"
    assert any(re.match(r"\d+ of \d+ regions tried", state["what"]) for state in told)
    assert page.inner_text("#live").startswith("Answer: classified as twist")


def test_boxes_on_the_video_are_those_of_the_answer(opened):
    page = opened()
    page.set_input_files("input[type=file]", {"name": "long.mp4", "mimeType": "video/mp4", "buffer": LONG()})
    page.wait_for_selector("#said:not([hidden])")
    names = page.locator(".classes .name").all_inner_texts()
    page.select_option("[name=k]", "3")
    ask(page, names[1])
    why = Explanation.from_dict(document(page))
    assert why.telling, "a clip that has a reason"
    rank = why.reasons.index(why.telling[0])
    clear_reason(page, why.to_dict(), rank)
    tube, compared = why.reasons[rank].tube, 0
    wanted = boxes_between(tube, np.arange(48), sampled=why.frames)

    def compare(frame: int) -> None:
        nonlocal compared
        assert page.get_attribute("canvas", "data-frame") == str(frame)
        box = wanted[frame]
        if not box.any():
            colour = list(reason_colour(rank))
            assert page.evaluate(SCAN, ["canvas", colour, 0.5, 0.5])["across"] == []
            return
        inside = box.clip(0, 95)
        got = drawn_box(page, rank, inside, why.size)
        scale = why.size[1] / page.evaluate("document.querySelector('canvas').width")
        visible = [i for i in range(4) if box[i] == inside[i]]
        for i in visible:
            assert abs(got[i] - box[i]) <= 1.5 * scale, f"frame {frame}, side {i}: {got} for {box}"
        compared += len(visible)

    for frame in (int(tube.frames[0]), 0, 47, 31, int(tube.frames[-1]), 20):
        still(page, frame)
        compare(frame)
    for key, frame in ((".", 21), (".", 22), (",", 21), ("ArrowRight", 22), ("ArrowLeft", 21)):
        page.keyboard.press(key)
        page.wait_for_function("f => document.querySelector('canvas').dataset.frame == f", arg=frame)
        compare(frame)
    assert compared >= 12
    shown = page.evaluate(
        """async () => { const video = document.querySelector("video"), canvas = document.querySelector("canvas");
          const seen = []; video.playbackRate = 0.5; await video.play();
          await new Promise(done => { const look = (_, shown) => { seen.push([shown.mediaTime, canvas.dataset.frame]);
            if (seen.length < 12) video.requestVideoFrameCallback(look); else done(); };
            video.requestVideoFrameCallback(look); });
          video.pause(); return seen; }"""
    )
    assert all(round(time * 24) == int(frame) for time, frame in shown), "frame by frame while it plays"


def LONG() -> bytes:  # noqa: N802 - a constant that is made when it is first wanted
    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory() as folder:
        return video(Path(folder) / "long.mp4", 0).read_bytes()


def test_the_time_line_shows_when_and_scrubs(opened):
    page = opened()
    example(page)
    ask(page)
    why = Explanation.from_dict(document(page))
    spans = page.evaluate(
        """() => [...document.querySelectorAll(".track")].map(track => { const t = track.getBoundingClientRect();
            return [...track.querySelectorAll(".run")].map(run => { const r = run.getBoundingClientRect();
              return [(r.left - t.left) / t.width, (r.right - t.left) / t.width]; }); })"""
    )
    assert len(spans) == len(why.reasons)
    for runs, reason in zip(spans, why.reasons, strict=True):
        there = np.flatnonzero(boxes_between(reason.tube, np.arange(16), sampled=why.frames).any(axis=1))
        np.testing.assert_allclose([runs[0][0], runs[-1][1]], [there[0] / 16, (there[-1] + 1) / 16], atol=0.01)
    place = page.locator(".tracks").bounding_box()
    for share, frame in ((0.1, 1), (0.9, 14), (0.5, 8)):
        page.mouse.click(place["x"] + share * place["width"], place["y"] + place["height"] / 2)
        page.wait_for_function("f => document.querySelector('canvas').dataset.frame == f", arg=frame)
        assert page.get_attribute(".bed input", "aria-valuetext").startswith(f"frame {frame + 1} of 16, ")
    assert "frame 9 of 16" in page.inner_text(".readout")
    assert page.evaluate("document.querySelector('video').paused")
    page.hover(".reason >> nth=1")
    assert page.locator(".track").nth(0).get_attribute("class") == "track dim"
    assert page.locator(".track").nth(1).get_attribute("class") == "track strong"
    page.mouse.move(5, 5)
    page.wait_for_selector(".track.dim", state="detached")


PIXELS = """() => { const video = document.querySelector("video"), canvas = document.createElement("canvas");
  canvas.width = video.videoWidth; canvas.height = video.videoHeight; const c = canvas.getContext("2d");
  c.drawImage(video, 0, 0); return [canvas.width, canvas.height, Array.from(c.getImageData(0, 0, canvas.width, canvas.height).data)]; }"""


def picture(page):
    width, height, values = page.evaluate(PIXELS)
    return np.array(values, dtype=float).reshape(height, width, 4)[..., :3]


def test_the_masked_video_hides_the_region_and_nothing_else(opened):
    page = opened()
    example(page)
    ask(page)
    why = Explanation.from_dict(document(page))
    frame = int(why.reasons[1].tube.frames[3])
    still(page, frame)
    before = picture(page)
    page.click("[data-focus=hide-1-mean]")
    page.wait_for_selector(".hidden-note:not([hidden])")
    page.wait_for_function(
        "() => { const v = document.querySelector('video'); return v.readyState > 1 && !v.seeking; }"
    )
    assert page.get_attribute("canvas", "data-frame") == str(frame), "at the same frame"
    assert "painted over" in page.inner_text(".hidden-note")
    assert page.get_attribute("[data-focus=hide-1-mean]", "aria-pressed") == "true"
    after = picture(page)
    change = np.abs(after - before).mean(axis=2)
    x1, y1, x2, y2 = why.reasons[1].tube.at([frame])[0].clip(0, 224).round().astype(int)
    inside = np.zeros(change.shape, bool)
    inside[y1:y2, x1:x2] = True
    assert after[y1 + 4 : y2 - 4, x1 + 4 : x2 - 4].std(axis=(0, 1)).max() < 6, "one colour"
    assert change[inside].mean() > 5 * change[~inside].mean()
    page.keyboard.press("m")
    page.wait_for_selector(".hidden-note", state="hidden")
    page.wait_for_function("() => document.querySelector('video').currentSrc.endsWith('/play')")


def test_heat_boxes_or_nothing(opened):
    page = opened()
    example(page)
    ask(page)
    still(page, 12)

    def painted() -> int:
        return page.evaluate(
            "() => { const c = document.querySelector('canvas'); return c.getContext('2d').getImageData(0, 0, c.width, c.height).data.filter((v, i) => i % 4 === 3 && v > 0).length; }"
        )

    boxes = painted()
    page.get_by_label("Heat").check(force=True)
    heat = painted()
    page.get_by_label("Nothing").check(force=True)
    assert 0 == painted() < boxes < heat
    page.get_by_label("Boxes").check(force=True)
    assert painted() == boxes


def test_a_region_of_ones_own(opened):
    page = opened()
    example(page)
    ask(page)
    still(page, 2)
    page.click("[data-do=draw]")
    assert page.is_disabled("[data-do=what-if]")
    place = page.locator("canvas").bounding_box()

    def drag(x1, y1, x2, y2):
        page.mouse.move(place["x"] + x1 * place["width"], place["y"] + y1 * place["height"])
        page.mouse.down()
        page.mouse.move(place["x"] + x2 * place["width"], place["y"] + y2 * place["height"], steps=3)
        page.mouse.up()

    drag(0.1, 0.1, 0.5, 0.5)
    still(page, 10)
    drag(0.3, 0.3, 0.5, 0.4)  # from its middle: the box moves
    assert "2 boxes, at frames 3, 11" in page.inner_text(".own-state")
    page.focus("canvas")
    page.keyboard.press("Shift+ArrowRight")
    page.keyboard.press("ArrowUp")
    still(page, 12)
    page.click("[data-do=end]")
    with page.expect_request(lambda r: r.method == "POST" and r.url.endswith("/api/jobs")) as sent:
        page.click("[data-do=what-if]")
    body = sent.value.post_data_json
    assert (body["why"], body["why_not"]) == ("gavotte", "jive")
    assert body["tube"]["frames"] == [0, 2, 10, 12]
    first, moved = np.array(body["tube"]["boxes"][1]), np.array(body["tube"]["boxes"][2])
    step = 0.02 * 224
    np.testing.assert_allclose(first, 224 * np.array([0.1, 0.1, 0.5, 0.5]), atol=1.5)
    np.testing.assert_allclose(moved - first, 224 * np.array([0.2, 0.1, 0.2, 0.1]) + [0, -step, step, -step], atol=2)
    page.wait_for_selector(".own-answer:not([hidden]) table")
    told = page.inner_text(".own-answer")
    assert "Then the network gives gavotte" in told
    page.click(".own-answer .watch >> nth=0")
    page.wait_for_selector(".hidden-note:not([hidden])")
    assert "your region" in page.inner_text(".hidden-note")
    page.click(".hidden-note button")
    page.click("[data-do=close-own]")
    assert page.is_hidden(".own")
    assert page.evaluate("document.activeElement.dataset.do") == "draw", "the focus goes back"


def test_downloads(opened, tmp_path):
    page = opened()
    example(page)
    ask(page)
    why = document(page)
    page.click(".downloads summary")

    def taken(selector: str):
        with page.expect_download() as waiting:
            page.click(selector)
        path = tmp_path / waiting.value.suggested_filename
        waiting.value.save_as(path)
        return path

    data = json.loads(taken("[data-file='explanation.json']").read_text())
    assert data == why
    assert Explanation.from_dict(data).sentence == why["sentence"]
    html = taken("[data-file='report.html']").read_text()
    assert "data:video/mp4;base64," in html
    assert "gavotte" in html
    assert "https://" not in html
    for style, name in (("boxes", "overlay.mp4"), ("heat", "heat.mp4")):
        made = taken(f"[data-style={style}]")
        assert made.name == name
        assert probe(made).frames == 16


def test_comparing_two_classes(opened):
    page = opened()
    example(page)
    ask(page)
    page.click("text=Compare with another class")
    page.fill("[name=search]", "polka")
    page.press("[name=search]", "Enter")
    page.wait_for_selector(".pane:nth-child(2) .share:not([hidden])")
    sentences = page.locator(".sentence").all_inner_texts()
    assert "not jive" in sentences[0]
    assert "not polka" in sentences[1]
    left, right = (page.locator(".stage").nth(i).bounding_box() for i in (0, 1))
    assert left["y"] == right["y"]
    assert left["x"] + left["width"] <= right["x"]

    def together(frame: int):
        page.wait_for_function(
            "f => [...document.querySelectorAll('canvas')].every(c => c.dataset.frame == f)", arg=frame
        )

    page.locator(".bed input").nth(0).fill("5")
    together(5)
    page.locator(".bed input").nth(1).fill("9")
    together(9)
    page.keyboard.press("End")
    together(15)
    page.locator("[data-do=play]").nth(1).click()
    page.wait_for_function("() => [...document.querySelectorAll('video')].every(v => !v.paused)")
    page.locator("[data-do=play]").nth(0).click()
    page.wait_for_function("() => [...document.querySelectorAll('video')].every(v => v.paused)")
    assert "?with=" in page.url
    page.reload()
    page.wait_for_selector(".pane:nth-child(2) .share:not([hidden])")
    assert page.locator(".sentence").all_inner_texts() == sentences
    page.click("text=Stop comparing")
    assert page.locator(".pane").count() == 1


def test_keys(opened):
    page = opened()
    example(page)
    ask(page)
    still(page, 3)
    frame = lambda: int(page.get_attribute("canvas", "data-frame"))  # noqa: E731
    page.focus("#ask h1")
    page.keyboard.press("Home")
    page.wait_for_function("document.querySelector('canvas').dataset.frame == 0")
    page.keyboard.press("ArrowLeft")
    assert frame() == 0, "there is nothing before the first frame"
    page.keyboard.press("Space")
    page.wait_for_function("!document.querySelector('video').paused")
    page.keyboard.press("Space")
    page.wait_for_function("document.querySelector('video').paused")
    page.keyboard.press("2")
    assert page.get_attribute("[data-focus=reason-1]", "aria-pressed") == "true"
    page.keyboard.press("m")
    page.wait_for_selector(".hidden-note:not([hidden])")
    page.keyboard.press("m")
    page.wait_for_selector(".hidden-note", state="hidden")
    page.keyboard.press("2")
    assert page.get_attribute("[data-focus=reason-1]", "aria-pressed") == "false"
    page.keyboard.press("h")
    assert page.get_by_label("Heat").is_checked()
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.name") == "search"
    page.keyboard.type("2.m?")
    assert page.input_value("[name=search]") == "2.m?", "keys are letters where one types"
    page.keyboard.press("Escape")
    page.focus("#ask h1")
    page.keyboard.press("?")
    assert page.is_visible("#help")
    page.uncheck("#use-keys")
    page.keyboard.press("Escape")
    page.focus("#ask h1")
    before = frame()
    page.keyboard.press(".")
    assert frame() == before, "they can be turned off"


def test_all_can_be_reached_with_the_tab_key(opened):
    page = opened()
    example(page)
    ask(page)
    page.evaluate("document.activeElement.blur()")
    seen = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        seen.add(
            page.evaluate(
                """() => { const e = document.activeElement, s = getComputedStyle(e);
                  if (e === document.body) return null;
                  const ring = [e, e.nextElementSibling].some(x => x && getComputedStyle(x).outlineStyle !== "none");
                  return [e.dataset.do || e.dataset.focus || e.dataset.file || e.name || e.className || e.tagName, ring].join(); }"""
            )
        )
    seen.discard(None)
    assert {name.split(",")[1] for name in seen} == {"true"}, "the focus is always seen"
    names = {name.split(",")[0] for name in seen}
    for wanted in (
        "help",
        "another",
        "search",
        "k",
        "effort",
        "why",
        "compare",
        "play",
        "back",
        "next",
        "speed",
        "draw",
        "share",
        "reason-0",
        "reason-1",
        "hide-0-mean",
        "hide-1-blur",
    ):
        assert wanted in names, wanted


def test_a_search_can_be_cancelled(opened):
    page = opened()
    example(page, "Minuet")
    page.select_option("[name=effort]", "thorough")
    with page.expect_response(lambda r: r.request.method == "POST" and r.url.endswith("/api/jobs")) as started:
        page.get_by_role("button", name="why not").first.click()
    job = started.value.json()
    page.click(".answer > .work button")
    page.wait_for_selector(".remark:has-text('Stopped')")
    assert page.is_hidden(".answer > .work")
    assert page.is_hidden(".share")
    page.wait_for_function(
        "async id => (await (await fetch(`/api/jobs/${id}`)).json()).status === 'cancelled'", arg=job["id"]
    )
    page.select_option("[name=effort]", "quick")
    page.wait_for_selector(".share:not([hidden])")


def test_another_video_stops_what_was_asked(opened):
    page = opened()
    example(page, "Minuet")
    page.select_option("[name=effort]", "thorough")
    with page.expect_response(lambda r: r.request.method == "POST" and r.url.endswith("/api/jobs")) as started:
        page.get_by_role("button", name="why not").nth(3).click()
    job = started.value.json()
    page.click("text=Another video")
    page.wait_for_function(
        "async id => ['cancelled', 'done'].includes((await (await fetch(`/api/jobs/${id}`)).json()).status)",
        arg=job["id"],
    )
    page.click("text=from the folder.mp4")
    page.wait_for_selector("#said:not([hidden])")
    assert page.inner_text("#ask h1") == "from the folder.mp4"
    assert page.inner_text(".sentence") == ""


def test_a_file_that_is_no_video_is_told_plainly(opened):
    page = opened()
    page.set_input_files(
        "input[type=file]", {"name": "notes.mp4", "mimeType": "video/mp4", "buffer": b"no video at all"}
    )
    page.wait_for_selector("#problem:not([hidden])")
    told = page.inner_text("#problem p")
    assert len(told) > 20
    assert "notes.mp4" in told or "video" in told
    page.click("[aria-label='Close the message']")
    assert page.is_hidden("#problem")
    assert page.is_hidden("#uploading")
    page.problems.clear()  # Chromium writes every refused request into its console


def test_class_names_are_only_ever_text(opened, server):
    page = opened()
    example(page)
    ask(page)
    nasty = "<b onclick=hit()>jive</b>"

    def poisoned(route):
        answer = route.fetch()
        route.fulfill(
            response=answer, body=answer.text().replace('"jive"', json.dumps(nasty)).replace("not jive", f"not {nasty}")
        )

    page.route("**/api/results/*", poisoned)
    page.reload()
    page.wait_for_selector(".share:not([hidden])")
    assert f"not {nasty}" in page.inner_text(".sentence")
    assert nasty in page.inner_text(".evidence >> nth=0")
    assert page.locator("[onclick]").count() == 0


def test_a_link_works_after_the_server_was_started_again(opened, server):
    page = opened()
    example(page)
    ask(page)
    context = page.context
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.click("[data-do=share]")
    page.wait_for_selector("text=Copied.")
    link = page.evaluate("navigator.clipboard.readText()")
    assert link == page.url == page.input_value(".link input")
    sentence = page.inner_text(".sentence")
    server.stop()
    page.click("text=Another video")
    page.wait_for_selector("#problem:not([hidden])")
    assert "does not answer" in page.inner_text("#problem")
    page.problems.clear()
    server.start()
    other = opened(link.removeprefix(server.address))
    other.wait_for_selector(".share:not([hidden])")
    assert other.inner_text(".sentence") == sentence
    other.wait_for_selector("#said:not([hidden])")
    assert other.locator(".class.b .name").inner_text() == "jive"


def test_without_its_token_the_page_asks_for_it(browser, server):
    context = browser.new_context()
    page = context.new_page()
    page.goto(server.address)
    page.wait_for_selector("#token[open]")
    page.fill("#token input", "wrong")
    page.click("#token button")
    page.wait_for_function("document.querySelector('.wrong').textContent !== ''")
    page.fill("#token input", TOKEN)
    page.click("#token button")
    page.wait_for_selector("body[data-ready]")
    assert page.locator(".examples button").count() > 2
    context.close()


NARROW = {"viewport": {"width": 360, "height": 740}, "is_mobile": True, "has_touch": True}


def fits(page) -> bool:
    return page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_it_fits_a_phone(opened):
    page = opened(**NARROW)
    assert fits(page)
    example(page)
    ask(page)
    assert fits(page)
    page.tap("[data-do=draw]")
    page.tap("[data-do=add-box]")
    assert fits(page)
    page.tap("[data-do=close-own]")
    page.tap("text=Compare with another class")
    page.fill("[name=search]", "polka")
    page.press("[name=search]", "Enter")
    page.wait_for_selector(".pane:nth-child(2) .share:not([hidden])")
    assert fits(page)
    small = page.evaluate(
        """() => [...document.querySelectorAll("button, select, summary, input")].filter(e => e.offsetParent)
          .map(e => [e.getBoundingClientRect(), e]).filter(([r]) => r.height < 24 || r.width < 24).map(([, e]) => e.outerHTML)"""
    )
    assert [tag for tag in small if "radio" not in tag and "file" not in tag] == [], "large enough for a finger"


def test_it_does_not_move_by_itself_where_one_does_not_want_that(opened):
    page = opened(reduced_motion="reduce")
    example(page)
    assert page.evaluate("document.querySelector('video').paused")


@pytest.mark.parametrize("look", ["light", "dark", "narrow"])
def test_axe_finds_nothing(opened, look):
    if not AXE.exists():
        pytest.skip("needs axe-core: npm was missing when the tests were set up")
    options = NARROW if look == "narrow" else {"color_scheme": look}
    page = opened(**options)

    def check(where: str) -> None:
        page.evaluate(AXE.read_text(encoding="utf-8"))
        found = page.evaluate("async () => (await axe.run()).violations.map(v => [v.id, v.nodes.map(n => n.html)])")
        assert found == [], where

    page.wait_for_selector(".examples:not([hidden])")
    check("the beginning")
    example(page)
    check("predictions")
    ask(page)
    page.locator(".reading summary").click()
    page.locator(".downloads summary").click()
    check("the answer")
    page.click("[data-do=draw]")
    page.click("[data-do=add-box]")
    page.click("[data-do=what-if]")
    page.wait_for_selector(".own-answer:not([hidden]) table")
    check("a region of one's own")
    page.click("[data-do=help]")
    check("help")
