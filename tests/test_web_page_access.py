"""The page where one asks, in a real Chromium: keys alone, a phone, dark, without motion, and as axe sees it."""

import pytest

from browsing import AXE, ask, example, still

pytestmark = pytest.mark.browser


def test_keys(opened):
    page = opened()
    example(page)
    ask(page)
    still(page, 3)
    frame = lambda: int(page.get_attribute("canvas", "data-frame"))  # noqa: E731
    page.focus("#ask h1")
    page.keyboard.press("Home")
    page.wait_for_function("() => document.querySelector('canvas').dataset.frame == 0")
    page.keyboard.press("ArrowLeft")
    assert frame() == 0, "there is nothing before the first frame"
    page.keyboard.press("Space")
    page.wait_for_function("() => !document.querySelector('video').paused")
    page.keyboard.press("Space")
    page.wait_for_function("() => document.querySelector('video').paused")
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
                  const {do: does, focus, file} = e.dataset;
                  return [does || focus || file || e.name || e.className || e.tagName, ring].join(); }"""
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
          .map(e => [e.getBoundingClientRect(), e]).filter(([r]) => r.height < 24 || r.width < 24)
          .map(([, e]) => e.outerHTML)"""
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
