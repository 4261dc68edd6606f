"""The log in SQLite: versions, repeats, several threads and processes, and a process that is killed."""

import os
import random
import signal
import subprocess
import sys
import threading
import time

import pytest
from pydantic import TypeAdapter

from whytube.web.annotation_actions import Action
from whytube.web.annotations import Annotations, OutOfDateError
from whytube.web.store_database import Database

ACTIONS = TypeAdapter(Action)
UNDO = ACTIONS.validate_python({"type": "undo"})


def key(frame, attribute="ball"):
    return ACTIONS.validate_python({"type": "set_key", "attribute": attribute, "frame": frame, "box": [0, 0, 9, 9]})


def opened(path):
    """Open a store with two videos, of which it needs to know no more than their ids."""
    database = Database(path)
    database.add_tables("CREATE TABLE IF NOT EXISTS videos (id TEXT PRIMARY KEY)")
    with database.transaction() as rows:
        rows.execute("INSERT OR IGNORE INTO videos VALUES ('v'), ('other')")
    return Annotations(database)


@pytest.fixture
def store(tmp_path):
    found = opened(tmp_path / "store.sqlite")
    yield found
    found._database.close()


def test_an_action_is_a_version_and_stays(store, tmp_path):
    assert store.state("v").version == 0
    assert store.append("v", "ann", key(0), version=0).version == 1
    assert store.append("v", "ann", key(5), version=1).boxes == 2
    again = opened(tmp_path / "store.sqlite")
    assert again.state("v").tracks["ann", "ball", 1].frames == [0, 5]
    assert [entry.version for entry in again.log("v")] == [1, 2]
    assert [entry.version for entry in again.log("v", after=1)] == [2]
    again._database.close()


def test_an_action_for_an_old_version_adds_nothing(store):
    store.append("v", "ann", key(0), version=0)
    with pytest.raises(OutOfDateError) as caught:
        store.append("v", "ann", key(1), version=0)
    assert caught.value.state.version == 1
    assert store.state("v").version == 1


def test_an_action_that_is_sent_again_is_done_once(store):
    first = store.append("v", "ann", key(0), version=0, request="r1")
    assert store.append("v", "ann", key(0), version=0, request="r1").version == first.version == 1
    assert store.append("other", "ann", key(0), version=0, request="r1").version == 1, "another video's"


def test_nothing_to_take_back_is_no_version(store):
    assert store.append("v", "ann", UNDO, version=0).version == 0


def test_listeners_hear_of_versions_once_they_are_kept(store):
    heard = []
    store.listeners.append(lambda video, version: heard.append((video, version, store.state(video).version)))
    store.append("v", "ann", key(0), version=0)
    assert heard == [("v", 1, 1)]


def test_threads_lose_nothing(store):
    def draw(name):
        for frame in range(20):
            while True:
                try:
                    store.append("v", name, key(frame), version=store.state("v").version)
                    break
                except OutOfDateError:
                    continue

    threads = [threading.Thread(target=draw, args=(f"person {n}",)) for n in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (store.state("v").version, store.state("v").boxes) == (60, 60)


def test_words_and_drafts_are_kept(store):
    store.add_word("new word", "ann")
    store.add_word("new word", "bob")
    assert store.words() == ["new word"]
    store.remove_word("new word")
    assert store.words() == []
    store.keep_draft("v", "m1", "waltz", [{"attribute": "ball"}])
    assert store.drafts("m1") == {"v": ("waltz", [{"attribute": "ball"}])}
    assert store.drafts("m2") == {}
    assert (store.draft("v", "m1"), store.draft("v", "m2")) == (("waltz", [{"attribute": "ball"}]), None)
    store.keep_draft("gone", "m1", "waltz", [])
    assert list(store.drafts("m1")) == ["v"]


def test_all_of_a_video_goes_with_it(store):
    store.append("v", "ann", key(0), version=0)
    store.keep_draft("v", "m1", "waltz", [])
    with store._database.transaction() as rows:
        rows.execute("DELETE FROM videos WHERE id='v'")
    assert (store.drafts("m1"), store.states(), store.state("v").version) == ({}, {}, 0)
    with pytest.raises(LookupError):
        store.append("v", "ann", key(0), version=0)


WRITER = """
import sys
from pydantic import TypeAdapter
from whytube.web.annotation_actions import Action
from whytube.web.annotations import Annotations
from whytube.web.store_database import Database
read = TypeAdapter(Action).validate_python
store = Annotations(Database(sys.argv[1]))
while True:
    state = store.state("v")
    act = {"type": "set_key", "attribute": "ball", "frame": state.version, "box": [0, 0, 9, 9]}
    print(store.append("v", "ann", read(act), version=state.version).version, flush=True)
"""


def test_what_was_acknowledged_outlives_a_killed_process(tmp_path):
    """More rounds by WHYTUBE_KILLS=20 pytest tests/test_web_annotations.py -k killed."""
    chance, path, last = random.Random(0), tmp_path / "store.sqlite", 0
    opened(path)._database.close()
    for _ in range(int(os.environ.get("WHYTUBE_KILLS", "2"))):
        writer = subprocess.Popen([sys.executable, "-c", WRITER, path], stdout=subprocess.PIPE, text=True)
        acknowledged = [writer.stdout.readline()]
        time.sleep(chance.uniform(0, 0.2))
        writer.send_signal(signal.SIGKILL)
        acknowledged += writer.stdout.read().splitlines()
        writer.wait()
        writer.stdout.close()
        store = opened(path)
        state = store.state("v")
        store._database.close()
        numbers = [int(line) for line in acknowledged if line.strip()]
        assert numbers[0] == last + 1
        assert numbers[-1] <= state.version <= numbers[-1] + 1
        assert state.tracks["ann", "ball", 1].frames == list(range(state.version))
        last = state.version
