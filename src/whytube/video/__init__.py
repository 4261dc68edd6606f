"""Video file, folder of frames or .seq file <-> Clip; the only place that touches a codec (PyAV, loaded on use)."""

from whytube.video.clip import SAMPLINGS, Clip, VideoInfo, sample_indices
from whytube.video.encode import write_video
from whytube.video.read import iter_windows, measure_decode, probe, read_clip
from whytube.video.still import png_bytes, write_gif, write_png

__all__ = [
    "SAMPLINGS",
    "Clip",
    "VideoInfo",
    "iter_windows",
    "measure_decode",
    "png_bytes",
    "probe",
    "read_clip",
    "sample_indices",
    "write_gif",
    "write_png",
    "write_video",
]
