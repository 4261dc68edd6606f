"""Tables of a shard: answers go to the disk as they come, and those of videos that fail later are taken out."""

import pytest
from pyarrow import parquet

from whytube.bulk import tables
from whytube.bulk.tables import Part, Row


@pytest.fixture
def path(tmp_path):
    return tmp_path / "shard.parquet"


def fill(path, count, failing=()):
    held = 0
    with Part(path) as part:
        for place in range(count):
            part.answer({"row": place % 3, "video": f"{place % 3}.mp4", "start": float(place)})
            held = max(held, len(part.held))
        for row in failing:
            part.fail(Row(row, f"{row}.mp4", "", 0), "broken")
            part.fail(Row(row, f"{row}.mp4", "", 0), "again")
    part.drop_failed()
    return part, held


def test_few_answers_are_held(path, monkeypatch):
    monkeypatch.setattr(tables, "HELD", 8)
    _, held = fill(path, 100)
    assert held < 8
    assert parquet.read_table(path)["start"].to_pylist() == list(range(100))
    assert parquet.read_metadata(path).num_row_groups == 13


@pytest.mark.parametrize("held", [8, 256])
def test_a_video_that_fails_late_has_no_answers(path, monkeypatch, held):
    monkeypatch.setattr(tables, "HELD", held)
    part, _ = fill(path, 30, failing=[2, 0])
    assert set(parquet.read_table(path)["row"].to_pylist()) == {1}
    assert part.failures.to_pylist() == [
        {"row": 0, "video": "0.mp4", "label": "", "error": "broken"},
        {"row": 2, "video": "2.mp4", "label": "", "error": "broken"},
    ]
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


def test_no_answers_are_a_table_too(path):
    fill(path, 0)
    assert parquet.read_table(path).num_rows == 0
    assert "video" in parquet.read_table(path).column_names
