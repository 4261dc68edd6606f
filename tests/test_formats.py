import json
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from annotation_examples import as_json, example, facts
from whytube.data.formats import FORMATS, Annotations, Facts, read_annotations, write_annotations
from whytube.data.formats.facts import settle
from whytube.data.formats.fields import Node, parse
from whytube.errors import ArgumentError, DataError, WhytubeError
from whytube.files import LARGEST

EVERY = pytest.mark.parametrize("name", FORMATS)


@EVERY
def test_a_file_there_and_back(name, tmp_path):
    path = tmp_path / f"boxes{FORMATS[name].ending}"
    assert write_annotations(path, example(), format=name) == path
    assert read_annotations(path, format=name) == [example()]
    with pytest.raises(DataError, match="exists already"):
        write_annotations(path, example(), format=name)
    write_annotations(path, [example()], format=name, overwrite=True)
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name], "nothing unfinished is left"


@EVERY
def test_all_facts_may_come_from_the_data(name):
    """A name, a length or a rate that the file has otherwise is replaced, and no box is lost."""
    known = Facts("other.mp4", (240, 320), 50, 25.0)
    (one,) = FORMATS[name].read(FORMATS[name].write([example()]).encode(), lambda video: known)
    assert (one.video, one.frames) == ("other.mp4", 50)
    for found, drawn in zip(one.tracks, example().tracks, strict=True):
        assert found.boxes(range(40)) == pytest.approx(drawn.boxes(range(40)), abs=1e-5)


@EVERY
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_damage_gives_a_result_or_an_error_of_ours(name, data):
    """Bytes that are cut off, changed or doubled."""
    text = bytearray(FORMATS[name].write([example()]).encode())
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(text) - 1))
        length = data.draw(st.integers(0, 40))
        text[at : at + length] = data.draw(st.one_of(st.binary(max_size=6), st.just(text[at : at + length] * 2)))
    check(name, bytes(text))


NUMBERS = st.one_of(st.integers(-(10**30), 10**30), st.floats())
VALUES = st.one_of(st.none(), st.booleans(), NUMBERS, st.text(max_size=3), st.lists(st.none(), max_size=1))


@pytest.mark.parametrize("name", ["beaverdam", "label-studio", "coco"])
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_wrong_values_give_a_result_or_an_error_of_ours(name, data):
    """Any value of the document replaced by something else, or left out."""
    document = json.loads(FORMATS[name].write([example()]))
    place = document
    while True:
        keys = range(len(place)) if isinstance(place, list) else sorted(place)
        if not keys:
            return
        key = data.draw(st.sampled_from(list(keys)))
        if not isinstance(place[key], (dict, list)) or data.draw(st.integers(0, 3)) == 0:
            break
        place = place[key]
    if isinstance(place, dict) and data.draw(st.booleans()):
        del place[key]
    else:
        place[key] = data.draw(VALUES)
    check(name, json.dumps(document).encode())


def check(name, content):
    """Read; anything raised but an error of ours fails the test."""
    for describe in (None, facts()):
        found = []
        with suppress(WhytubeError):
            found = FORMATS[name].read(content, describe)
        assert all(isinstance(one, Annotations) for one in found)


@EVERY
def test_messages_name_file_and_format(name, tmp_path):
    path = tmp_path / "boxes"
    path.write_bytes(b"\x00")
    with pytest.raises(DataError) as caught:
        read_annotations(path, format=name)
    assert str(caught.value).startswith(f"cannot read {path} as {FORMATS[name].title}: ")
    with pytest.raises(DataError, match="No such file"):
        read_annotations(tmp_path / "none", format=name)
    with pytest.raises(DataError, match="it is not a file"):
        read_annotations(tmp_path, format=name)
    with pytest.raises(DataError, match="there is no folder"):
        write_annotations(tmp_path / "none" / "boxes", example(), format=name)


@EVERY
def test_a_file_without_end_is_refused(name, tmp_path):
    path = tmp_path / "boxes"
    with path.open("wb") as file:
        file.truncate(LARGEST + 1)  # takes no room on the disk
    with pytest.raises(DataError, match="more than 256 MiB"):
        read_annotations(path, format=name)


def test_unknown_format(tmp_path):
    with pytest.raises(ArgumentError, match="Did you mean 'cvat'"):
        read_annotations(tmp_path / "a.xml", format="cvta")
    with pytest.raises(ArgumentError, match="`format` must be one of 'cvat', 'beaverdam', 'label-studio', 'coco', 'ta"):
        write_annotations(tmp_path / "a.xml", example(), format="xml")


def test_one_video_per_file(tmp_path):
    for name in ("cvat", "beaverdam"):
        for several in ([], [example(), example()]):
            with pytest.raises(DataError, match=f"holds one video, got {len(several)}"):
                write_annotations(tmp_path / "a", several, format=name)
    assert not list(tmp_path.iterdir())


def test_facts_put_together():
    assert settle("v", None, size=(1, 2), frames=3) == Facts("v", (1, 2), 3)
    with pytest.raises(DataError, match="does not say the number of frames of the video 'v'"):
        settle("v", None, size=(1, 2))
    known = Facts("w", (1, 2), 4, 8.0)
    assert settle("v", lambda name: known, size=(1, 2), frames=3) == known


def test_values_by_name_and_kind():
    node = parse(b'{"a": [1, 2.0, "x", true, null, 1e400]}')
    one, two, text, flag, nothing, endless = node["a"].each()
    assert (one.integer(), two.integer(), text.text(), flag.flag(default=False), nothing.flag(default=True)) == (
        1,
        2,
        "x",
        True,
        True,
    )
    assert not node["b"]
    for ask, message in (
        (lambda: endless.number(), r"`a\[5\]` must be a finite number, got inf"),
        (lambda: flag.number(), r"`a\[3\]` must be a finite number, got True"),
        (lambda: nothing.text(), r"`a\[4\]` must be text, got nothing"),
        (lambda: one["key"], r"`a\[0\]` must be an object, got 1"),
        (lambda: node["a"].size(), "must be a finite number"),
        (lambda: Node([1, 2, 3], "size").size(), r"`size` must be \[height, width\]"),
        (lambda: parse(as_json({"a": 1})[:-1] + b', "a": 2}'), "names a key twice"),
    ):
        with pytest.raises((ArgumentError, DataError), match=message):
            ask()
