"""The page where one asks, in a real Chromium against a real server: from a video to its reasons."""

import re

import numpy as np
import pytest

from browsing import ask, dance, document, example, fetched, still
from whytube.explanation import Explanation
from whytube.report.draw import boxes_between, reason_colour

pytestmark = pytest.mark.browser
NASTY = "<img src=x onerror=hit()>.mp4"


def test_from_a_file_to_reasons(opened, tmp_path):
    page = opened()
    assert page.url.endswith("/"), "the token is gone from the address"
    seen = []
    page.on("request", lambda request: seen.append(request.url))
    page.set_input_files("input[type=file]", dance(tmp_path / NASTY))
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
    page.get_by_role("button", name=f"why not? {ranked[1]}").click()
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
            """all => all.map(({style}) => ["--before", "--after"]
                 .map(name => parseFloat(style.getPropertyValue(name)) / 100))"""
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


def test_boxes_on_the_video_are_those_of_the_answer(opened, tmp_path):
    page = opened()
    page.set_input_files("input[type=file]", dance(tmp_path / "again.mp4"))
    page.wait_for_selector("#said:not([hidden])")
    names = page.locator(".classes .name").all_inner_texts()
    page.select_option("[name=k]", "3")
    ask(page, names[1])
    why = Explanation.from_dict(document(page))
    assert why.telling, "a clip that has a reason"
    rank = why.reasons.index(why.telling[0])
    page.click(f"[data-focus=reason-{rank}]")  # it alone stands out, and no other line crosses it
    page.mouse.move(5, 5)
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


PIXELS = """() => {
  const video = document.querySelector("video"), canvas = document.createElement("canvas");
  const [width, height] = [canvas.width, canvas.height] = [video.videoWidth, video.videoHeight];
  const context = canvas.getContext("2d");
  context.drawImage(video, 0, 0);
  return [width, height, Array.from(context.getImageData(0, 0, width, height).data)];
}"""
PAINTED = """() => {
  const canvas = document.querySelector("canvas");
  const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
  return pixels.filter((value, i) => i % 4 === 3 && value > 0).length;
}"""


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

    boxes = page.evaluate(PAINTED)
    page.get_by_label("Heat").check(force=True)
    heat = page.evaluate(PAINTED)
    page.get_by_label("Nothing").check(force=True)
    assert 0 == page.evaluate(PAINTED) < boxes < heat
    page.get_by_label("Boxes").check(force=True)
    assert page.evaluate(PAINTED) == boxes
