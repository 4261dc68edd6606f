"""The example of docs/data.md is a data set without problems."""

import re
from pathlib import Path

from video_files import encode_image, make_video, picture
from whytube.data.layout import check_dataset, read_dataset

TEXT = (Path(__file__).resolve().parents[1] / "docs" / "data.md").read_text(encoding="utf-8")


def example(folder):
    """Write the CSV snippets, told apart by their headers, and the videos of the tree (without the manifest)."""
    files = {
        "class,with": "attributes",
        "video,jumping": "video_attributes",
        "video,split": "splits",
        "video,att": "boxes",
    }
    snippets = re.findall(r"```csv\n(.*?)```", TEXT, flags=re.DOTALL)
    for start, name in files.items():
        (text,) = [snippet for snippet in snippets if snippet.startswith(start)]
        (folder / f"{name}.csv").write_text(text, encoding="utf-8")
    frames = folder / "videos/Surfing/g04_c02"
    frames.mkdir(parents=True)
    for number in (1, 2):
        (frames / f"000{number}.png").write_bytes(encode_image(picture(number)))
    (folder / "videos/BasketballDunk").mkdir()
    make_video(folder / "videos/Surfing/g01_c01.mp4")
    for name in ("g01_c01", "g02_c01"):
        make_video(folder / f"videos/BasketballDunk/{name}.avi", height=240, width=320, codec="mpeg4")
    return folder


def test_the_example_reads_without_problems(tmp_path):
    folder = example(tmp_path)
    assert check_dataset(folder).problems == ()
    data = read_dataset(folder)
    by_name = {item.name: item for item in data.videos}
    assert [data.count(split) for split in ("train", "val", "test")] == [2, 0, 2]
    assert by_name["videos/Surfing/g04_c02"].attributes.tolist() == [False, True, True, True]
    assert by_name["videos/BasketballDunk/g01_c01.avi"].boxes["with ball"].frames.tolist() == [0, 12]
