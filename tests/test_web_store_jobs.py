import pytest

from whytube.web import store_jobs
from whytube.web.messages import Progress
from whytube.web.store_database import Database
from whytube.web.store_jobs import Jobs, key_of


@pytest.fixture
def jobs(tmp_path):
    database = Database(tmp_path / "store.sqlite")
    yield Jobs(database)
    database.close()


def test_a_key_is_of_everything_that_decides():
    base = ("explain", "v", "m", {"k": 1, "why": None})
    assert key_of(*base) == key_of("explain", "v", "m", {"why": None, "k": 1})
    others = [("classify", *base[1:]), ("explain", "w", *base[2:]), ("explain", "v", "n", base[3]), (*base[:3], {})]
    assert len({key_of(*base), *(key_of(*other) for other in others)}) == 5


def test_a_job_is_found_by_its_question_until_it_failed(jobs):
    job = jobs.add("explain", "v", {"k": 1}, "key")
    assert jobs.same("key") == jobs.find(job.id) == job
    assert jobs.same("other") is None
    jobs.start(job.id)
    assert jobs.same("key").status == "running"
    assert jobs.end(job.id, "done", result="r", value={"a": 1})
    assert (jobs.same("key").result, jobs.same("key").value) == ("r", {"a": 1})
    assert not jobs.end(job.id, "cancelled"), "it had ended"
    assert jobs.find(job.id).status == "done"
    for status in ("failed", "cancelled"):
        ended = jobs.add("explain", "v", {}, status)
        jobs.end(ended.id, status, error="why")
        assert jobs.same(status) is None


def test_what_ran_when_the_server_ended_waits_again(jobs):
    first, second, third = (jobs.add("classify", "v", {}, str(n)) for n in range(3))
    jobs.start(first.id)
    jobs.end(second.id, "done")
    assert [job.id for job in jobs.requeue()] == [first.id, third.id]
    assert jobs.find(first.id).status == "queued"
    jobs.rekey(first.id, "new")
    assert jobs.same("new").id == first.id


def test_old_jobs_are_forgotten(jobs, monkeypatch):
    monkeypatch.setattr(store_jobs, "KEPT", 2)
    made = [jobs.add("classify", "v", {}, str(n)) for n in range(5)]
    for job in made[1:]:
        jobs.end(job.id, "done")
    jobs.requeue()
    assert [jobs.find(job.id) is not None for job in made] == [True, False, False, True, True], "one still waits"


def test_deaths_are_counted(jobs):
    job = jobs.add("classify", "v", {}, "key")
    jobs.start(job.id)
    assert jobs.died(job.id) == 1
    assert jobs.find(job.id).status == "queued"
    jobs.start(job.id)
    assert jobs.died(job.id) == 2
    assert jobs.died("0" * 32) == 0


def test_jobs_go_with_their_video(jobs):
    job, other = jobs.add("classify", "v", {}, "1"), jobs.add("classify", "w", {}, "2")
    assert jobs.of_video("v") == [job.id]
    jobs.forget_video("v")
    assert jobs.find(job.id) is None
    assert jobs.find(other.id) is not None


def test_a_row_as_the_api_shows_it(jobs):
    shown = jobs.add("classify", "v", {"secret": 1}, "key").job(position=3, progress=Progress(done=1, total=2))
    assert shown.model_dump() == {
        "id": shown.id,
        "kind": "classify",
        "status": "queued",
        "position": 3,
        "progress": {"done": 1, "total": 2, "text": ""},
        "error": None,
        "result": None,
        "value": None,
    }
