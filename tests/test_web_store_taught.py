import pytest

from whytube.web.store import Store
from whytube.web.store_taught import TaughtStore

IDS = ("a" * 32, "b" * 32)


@pytest.fixture
def store(tmp_path):
    found = Store(tmp_path / "store")
    yield found
    found.close()


def write(taught, ident, **asked):
    folder = taught.clear(ident)
    folder.mkdir()
    (folder / "base.json").write_text("{}")
    taught.add(ident, {"words": []}, {"hash": ident[:4]}, asked)


def test_models_are_listed_chosen_and_removed(store):
    taught = TaughtStore(store, "demo")
    taught.note_base({"hash": "base"})
    for ident in IDS:
        write(taught, ident)
    assert [row.id for row in taught.all()] == [*reversed(IDS)]
    assert taught.chosen() is None
    taught.choose(IDS[0])
    assert taught.chosen().description == {"hash": "aaaa"}
    taught.note_base({"hash": "changed"})
    assert (taught.chosen().id, taught.base_description()) == (IDS[0], {"hash": "changed"}), "the choice stays"
    taught.remove(IDS[0])
    assert (taught.chosen(), taught.path(IDS[0]).exists()) == (None, False)


def test_another_base_has_models_of_its_own(store):
    taught = TaughtStore(store, "demo")
    taught.note_base({})
    write(taught, IDS[0], after="r")
    other = TaughtStore(store, "jhmdb-i3d")
    assert (other.all(), other.find(IDS[0]), other.base_description()) == ([], None, None)
    assert taught.find(IDS[0]).asked == {"after": "r"}


def test_what_a_killed_teaching_left_is_removed_at_the_next_start(store):
    taught = TaughtStore(store, "demo")
    write(taught, IDS[0])
    for name in (IDS[1], f".{IDS[1]}.part"):
        taught.path(name).mkdir()
    again = TaughtStore(store, "demo")
    assert [path.name for path in again.folder.iterdir()] == [IDS[0]]
