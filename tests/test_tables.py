import json
from pathlib import Path

import pytest
import torch

from whytube.data.tables import HOME, TABLES, AttributeTable, read_table
from whytube.errors import ArgumentError, DataError

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"
SHAPES = {"jhmdb": (21, 30), "olympic_sports": (16, 40), "ucf101_24": (24, 39)}
BODY = {"head", "hands", "arms", "torso", "legs", "feet"}
THINGS = {
    "ball",
    "bat",
    "club",
    "bow",
    "gun",
    "bar",
    "bottle",
    "glass",
    "brush",
    "hoop",
    "stairs",
    "seat",
    "other-object",
}


@pytest.mark.parametrize("name", TABLES)
def test_shipped_tables_have_their_shape_and_distinct_rows(name):
    table = read_table(name)
    assert table.values.shape == SHAPES[name]
    assert table.values.dtype == torch.bool
    assert len(set(map(tuple, table.values.tolist()))) == len(table.classes)
    assert len(set(table.classes)) == len(table.classes)
    assert table.values.any(1).all(), "every class has an attribute"
    assert table.classes == tuple(sorted(table.classes))
    assert table.about


def test_tables_say_who_wrote_them():
    assert read_table("olympic_sports").about.startswith("Published: Liu, Kuipers, Savarese")
    for name in ("jhmdb", "ucf101_24"):
        table = read_table(name)
        assert "by this project" in table.about
        assert set(table.notes) == set(table.classes)
        assert all(table.notes.values())


def test_jhmdb_attributes_name_parts_that_are_annotated():
    table = read_table("jhmdb")
    assert {part for parts in table.parts.values() for part in parts} == BODY | THINGS
    assert set(table.attribute_names) - set(table.parts) == {"staying in place"}
    assert table.values.any(0).all()


def test_a_row_is_found_by_class():
    table = read_table("ucf101_24")
    has = {name for name, yes in zip(table.attribute_names, table.row("WalkingWithDog"), strict=True) if yes}
    assert {"Body Motion is Walking", "Object is Animal", "Object is Rope Like"} <= has
    with pytest.raises(ArgumentError, match="Did you mean 'GolfSwing'"):
        table.row("Golfswing")


@pytest.mark.skipif(not SHARED.is_dir(), reason="the data sets are not at hand")
def test_classes_are_the_folders_of_the_data_sets():
    ucf = [line.split()[1] for line in (SHARED / "ucf101_24/splits/classInd.txt").read_text().splitlines()]
    assert set(read_table("ucf101_24").classes) <= set(ucf)
    assert read_table("jhmdb").classes == tuple(sorted(p.name for p in (SHARED / "jhmdb/clips").iterdir()))
    olympic = {line.split("/")[0] for line in (SHARED / "olympic_sports/videos.txt").read_text().split()}
    misspelt = {"diving_platfrom_10m": "diving_platform_10m"}
    assert set(read_table("olympic_sports").classes) == {misspelt.get(name, name) for name in olympic}


def test_every_jhmdb_class_shows_the_parts_of_its_attributes():
    seen = {}
    for clip, frames in json.loads((HOME / "jhmdb_part_boxes.json").read_text()).items():
        seen.setdefault(clip.split("/")[0], set()).update(label for boxes in frames.values() for label in boxes)
    table = read_table("jhmdb")
    for name in table.classes:
        for attribute, yes in zip(table.attribute_names, table.row(name).tolist(), strict=True):
            if yes and attribute in table.parts:
                assert seen[name] & set(table.parts[attribute]), (name, attribute)


def test_a_user_table_with_its_sidecars(tmp_path):
    (tmp_path / "mine.csv").write_text("class,wet,fast\nsurf,1,1\nswim,1,0\n")
    (tmp_path / "mine_notes.csv").write_text('class,note\n*,"Mine, all mine"\nsurf,On a board\n')
    (tmp_path / "mine_parts.csv").write_text("attribute,part\nfast,legs\nfast,arms\n")
    table = read_table(tmp_path / "mine.csv")
    assert table.values.tolist() == [[True, True], [True, False]]
    assert table.about == "Mine, all mine"
    assert table.notes == {"surf": "On a board"}
    assert table.parts == {"fast": ("legs", "arms")}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("class,wet\nsurf,2\n", "mine.csv:2: error: 'wet' must be 0 or 1, got '2'"),
        ("class,wet\nsurf,1\nsurf,0\n", "mine.csv:3: error: class 'surf' has a row already, in line 2"),
        ("class\nsurf\n", "at least one class and one attribute"),
        ("name,wet\nsurf,1\n", "header must have class, got name,wet"),
    ],
)
def test_wrong_tables_are_refused(tmp_path, text, message):
    path = tmp_path / "mine.csv"
    path.write_text(text)
    with pytest.raises(DataError, match=message):
        read_table(path)


def test_unknown_names_parts_and_shapes(tmp_path):
    with pytest.raises(ArgumentError, match="Did you mean 'ucf101_24'"):
        read_table("ucf101")
    with pytest.raises(ArgumentError, match="which is no file"):
        read_table(tmp_path / "none.csv")
    (tmp_path / "mine.csv").write_text("class,wet\nsurf,1\n")
    (tmp_path / "mine_parts.csv").write_text("attribute,part\nwett,legs\n")
    with pytest.raises(DataError, match=r"mine_parts.csv: error: unknown attribute 'wett'. Did you mean 'wet'"):
        read_table(tmp_path / "mine.csv")
    with pytest.raises(ArgumentError, match="classes x attributes"):
        AttributeTable(("a",), ("b",), torch.ones(2, 1, dtype=torch.bool))
