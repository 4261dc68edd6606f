import io
import zipfile

import pytest

from whytube.data.formats import FORMATS
from whytube.errors import DataError
from whytube.web.exchange import read_file, write_file

KEYS = [
    {"frame": 0, "box": (1.5, 2.0, 30.25, 40.0), "outside": False, "occluded": False},
    {"frame": 7, "box": (3.0, 2.0, 33.0, 40.0), "outside": False, "occluded": True},
    {"frame": 9, "box": (3.0, 2.0, 33.0, 40.0), "outside": True, "occluded": False},
]


def video(number, name="a b.mp4", tracks=None):
    own = [{"annotator": "ann", "attribute": "<ball> & 🐈", "keys": KEYS}] if tracks is None else tracks
    marks = [{"annotator": "bob", "attribute": "cat", "present": False}]
    return {
        "id": f"{number:032x}",
        "name": name,
        "width": 320,
        "height": 240,
        "frames": 20,
        "fps": 25.0,
        "tracks": own,
        "marks": marks,
    }


@pytest.mark.parametrize("name", FORMATS)
def test_what_is_written_is_read_again(name):
    videos = [video(1, "one.mp4"), video(2, "two.mp4")]
    ending, data = write_file(name, videos)
    assert ending == (".zip" if FORMATS[name].one_video else FORMATS[name].ending)
    for wanted, found in zip(videos, read_file(name, data, videos, None), strict=True):
        assert {key: wanted[key] for key in found} == found
    _, single = write_file(name, videos[:1])
    (found,) = read_file(name, single, videos, videos[1]["id"])
    assert (found["id"], found["tracks"]) == (videos[1]["id"], videos[0]["tracks"]), "into the video that is open"


def test_videos_are_known_by_the_last_part_of_their_name_or_without_its_ending():
    _, data = write_file("tables", [video(1, "folder/one.avi")])
    (found,) = read_file("tables", data, [video(3, "one.mp4"), video(4, "two.mp4")], None)
    assert found["id"] == f"{3:032x}"
    with pytest.raises(DataError, match=r"no video 'one\.avi' here\. Add it first"):
        read_file("tables", data, [video(4, "zebra")], None)
    with pytest.raises(DataError, match=r"several videos are called 'one\.avi'"):
        read_file("tables", data, [video(3, "one.mp4"), video(4, "one.mkv")], None)


def test_damaged_files_and_archives_say_so():
    with pytest.raises(DataError, match="cannot read the file as CVAT"):
        read_file("cvat", b"<annotations>", [], None)
    with pytest.raises(DataError, match="the archive is damaged"):
        read_file("cvat", b"PK\x03\x04 and then nothing", [], None)
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("bomb.xml", b"0" * (300 << 20))
    with pytest.raises(DataError, match="more than 10000 files or 256 MiB"):
        read_file("cvat", packed.getvalue(), [], None)
