import pytest
from hypothesis import given, settings

from annotation_examples import annotations, example, facts, there_and_back
from layout_files import BOXES
from whytube.data.formats import Annotations, Box, Track, tables
from whytube.errors import DataError

HEAD = "video,attribute,frame,x1,y1,x2,y2"


@settings(max_examples=60, deadline=None)
@given(annotations())
def test_there_and_back(one):
    """Exact: corners are written as the shortest text that reads back as the same float."""
    assert there_and_back("tables", one) == [one]


def test_several_videos():
    empty = Annotations("c.mp4", (48, 64), 3)
    assert there_and_back("tables", example(), empty) == [example(), empty]


def test_a_boxes_file_is_a_table():
    """A box of boxes.csv is seen at its own frame alone."""
    (one,) = tables.read(BOXES.encode(), facts("dunk/a", (48, 64), 20))
    first, second = Box(8, 6, 24, 18), Box(16, 12, 32, 24)
    keys = {0: first, 1: first.hidden(), 10: second, 11: second.hidden()}
    assert one.tracks == (Track("with ball", keys),)


def test_how_it_looks():
    lines = tables.write([example()]).splitlines()
    assert lines[0] == "video,attribute,frame,x1,y1,x2,y2,track,annotator,state,width,height,frames,fps"
    assert lines[1] == "videos/Dunk/g01.avi,,,,,,,,,,320,240,40,25.0"
    assert lines[2] == "videos/Dunk/g01.avi,jumping,,,,,,,ann,present,,,,"
    assert "videos/Dunk/g01.avi,with ball,8,16.0,20.0,40.0,44.25,2,ann,occluded,,,," in lines
    assert "videos/Dunk/g01.avi,with ball,12,20.0,20.0,44.0,44.0,2,ann,outside,,,," in lines


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1: the header must have video,attribute,frame,x1,y1,x2,y2, each once, got"),
        ("video;attribute\n", "line 1: the header must have"),
        (f"{HEAD},frame\n", "each once"),
        (f"{HEAD}\nv,a,0,1,2,3\n", "line 2: expected 7 cells, got 6"),
        (f"{HEAD}\n\nv,a,0,1,2,3,x\n", "line 3: `y2` must be a number, got 'x'"),
        (f"{HEAD}\nv,a,-1,1,2,3,4\n", "line 2: `frame` must be an integer of at least 0, got '-1'"),
        (f"{HEAD}\nv,a,0,1,2,1,4\n", "line 2: `box` must be x1,y1,x2,y2 with x1 < x2"),
        (f"{HEAD},state\nv,a,0,1,2,3,4,gone\n", "line 2: `state` must be occluded, outside or empty"),
        (f"{HEAD},state\nv,a,,,,,,maybe\n", "line 2: `state` must be present or absent in a row without a frame"),
        (f"{HEAD},width\nv,,,,,,,wide\n", "line 2: `width` must be an integer of at least 0, got 'wide'"),
        (f"{HEAD}\nv,a,0,1,2,3,4\nv,a,0,1,2,3,5\n", "frame 0 of 'a' in 'v' has two boxes. Number the tracks"),
        (f'{HEAD}\n"v\n', "the file cannot be read as CSV"),
    ],
)
def test_damaged_files(text, message):
    with pytest.raises(DataError) as caught:
        tables.read(text.encode(), facts())
    assert message in str(caught.value)


def test_other_text_than_utf_8():
    with pytest.raises(DataError, match="the file is not UTF-8 text"):
        tables.read(f"{HEAD}\ncafé,a,0,1,2,3,4\n".encode("latin-1"))
    with pytest.raises(DataError, match="does not say the size and the number of frames of the video 'v'"):
        tables.read(f"{HEAD}\nv,a,0,1,2,3,4\n".encode())
