"""A shard: every video is explained or failed, in tables that say how; windows over long videos."""

import importlib.util
import json
import threading
from dataclasses import replace

import numpy as np
import pytest
from pyarrow import dataset

from bulk_faults import MODEL, make_videos
from whytube import explain
from whytube.bulk import work
from whytube.bulk.listing import Listed, list_videos
from whytube.bulk.output import Asked, Output
from whytube.bulk.page import write_page
from whytube.bulk.query import Answers
from whytube.bulk.work import DEATHS, Work
from whytube.given import model_hash
from whytube.video import write_video


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bulk")
    (folder / "tiny.py").write_text(MODEL)
    make_videos(folder / "videos", 8)
    return folder


@pytest.fixture
def asked(made):
    return Asked(model=f"{made / 'tiny.py'}:build", model_hash="", k=1, effort=3)


def network(made):
    spec = importlib.util.spec_from_file_location("tiny_for_tests", made / "tiny.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.build()


def worked(output, asked, listed):
    sizes = output.open(asked, listed, {})
    outcome, *_ = [Work(output, asked)(shard) for shard in range(len(sizes))]
    return outcome, *(
        dataset.dataset(sorted((output.folder / name).glob("*.parquet"))).to_table().to_pylist()
        for name in ("reasons", "failures")
    )


def test_answers_are_those_of_explain(made, asked, tmp_path):
    outcome, answers, failures = worked(Output(tmp_path / "out"), asked, list_videos(str(made / "videos")))
    assert (outcome.explained, outcome.failed, outcome.stop) == (7, 1, "")
    assert [row["video"] for row in failures] == [str(made / "videos" / "clip_006.mp4")]
    assert "is not a video that can be read" in failures[0]["error"]
    assert [row["row"] for row in answers] == [0, 1, 2, 3, 4, 5, 7]
    model = network(made)
    for row in answers[:3]:
        expected = explain(row["video"], model, k=1, effort=3)
        assert (row["positive"], row["negative"]) == (expected.positive, expected.negative)
        assert row["p_positive"] == pytest.approx(expected.probabilities[expected.positive], abs=1e-5)
        assert row["video_hash"] == expected.video_hash
        assert row["model_hash"] == expected.model_hash
        assert row["frames"] == list(expected.frames)
        reason, own = row["reasons"][0], expected.reasons[0]
        assert reason["boxes"] == own.tube.to_dict()["boxes"]
        assert [e["fill"] for e in reason["evidence"]] == ["mean", "blur", "freeze"]
        assert reason["evidence"][0]["positive_after"] == pytest.approx(own.evidence[0].positive_after, abs=1e-5)
        assert json.loads(row["settings"])["effort"] == 3


def test_all_negatives_and_named_ones(made, asked, tmp_path):
    some = list_videos(str(made / "videos"))[:4]
    _, answers, _ = worked(Output(tmp_path / "all"), replace(asked, negatives="all"), some)
    assert len(answers) == 8
    for row in range(4):
        own = [answer for answer in answers if answer["row"] == row]
        assert {own[0]["positive"], *(answer["negative"] for answer in own)} == {"red", "green", "blue"}
    predicted = answers[0]["positive"]
    others = sorted({"red", "green", "blue"} - {predicted})
    named = replace(asked, negatives=(predicted, others[0]))
    _, answers, failures = worked(Output(tmp_path / "named"), named, some)
    assert failures == []
    assert [a["negative"] for a in answers if a["row"] == 0] == [others[0]]
    alone = replace(asked, negatives=(predicted,))
    _, answers, failures = worked(Output(tmp_path / "alone"), alone, some[:1])
    assert answers == []
    assert failures[0]["error"] == "classified as red, the class that was asked about"


def test_labels_are_asked_about_where_they_differ(made, asked, tmp_path):
    """Otherwise the most probable other class, so that every video has an answer."""
    some = list_videos(str(made / "videos"))[:4]
    plain = worked(Output(tmp_path / "plain"), asked, some)[1]
    last = [({"red", "green", "blue"} - {row["positive"], row["negative"]}).pop() for row in plain]
    labels = [last[0].upper(), plain[1]["positive"], "", "no such class"]
    listed = [replace(one, label=label) for one, label in zip(some, labels, strict=True)]
    _, answers, failures = worked(Output(tmp_path / "out"), replace(asked, negatives="label"), listed)
    assert failures == []
    assert [row["negative"] for row in answers] == [last[0], *(row["negative"] for row in plain[1:])]
    assert [row["positive"] for row in answers] == [row["positive"] for row in plain]
    assert [row["label"] for row in answers] == [last[0], *labels[1:]], "as the classifier writes it"
    alone = worked(Output(tmp_path / "named"), replace(asked, negatives=(last[0],)), some[:1])[1]
    assert answers[0]["reasons"][0]["attribute"] == alone[0]["reasons"][0]["attribute"]
    assert answers[0]["reasons"][0]["score"] == pytest.approx(alone[0]["reasons"][0]["score"], abs=1e-4)


def test_windows_slide_over_a_long_video(made, asked, tmp_path):
    rng = np.random.default_rng(1)
    path = write_video(tmp_path / "long.mp4", (rng.random((96, 24, 32, 3)) * 200).astype(np.uint8), 8.0)
    _, answers, failures = worked(Output(tmp_path / "out"), replace(asked, window=2.0), [Listed(str(path))])
    assert failures == []
    assert len(answers) == 6
    assert [row["start"] for row in answers] == pytest.approx([0, 2, 4, 6, 8, 10])
    assert answers[-1]["frames"] == [80, 84, 88, 92]
    assert answers[-1]["end"] == pytest.approx(11.5)
    last = answers[-1]["reasons"][0]
    assert set(last["frames"]) <= {80, 84, 88, 92}
    assert last["times"] == pytest.approx([frame / 8 for frame in last["frames"]])
    assert json.loads(answers[-1]["settings"])["sampling"] == "window"
    text = write_page(Answers(tmp_path / "out"), tmp_path / "page.html").read_text()
    assert "<video" in text
    assert "cannot be shown" not in text


def test_a_video_that_is_shorter_than_a_window_is_spread_over_it(made, asked, tmp_path):
    path = write_video(
        tmp_path / "short.mp4", np.random.default_rng(1).integers(0, 200, (10, 24, 32, 3), np.uint8), 8.0
    )
    _, answers, failures = worked(Output(tmp_path / "out"), replace(asked, window=100.0), [Listed(str(path))])
    assert failures == []
    assert [row["frames"] for row in answers] == [[0, 3, 6, 9]]


def test_a_worker_that_does_not_see_the_folder_stops(made, asked, tmp_path):
    output = Output(tmp_path / "out")
    output.open(asked, list_videos(str(made / "videos"))[:2], {})
    outcome = Work(replace(output, id="of another"), asked)(0)
    assert "all machines must share it" in outcome.stop
    assert output.done() == set()


def test_a_long_video_that_ends_in_damage_has_failed_as_a_whole(made, asked, tmp_path, monkeypatch):
    rng = np.random.default_rng(1)
    good = write_video(tmp_path / "good.mp4", (rng.random((48, 24, 32, 3)) * 200).astype(np.uint8), 8.0)
    last = write_video(tmp_path / "last.mp4", np.full((48, 24, 32, 3), 80, np.uint8), 8.0)
    monkeypatch.setattr("whytube.bulk.tables.HELD", 2)
    windows = work.iter_windows

    def damaged(path, **how):
        for number, clip in enumerate(windows(path, **how)):
            if path == last and number == 4:
                raise ValueError("the rest is damaged")
            yield clip

    monkeypatch.setattr(work, "iter_windows", damaged)
    listed = [Listed(str(good)), Listed(str(last))]
    _, answers, failures = worked(Output(tmp_path / "out"), replace(asked, window=1.0), listed)
    assert [row["row"] for row in answers] == [0] * 6
    assert [(row["row"], row["error"]) for row in failures] == [(1, "ValueError: the rest is damaged")]


def test_a_video_in_windows_stays_in_hand_until_its_end(made, asked, tmp_path, monkeypatch):
    path = write_video(tmp_path / "long.mp4", np.full((96, 24, 32, 3), 80, np.uint8), 8.0)
    output = Output(tmp_path / "out")
    seen, own = [], Work._asked
    monkeypatch.setattr(Work, "_asked", lambda work, reads: [seen.append(output.attempts(0)), own(work, reads)][1])
    worked(output, replace(asked, window=0.5, batch=4), [Listed(str(path))])
    assert seen == [1] * 6
    assert output.attempts(0) == 0


def test_addresses_are_fetched(made, asked, tmp_path):
    listed = list_videos(f"file://{made / 'videos'}/clip_000.mp4")
    bad = [Listed(f"file://{tmp_path}/gone.mp4"), Listed(f"file://{made}/videos/clip_006.mp4")]
    _, answers, failures = worked(Output(tmp_path / "out"), asked, [*listed, *bad])
    assert failures[1]["error"].startswith(f"file://{made}/videos/clip_006.mp4 is not a video")
    assert [row["video"] for row in answers] == [listed[0].video]
    plain = worked(Output(tmp_path / "plain"), asked, [Listed(str(made / "videos" / "clip_000.mp4"))])[1]
    assert answers[0]["reasons"] == plain[0]["reasons"]
    assert answers[0]["video_hash"] == plain[0]["video_hash"]


def test_a_video_that_workers_die_of_is_given_up(made, asked, tmp_path):
    output = Output(tmp_path / "out")
    listed = list_videos(str(made / "videos"))[:4]
    output.open(asked, listed, {})
    for _ in range(DEATHS):
        output.attempt([2])
    output.attempt([3])
    outcome, _, failures = worked(output, asked, listed)
    assert (outcome.explained, outcome.failed) == (3, 1)
    assert failures[0]["row"] == 2
    assert "3 workers died of it" in failures[0]["error"]
    assert not list((tmp_path / "out" / "attempts").iterdir())


def test_a_written_shard_stays(made, asked, tmp_path):
    output = Output(tmp_path / "out")
    worked(output, asked, list_videos(str(made / "videos"))[:2])
    path = tmp_path / "out" / "reasons" / "shard-000000.parquet"
    before = path.stat().st_mtime_ns
    assert Work(output, asked)(0).explained == 2
    assert path.stat().st_mtime_ns == before


@pytest.fixture
def shards(made, asked, tmp_path, monkeypatch):
    """Give the work on three shards of two videos, in groups of two, and what happens in it: (what, rows)."""
    monkeypatch.setattr("whytube.bulk.output.SHARD", 2)
    output, asked = Output(tmp_path / "out"), replace(asked, batch=2)
    listed = [row for row in list_videos(str(made / "videos")) if "006" not in row.video][:6]
    assert len(output.open(asked, listed, {})) == 3
    happened, changed = [], threading.Condition()

    def note(what, rows):
        with changed:
            happened.append((what, [row.row for row in rows]))
            changed.notify_all()

    def seen(*event):
        with changed:
            return changed.wait_for(lambda: event in happened, timeout=60)

    read, answers = Work._read, Work._answers

    def noted(self, rows):
        for found in read(self, rows):
            note("read", [found.row])
            yield found

    monkeypatch.setattr(Work, "_read", noted)
    working = Work(output, asked)
    return working, answers, note, seen, happened


def test_the_next_shard_is_read_while_the_last_videos_of_one_are_explained(shards, monkeypatch):
    working, answers, note, seen, happened = shards

    def explained(self, reads):
        if reads[0].row.row == 0:
            assert seen("read", [3]), "the next shard's first group is read meanwhile"
        note("explain", [read.row for read in reads])
        return answers(self, reads)

    monkeypatch.setattr(Work, "_answers", explained)
    assert working(0, 1).explained == 2
    assert working(1, None).explained == 2
    assert ("read", [4]) not in happened, "nobody said that there is a third"
    assert [rows for what, rows in happened if what == "explain"] == [[0, 1], [2, 3]]
    assert [rows for what, rows in happened if what == "read"] == [[0], [1], [2], [3]], "each once, in order"
    assert not list((working.output.folder / "attempts").iterdir())


def test_what_was_read_for_nothing_is_not_in_hand_any_more(shards):
    working, _, _, seen, _ = shards
    assert working(0, 1).explained == 2
    assert seen("read", [2])
    assert working(2).explained == 2, "another one than was announced"
    assert not list((working.output.folder / "attempts").iterdir())
    assert working(1).explained == 2


def test_a_shard_of_which_a_worker_died_is_not_read_ahead(shards):
    working, _, _, _, happened = shards
    working.output.attempt([3])
    assert working(0, 1).explained == 2
    assert working._begun is None
    assert working(1).explained == 2
    assert [rows for _, rows in happened] == [[0], [1], [3], [2]], "the dangerous one first, by itself"


def test_hashes_are_worked_out_once(made, asked, tmp_path, monkeypatch):
    """Of the network once for all groups; of a clip's pixels never, as the file has one."""
    networks, pixels = [], []
    monkeypatch.setattr("whytube.given.hashlib.sha256", lambda *_: pixels.append(1) or pytest.fail("of pixels"))
    for place in ("asking", "bulk.work"):
        monkeypatch.setattr(f"whytube.{place}.model_hash", lambda network: networks.append(network) or "abc")
    _, answers, _ = worked(Output(tmp_path / "out"), replace(asked, batch=2), list_videos(str(made / "videos"))[:6])
    assert len(networks) == 1, "three groups"
    assert {row["model_hash"] for row in answers} == {"abc"}
    assert not pixels


def test_a_network_that_was_changed_has_another_hash(made):
    model, video = network(made), str(made / "videos" / "clip_000.mp4")
    weights = model.classifier
    before = explain(video, model, k=1, effort=3).model_hash
    assert explain(video, model, k=1, effort=3).model_hash == before == model_hash(weights)
    next(weights.parameters()).data.add_(1e-3)  # of which torch keeps no count
    assert explain(video, model, k=1, effort=3).model_hash == model_hash(weights) != before
