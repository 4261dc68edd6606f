import asyncio
import json
from types import SimpleNamespace

import pytest

from web_server import run_apart
from whytube.web import events
from whytube.web.board import Board
from whytube.web.messages import Progress
from whytube.web.store_jobs import StoredJob

JOB = StoredJob("0" * 32, "key", "explain", "v", {}, "queued")


def site(ended=None, result=None):
    found = None if ended is None else StoredJob(**{**vars(JOB), "status": ended, "result": result})
    return SimpleNamespace(
        board=Board(limit=3),
        jobs=SimpleNamespace(find=lambda ident: found),
        store=SimpleNamespace(result=lambda ident: ("v", {"kind": "explanation"})),
    )


def parsed(block):
    name, data = block.decode().strip().split("\n")
    return name.removeprefix("event: "), json.loads(data.removeprefix("data: "))


async def collect(place):
    return [parsed(block) async for block in events.follow(place, JOB)]


def test_an_ended_job_is_told_at_once_with_its_answer():
    found = run_apart(collect(site("done", result="1" * 32)))
    assert [name for name, _ in found] == ["answer", "job"]
    assert found[1][1]["status"] == "done"
    assert [name for name, _ in run_apart(collect(site("failed")))] == ["job"]


def test_a_job_that_was_deleted_with_its_video_has_ended():
    assert run_apart(collect(site()))[-1][1]["status"] == "cancelled"


def test_changes_are_told_and_a_slow_reader_skips_to_the_newest():
    place = site("done", result="1" * 32)

    async def run():
        place.board.attach(asyncio.get_running_loop())
        place.board.put(JOB)
        steps = events.follow(place, JOB)
        assert parsed(await anext(steps))[1]["position"] == 1
        place.board.take(0)
        for n in range(10):
            place.board.tell(JOB.id, progress=Progress(done=n, total=10), answer={"round": n})
        job, answer = parsed(await anext(steps)), parsed(await anext(steps))
        assert (job[1]["status"], job[1]["progress"]["done"]) == ("running", 9)
        assert answer == ("answer", {"round": 9})
        place.board.end(JOB.id)
        return [parsed(block) async for block in steps]

    assert [name for name, _ in run_apart(run())] == ["answer", "job"]
    assert place.board._bells == {}


def test_a_line_is_sent_while_nothing_happens(monkeypatch):
    monkeypatch.setattr(events, "HEARTBEAT", 0.01)
    place = site()

    async def run():
        place.board.put(JOB)
        steps = events.follow(place, JOB)
        await anext(steps)
        beat = await anext(steps)
        await steps.aclose()
        return beat

    assert run_apart(run()).startswith(b":")


def test_the_end_of_the_server_ends_it_without_an_end_of_the_job():
    place = site("queued")

    async def run():
        place.board.attach(asyncio.get_running_loop())
        place.board.put(JOB)
        steps = events.follow(place, JOB)
        await anext(steps)
        place.board.close()
        with pytest.raises(StopAsyncIteration):
            await anext(steps)

    run_apart(run())
