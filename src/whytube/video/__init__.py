"""Video file, folder of frames or .seq file <-> Clip; the only place that touches a codec (PyAV, loaded on use)."""

from whytube.video.clip import SAMPLINGS, Clip, VideoInfo, sample_indices
from whytube.video.encode import write_video
from whytube.video.read import iter_windows, measure_decode, probe, read_clip

__all__ = [
    "SAMPLINGS",
    "Clip",
    "VideoInfo",
    "iter_windows",
    "measure_decode",
    "probe",
    "read_clip",
    "sample_indices",
    "write_video",
]
