"""CVAT for video 1.1.

The shape of the files below is that of CVAT's documentation, "XML annotation format", version 1.1 (docs.cvat.ai), and
of what its exporter writes (cvat/apps/dataset_manager/formats/cvat.py): a box for every frame, two decimals, keyframe 0
or 1, and an outside box at the end.
"""

import io
import zipfile

import pytest
from hypothesis import given, settings

from annotation_examples import annotations, example, facts, there_and_back
from whytube.data.formats import Box, Track, cvat
from whytube.errors import ArgumentError, DataError, WhytubeError

META = """
    <task>
      <id>12</id>
      <name>some dunk</name>
      <size>20</size>
      <mode>interpolation</mode>
      <overlap>5</overlap>
      <bugtracker></bugtracker>
      <created>2026-01-05 10:11:12.131415+00:00</created>
      <start_frame>0</start_frame>
      <stop_frame>19</stop_frame>
      <frame_filter></frame_filter>
      <labels>
        <label>
          <name>with ball</name>
          <color>#ff00cc</color>
          <type>any</type>
          <attributes>
            <attribute>
              <name>annotator</name><mutable>False</mutable><input_type>text</input_type>
              <default_value></default_value><values></values>
            </attribute>
          </attributes>
        </label>
      </labels>
      <segments><segment><id>4</id><start>0</start><stop>19</stop><url>http://localhost/?id=4</url></segment></segments>
      <owner><username>ann</username><email></email></owner>
      <original_size><width>320</width><height>240</height></original_size>
      <source>g01_c01.avi</source>
    </task>
    <dumped>2026-01-05 11:12:13.141516+00:00</dumped>"""
BALL = """
  <track id="0" label="with ball" source="manual">
    <box frame="3" keyframe="1" outside="0" occluded="0" xtl="10.00" ytl="20.50" xbr="30.25" ybr="44.00" z_order="0">
      <attribute name="annotator">ann</attribute>
    </box>
    <box frame="4" keyframe="0" outside="0" occluded="0" xtl="11.00" ytl="20.50" xbr="31.25" ybr="44.00" z_order="0">
      <attribute name="annotator">ann</attribute>
    </box>
    <box frame="5" keyframe="1" outside="0" occluded="1" xtl="12.00" ytl="20.50" xbr="32.25" ybr="44.00" z_order="0">
    </box>
    <box frame="6" keyframe="0" outside="0" occluded="1" xtl="12.00" ytl="20.50" xbr="32.25" ybr="44.00" z_order="0">
    </box>
    <box frame="7" keyframe="1" outside="1" occluded="0" xtl="12.00" ytl="20.50" xbr="32.25" ybr="44.00" z_order="0">
    </box>
  </track>"""


def file(tracks=BALL, meta=META):
    head = '<?xml version="1.0" encoding="utf-8"?>\n<annotations>\n  <version>1.1</version>'
    return f"{head}<meta>{meta}</meta>{tracks}\n</annotations>\n".encode()


def test_a_file_as_cvat_writes_it():
    (one,) = cvat.read(file())
    assert (one.video, one.size, one.frames, one.fps, one.marks) == ("g01_c01.avi", (240, 320), 20, None, ())
    box = Box(12, 20.5, 32.25, 44)
    keys = {3: Box(10, 20.5, 30.25, 44), 5: Box(*box.corners, occluded=True), 7: box.hidden()}
    assert one.tracks == (Track("with ball", keys, "ann"),)
    assert one.tracks[0].tube(20).frames.tolist() == [3, 4, 5, 6]


def test_what_is_known_of_the_video_is_believed():
    (one,) = cvat.read(file(), facts("videos/Dunk/g01_c01.avi", frames=19))
    assert (one.video, one.frames, one.fps) == ("videos/Dunk/g01_c01.avi", 19, 25.0)
    with pytest.raises(DataError, match="frames of 64 x 48 pixels, and its boxes are of 320 x 240"):
        cvat.read(file(), facts(size=(48, 64)))


def test_older_files_and_jobs():
    """Before 2021 the size stood beside the task; a job is exported under <job>."""
    size = "<original_size><width>320</width><height>240</height></original_size>"
    (old,) = cvat.read(file(meta=META.replace(size, "").replace("</task>", f"</task>{size}")))
    (job,) = cvat.read(file(meta=META.replace("task>", "job>")))
    assert old == job == cvat.read(file())[0]


def test_a_project_has_several_videos():
    second = META.replace("<id>12</id>", "<id>13</id>").replace("g01_c01", "g02_c01")
    tracks = BALL.replace('id="0"', 'id="0" task_id="13" subset="default"')
    nothing, one = cvat.read(file(tracks, f"<project><tasks>{META}{second}</tasks></project>"))
    assert (nothing.video, nothing.tracks) == ("g01_c01.avi", ())
    assert (one.video, len(one.tracks)) == ("g02_c01.avi", 1)
    lost = tracks.replace('task_id="13"', 'task_id="14"')
    with pytest.raises(ArgumentError, match="`track 0: task_id` must be the id of one of its tasks, got '14'"):
        cvat.read(file(lost, f"<project><tasks>{META}{second}</tasks></project>"))


def test_the_zip_that_cvat_gives_to_download():
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("annotations.xml", file())
    assert cvat.read(packed.getvalue()) == cvat.read(file())
    for damaged in (packed.getvalue()[:-30], packed.getvalue()[:40]):
        with pytest.raises(DataError, match=r"damaged \.zip"):
            cvat.read(damaged)
    other = io.BytesIO()
    with zipfile.ZipFile(other, "w") as archive:
        archive.writestr("labels.txt", "")
    with pytest.raises(DataError, match=r"holds no annotations\.xml"):
        cvat.read(other.getvalue())


@settings(max_examples=60, deadline=None)
@given(annotations())
def test_there_and_back(one):
    """Exact: corners are written as the shortest text that reads back as the same float."""
    assert there_and_back("cvat", one) == [one]


def test_what_cvat_needs_is_there():
    """Its loader asks every box of a track for these; a frame beyond the end, or twice, it refuses."""
    root = cvat._parse(cvat.write([example()]).encode())
    assert root.findtext("version") == "1.1"
    assert root.findtext("meta/task/mode") == "interpolation"
    labels = {label.findtext("name") for label in root.iter("label")}
    for track in root.iter("track"):
        assert track.get("label") in labels
        frames = [int(box.attrib["frame"]) for box in track]
        assert sorted(set(frames)) == frames
        assert frames[-1] < 40
        for box in track:
            assert {"keyframe", "outside", "occluded", "xtl", "ytl", "xbr", "ybr", "z_order"} <= set(box.keys())


LAUGHS = '<!DOCTYPE a [<!ENTITY l "ha"><!ENTITY m "&l;&l;&l;">]><annotations>&m;</annotations>'
FETCHED = '<!DOCTYPE a [<!ENTITY f SYSTEM "file:///etc/passwd">]><annotations>&f;</annotations>'


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (LAUGHS, "it declares a document type, which no file of CVAT does"),
        (FETCHED, "it declares a document type"),
        ('<!DOCTYPE a SYSTEM "http://localhost/a.dtd"><annotations/>', "it declares a document type"),
        ("<annotations>&undeclared;</annotations>", "cut off, or not XML"),
        ("<a>" * 40, "nested deeper than 32 elements"),
        (file()[:900], "cut off, or not XML"),
        (b"", "cut off, or not XML"),
        (b"\x00\xff\x00", "cut off, or not XML"),
        ("<html/>", "expected <annotations> of CVAT, got <html>"),
        ("<annotations><image/></annotations>", "a CVAT file for images: export it as `CVAT for video 1.1`"),
        ("<annotations/>", "expected <meta> with a <task>, got none"),
        (file(meta="<task><name>v</name></task>"), "does not say the size and the number of frames of the video 'v'"),
        (
            file(BALL.replace("<box", "<polygon").replace("</box", "</polygon")),
            "`track 0` must be of boxes, got a polygon",
        ),
        (file(BALL.replace('xtl="10.00"', 'xtl="ten"')), "`track 0: xtl` must be a number, got 'ten'"),
        (file(BALL.replace('xtl="10.00"', "")), "`track 0: xtl` must be a number, got ''"),
        (file(BALL.replace('xtl="10.00"', 'xtl="nan"')), "`x1` must be a finite number, got nan"),
        (file(BALL.replace('frame="3"', 'frame="3.5"')), "`track 0: frame` must be an integer, got '3.5'"),
        (file(BALL.replace('frame="3"', 'rotation="30" frame="3"')), "must be an upright box, got a rotation of 30"),
        (file(BALL.replace('xbr="30.25"', 'xbr="3"')), "x1 < x2 and y1 < y2, got 10,20.5,3,44"),
        (file(meta=META.replace("<width>320", "<width>wide")), "`width` must be an integer, got 'wide'"),
        (file(BALL.replace('label="with ball"', "")), "`attribute` must be text"),
    ],
)
def test_damaged_and_hostile_files(data, message):
    with pytest.raises((DataError, ArgumentError)) as caught:
        cvat.read(data.encode() if isinstance(data, str) else data)
    assert isinstance(caught.value, WhytubeError)
    assert message in str(caught.value)


def test_a_track_that_is_nowhere_seen_is_left_out():
    (one,) = cvat.read(file(BALL.replace('outside="0"', 'outside="1"')))
    assert one.tracks == ()
