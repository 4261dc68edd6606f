"""Video file, folder of frames or .seq file <-> Clip; the only package that imports a codec (PyAV, when used)."""

from whytube.video.arrays import clip_of_array
from whytube.video.clip import MAX_PIXELS, SAMPLINGS, Clip, VideoInfo, sample_indices
from whytube.video.encode import png_bytes, write_gif, write_png, write_video
from whytube.video.read import iter_windows, probe, read_bytes, read_clip, read_frames, reader

__all__ = [
    "MAX_PIXELS",
    "SAMPLINGS",
    "Clip",
    "VideoInfo",
    "clip_of_array",
    "iter_windows",
    "png_bytes",
    "probe",
    "read_bytes",
    "read_clip",
    "read_frames",
    "reader",
    "sample_indices",
    "write_gif",
    "write_png",
    "write_video",
]
