"""The page where one asks, in a real Chromium: drawing, comparing, taking away, sharing, and what goes wrong."""

import json

import numpy as np
import pytest

from browsing import TOKEN, ask, dance, document, example, still
from whytube.explanation import Explanation
from whytube.video import probe

pytestmark = pytest.mark.browser


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
    tracks = taken("[data-file='tubes.cvat.xml']").read_text()
    assert tracks.count("<track ") == len(why["reasons"])
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
    assert page.evaluate("document.activeElement.dataset.name") == "polka", "the focus stays with what was picked"
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


def test_a_search_can_be_cancelled(opened):
    page = opened()
    example(page, "Minuet")
    page.select_option("[name=effort]", "thorough")
    with page.expect_response(lambda r: r.request.method == "POST" and r.url.endswith("/api/jobs")) as started:
        page.get_by_role("button", name="why not?").first.click()
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
        page.get_by_role("button", name="why not?").nth(3).click()
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


DROP = """([name, bytes]) => {
  const held = new DataTransfer();
  held.items.add(new File([new Uint8Array(bytes)], name, {type: "video/mp4"}));
  for (const kind of ["dragover", "drop"]) {
    const event = new DragEvent(kind, {dataTransfer: held, bubbles: true, cancelable: true});
    document.querySelector("main").dispatchEvent(event);
    if (!event.defaultPrevented) throw new Error(`${kind} was left to the browser`);
  }
}"""


def test_a_file_can_be_dropped_anywhere(opened, tmp_path):
    page = opened()
    page.evaluate(DROP, ["dropped.mp4", list(dance(tmp_path / "dropped.mp4", 5).read_bytes())])
    page.wait_for_selector("#said:not([hidden])")
    assert page.inner_text("#ask h1") == "dropped.mp4"
    page.evaluate(DROP, ["another.mp4", list(dance(tmp_path / "another.mp4", 6).read_bytes())])
    page.wait_for_selector("#ask h1:text-is('another.mp4')")


def test_an_upload_can_be_cancelled(opened, tmp_path):
    page = opened()
    page.route("**/api/videos", lambda route: None)  # as on a line that hardly moves
    page.set_input_files("input[type=file]", dance(tmp_path / "slow.mp4", 5))
    page.click("#uploading button")
    page.wait_for_selector("#uploading", state="hidden")
    assert page.is_hidden("#problem")
    assert page.is_visible("#start")


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


def test_class_names_are_only_ever_text(opened):
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


def test_a_link_works_after_the_server_was_started_again(opened, page_server):
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
    page_server.stop()
    page.click("text=Another video")
    page.wait_for_selector("#problem:not([hidden])")
    assert "does not answer" in page.inner_text("#problem")
    page.problems.clear()
    page_server.start()
    other = opened(link.removeprefix(page_server.address))
    other.wait_for_selector(".share:not([hidden])")
    assert other.inner_text(".sentence") == sentence
    other.wait_for_selector("#said:not([hidden])")
    assert other.locator(".class.b .name").inner_text() == "jive"


def test_without_its_token_the_page_asks_for_it(browser, page_server):
    context = browser.new_context()
    page = context.new_page()
    page.goto(page_server.address)
    page.wait_for_selector("#token[open]")
    page.fill("#token input", "wrong")
    page.click("#token button")
    page.wait_for_function("() => document.querySelector('.wrong').textContent !== ''")
    page.fill("#token input", TOKEN)
    page.click("#token button")
    page.wait_for_selector("body[data-ready]")
    assert page.locator(".examples button").count() > 2
    context.close()
