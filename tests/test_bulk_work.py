"""A shard: every video is explained or failed, in tables that say how; windows over long videos."""

import importlib.util
import json
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
    assert "the predicted class" in failures[0]["error"]


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
