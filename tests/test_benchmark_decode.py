import json

from benchmarks import decode
from video_files import make_video


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
