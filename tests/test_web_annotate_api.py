"""The API of annotations and teaching, asked of a real server that is also killed."""

import contextlib
import json
import os
import random
import threading
import time

import httpx
import pytest

from web_drawn import clips_with, draw, upload_clips
from web_server import Server
from whytube.data.formats import FORMATS
from whytube.models import load_explainer, load_model

WORD = "pointed thing"
BOX = [1.0, 2.0, 30.0, 40.0]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    found = Server(tmp_path_factory.mktemp("annotations") / "store")
    yield found
    found.stop()


@pytest.fixture(scope="module")
def clips():
    return clips_with("with star", 5)


@pytest.fixture(scope="module")
def videos(server, clips, tmp_path_factory):
    """Ids of five clips in which a star was drawn under another name."""
    ids = upload_clips(server.client, tmp_path_factory.mktemp("clips"), clips)
    for ident, (_, _, boxes) in zip(ids, clips, strict=True):
        draw(server.client, ident, WORD, boxes)
    return ids


@pytest.fixture
def fresh(server):
    """Give a video that nobody has drawn in yet, and delete it afterwards."""
    video = server.example("twist")["id"]
    yield video
    server.client.delete(f"/api/videos/{video}").raise_for_status()


def act(server, video, version, annotator="ann", request=None, **action):
    body = {"version": version, "annotator": annotator, "action": action}
    return server.client.post(
        f"/api/annotations/{video}/actions", json=body | ({"request": request} if request else {})
    )


def key(frame, attribute="ball", box=BOX, **more):
    return {"type": "set_key", "attribute": attribute, "frame": frame, "box": box, **more}


def test_actions_have_versions_and_who_is_late_gets_the_current_state(server, fresh):
    assert act(server, fresh, 0, **key(3)).json()["version"] == 1
    late = act(server, fresh, 0, **key(5))
    assert late.status_code == 409
    assert late.json()["state"]["tracks"][0]["keys"] == [{"frame": 3, "box": BOX, "outside": False, "occluded": False}]
    assert act(server, fresh, 1, request="ab" * 8, **key(5)).json()["version"] == 2
    assert act(server, fresh, 1, request="ab" * 8, **key(5)).json()["version"] == 2, "sent again, done once"
    assert act(server, fresh, 2, type="undo").json()["redo"] == {"ann": 1}
    assert len(act(server, fresh, 3, type="redo").json()["tracks"][0]["keys"]) == 2
    assert act(server, fresh, 4, type="label", label="waltz").json()["label"] == {"label": "waltz", "annotator": "ann"}


WRONG = [
    {},
    {"version": 0, "annotator": "ann", "action": {"type": "mark", "attribute": "a\u0000b", "value": "has"}},
    {"version": 0, "annotator": "", "action": {"type": "undo"}},
    {"version": -1, "annotator": "ann", "action": {"type": "undo"}},
    {"version": 0, "annotator": "ann", "action": {"type": "undo"}, "request": "../x"},
    {
        "version": 0,
        "annotator": "ann",
        "action": {"type": "set_key", "attribute": "a", "frame": 0, "box": [3, 3, 1, 1]},
    },
]


def test_what_is_not_as_described_is_refused(server, fresh):
    for body in WRONG:
        answer = server.client.post(f"/api/annotations/{fresh}/actions", json=body)
        assert answer.status_code == 422, body
        assert isinstance(answer.json()["detail"], str)
    # Half a character, which no file can hold.
    lone = '{"version": 0, "annotator": "\\ud800", "action": {"type": "undo"}}'
    headers = {"content-type": "application/json"}
    answer = server.client.post(f"/api/annotations/{fresh}/actions", content=lone, headers=headers)
    assert (answer.status_code, server.get(f"/api/annotations/{fresh}").json()["version"]) == (422, 0)


def test_unknown_videos_are_not_found(server):
    missing = "0" * 32
    assert server.get(f"/api/annotations/{missing}").status_code == 404
    assert act(server, missing, 0, type="undo").status_code == 404
    assert server.get(f"/api/annotations/{missing}/events").status_code == 404
    assert server.ask(kind="draft", videos=[missing]).status_code == 404
    assert server.ask(kind="teach", video=missing).status_code in (404, 422)
    assert server.client.put("/api/teaching/current", json={"model": missing}).status_code == 404


def test_other_tabs_hear_of_new_versions(server, fresh):
    with server.client.stream("GET", f"/api/annotations/{fresh}/events") as stream:
        lines = stream.iter_lines()
        heard = [next(lines), next(lines), next(lines)]
        act(server, fresh, 0, **key(0)).raise_for_status()
        heard += [next(lines), next(lines)]
    assert [line for line in heard if line] == [
        "event: annotation",
        'data: {"version": 0}',
        "event: annotation",
        'data: {"version": 1}',
    ]


def test_words_are_added_and_listed_with_what_was_drawn(server, videos):
    name = "<b>&\"' 🐈"
    server.client.post("/api/words", json={"word": name, "annotator": "ann"}).raise_for_status()
    words = {row["word"]: row for row in server.get("/api/annotations").json()["words"]}
    assert words[name] == {"word": name, "known": False, "boxes": 0, "videos": 0}
    assert words[WORD] == {"word": WORD, "known": False, "boxes": 15, "videos": 5}
    assert words["with star"]["known"] is True
    server.client.delete("/api/words", params={"word": name}).raise_for_status()
    assert name not in {row["word"] for row in server.get("/api/annotations").json()["words"]}


def test_the_model_drafts_and_says_where_boxes_would_help(server, videos):
    assert server.done(kind="draft", videos=videos[:2])["status"] == "done"
    told = server.get(f"/api/annotations/{videos[0]}/drafts").json()
    likely = [draft for draft in told["drafts"] if draft["likely"]]
    assert told["predicted"] in server.get("/api/model").json()["classes"]
    assert likely
    assert all(0 <= draft["fit"] <= 1 and 1 <= len(draft["keys"]) <= 7 for draft in likely)
    seen = server.get("/api/annotations").json()
    assert {one["video"] for one in seen["suggestions"]} <= set(videos[:2])
    assert seen["suggestions"][0]["boxes"] == 0
    assert seen["undrafted"] == len(seen["videos"]) - 2


def test_files_of_every_format_come_back(server, videos):
    before = server.get(f"/api/annotations/{videos[0]}").json()
    for name in FORMATS:
        sent = server.get("/api/annotation-files", params={"format": name}).raise_for_status()
        where = {"format": name, "annotator": "importer"}
        back = server.client.post("/api/annotation-files", params=where, files={"file": ("any name", sent.content)})
        assert back.raise_for_status().json()["same"] == 5
        assert sum(back.json()["videos"].values()) == 0
    assert server.get(f"/api/annotations/{videos[0]}").json() == before
    one = server.get("/api/annotation-files", params={"format": "cvat", "video": videos[0]}).content
    wrong = {"format": "coco", "annotator": "importer"}
    refused = server.client.post("/api/annotation-files", params=wrong, files={"file": ("a", one)})
    assert refused.status_code == 422
    assert "COCO" in refused.json()["detail"]


def test_an_import_into_another_video_is_one_action(server, videos, fresh):
    shape = server.get(f"/api/videos/{fresh}").json()
    table = (
        "video,attribute,frame,x1,y1,x2,y2,track,annotator,state\n"
        "other,ball,0,1,2,30,40,1,,\nother,ball,9,1,2,30,40,1,,outside\nother,cat,,,,,,,bob,present\n"
    )
    assert shape["frames"] == 16
    where = {"format": "tables", "annotator": "ann", "video": fresh}
    told = server.client.post("/api/annotation-files", params=where, files={"file": ("x.csv", table)})
    assert told.raise_for_status().json() == {"videos": {fresh: 2}, "same": 0}
    state = server.get(f"/api/annotations/{fresh}").json()
    assert [(t["annotator"], t["origin"], len(t["keys"])) for t in state["tracks"]] == [("ann", "import", 2)]
    assert state["marks"] == [{"annotator": "bob", "attribute": "cat", "value": "has"}]
    assert act(server, fresh, state["version"], type="undo").json()["tracks"] == []


def test_teaching_a_new_word_places_it_better_and_can_be_taken_back(server, videos):
    assert server.get("/api/teaching").json() == {"videos": 5, "words": {WORD: 5}, "can": True}
    base = server.get("/api/model").json()
    job = server.done(kind="teach", video=videos[0], steps=20)
    assert job["status"] == "done", job["error"]
    (word,) = job["value"]["words"]
    assert (word["word"], word["new"], word["clips"]) == (WORD, True, 5)
    assert word["after"]["boxes"] == 80
    assert word["after"]["iou"] > word["before"]["iou"] + 0.1
    assert word["after"]["pointing"] > word["before"]["pointing"]
    told = server.get("/api/teaching/models").json()
    (taught,) = told["models"]
    assert (taught["id"], told["current"], taught["current"]) == (job["id"], None, False)
    folder = server.store / "taught" / job["id"]
    assert WORD in load_explainer(folder / "explainer.safetensors", load_model("demo").classifier).attribute_names
    assert server.ask(kind="teach", video=videos[0], steps=20).json()["id"] == job["id"], "nothing is taught twice"

    server.client.put("/api/teaching/current", json={"model": job["id"]}).raise_for_status()
    assert server.get("/api/model").json()["attributes"] == [*base["attributes"], WORD]
    again = server.ask(kind="explain", video=videos[0])
    assert (again.status_code, again.json()["result"]) == (200, taught["asked"]["after"]), "the answer is there already"
    assert server.done(kind="draft", videos=videos[:1])["status"] == "done"
    drafts = server.get(f"/api/annotations/{videos[0]}/drafts").json()["drafts"]
    assert WORD in {draft["attribute"] for draft in drafts}

    server.client.put("/api/teaching/current", json={"model": None}).raise_for_status()
    assert server.get("/api/model").json() == base
    before = server.ask(kind="explain", video=videos[0]).json()["result"]
    assert before == taught["asked"]["before"] != taught["asked"]["after"]
    server.client.delete(f"/api/teaching/models/{job['id']}").raise_for_status()
    assert not folder.exists()


def test_teaching_can_be_cancelled(server, videos):
    job = server.ask(kind="teach", steps=10_000).json()
    while server.get(f"/api/jobs/{job['id']}").json()["status"] == "queued":
        time.sleep(0.05)
    server.client.delete(f"/api/jobs/{job['id']}").raise_for_status()
    assert server.follow(job["id"])[-1][1]["status"] == "cancelled"
    assert server.get("/api/teaching/models").json()["models"] == []


def test_all_that_was_acknowledged_outlives_a_killed_server(tmp_path, clips):
    """Kill the server while people draw and it learns. WHYTUBE_KILLS=20 does it more often."""
    chance, store, drawn, job = random.Random(1), tmp_path / "store", 0, None
    server = Server(store)
    ids = upload_clips(server.client, tmp_path, clips[:2])
    for ident, (_, _, boxes) in zip(ids, clips, strict=False):
        draw(server.client, ident, WORD, boxes, annotator="teacher")
    for _ in range(int(os.environ.get("WHYTUBE_KILLS", "1"))):
        acknowledged = {"version": 0}

        def edit(base=server.base, acknowledged=acknowledged, first=drawn):
            with httpx.Client(base_url=base, timeout=60) as client, contextlib.suppress(httpx.HTTPError):
                for frame in range(first, first + 10_000):
                    version = client.get(f"/api/annotations/{ids[0]}").json()["version"]
                    body = {"version": version, "annotator": "ann", "action": key(frame)}
                    answer = client.post(f"/api/annotations/{ids[0]}/actions", json=body)
                    acknowledged |= {"version": answer.json()["version"], "frames": frame + 1}

        editor = threading.Thread(target=edit)
        editor.start()
        if job is None:
            job = server.ask(kind="teach", steps=5).json()["id"]
        while "frames" not in acknowledged:
            time.sleep(0.01)
        time.sleep(chance.uniform(0, 1))
        server.kill()
        editor.join()
        server = Server(store)
        state = server.get(f"/api/annotations/{ids[0]}").json()
        assert state["version"] - acknowledged["version"] in (0, 1)
        (track,) = [t for t in state["tracks"] if t["annotator"] == "ann"]
        assert [one["frame"] for one in track["keys"]] == list(range(len(track["keys"])))
        assert len(track["keys"]) - acknowledged["frames"] in (0, 1)
        drawn = len(track["keys"])
    assert server.follow(job)[-1][1]["status"] == "done", "what was asked goes on"
    (taught,) = server.get("/api/teaching/models").json()["models"]
    assert taught["id"] == job
    assert [path.name for path in (store / "taught").iterdir()] == [job]
    server.client.put("/api/teaching/current", json={"model": job}).raise_for_status()
    server.kill()
    server = Server(store)
    assert server.get("/api/model").json()["attributes"][-1] == WORD, "the choice is kept too"
    server.stop()


def test_the_description_of_the_api_names_these_routes(server):
    paths = server.get("/openapi.json").json()["paths"]
    assert {"/api/annotations", "/api/annotations/{video}/actions", "/api/teaching/models"} <= set(paths)
    conflict = paths["/api/annotations/{video}/actions"]["post"]["responses"]["409"]
    assert "OutOfDate" in json.dumps(conflict)
