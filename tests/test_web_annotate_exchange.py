import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from whytube.data.formats import FORMATS
from whytube.web.annotate_exchange import bring, plain_videos, seen_keys
from whytube.web.annotation_actions import Action, Key
from whytube.web.annotations import Annotations
from whytube.web.exchange import read_file, write_file
from whytube.web.messages import Video
from whytube.web.store_database import Database

KEYS = [{"frame": 0, "box": (0.0, 0.0, 9.0, 9.0), "outside": False, "occluded": False}]
IDS = tuple(f"{number:032x}" for number in range(2))


@pytest.fixture
def store(tmp_path):
    database = Database(tmp_path / "store.sqlite")
    database.add_tables("CREATE TABLE IF NOT EXISTS videos (id TEXT PRIMARY KEY)")
    with database.transaction() as rows:
        rows.executemany("INSERT INTO videos VALUES (?)", [[ident] for ident in IDS])
    yield Annotations(database)
    database.close()


def video(ident, name="clip.mp4"):
    return Video(id=ident, name=name, frames=9, fps=8.0, duration=1.0, width=20, height=10, created="now", bytes=1)


def track(annotator="", attribute="ball", keys=KEYS):
    return {"annotator": annotator, "attribute": attribute, "keys": keys}


def mark(annotator="", attribute="cat", present=True):
    return {"annotator": annotator, "attribute": attribute, "present": present}


def test_there_and_back_adds_nothing(store):
    told = [{"id": IDS[0], "tracks": [track("ann"), track("ann"), track("")], "marks": [mark("bob", present=False)]}]
    assert bring(store, told, annotator="me") == ({IDS[0]: 4}, 0)
    assert sorted(store.state(IDS[0]).tracks) == [("ann", "ball", 1), ("ann", "ball", 2), ("me", "ball", 1)]
    (plain,) = plain_videos([video(ident) for ident in IDS], store)
    assert plain["name"] == f"clip.mp4 {IDS[0][:8]}", "two videos share the name"
    assert bring(store, [plain], annotator="other") == ({IDS[0]: 0}, 4)
    (own,) = plain_videos([video(IDS[0])], store, annotator="bob")
    assert (own["name"], own["tracks"], own["marks"]) == ("clip.mp4", [], [mark("bob", present=False)])
    assert plain_videos([video(IDS[1])], store) == []


def test_tracks_that_are_there_stay_and_marks_are_replaced(store):
    bring(store, [{"id": IDS[0], "tracks": [track("ann")], "marks": [mark("ann")]}], annotator="me")
    other = [{**KEYS[0], "frame": 5}]
    bring(
        store,
        [{"id": IDS[0], "tracks": [track("ann", keys=other)], "marks": [mark("ann", present=False)]}],
        annotator="me",
    )
    state = store.state(IDS[0])
    assert [list(one.keys) for one in state.tracks.values()] == [[0], [5]]
    assert state.marks == {("ann", "cat"): "has_not"}
    undo = TypeAdapter(Action).validate_python({"type": "undo"})
    assert store.append(IDS[0], "ann", undo, version=None).marks == {("ann", "cat"): "has"}


def test_keys_that_nobody_sees_make_no_difference():
    def key(frame, x=0.0, outside=False):
        return Key(frame=frame, box=(x, 0.0, x + 9, 9.0), outside=outside)

    keys = [key(0, outside=True), key(1), key(2, 5.0, outside=True), key(4, outside=True), key(6, 7.0)]
    assert seen_keys(keys) == [key(1), key(2, outside=True), key(6, 7.0)]
    assert seen_keys([key(1), key(5, 3.0, outside=True)]) == [key(1), key(5, 3.0, outside=True)]


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(st.integers(0, 8), st.tuples(st.integers(0, 5), st.booleans()), min_size=1, max_size=6))
def test_every_track_comes_back_from_every_format(drawn):
    """What a file says after a round trip is the same track, so that importing it again adds nothing."""
    assume(any(not outside for _, outside in drawn.values()))
    keys = [Key(frame=f, box=(x, 0.0, x + 9.0, 9.0), outside=o) for f, (x, o) in sorted(drawn.items())]
    given = {**track("ann"), "keys": [one.model_dump() for one in keys]}
    plain = {
        "id": IDS[0],
        "name": "a",
        "width": 20,
        "height": 10,
        "frames": 9,
        "fps": 8.0,
        "tracks": [given],
        "marks": [],
    }
    for name in FORMATS:
        (back,) = read_file(name, write_file(name, [plain])[1], [plain], None)
        (one,) = back["tracks"]
        assert seen_keys(Key(**key) for key in one["keys"]) == seen_keys(keys), name
