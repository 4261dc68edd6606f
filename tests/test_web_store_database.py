import sqlite3

import pytest

from whytube.errors import DataError
from whytube.web.store_database import Database, make_durable


@pytest.fixture
def database(tmp_path):
    made = Database(tmp_path / "store.sqlite")
    made.add_tables("CREATE TABLE IF NOT EXISTS dances (name TEXT PRIMARY KEY)")
    yield made
    made.close()


def test_what_is_written_survives_a_lost_process(database, tmp_path):
    """Another connection, as after a kill, sees what was committed; nothing waits in this one."""
    with database.transaction() as rows:
        rows.execute("INSERT INTO dances VALUES ('jive')")
    other = sqlite3.connect(tmp_path / "store.sqlite")
    assert other.execute("SELECT name FROM dances").fetchall() == [("jive",)]
    other.close()
    assert database.one("PRAGMA journal_mode")[0] == "wal"
    assert database.one("PRAGMA synchronous")[0] == 2, "FULL: a commit waits for the disk"


def test_a_failed_block_changes_nothing(database):

    def fail():
        with database.transaction() as rows:
            rows.execute("INSERT INTO dances VALUES ('jive')")
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        fail()
    assert database.all("SELECT * FROM dances") == []


def test_an_error_of_sqlite_is_told_and_undone(database):
    with database.transaction() as rows:
        rows.execute("INSERT INTO dances VALUES ('jive')")

    def twice():
        with database.transaction() as rows:
            rows.execute("INSERT INTO dances VALUES ('waltz')")
            rows.execute("INSERT INTO dances VALUES ('jive')")

    with pytest.raises(DataError, match="cannot keep this: UNIQUE"):
        twice()
    assert [row["name"] for row in database.all("SELECT * FROM dances")] == ["jive"]
    assert database.one("SELECT * FROM dances WHERE name='waltz'") is None


def test_other_files_are_refused(tmp_path):
    (tmp_path / "text").write_text("no database, but long enough to be looked at as one " * 20)
    with pytest.raises(DataError, match="Choose another folder with `store`"):
        Database(tmp_path / "text")
    other = sqlite3.connect(tmp_path / "newer")
    other.execute("PRAGMA user_version=99")
    other.close()
    with pytest.raises(DataError, match="another whytube"):
        Database(tmp_path / "newer")


def test_files_and_folders_can_be_made_durable(tmp_path):
    (tmp_path / "file").write_text("x")
    make_durable(tmp_path / "file")
    make_durable(tmp_path)
    with pytest.raises(FileNotFoundError):
        make_durable(tmp_path / "none")
