"""The folder of a bulk run: what it refuses, what it adds, and when a shard is done."""

import json
import signal
import subprocess
import sys
from dataclasses import replace

import pytest

from whytube.bulk.listing import Listed
from whytube.bulk.output import SHARD, SHARDS, Asked, Output
from whytube.errors import DataError

ASKED = Asked(model="demo", model_hash="abc")


def listed(*numbers):
    return [Listed(f"/videos/{number}.mp4", "jump") for number in numbers]


@pytest.fixture
def output(tmp_path):
    return Output(tmp_path / "out")


def test_rows_and_shards_stay_and_new_videos_are_added(output):
    assert output.open(ASKED, listed(*range(20)), {}) == [SHARD, 4]
    first = output.rows()
    assert [row.shard for row in first] == [0] * SHARD + [1] * 4
    assert output.rows(1) == first[SHARD:]
    assert output.open(ASKED, listed(*range(20)), {}) == [SHARD, 4]
    assert output.open(ASKED, [*listed(20), *listed(*range(20))], {}) == [SHARD, 4, 1]
    more = output.rows()
    assert more[:20] == first
    assert [(row.row, row.video, row.shard) for row in more[20:]] == [(20, "/videos/20.mp4", 2)]


def test_the_same_video_may_come_often(output):
    assert output.open(ASKED, listed(1, 1, 1), {}) == [3]
    assert [row.row for row in output.rows()] == [0, 1, 2]
    assert output.open(ASKED, listed(1, 1, 1, 1), {}) == [3, 1]
    assert output.rows(1)[0].row == 3
    with pytest.raises(DataError, match="made of other videos"):
        output.open(ASKED, listed(2, 1), {})


def answer(output, shard=0):
    with output.writing(shard) as part:
        part.fail(output.rows(shard)[0], "broken")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"k": 3}, "`k` was 2, now 3"),
        ({"model_hash": "abd"}, "`model_hash` was 'abc', now 'abd'"),
        ({"negatives": ("walk",)}, r"`negatives` was 'runner-up', now \['walk'\]"),
        ({"window": 2.0, "effort": 9}, "`effort` was 6, now 9, `window` was None, now 2.0"),
    ],
)
def test_other_questions_are_refused(output, change, said):
    output.open(ASKED, listed(1), {})
    answer(output)
    with pytest.raises(DataError, match=rf"other questions \({said}\)"):
        output.open(replace(ASKED, **change), listed(1), {})
    output.open(ASKED, listed(1), {})
    output.open(replace(ASKED, batch=1), listed(1), {})
    assert output.done() == {0}


def test_a_run_that_answered_nothing_may_ask_something_else(output):
    output.open(ASKED, listed(*range(20)), {})
    (output.folder / "failures" / "shard-000001.parquet").touch()  # of a worker that was killed in between
    output.attempt([0, 1])
    assert output.open(replace(ASKED, k=3), listed(7), {}) == [1]
    assert output.attempts(0) == 0, "row 0 is another video now"
    assert [row.video for row in output.rows()] == ["/videos/7.mp4"]
    assert not list((output.folder / "failures").iterdir())
    answer(output)
    with pytest.raises(DataError, match="other questions"):
        output.open(ASKED, listed(7), {})


def test_answers_without_their_failures_are_answers(output):
    output.open(ASKED, listed(1), {})
    answer(output)
    (output.folder / "failures" / "shard-000000.parquet").unlink()
    with pytest.raises(DataError, match="other questions"):
        output.open(replace(ASKED, k=3), listed(7), {})


def test_what_somebody_else_put_among_failures_stays(output):
    output.open(ASKED, listed(1), {})
    (output.folder / "failures" / "notes").mkdir()
    assert output.open(replace(ASKED, k=3), listed(7), {}) == [1]
    assert (output.folder / "failures" / "notes").is_dir()


def test_answers_that_lost_their_settings_are_refused(output):
    output.open(ASKED, listed(1), {})
    answer(output)
    (output.folder / "run.json").unlink()
    with pytest.raises(DataError, match=r"holds answers, but not its run\.json: choose another folder"):
        output.open(replace(ASKED, k=3), listed(1), {})


def test_a_worker_that_sees_another_folder_of_that_name_stops(output, tmp_path):
    output.open(ASKED, listed(1), {})
    output.for_workers().require_shared()
    other = Output(tmp_path / "other")
    other.open(ASKED, listed(1), {})
    for wrong in (replace(other.for_workers(), folder=output.folder), replace(other.for_workers(), folder=tmp_path)):
        with pytest.raises(DataError, match=r"does not see the folder .*: all machines must share it"):
            wrong.require_shared()


def test_a_run_of_before_gets_an_id(output):
    output.open(ASKED, listed(1), {})
    told = json.loads((output.folder / "run.json").read_text())
    (output.folder / "run.json").write_text(json.dumps({name: told[name] for name in told if name != "id"}))
    output.open(ASKED, listed(1), {})
    first = output.for_workers().id
    assert first != told["id"]
    output.open(ASKED, listed(1), {})
    assert output.for_workers().id == first


def test_other_videos_are_refused(output):
    output.open(ASKED, listed(1), {})
    with pytest.raises(DataError, match="made of other videos"):
        output.open(ASKED, listed(2), {})


def test_a_shard_is_done_when_its_answers_are_there(output):
    output.open(ASKED, listed(1, 2), {})
    assert output.done() == set()
    output.attempt([0, 1])
    output.attempt([1])
    assert [output.attempts(row) for row in (0, 1, 2)] == [1, 2, 0]
    with output.writing(0) as part:
        part.fail(output.rows(0)[0], "broken")
        assert output.done() == set()
    assert output.done() == {0}
    assert output.failed(0) == 1
    output.forget_attempts()
    assert output.attempts(1) == 0


def test_files_that_somebody_else_made_are_no_shards(output):
    output.open(ASKED, listed(1, 2), {})
    answer(output)
    folder = output.folder / "reasons"
    (folder / "shard-000000 (copy).parquet").write_bytes((folder / "shard-000000.parquet").read_bytes())
    (output.folder / "attempts" / ".nfs0001").touch()
    output.forget_attempts()
    assert output.done() == {0}
    (output.folder / "failures" / "shard-000000.parquet").unlink()
    assert output.done() == set()
    assert not output.is_done(0)


def test_many_videos_have_larger_shards(output):
    sizes = output.open(ASKED, [*listed(1) * (SHARDS * SHARD + 1)], {})
    assert set(sizes[:-1]) == {SHARD + 1}
    assert len(sizes) <= SHARDS
    assert Output(output.folder / "long").open(replace(ASKED, window=2.0), listed(1, 2, 3), {}) == [1, 1, 1]
    last = output.rows(len(sizes) - 1)
    assert [row.row for row in last] == list(range(sum(sizes[:-1]), sum(sizes)))


def test_a_broken_list_of_videos_is_told(output):
    output.open(ASKED, listed(1), {})
    (output.folder / "videos.parquet").write_bytes(b"no table")
    with pytest.raises(DataError, match=r"cannot read .*videos\.parquet"):
        output.open(ASKED, listed(1), {})


def test_what_a_killed_worker_was_writing_is_cleared(output):
    output.open(ASKED, listed(1), {})
    code = "import os, signal, sys; from pathlib import Path; from whytube.bulk.output import Output\n"
    code += "with Output(Path(sys.argv[1])).writing(0): os.kill(os.getpid(), signal.SIGKILL)"
    assert subprocess.run([sys.executable, "-c", code, str(output.folder)]).returncode == -signal.SIGKILL
    assert list((output.folder / "reasons").glob(".*.part"))
    output.open(ASKED, listed(1), {})
    assert list((output.folder / "reasons").iterdir()) == []
