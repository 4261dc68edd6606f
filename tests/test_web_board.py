import asyncio
import threading

from web_server import run_apart
from whytube.web.board import Board
from whytube.web.messages import Progress
from whytube.web.store_jobs import StoredJob


def job(number):
    return StoredJob(f"{number:032x}", str(number), "explain", "v", {}, "queued")


def test_jobs_wait_in_order_and_know_their_place():
    board = Board(limit=3)
    jobs = [job(n) for n in range(3)]
    for one in jobs:
        assert not board.full
        board.put(one)
    assert board.full
    assert board.counts == (3, 0)
    assert [board.see(one.id).job.position for one in jobs] == [1, 2, 3]
    assert board.take(0) == jobs[0]
    assert board.counts == (2, 1)
    seen = board.see(jobs[0].id).job
    assert (seen.status, seen.position) == ("running", None)
    board.cancel(jobs[1].id)
    assert board.see(jobs[1].id) is None
    assert board.see(jobs[2].id).job.position == 1
    board.put(jobs[1], first=True)
    assert board.take(0) == jobs[1]
    board.end(jobs[0].id)
    assert board.counts == (1, 1)


def test_a_running_job_is_asked_to_stop():
    board = Board(limit=3)
    board.put(job(0))
    taken = board.take(0)
    assert not board.is_cancelled(taken.id)
    board.cancel(taken.id)
    assert board.is_cancelled(taken.id)
    assert board.see(taken.id) is None, "for those who watch it has ended"
    assert board.counts == (0, 1), "but the worker still has it"
    board.end(taken.id)
    assert board.is_cancelled(taken.id)
    assert board.counts == (0, 0)


def test_the_newest_progress_and_answer_are_seen():
    board = Board(limit=3)
    board.put(job(0))
    before = board.see(job(0).id)
    for n in range(5):
        board.tell(job(0).id, progress=Progress(done=n, total=5), answer={"round": n})
    seen = board.see(job(0).id)
    assert seen.version > before.version
    assert (seen.job.progress.done, seen.answers, seen.answer) == (4, 5, {"round": 4})
    board.tell(job(9).id, answer={})
    assert board.see(job(9).id) is None


def test_those_who_watch_are_woken_from_any_thread():
    board = Board(limit=3)

    async def watch():
        board.attach(asyncio.get_running_loop())
        with board.watching(job(0).id) as bell, board.watching(job(1).id) as other:
            threading.Thread(target=board.put, args=[job(0)]).start()
            await asyncio.wait_for(bell.wait(), 10)
            assert not other.is_set()
            bell.clear()
            threading.Thread(target=board.close).start()
            await asyncio.wait_for(bell.wait(), 10)
            await asyncio.wait_for(other.wait(), 10)
        assert board._bells == {}, "nobody is remembered"

    run_apart(watch())
    assert board.closed
    assert board.take(10) is None


def test_a_worker_that_waits_gets_a_job_at_once():
    board, found = Board(limit=3), []
    thread = threading.Thread(target=lambda: found.append(board.take(60)))
    thread.start()
    board.put(job(0))
    thread.join(10)
    assert found == [job(0)]
