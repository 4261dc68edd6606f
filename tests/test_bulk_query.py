"""Questions over the answers, and the page with its confusions."""

import json
import re

import pytest
from typer.testing import CliRunner

from whytube.bulk.listing import Listed
from whytube.bulk.output import Asked, Output
from whytube.bulk.page import explanation_of, write_page
from whytube.bulk.query import Answers
from whytube.cli import app
from whytube.errors import ArgumentError, DataError, WhytubeError
from whytube.video import write_video


def reason(attribute, fall, verdict="moves", fit=0.8):
    evidence = [
        {
            "fill": "mean",
            "positive_before": 0.9,
            "positive_after": 0.9 - fall,
            "negative_before": 0.1,
            "negative_after": 0.1,
        }
    ]
    boxes = [[2.0, 2.0, 12.0, 12.0], [3.0, 2.0, 13.0, 12.0]]
    told = {"frames": [0, 2], "times": [0.0, 0.25], "boxes": boxes, "evidence": evidence}
    return {"attribute": attribute, "fit": fit, "score": 1.0, "verdict": verdict, "fall": fall, **told}


def answer(row, video, positive, negative, reasons, label="jump"):
    return {
        "row": row,
        "video": video,
        "label": label,
        "predicted": positive,
        "positive": positive,
        "negative": negative,
        "p_positive": 0.9,
        "p_negative": 0.1,
        "explained": any(one["verdict"] != "stays" for one in reasons),
        "sentence": "",
        "reasons": reasons,
        "frames": [0, 1, 2, 3],
        "fps": 8.0,
        "height": 24,
        "width": 32,
        "settings": json.dumps({"sampling": "uniform"}),
    }


@pytest.fixture
def folder(tmp_path):
    import torch

    video = str(write_video(tmp_path / "a.mp4", torch.rand(3, 4, 24, 32, generator=torch.manual_seed(0)), 8.0))
    output = Output(tmp_path / "out")
    output.open(Asked(model="demo", model_hash=""), [Listed(f"/v/{n}.mp4") for n in range(5)], {})
    hostile = "<script>alert(1)</script>"
    answers = [
        answer(0, video, "jump", "walk", [reason("with ball", 0.5), reason("fast", 0.6)]),
        answer(1, video, "jump", "walk", [reason("with ball", 0.2)], label="walk"),
        answer(2, "/gone/b.mp4", "walk", "jump", [reason("fast", 0.01, "stays")]),
        answer(3, video, hostile, "jump", [reason("", 0.6, fit=None)], label=""),
    ]
    with output.writing(0) as part:
        for one in answers:
            part.answer(one)
        part.fail(output.rows(0)[4], "damaged: /v/4.mp4")
    return tmp_path / "out"


def test_summary(folder):
    found = Answers(folder).summary(2)
    assert found["totals"] == {
        "explained": 4,
        "failed": 1,
        "missing": 0,
        "answers": 4,
        "accuracy": pytest.approx(1 / 3),
    }
    assert [(r["positive"], r["negative"], r["word"], r["answers"]) for r in found["words"]] == [
        ("jump", "walk", "with ball", 2),
        ("<script>alert(1)</script>", "jump", "a region without a word", 1),
    ]
    assert found["words"][0]["fall"] == pytest.approx(0.35)
    cells = {(r["positive"], r["negative"]): r for r in found["confusions"]}
    assert (cells["jump", "walk"]["word"], cells["jump", "walk"]["answers"]) == ("with ball", 2)
    assert cells["jump", "walk"]["share"] == pytest.approx(2 / 3)
    assert cells["walk", "jump"]["word"] is None
    assert (found["least"][0]["positive"], found["least"][0]["explained"]) == ("walk", 0.0)
    assert [(r["label"], r["predicted"], r["clips"], r["word"], r["explained"]) for r in found["truth"]] == [
        ("jump", "walk", 1, None, 0.0),
        ("walk", "jump", 1, "with ball", 1.0),
        ("jump", "jump", 1, "fast", 1.0),
    ]
    assert found["failures"] == [{"error": "damaged: the video", "videos": 1, "example": "/v/4.mp4"}]


def test_true_classes_count_clips_and_take_the_answer_about_them(tmp_path):
    """A clip with several answers counts once; of these the one about its true class says why it was not that."""
    output = Output(tmp_path / "out")
    output.open(Asked(model="demo", model_hash=""), [Listed("/v/0.mp4", "walk"), Listed("/v/1.mp4", "run")], {})
    with output.writing(0) as part:
        for start in (0.0, 4.0):
            part.answer(answer(0, "/v/0.mp4", "jump", "run", [reason("fast", 0.5)], "walk") | {"start": start})
            part.answer(answer(0, "/v/0.mp4", "jump", "walk", [reason("with ball", 0.5)], "walk") | {"start": start})
        part.answer(answer(1, "/v/1.mp4", "jump", "walk", [reason("fast", 0.5)], "run"))
    answers = Answers(tmp_path / "out")
    found = answers.summary()["truth"]
    assert [(r["label"], r["predicted"], r["clips"], r["word"], r["share"]) for r in found] == [
        ("walk", "jump", 2, "with ball", 1.0),
        ("run", "jump", 1, "fast", 1.0),
    ]
    assert [(row["row"], row["negative"]) for row in answers.true_examples("walk", "jump")] == [(0, "walk")] * 2
    assert [(row["row"], row["negative"]) for row in answers.true_examples("run", "jump")] == [(1, "walk")]
    assert "  walk, taken for jump: 2 clips, 100 % explained, most often by with ball (100 % of the reasons)" in list(
        answers.lines(answers.summary())
    )


def test_examples_come_strongest_first(folder):
    rows = Answers(folder).examples("jump", "walk")
    assert [row["row"] for row in rows] == [0, 1]
    explanation = explanation_of(rows[0], "jump", "walk")
    assert explanation.sentence == 'classified as jump, not walk, because of "with ball" and "fast"'
    assert explanation.reasons[0].tube.boxes.tolist() == [[2, 2, 12, 12], [3, 2, 13, 12]]


def test_the_command(folder, tmp_path):
    said = CliRunner().invoke(app, ["query", str(folder), "--top", "3"], catch_exceptions=False).stdout
    assert "4 videos explained, 1 failed, 33.3 % classified as labelled" in said
    assert "jump, not walk: with ball (2 answers, fits 80 %)" in said
    assert "jump, not walk: 2 answers, 100 % explained, most often by with ball (67 % of the reasons)" in said
    assert "1 x damaged: the video" in said
    told = CliRunner().invoke(app, ["query", str(folder), "--json"], catch_exceptions=False).stdout
    assert json.loads(told)["totals"]["explained"] == 4
    page = tmp_path / "page.html"
    CliRunner().invoke(app, ["query", str(folder), "--html", str(page)], catch_exceptions=False)
    assert page.exists()
    with pytest.raises(WhytubeError, match="exists"):
        CliRunner().invoke(app, ["query", str(folder), "--html", str(page)], catch_exceptions=False)


def test_folders_without_answers(tmp_path):
    with pytest.raises(ArgumentError, match="holds no answers"):
        Answers(tmp_path)
    Output(tmp_path / "new").open(Asked(model="demo", model_hash=""), [Listed("/v/0.mp4")], {})
    with pytest.raises(DataError, match="no answers yet"):
        Answers(tmp_path / "new")


def test_an_unfinished_run_says_what_is_missing(folder):
    Output(folder).open(Asked(model="demo", model_hash=""), [Listed(f"/v/{n}.mp4") for n in range(7)], {})
    answers = Answers(folder)
    assert next(answers.lines(answers.summary())).startswith("4 videos explained, 1 failed, 2 not done yet, 33.3 %")


def test_damaged_answers(folder):
    damaged = folder / "reasons" / "shard-000000.parquet"
    whole = damaged.read_bytes()
    for lost in (b"PAR1 no parquet", whole[:40] + bytes(200) + whole[240:]):
        damaged.write_bytes(lost)
        with pytest.raises(DataError, match=r"shard-000000\.parquet is damaged: delete what is"):
            Answers(folder).summary()
    damaged.unlink()
    assert 0 not in Output(folder).done(), "the same command makes it again"


def test_answers_of_other_columns(folder):
    from pyarrow import parquet

    path = folder / "reasons" / "shard-000000.parquet"
    parquet.write_table(parquet.read_table(path).drop(["sentence", "explained"]), path)
    with pytest.raises(DataError, match="cannot read the answers"):
        Answers(folder).summary()


def test_the_page_escapes_what_it_shows(folder, tmp_path):
    text = write_page(Answers(folder), tmp_path / "page.html").read_text()
    assert "<script>alert" not in text
    assert "&lt;script&gt;alert(1)" in text
    assert "no longer at /gone/b.mp4" in text


def test_the_page_has_what_the_tables_have(folder, tmp_path):
    text = write_page(Answers(folder), tmp_path / "page.html").read_text()
    for said in ("What explains a confusion most often", "Explained least", "damaged: the video", "True and predicted"):
        assert said in text
    assert text.count("<video") == 3, "three answers, in seven cells, each in the page once"
    assert len(set(re.findall(r'id="([^"]+)"', text))) == len(re.findall(r'id="([^"]+)"', text))


def test_without_labels_there_is_no_matrix_of_true_classes(tmp_path):
    output = Output(tmp_path / "out")
    output.open(Asked(model="demo", model_hash=""), [Listed("/v/0.mp4")], {})
    with output.writing(0) as part:
        part.answer(answer(0, "/v/0.mp4", "jump", "run", [], ""))
    answers = Answers(tmp_path / "out")
    assert answers.summary()["truth"] == []
    text = write_page(answers, tmp_path / "page.html").read_text()
    assert "True and predicted" not in text
    assert "Videos that failed" not in text


def test_many_confusions_have_fewer_clips_each(folder, tmp_path, monkeypatch):
    text = write_page(Answers(folder), tmp_path / "page.html", clips=2).read_text()
    assert "The 1 most frequent have example clips." in text
    assert "The 1 most frequent, mistakes before the others, have example clips." in text
    assert text.count("<video") == 1, "one for either matrix, of which one is gone"
    assert "no longer at" in text


@pytest.mark.browser
def test_a_click_on_a_cell_shows_its_clips(folder, tmp_path, browser):
    page = browser.new_page()
    page.goto(write_page(Answers(folder), tmp_path / "page.html").as_uri())
    _click_through(page)
    page.close()


def _click_through(page):
    shown = page.locator("#examples > section:visible")
    assert shown.count() == 0
    page.click(".asked button:has-text('with ball')")
    assert shown.count() == 1
    assert "jump, not walk" in shown.inner_text()
    assert shown.locator("video").count() == 2
    assert page.locator(".matrix button[aria-pressed=true]").count() == 1
    page.wait_for_function("document.querySelector('section:not([hidden]) video').readyState >= 2")
    page.click(".truth button:has-text('with ball')")
    assert "walk, taken for jump" in shown.inner_text()
    assert shown.locator("video").count() == 1, "the card moved here"
    page.click(".asked button:has-text('with ball')")
    assert shown.locator("video").count() == 2, "and back"
    page.click(".list button:has-text('walk, not jump')")
    assert "walk, not jump" in shown.inner_text()
    assert page.locator(".asked button[aria-pressed=true]").inner_text().startswith("1")


@pytest.mark.browser
def test_the_page_is_used_by_keys_alone(folder, tmp_path, browser):
    page = browser.new_page()
    page.goto(write_page(Answers(folder), tmp_path / "page.html").as_uri())
    reached = []
    for _ in range(40):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.dataset.shows"))
        if page.evaluate("document.activeElement.closest('.truth') !== null"):
            break
    assert len([name for name in reached if name]) == 4, "three cells of the first matrix, one of the second"
    page.keyboard.press("Enter")
    shown = page.locator("#examples > section:visible")
    assert shown.get_attribute("id") == reached[-1]
    assert page.evaluate("document.activeElement.tagName") == "H2", "the clips are next"
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.closest('#examples') !== null")
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.dataset.shows") == reached[-1]
    page.close()
