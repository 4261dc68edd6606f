"""Files and folders that appear whole or not at all."""

import os
import stat

import pytest

from whytube.errors import DataError, WhytubeError
from whytube.files import whole_file, whole_folder, write_whole


def test_a_file_appears_at_the_end_and_replaces_the_old_one(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")
    with whole_file(path) as part:
        part.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert [p.name for p in tmp_path.iterdir()] == ["a.txt"]


def test_permissions_are_those_of_a_new_file_whatever_the_writer_chose(tmp_path):
    (tmp_path / "plain").touch()
    with whole_file(tmp_path / "private") as part:
        part.unlink()
        os.close(os.open(part, os.O_CREAT | os.O_WRONLY, 0o600))
    expected = stat.S_IMODE((tmp_path / "plain").stat().st_mode)
    assert stat.S_IMODE((tmp_path / "private").stat().st_mode) == expected


@pytest.mark.parametrize("whole", [whole_file, whole_folder])
def test_nothing_is_left_when_the_block_fails(whole, tmp_path):
    with pytest.raises(KeyError), whole(tmp_path / "a"):
        raise KeyError
    with pytest.raises(DataError, match=r"cannot write .*: no room"), whole(tmp_path / "a", error=DataError):
        raise OSError(28, "no room")
    assert [p.name for p in tmp_path.iterdir()] == []


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(WhytubeError, match=r"there is no folder .*nowhere\. Make it first"):
        write_whole(tmp_path / "nowhere" / "a.txt", "text")


def test_a_folder_takes_the_place_of_an_empty_one_only(tmp_path):
    (tmp_path / "a").mkdir()
    with whole_folder(tmp_path / "a") as part:
        write_whole(part / "ä.txt", "ä")
    assert (tmp_path / "a" / "ä.txt").read_text(encoding="utf-8") == "ä"
    with pytest.raises(DataError, match="not an empty folder"), whole_folder(tmp_path / "a", error=DataError):
        pass
    assert [p.name for p in tmp_path.iterdir()] == ["a"]
