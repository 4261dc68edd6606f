"""Pure functions of the page, run in Chromium and compared with the package's own."""

import numpy as np
import pytest

from browsing import STATIC, static_page
from explanation_examples import explanation, reason
from whytube.explanation import Evidence, Explanation, Reason
from whytube.report.draw import PALETTE, boxes_between, reason_colour
from whytube.report.overlay import _heat
from whytube.tubes import Tube

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def page(browser):
    return static_page(browser)


def call(page, module: str, body: str, value=None):
    """Run `body`, a function of the module's names `m` and of `value`."""
    return page.evaluate(
        f"async value => {{ const m = await import('/static/{module}'); return ({body})(m, value); }}", value
    )


def random_tube(rng: np.random.Generator, frames: np.ndarray) -> Tube:
    corner = rng.uniform(0, 100, (len(frames), 2))
    return Tube(frames, np.concatenate([corner, corner + rng.uniform(1, 60, (len(frames), 2))], axis=1).round(2))


def test_boxes_between_sampled_frames_are_those_of_the_package(page):
    rng = np.random.default_rng(0)
    cases, expected = [], []
    for _ in range(60):
        count = int(rng.integers(1, 90))
        sampled = np.sort(rng.integers(0, count, int(rng.integers(0, 17))))  # with repeats, as of short videos
        known = np.unique(sampled) if len(sampled) else np.arange(count)
        tube = random_tube(rng, np.sort(rng.choice(known, int(rng.integers(0, len(known) + 1)), replace=False)))
        cases.append({"tube": tube.to_dict(), "sampled": sampled.tolist(), "count": count})
        expected.append(boxes_between(tube, np.arange(count), sampled=sampled))
    body = """(m, cases) => cases.map(({tube, sampled, count}) => {
        const moving = new m.MovingBox(tube, sampled);
        return Array.from({length: count}, (_, frame) => moving.at(frame) ?? [0, 0, 0, 0]);
    })"""
    for got, wanted in zip(call(page, "tubes.js", body, cases), expected, strict=True):
        np.testing.assert_allclose(np.array(got).reshape(-1, 4), wanted, atol=1e-9)


def test_runs_are_the_frames_with_a_box(page):
    tube = Tube([0, 8, 24], [[0, 0, 9, 9]] * 3)
    body = "(m, tube) => new m.MovingBox(tube, [0, 8, 16, 24]).runs(29)"
    there = boxes_between(tube, np.arange(29), sampled=[0, 8, 16, 24]).any(axis=1)
    runs = call(page, "tubes.js", body, tube.to_dict())
    assert [frame for first, end in runs for frame in range(first, end)] == np.flatnonzero(there).tolist()
    assert len(runs) == 2, "there is a gap around frame 16"


def test_verdicts_and_falls_are_those_of_the_package(page):
    rng = np.random.default_rng(1)
    reasons = []
    for _ in range(300):
        before = rng.dirichlet([1, 1, 1])
        after = [rng.dirichlet([1, 1, 1]) * rng.uniform(0, 1) + before * rng.uniform(0, 0.2) for _ in range(3)]
        some = [Evidence("mean", before[0], min(1, a[0]), before[1], min(1, a[1])) for a in after]
        reasons.append(Reason("x", 0.0, Tube([], []), tuple(some[: rng.integers(0, 4)])))
    got = call(
        page,
        "evidence.js",
        "(m, reasons) => reasons.map(r => [m.verdict(r), m.fall(r), m.telling({reasons: [r]}).length])",
        [r.to_dict() for r in reasons],
    )
    assert [verdict for verdict, _, _ in got] == [r.verdict for r in reasons]
    assert {verdict for verdict, _, _ in got} == {"turns", "moves", "moves a little", "stays", "not checked"}
    for (_, fall, told), each in zip(got, reasons, strict=True):
        assert fall is None if each.fall is None else abs(fall - each.fall) < 1e-12
        assert told == (each.moved is not False)


def test_telling_reasons_are_those_of_the_package(page):
    why = explanation(reason("one", moved=False), reason("two"), reason("three", moved=False))
    ranks = call(page, "evidence.js", "(m, e) => m.telling(e)", why.to_dict())
    assert [why.reasons[rank] for rank in ranks] == list(why.telling)


def test_heat_is_that_of_the_package(page):
    rng = np.random.default_rng(2)
    frames = np.array([0, 4, 8, 12])
    evidence = [Evidence("mean", 0.9, after, 0.05, 0.1) for after in (0.3, 0.95)]
    reasons = tuple(Reason("w", 0.0, random_tube(rng, frames[i : i + 3]), (e,)) for i, e in enumerate(evidence))
    why = Explanation("v.mp4", (150, 213), tuple(frames.tolist()), "a", "b", {"a": 0.9, "b": 0.05}, reasons)
    wanted = _heat(why, "heat", None)
    assert wanted is not None
    for frame, nearest in ((0, 0), (5, 1), (6, 1), (7, 2), (14, 3)):
        body = "(m, v) => [m.gridSize(v.why.size), Array.from(m.heatAt(v.why, v.frame))]"
        size, got = call(page, "heat.js", body, {"why": why.to_dict(), "frame": frame})
        assert tuple(size) == wanted.shape[1:]
        np.testing.assert_allclose(np.array(got).reshape(size), wanted[nearest], atol=1e-6)


def test_colours_are_those_of_the_package(page):
    body = "m => Array.from({length: 8}, (_, i) => [m.reasonColour(i), m.reasonInk(i)])"
    assert call(page, "colours.js", body) == [[reason_colour(i).css, reason_colour(i).ink.css] for i in range(8)]
    assert call(page, "colours.js", "m => m.OWN") < len(PALETTE)


def test_an_own_tube_moves_between_its_key_frames(page):
    body = """m => {
        const tube = new m.OwnTube({width: 100, height: 80}, 20);
        tube.set(4, [10, 10, 30, 30]);
        tube.set(8, [50, 30, 30, 50]);
        const whole = [0, 4, 6, 8, 19].map(f => tube.at(f));
        tube.begin(2); tube.end(6);
        const cut = tube.toTube();
        tube.remove(8);
        return {whole, cut, outside: [tube.at(1), tube.at(7)], after: tube.at(6)};
    }"""
    got = call(page, "own_tube.js", body)
    first, last = [10, 10, 30, 30], [30, 30, 50, 50]
    assert got["whole"] == [first, first, [20, 20, 40, 40], last, last]
    assert got["cut"] == {"frames": [2, 4, 6], "boxes": [first, first, [20, 20, 40, 40]]}
    assert got["outside"] == [None, None]
    assert got["after"] == first


def test_drawn_boxes_stay_inside_the_picture(page):
    body = """(m, boxes) => boxes.map(b => m.kept(b, {width: 100, height: 80}))"""
    got = call(page, "own_tube.js", body, [[-20, -5, 30, 200], [99, 79, 99, 79], [150, 90, 160, 99], [5, 5, 4, 4]])
    assert got[0] == [0, 0, 30, 80]
    for x1, y1, x2, y2 in got:
        assert 0 <= x1 < x2 <= 100
        assert 0 <= y1 < y2 <= 80


def test_a_pointer_grabs_a_corner_the_box_or_nothing(page):
    body = "(m, at) => at.map(([x, y]) => m.grabbed([10, 10, 50, 50], x, y, 5))"
    corner, inside, outside = call(page, "draw.js", body, [[48, 12], [30, 30], [80, 80]])
    assert corner == {"fixed": [10, 50]}
    assert inside["box"] == [10, 10, 50, 50]
    assert outside == {"fixed": [80, 80]}


def test_of_two_players_the_one_that_a_person_moved_leads(page):
    body = """m => {
        const player = () => ({frame: 5, wanted: null, following: false, playing: false,
            get goal() { return this.wanted ?? this.frame; },
            seek(frame, {following = false} = {}) { Object.assign(this, {wanted: frame, following}); },
            arrive() { Object.assign(this, {frame: this.wanted, wanted: null}); }});
        const [first, second, both] = [player(), player(), new m.Together()];
        both.join(first, second);
        second.arrive();
        second.seek(9);          // a person moves the second one,
        both.moved(first, 5);    // the first one tells late where it was,
        const kept = second.wanted;
        second.arrive();
        both.moved(second, 9);
        const followed = [first.wanted, first.following];
        first.arrive();
        both.moved(first, 9);
        return {kept, followed, at: [first.frame, second.frame], waiting: [first.wanted, second.wanted]};
    }"""
    got = call(page, "compare.js", body)
    assert got == {"kept": 9, "followed": [9, True], "at": [9, 9], "waiting": [None, None]}


def test_a_search_of_classes_forgives_how_names_are_written(page):
    names = ["climb_stairs", "Sit-up", "sit", "kick ball", "stand"]
    search = lambda text: call(page, "predictions.js", f"(m, v) => m.found(v, {text!r})", names)  # noqa: E731
    assert search("") == names
    assert search("SIT UP") == ["Sit-up"]
    assert search("sit") == ["Sit-up", "sit"]
    assert search("st") == ["stand", "climb_stairs"], "those that begin with it first"
    assert search("zzz") == []


def test_probabilities_and_places_in_words(page):
    assert call(page, "evidence.js", "m => [0, .004, .834, .996, 1].map(m.percent)") == [
        text.replace(" ", "\u00a0") for text in ("0 %", "<1 %", "83 %", ">99 %", "100 %")
    ]
    boxes = [[0, 0, 30, 30], [40, 30, 60, 50], [80, 60, 100, 80], [0, 30, 20, 50], [40, 60, 60, 80]]
    body = "(m, boxes) => boxes.map(b => m.placeName(b, {width: 100, height: 80}))"
    assert call(page, "tubes.js", body, boxes) == ["upper left", "centre", "lower right", "left", "bottom"]


def test_a_sentence_is_text_whatever_the_names_are(page):
    nasty = '<img src=x onerror="window.hit=1">'
    why = explanation(reason(nasty))
    document = {
        **why.to_dict(),
        "positive": nasty,
        "sentence": f'classified as {nasty}, not polka, because of "{nasty}"',
    }
    body = """(m, e) => { const p = document.createElement("p"); p.append(...m.sentenceNodes(e));
        document.body.append(p);
        return {text: p.textContent, tags: [...p.querySelectorAll("*")].map(x => x.tagName)}; }"""
    got = call(page, "reasons.js", body, document)
    assert got["text"] == document["sentence"].replace(f'"{nasty}"', nasty)
    assert set(got["tags"]) == {"B", "SPAN"}
    assert page.evaluate("window.hit") is None


def test_no_module_writes_markup_or_loads_from_elsewhere():
    for path in STATIC.iterdir():
        text = path.read_text(encoding="utf-8")
        for word in (
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "eval(",
            "https://",
            ' style="',
            " onclick=",
        ):
            assert word not in text, f"{word} in {path.name}"
        assert text.replace("http://www.w3.org/2000/svg", "").count("http://") == 0, path.name
