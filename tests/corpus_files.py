"""Makes odd and damaged videos, the same ones for the same seed: `make(folder, count, seed)`."""

import csv
import os
import struct

import av
import numpy as np

from video_files import encode_image, make_audio, make_gif, make_seq, make_video, picture

CODECS = {
    ".mp4": ("libx264", "mpeg4"),
    ".mov": ("libx264", "mpeg4", "mjpeg"),
    ".mkv": ("libx264", "mpeg4", "mjpeg", "libvpx"),
    ".avi": ("mpeg4", "mjpeg", "libx264"),
    ".webm": ("libvpx",),
    ".ts": ("mpeg2video", "libx264"),
    ".mpg": ("mpeg1video", "mpeg2video"),
    ".wmv": ("wmv2",),
    ".flv": ("flv",),
}
FORMATS = {"libx264": ("yuv420p", "yuv422p", "yuv444p", "yuvj420p", "gray", "yuv420p10le"), "mjpeg": ("yuvj420p",)}
ENDINGS = (".mp4", ".avi", ".mkv", ".webm", ".seq", ".mov", ".ts", ".mpg", ".wmv", ".flv")


def make(folder, count, seed=0):
    """Write `count` data sets of one odd video each; returns the path of each set and of the video in it."""
    makers = _plan(count, np.random.default_rng(seed))
    return [_case(folder / f"{number:04}", maker, [seed, number]) for number, maker in enumerate(makers)]


def _plan(count, rng):
    """Every special maker once, then those that are made by chance."""
    chance = rng.choice(len(CHANCE), max(0, count - len(SPECIAL)), p=[share for _, share in CHANCE])
    return [*SPECIAL, *(CHANCE[kind][0] for kind in chance)][:count]


def _case(folder, maker, seed):
    place = folder / "videos" / "thing"
    place.mkdir(parents=True)
    path = maker(place, np.random.default_rng(seed))
    try:
        name = path.relative_to(folder).as_posix()
        with (folder / "manifest.csv").open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows([("video", "class"), (name, "thing")])
    except UnicodeEncodeError:
        (folder / "manifest.csv").unlink()
    return folder, path


def odd_video(place, rng):
    """Make a whole video of a random size, format, length, rate, turn, pixel shape and container."""
    ending = str(rng.choice(list(CODECS)))
    codec = str(rng.choice(CODECS[ending]))
    count = int(rng.integers(1, 25))
    even = codec != "libx264"
    height, width = (int(n) + (int(n) % 2 if even else 0) for n in rng.integers(16, 260, 2))
    settings = {"pixel_format": str(rng.choice(FORMATS[codec]))} if codec in FORMATS else {}
    if settings.get("pixel_format") not in (None, "yuv444p", "gray"):
        height, width = height + height % 2, width + width % 2
    if ending in (".mkv", ".mov") and rng.random() < 0.5:
        settings["pts"] = np.cumsum(rng.integers(1, 30, count)).tolist()
    if ending in (".mp4", ".mov") and rng.random() < 0.5:
        settings["rotation"] = {"degrees": int(rng.choice([0, 90, 180, -90])), "hflip": bool(rng.random() < 0.3)}
    if rng.random() < 0.3:
        settings["aspect"] = tuple(rng.integers(1, 20, 2).tolist())
    if ending in (".mkv", ".webm") and rng.random() < 0.4:
        settings["sound"] = float(rng.random() * 3)
    settings |= {"gop": int(rng.integers(1, 20)), "fflags": "+bitexact"}
    path = place / f"video{ending}"
    return make_video(
        path, count, height=height, width=width, codec=codec, rate=int(rng.choice([24, 25, 30])), **settings
    )


def _spoilt(spoil):
    def maker(place, rng):
        path = odd_video(place, rng)
        path.write_bytes(bytes(spoil(bytearray(path.read_bytes()), rng)))
        return path

    return maker


def cut(data, rng):
    """Leave a beginning."""
    return data[: int(rng.integers(1, len(data)))]


def flip(data, rng):
    """Change single bytes; half of the time only in the header."""
    end = len(data) if rng.random() < 0.5 else min(len(data), 600)
    for at in rng.integers(0, end, int(rng.integers(1, 30))):
        data[at] ^= 1 << int(rng.integers(8))
    return data


def zero(data, rng):
    """Overwrite a range, with zeros or with noise."""
    at, size = int(rng.integers(0, len(data))), int(rng.integers(1, 1 + len(data) // 3))
    fill = bytes(size) if rng.random() < 0.5 else rng.bytes(size)
    data[at : at + size] = fill
    return data


def shift(data, rng):
    """Insert noise, or leave out a range."""
    at, size = int(rng.integers(0, len(data))), int(rng.integers(1, 300))
    data[at : at + (0 if rng.random() < 0.5 else size)] = rng.bytes(size) if rng.random() < 0.5 else b""
    return data


def renamed(place, rng):
    """Give a whole video the ending of another container."""
    path = odd_video(place, rng)
    return path.rename(place / f"renamed{rng.choice(ENDINGS)}")


def no_video(place, rng):
    """Write nothing, text or noise under the name of a video."""
    path = place / f"none{rng.choice(ENDINGS)}"
    content = (b"", b"hello\n" * 200, rng.bytes(5000), b"\0" * 5000, b"#EXTM3U\nhttp://127.0.0.1/a.ts\n")
    path.write_bytes(content[int(rng.integers(len(content)))])
    return path


def frames(place, rng):
    """Make a folder of pictures of different sizes and kinds, some of them broken."""
    folder = place / "frames"
    folder.mkdir()
    for number in range(int(rng.integers(0, 12))):
        codec = str(rng.choice(["png", "mjpeg"]))
        data = bytearray(encode_image(picture(number, *rng.integers(1, 200, 2).tolist()), codec))
        if rng.random() < 0.15:
            data = (cut, flip, zero)[int(rng.integers(3))](data, rng)
        (folder / f"{number}{rng.choice(['.png', '.jpg', '.JPEG', '.txt'])}").write_bytes(data)
    return folder


def seq(place, rng):
    """Write a .seq, mostly broken."""
    count = int(rng.integers(0, 8))
    path = make_seq(
        place / "video.seq",
        count,
        promised=int(rng.choice([count, 0, 3, 2**32 - 1])),
        fps=float(rng.choice([30, 0, np.nan])),
    )
    if rng.random() < 0.7:
        path.write_bytes(bytes((cut, flip, zero, shift)[int(rng.integers(4))](bytearray(path.read_bytes()), rng)))
    return path


def _gif(width, height):
    return lambda place, _: make_gif(place / "picture.gif", width, height, count=5)


def _named(name):
    return lambda place, rng: odd_video(place, rng).rename(place / name)


def _pipe(place, _):
    os.mkfifo(place / "pipe.mp4")
    return place / "pipe.mp4"


def _link(target):
    def maker(place, _):
        (place / "link.mp4").symlink_to(target)
        return place / "link.mp4"

    return maker


def _cover(place, _):
    """Make sound with a cover picture, which is no video."""
    image = b"\x00image/png\x00\x03\x00" + encode_image(picture(0))
    frame = b"APIC" + struct.pack(">IH", len(image), 0) + image
    size = bytes((len(frame) >> shift) & 127 for shift in (21, 14, 7, 0))
    path = place / "cover.mp4"
    with av.open(str(path), "w", format="mp3") as out:
        stream = out.add_stream("libmp3lame", rate=44100)
        sound = av.AudioFrame.from_ndarray(np.zeros((2, 44100), dtype=np.float32), format="fltp", layout="stereo")
        sound.sample_rate, sound.pts = 44100, 0
        out.mux(stream.encode(sound))
        out.mux(stream.encode(None))
    path.write_bytes(b"ID3\x03\x00\x00" + size + frame + path.read_bytes())
    return path


def _title(place, _):
    path = make_video(place / "title.avi", 8, codec="mpeg4", title="AAAA")
    path.write_bytes(path.read_bytes().replace(b"AAAA", b"\xe9\xff\xfe\xe8"))
    return path


def _live(place, _):
    return make_video(place / "live.webm", 20, codec="libvpx", live="1")


def _bare(place, _):
    return make_video(place / "bare.h264", 10, container="h264")


SPECIAL = (
    _gif(16000, 16000),
    _gif(65535, 65535),
    _gif(7680, 4320),
    _gif(1, 1),
    _gif(0, 0),
    _named("two\nlines.mp4"),
    _named(os.fsdecode(b"\xff\xe9.mkv")),
    _named("[red]markup.avi"),
    _named("-dash %d 'quote'.mp4"),
    _named("n" * 250 + ".ts"),
    _pipe,
    _link("link.mp4"),
    _link("/dev/zero"),
    _link("/dev/null"),
    _link("."),
    _link("nowhere.mp4"),
    lambda place, _: make_audio(place / "sound.mp4"),
    _cover,
    _title,
    _live,
    _bare,
)
CHANCE = (
    (odd_video, 0.22),
    (_spoilt(cut), 0.17),
    (_spoilt(flip), 0.2),
    (_spoilt(zero), 0.12),
    (_spoilt(shift), 0.06),
    (renamed, 0.04),
    (no_video, 0.05),
    (frames, 0.08),
    (seq, 0.06),
)
"""What is made by chance, and how often."""
