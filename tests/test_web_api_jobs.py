"""Asking: every kind of job, the same question twice, wrong questions, and cancelling."""

import pytest

from web_server import serving, until


@pytest.fixture(scope="module")
def video(server):
    return server.example()["id"]


def test_classify_gives_all_probabilities_in_order(server, video):
    job = server.done(kind="classify", video=video)
    assert (job["status"], job["result"], job["error"]) == ("done", None, None)
    chances = job["value"]["probabilities"]
    assert list(chances) == sorted(chances, key=chances.get, reverse=True)
    assert set(chances) == set(server.get("/api/model").json()["classes"])
    assert job["value"]["predicted"] == next(iter(chances)) == "gavotte"
    assert abs(sum(chances.values()) - 1) < 1e-4


def test_answers_come_round_by_round_and_the_last_is_kept(server, video):
    job = server.ask(kind="explain", video=video, why_not="jive", effort=8, k=2).json()
    events = server.follow(job["id"])
    answers = [data for name, data in events if name == "answer"]
    shown = [data for name, data in events if name == "job"]
    assert len(answers) >= 2
    assert shown[-1]["status"] == "done"
    assert events[-1][0] == "job"
    done = [data["progress"]["done"] for data in shown if data["status"] == "running"]
    assert done == sorted(done)
    kept = server.get(f"/api/results/{shown[-1]['result']}").json()
    assert kept["video"] == video
    assert kept["document"] == answers[-1]
    assert kept["document"]["source"] == "gavotte.mp4"
    assert (kept["document"]["positive"], kept["document"]["negative"]) == ("gavotte", "jive")


def test_nothing_is_computed_twice(server, video):
    body = {"kind": "explain", "video": video, "effort": 2, "k": 1}
    first = server.done(**body)
    again = server.ask(**body)
    assert again.status_code == 200
    assert again.json() == first
    named = server.ask(**{**body, "why": "Gavotte "[:7]}).json()
    assert named["id"] != first["id"], "another question has another job"
    assert server.ask(**{**body, "why": "gavotte"}).json()["id"] == named["id"], "however the class is written"
    server.follow(named["id"])


def test_a_tube_of_ones_own(server, video):
    tube = {"frames": [2, 9], "boxes": [[10, 10, 90, 90], [50, 50, 120, 130]]}
    job = server.done(kind="what_if", video=video, why_not="jive", tube=tube)
    document = server.get(f"/api/results/{job['result']}").json()["document"]
    assert len(document["reasons"]) == 1
    reason = document["reasons"][0]
    assert reason["attribute"] == ""
    assert {e["fill"] for e in reason["evidence"]} == {"mean", "blur", "freeze"}
    assert (reason["tube"]["frames"][0], reason["tube"]["frames"][-1]) == (2, 9)


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        ({"kind": "classify", "video": "0" * 32}, 404, "no such video"),
        ({"kind": "overlay", "result": "0" * 32}, 404, "no such result"),
        ({"kind": "classify", "video": "../../etc/passwd"}, 422, "pattern"),
        ({"kind": "dance"}, 422, "kind"),
        ({"kind": "explain", "why_not": "jiv"}, 422, "Did you mean 'jive'?"),
        ({"kind": "explain", "why": "jive", "why_not": "jive"}, 422, "another class"),
        ({"kind": "explain", "k": 6}, 422, "less than or equal to 5"),
        ({"kind": "explain", "effort": "huge"}, 422, "effort"),
        ({"kind": "explain", "effort": True}, 422, "effort"),
        ({"kind": "explain", "area": 0.9}, 422, "area"),
        ({"kind": "explain", "colour": "red"}, 422, "colour"),
        ({"kind": "what_if", "tube": {"frames": [3, 2], "boxes": [[0, 0, 1, 1]] * 2}}, 422, "increase"),
        ({"kind": "what_if", "tube": {"frames": [3], "boxes": [[0, 0, 1, 1]] * 2}}, 422, "one box per frame"),
        ({"kind": "what_if", "tube": {"frames": [3], "boxes": [[5, 0, 1, 1]]}}, 422, "x1 <= x2"),
    ],
)
def test_wrong_questions_are_told_in_one_line(server, video, body, status, said):
    if body["kind"] in ("explain", "what_if"):
        body = {"video": video, **body}
    found = server.ask(**body)
    assert found.status_code == status
    assert said in found.json()["detail"]


def test_a_question_without_an_answer_fails_with_its_reason(server, video):
    job = server.done(kind="explain", video=video, why_not="gavotte", effort=2)
    assert job["status"] == "failed"
    assert "the predicted class" in job["error"]


def test_a_reason_that_is_not_there_cannot_be_masked(server, video):
    result = server.explained(video)
    found = server.ask(kind="masked", result=result, reason=4)
    assert found.status_code == 422
    assert "`reason` must be below" in found.json()["detail"]


def test_jobs_that_do_not_exist(server):
    for method, path in (("GET", ""), ("DELETE", ""), ("GET", "/events")):
        found = server.client.request(method, f"/api/jobs/{'0' * 32}{path}")
        assert found.status_code == 404
        assert "no such job" in found.json()["detail"]


def test_cancelling_and_a_full_queue(tmp_path):
    with serving(tmp_path, "--queue", 2) as server:
        video = server.example()["id"]
        first, second, third, refused = (
            server.ask(kind="explain", video=video, effort=400 + n) if n else _running(server, video) for n in range(4)
        )
        assert [r.status_code for r in (second, third, refused)] == [202, 202, 429]
        assert int(refused.headers["retry-after"]) > 0
        assert "2 jobs wait already" in refused.json()["detail"]
        assert [second.json()["position"], third.json()["position"]] == [1, 2]
        health = server.get("/healthz").json()
        assert (health["queued"], health["running"]) == (2, 1)
        waiting = server.client.delete(f"/api/jobs/{second.json()['id']}").json()
        assert (waiting["status"], waiting["position"]) == ("cancelled", None)
        assert server.get(f"/api/jobs/{third.json()['id']}").json()["position"] == 1
        running = server.client.delete(f"/api/jobs/{first['id']}").json()
        assert running["status"] == "cancelled"
        assert server.follow(first["id"])[-1][1]["status"] == "cancelled"
        server.client.delete(f"/api/jobs/{third.json()['id']}")
        until(lambda: server.get("/healthz").json()["running"] == 0)
        done = server.done(kind="classify", video=video)
        assert done["status"] == "done", "the worker works again"
        kept = server.client.delete(f"/api/jobs/{done['id']}").json()
        assert kept == done, "a job that has ended stays as it is"
        again = server.ask(kind="explain", video=video, effort=401).json()
        assert again["id"] != second.json()["id"], "what was cancelled may be asked again"
        server.client.delete(f"/api/jobs/{again['id']}")


def _running(server, video):
    job = server.ask(kind="explain", video=video, effort=400).json()
    until(lambda: server.get(f"/api/jobs/{job['id']}").json()["status"] == "running")
    return job
