import re
import shutil

import pytest
import torch

from layout_files import ATTRIBUTES, BOXES, SPLITS, make_dataset, write
from video_files import encode_image, make_seq, picture
from whytube.data.layout import read_dataset
from whytube.errors import ArgumentError, DataError, WhytubeError


@pytest.fixture
def folder(tmp_path):
    return make_dataset(tmp_path)


def names(dataset, split):
    return [item.name for item in dataset.items(split)]


def test_a_split_comes_in_rounds_of_all_classes(tmp_path):
    videos = ("dunk/a.mp4", "dunk/b.mp4", "dunk/c.mp4", "surf/d.mp4", "vault/e.mp4", "vault/f.mp4")
    splits = "video,split\n" + "".join(f"{name},train\n" for name in videos)
    dataset = read_dataset(make_dataset(tmp_path, videos, splits=splits, boxes=None))
    assert "".join(item.path.stem for item in dataset.items("train")) == "adebfc"
    assert "".join(item.path.stem for item in dataset.videos) == "abcdef"


def test_class_folders_are_indexed_with_attributes_splits_and_boxes(folder):
    dataset = read_dataset(folder)
    assert dataset.classes == ("dunk", "surf", "vault")
    assert dataset.attribute_names == ("with ball", "jumping", "indoor")
    assert torch.equal(dataset.table, torch.tensor([[1, 1, 1], [0, 0, 0], [0, 1, 1]], dtype=torch.bool))
    assert names(dataset, "train") == ["videos/dunk/a.mp4", "videos/surf/c.mp4"]
    assert names(dataset, "val") == ["videos/vault/d.mp4"]
    assert dataset.count("test") == 1
    first = dataset.items("train")[0]
    assert first.path == folder / "videos/dunk/a.mp4"
    assert first.label == 0
    assert first.attributes.tolist() == [True, True, True]
    assert set(first.boxes) == {"with ball"}
    assert first.boxes["with ball"].frames.tolist() == [0, 10]
    assert first.boxes["with ball"].boxes.tolist() == [[8, 6, 24, 18], [16, 12, 32, 24]]
    assert dataset.items("test")[0].boxes == {}


def test_classes_may_lie_in_the_folder_itself(folder):
    for place in (folder / "videos").iterdir():
        place.rename(folder / place.name)
    (folder / "videos").rmdir()
    write(folder, "splits.csv", "video,split\ndunk/a.mp4,train\ndunk/b,test\nsurf/c.mp4,train\nvault/d,val\n")
    dataset = read_dataset(folder)
    assert names(dataset, "train") == ["dunk/a.mp4", "surf/c.mp4"]
    assert set(dataset.items("train")[0].boxes) == {"with ball"}


def test_manifest_with_splits_relative_and_absolute_paths(tmp_path):
    folder = make_dataset(tmp_path / "data", splits=None)
    elsewhere = tmp_path / "elsewhere.mp4"
    shutil.copy(folder / "videos/surf/c.mp4", elsewhere)
    rows = f"split,video,class\ntest,{elsewhere},surf\ntrain,videos/dunk/a.mp4,dunk\n,videos/dunk/b.mp4,dunk\n"
    dataset = read_dataset(write(folder, "manifest.csv", rows))
    assert names(dataset, "test") == [elsewhere.as_posix()]
    assert dataset.items("test")[0].path == elsewhere
    assert names(dataset, "train") == ["videos/dunk/a.mp4"]
    assert [item.split for item in dataset.videos] == ["test", "train", None]


def test_frame_folders_and_seq_files_are_videos(folder):
    frames = folder / "videos/surf/frames"
    frames.mkdir()
    for index in range(3):
        (frames / f"{index}.png").write_bytes(encode_image(picture(index)))
    make_seq(folder / "videos/surf/e.seq", 4)
    write(folder, "splits.csv", SPLITS + "surf/frames,test\nsurf/e,test\n")
    assert names(read_dataset(folder), "test") == [
        "videos/dunk/b.mp4",
        "videos/surf/e.seq",
        "videos/surf/frames",
    ]


def test_splits_by_name_are_stable_and_move_no_other_video(tmp_path):
    videos = tuple(f"surf/{n:03d}.mp4" for n in range(200))
    small = read_dataset(make_dataset(tmp_path / "small", videos[:100], splits=None, boxes=None))
    large = read_dataset(make_dataset(tmp_path / "large", videos, splits=None, boxes=None))
    before = {item.name: item.split for item in small.videos}
    after = {item.name: item.split for item in large.videos}
    assert before == {name: after[name] for name in before}
    assert 120 <= large.count("train") <= 160
    assert large.count("val") > 5
    assert large.count("train") + large.count("val") + large.count("test") == 200


def test_video_attributes_override_the_class_and_blanks_leave_it(folder):
    write(folder, "video_attributes.csv", "video,jumping,with ball\ndunk/b,0,\nsurf/c,,1\n")
    by_name = {item.name: item.attributes.tolist() for item in read_dataset(folder).videos}
    assert by_name["videos/dunk/a.mp4"] == [True, True, True]
    assert by_name["videos/dunk/b.mp4"] == [True, False, True]
    assert by_name["videos/surf/c.mp4"] == [True, False, False]


def test_video_attributes_alone_give_a_class_what_half_of_its_videos_have(tmp_path):
    rows = "video,with ball,wet\ndunk/a,1,0\ndunk/b,1,1\nsurf/c,0,1\n"
    folder = make_dataset(tmp_path, attributes=None, video_attributes=rows)
    dataset = read_dataset(folder)
    assert dataset.classes == ("dunk", "surf", "vault")
    assert dataset.attribute_names == ("with ball", "wet")
    assert dataset.table.tolist() == [[True, True], [False, True], [False, False]]
    assert dataset.videos[0].attributes.tolist() == [True, False]


def test_videos_alone_make_a_data_set_without_attributes(tmp_path):
    dataset = read_dataset(make_dataset(tmp_path, attributes=None, boxes=None))
    assert dataset.attribute_names == ()
    assert dataset.table.shape == (3, 0)


BROKEN = {
    "attribute": (
        "boxes",
        BOXES + "dunk/a,with bal,3,1,1,2,2\n",
        "boxes.csv:4: .*'with bal'. Did you mean 'with ball'",
    ),
    "video": ("boxes", BOXES + "dunk/aa,jumping,3,1,1,2,2\n", "boxes.csv:4: .*unknown video 'dunk/aa'"),
    "width": ("boxes", BOXES + "dunk/a,jumping,3,9,1,4,2\n", "boxes.csv:4: .*x1 < x2 .* got 9,1,4,2"),
    "nan": ("boxes", BOXES + "dunk/a,jumping,3,nan,1,4,2\n", "boxes.csv:4: .*finite"),
    "text": ("boxes", BOXES + "dunk/a,jumping,x,1,1,4,2\n", "boxes.csv:4: .*integer .* got x,1,1,4,2"),
    "frame": ("boxes", BOXES + "dunk/a,jumping,-1,1,1,4,2\n", "boxes.csv:4: .*counted from 0, got -1"),
    "huge": ("boxes", BOXES + f"dunk/a,jumping,{10**30},1,1,4,2\n", "boxes.csv:4: .*counted from 0"),
    "again": ("boxes", BOXES + "videos/dunk/a.mp4,with ball,0,1,1,4,2\n", "boxes.csv:4: .*already, in line 2"),
    "cells": ("boxes", BOXES + "dunk/a,jumping,3\n", "boxes.csv:4: .*expected 7 cells .* got 3"),
    "class twice": ("attributes", ATTRIBUTES + "surf,1,1,1\n", "attributes.csv:5: .*a row already, in line 3"),
    "flag": ("attributes", ATTRIBUTES.replace("surf,0", "surf,yes"), "attributes.csv:3: .*0 or 1, got 'yes'"),
    "no row": ("attributes", ATTRIBUTES.replace("surf", "serf"), "videos/surf: .*'surf'. Did you mean 'serf'"),
    "header": ("attributes", ATTRIBUTES.replace("class", "klass"), "attributes.csv:1: .*header must have class"),
    "semicolon": ("splits", SPLITS.replace(",", ";"), "splits.csv:1: .*commas, not semicolons"),
    "split": ("splits", SPLITS.replace(",val", ",valid"), "splits.csv:5: .*'valid'. Did you mean 'val'"),
    "split twice": ("splits", SPLITS + "dunk/a,test\n", "splits.csv:6: .*comes again, after line 2"),
    "column twice": ("splits", "video,split,split\n", "splits.csv:1: .*'split' comes twice"),
    "empty": ("boxes", "", "boxes.csv: .*empty"),
    "own attribute": ("video_attributes", "video,jumpin\n", "video_attributes.csv:1: .*Did you mean 'jumping'"),
    "own twice": ("video_attributes", "video,indoor\ndunk/a,1\ndunk/a.mp4,1\n", "attributes.csv:3: .*after line 2"),
    "manifest file": ("manifest", "video,class\nno.mp4,dunk\n", "manifest.csv:2: .*no file or folder .*no.mp4"),
    "manifest class": ("manifest", "video,class\nvideos/dunk/a.mp4,dank\n", "manifest.csv:2: .*Did you mean 'dunk'"),
    "manifest twice": ("manifest", "video,class\n" + "videos/dunk/a.mp4,dunk\n" * 2, "manifest.csv:3: .*comes again"),
    "manifest cell": ("manifest", "video,class\nvideos/dunk/a.mp4,\n", "manifest.csv:2: .*empty cell"),
    "two splits": (
        "manifest",
        "video,class,split\n" + "".join(f"videos/{v}.mp4,{v[:4]},test\n" for v in ("dunk/a", "dunk/b", "surf/c")),
        "splits.csv:2: .*'test' in manifest.csv:2 and in 'train' here",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_errors_name_file_line_and_remedy(folder, name):
    file, text, message = BROKEN[name]
    with pytest.raises(DataError) as caught:
        read_dataset(write(folder, f"{file}.csv", text))
    assert isinstance(caught.value, WhytubeError)
    assert re.search(message, str(caught.value)), str(caught.value)


def test_only_the_first_few_problems_are_raised(folder):
    write(folder, "boxes.csv", BOXES + "dunk/a,jumping,3,9,1,4,2\n" * 30)
    with pytest.raises(DataError, match=r"30 errors in all; `whytube data check --json` lists them") as caught:
        read_dataset(folder)
    assert str(caught.value).count("boxes.csv:") == 4, "one kind: the first, and where the next three are"
    assert "(and 29 more like it: " in str(caught.value)


def test_a_short_name_that_fits_two_videos_is_refused(folder):
    shutil.copy(folder / "videos/dunk/a.mp4", folder / "videos/dunk/a.avi")
    with pytest.raises(DataError, match=r"'dunk/a' may be 'videos/dunk/a.avi' or 'videos/dunk/a.mp4'. Write"):
        read_dataset(folder)


def test_csv_files_may_carry_a_byte_order_mark_blanks_and_windows_line_ends(folder):
    text = "﻿" + ATTRIBUTES.replace(",", " , ").replace("\n", "\r\n\r\n")
    (folder / "attributes.csv").write_bytes(text.encode())
    assert read_dataset(folder).attribute_names == ("with ball", "jumping", "indoor")


def test_other_encodings_and_binary_files_are_refused(folder):
    (folder / "attributes.csv").write_bytes(ATTRIBUTES.encode("utf-16"))
    with pytest.raises(DataError, match=r"attributes.csv: error: the file is not UTF-8"):
        read_dataset(folder)


def test_missing_and_empty_folders(tmp_path):
    with pytest.raises(DataError, match="does not exist; expected a folder"):
        read_dataset(tmp_path / "none")
    with pytest.raises(DataError, match="no videos"):
        read_dataset(tmp_path)


def test_an_unreadable_folder_is_a_data_error(folder, monkeypatch):
    def refuse(path):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("pathlib.Path.iterdir", refuse)
    with pytest.raises(DataError, match="videos cannot be read: Permission denied"):
        read_dataset(folder)


def test_unknown_split_names_are_refused(folder):
    with pytest.raises(ArgumentError, match="'train', 'val', 'test'"):
        read_dataset(folder).items("all")


def test_class_and_name_stand_for_a_video_that_lies_anywhere(tmp_path):
    folder = make_dataset(tmp_path / "data", splits=None, boxes=None)
    for place in ("one", "two"):
        (tmp_path / place).mkdir()
        shutil.copy(folder / "videos/dunk/a.mp4", tmp_path / place / "x.mp4")
    write(folder, "manifest.csv", "video,class\n../one/x.mp4,surf\n../two/x.mp4,vault\nvideos/dunk/a.mp4,dunk\n")
    write(folder, "splits.csv", "video,split\nsurf/x,train\nvault/x.mp4,test\ndunk/a,test\n")
    dataset = read_dataset(folder)
    assert names(dataset, "train") == ["../one/x.mp4"]
    assert set(names(dataset, "test")) == {"../two/x.mp4", "videos/dunk/a.mp4"}
