import numpy as np
import pytest

from annotation_examples import facts
from layout_files import BOXES, make_dataset
from whytube import read_dataset
from whytube.data.formats import FORMATS, Annotations, Box, Mark, Track, read_annotations
from whytube.data.formats.folder import Folder, joined, take_in, write_out
from whytube.data.layout import check_dataset
from whytube.errors import ArgumentError, DataError

A = "videos/dunk/a.mp4"


@pytest.fixture
def place(tmp_path):
    return make_dataset(tmp_path / "data")


def drawn(video=A, attribute="jumping", **more):
    keys = {2: Box(1, 2, 11, 12), 6: Box(5, 2, 15, 12), 8: Box(5, 2, 15, 12, outside=True)}
    return Annotations(video, (48, 64), 20, 25.0, (Track(attribute, keys, "ann"),), **more)


@pytest.mark.parametrize("name", FORMATS)
def test_a_folder_there_and_back(name, tmp_path, place):
    """All boxes of a folder, written for a tool and taken into a copy without boxes: exactly the same."""
    folder = Folder(place)
    found = [folder.annotations(item) for item in folder.data.videos]
    copy = make_dataset(tmp_path / "copy", boxes=None)
    again = Folder(copy)
    for path in write_out(tmp_path / "out", found, format=name):
        take_in(again, read_annotations(path, format=name, describe=again.describe))
    text = "8.0,6.0,24.0,18.0\nvideos/dunk/a.mp4,with ball,10,16.0,12.0,32.0,24.0\n"
    head, rows = (copy / "boxes.csv").read_text().split("\n", 1)
    assert (head, rows) == ("video,attribute,frame,x1,y1,x2,y2", f"videos/dunk/a.mp4,with ball,0,{text}")
    for before, after in zip(read_dataset(place).videos, read_dataset(copy).videos, strict=True):
        assert before.boxes.keys() == after.boxes.keys()
        for attribute, tube in before.boxes.items():
            np.testing.assert_array_equal(tube.boxes, after.boxes[attribute].boxes)


def test_boxes_between_key_frames_are_taken(place):
    taken = take_in(Folder(place), [drawn()])
    assert str(taken) == f"{place}: took 6 boxes in 1 tracks and 0 marks, of 1 videos"
    item = read_dataset(place).videos[0]
    assert item.boxes["jumping"].frames.tolist() == [2, 3, 4, 5, 6, 7]
    assert item.boxes["jumping"].boxes[1].tolist() == [2, 2, 12, 12]
    assert item.boxes["with ball"].frames.tolist() == [0, 10], "other boxes stay"
    assert check_dataset(place).ok


def test_boxes_of_the_same_attribute_are_replaced(place):
    (place / "boxes.csv").write_text(f"{BOXES}dunk/b,with ball,3,1,2,3,4\n")
    take_in(Folder(place), [drawn(attribute="with ball")])
    lines = (place / "boxes.csv").read_text().splitlines()
    assert lines[1] == "dunk/b,with ball,3,1,2,3,4", "those of another video stay as they are written"
    assert len(lines) == 2 + 6
    take_in(Folder(place), [drawn("videos/surf/c.mp4", "indoor")])
    assert (place / "boxes.csv").read_text().splitlines()[:8] == lines


def test_marks_become_attributes_of_the_video(place):
    """Surfing is not indoors by its class; drawing it says that this video is."""
    c = "videos/surf/c.mp4"
    marks = (Mark("jumping", True, "ann"), Mark("with ball", False, "ann"))
    taken = take_in(Folder(place), [drawn(c, "indoor", marks=marks)])
    assert taken.marks == 2
    assert (place / "video_attributes.csv").read_text() == f"video,indoor,jumping\n{c},1,1\n"
    data = read_dataset(place)
    item = next(item for item in data.videos if item.name == c)
    assert dict(zip(data.attribute_names, item.attributes.tolist(), strict=True)) == {
        "with ball": False,
        "jumping": True,
        "indoor": True,
    }
    one = Folder(place).annotations(item)
    assert one.marks == (Mark("indoor"), Mark("jumping")), "and are given back"
    take_in(Folder(place), [Annotations(c, (48, 64), 20, None, (), (Mark("jumping", False), Mark("with ball")))])
    assert (place / "video_attributes.csv").read_text() == f"video,indoor,jumping,with ball\n{c},1,0,1\n"


def test_unknown_attributes_change_nothing(place):
    with pytest.raises(DataError, match=r"unknown attribute 'jumpin'. Did you mean 'jumping'.*attributes\.csv"):
        take_in(Folder(place), [drawn(), drawn("videos/surf/c.mp4", "jumpin")])
    assert (place / "boxes.csv").read_text() == BOXES


def test_unknown_videos_change_nothing(place):
    with pytest.raises(DataError, match=r"unknown video 'videos/dunk/x.mp4'. Did you mean"):
        take_in(Folder(place), [drawn("videos/dunk/x.mp4")])
    assert (place / "boxes.csv").read_text() == BOXES


def test_the_actor_has_boxes_and_is_no_attribute(place):
    take_in(Folder(place), [drawn(attribute="actor")])
    assert read_dataset(place).videos[0].boxes["actor"].frames.tolist() == [2, 3, 4, 5, 6, 7]
    assert not (place / "video_attributes.csv").exists()


def test_videos_by_the_names_of_other_tools(tmp_path):
    folder = Folder(make_dataset(tmp_path, videos=("dunk/a.mp4", "dunk/b.mp4", "surf/b.mp4"), splits=None))
    for name in (A, "dunk/a", "a.mp4", "a", "1a2b3c4d-a.mp4", "/data/local-files/a.mp4"):
        assert folder.find(name).name == A
    assert folder.find("surf/b").name == "videos/surf/b.mp4"
    with pytest.raises(DataError, match=r"'b.mp4' may be 'videos/dunk/b.mp4' or 'videos/surf/b.mp4'. Give `video`"):
        folder.find("b.mp4")
    with pytest.raises(DataError, match=r"unknown video 'c.mp4'"):
        folder.find("c.mp4")
    known = folder.describe("a")
    assert (known.video, known.size, known.frames) == (A, (48, 64), 20)


def test_boxes_beyond_the_video_are_left_out(place):
    rows = ["video,attribute,frame,x1,y1,x2,y2", "dunk/a,jumping,20,1,1,2,2"]
    rows += ["dunk/a,indoor,19,1,1,2,2", "dunk/a,indoor,20,1,1,2,2"]
    (place / "boxes.csv").write_text("\n".join(rows))
    folder = Folder(place)
    (track,) = folder.annotations(folder.find("a")).tracks
    assert (track.attribute, list(track.keyframes)) == ("indoor", [19])


def test_several_files_of_one_video():
    mine, theirs = drawn(), drawn(attribute="with ball", marks=(Mark("indoor"),))
    other = drawn("b")
    both, alone = joined([mine, other, theirs])
    assert both.tracks == (*mine.tracks, *theirs.tracks)
    assert alone == other
    assert joined([theirs, theirs])[0].marks == theirs.marks
    with pytest.raises(ArgumentError, match="one per attribute and annotator"):
        joined([theirs, drawn(marks=(Mark("indoor", False),))])


def test_a_file_for_each_video(tmp_path):
    several = [drawn("videos/dunk/a.mp4"), drawn("dunk/b.mp4")]
    paths = write_out(tmp_path / "out", several, format="cvat")
    assert [path.name for path in paths] == ["videos_dunk_a.mp4.xml", "dunk_b.mp4.xml"]
    assert [read_annotations(path, format="cvat", describe=None)[0] for path in paths] == several
    with pytest.raises(DataError, match="exists already and is not an empty folder"):
        write_out(tmp_path / "out", several, format="cvat")
    alike = write_out(tmp_path / "alike", [drawn("a/b"), drawn("a_b")], format="beaverdam")
    assert [path.name for path in alike] == ["1_a_b.json", "2_a_b.json"]
    (one,) = write_out(tmp_path / "one.xml", several[:1], format="cvat")
    assert read_annotations(one, format="cvat", describe=facts(A, (48, 64), 20)) == several[:1]
