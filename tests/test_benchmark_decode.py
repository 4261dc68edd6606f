import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import decode
from video_files import make_seq, make_video
from whytube.errors import VideoError

PROGRAM = Path(decode.__file__)


def test_every_reader_is_measured_and_in_the_table(tmp_path):
    make_video(tmp_path / "small.mp4", 20)
    report = json.loads(json.dumps(decode.run(tmp_path / "small.mp4")))
    assert (report["benchmark"], report["video"]) == ("decode", {"frames": 20, "size": [48, 64]})
    for numbers in (report["frames_per_second"], report["ratio"]):
        assert numbers.keys() == decode.READERS.keys()
        assert all(value > 0 for value in numbers.values())
    assert report["ratio"]["raw"] == 1
    assert report["provenance"]["versions"]["av"]
    text = decode.table(report)
    assert f"| PyAV, frames dropped | {report['frames_per_second']['raw']:.0f} | 1.00 |" in text
    assert "20 frames of 48 x 64" in text


def test_only_video_files_can_be_compared(tmp_path):
    for path in (make_seq(tmp_path / "clip.seq", 3), tmp_path):
        with pytest.raises(VideoError, match=r"is no video file that PyAV's own loop can read"):
            decode.measure(path)


def test_it_runs_as_a_program(tmp_path):
    video, out = make_video(tmp_path / "small.mp4", 3), tmp_path / "out.json"
    done = subprocess.run([sys.executable, PROGRAM, video, "--out", out], capture_output=True, text=True, check=True)
    assert done.stdout == decode.table(json.loads(out.read_text())) + "\n"
    wrong = subprocess.run([sys.executable, PROGRAM, tmp_path / "none.mp4"], capture_output=True, text=True)
    assert wrong.returncode == 2
    assert "no file or folder" in wrong.stderr
