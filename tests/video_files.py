"""Videos made for tests, each with one property that real files have."""

import struct
from fractions import Fraction
from pathlib import Path

import av
import numpy as np


def picture(index, height=48, width=64):
    """Grey whose level tells the frame's number, with a red upper left and a blue lower right corner."""
    pixels = np.full((height, width, 3), 40 + 4 * (index % 50), dtype=np.uint8)
    pixels[: height // 3, : width // 3] = (220, 20, 20)
    pixels[-(height // 3) :, -(width // 3) :] = (20, 20, 220)
    return pixels


def number(frame):
    """Frame number from the middle of a (3, H, W) picture made by `picture`."""
    _, height, width = frame.shape
    level = float(frame[:, height // 2 - 1 : height // 2 + 2, width // 2 - 1 : width // 2 + 2].mean()) * 255
    return round((level - 40) / 4)


def numbers(clip):
    """Frame numbers of a clip of pictures."""
    return [number(clip.frames[:, t]) for t in range(clip.frames.shape[1])]


def make_video(
    path,
    count=20,
    *,
    height=48,
    width=64,
    codec="libx264",
    pts=None,
    rotation=None,
    gop=12,
    rate=25,
    container=None,
    pixel_format=None,
    title=None,
    aspect=None,
    sound=None,
    **options,
):
    """Encode `count` pictures; pts in units of 1/rate, rotation as keywords of PyAV's set_display_rotation.

    aspect: width and height of a pixel. sound: seconds of silence beside them.
    """
    with av.open(str(path), "w", format=container, options=options) as out:
        if title is not None:
            out.metadata["title"] = title
        stream = out.add_stream(codec, rate=rate)
        stream.width, stream.height = width, height
        stream.pix_fmt = pixel_format or {"mjpeg": "yuvj420p", "libx264": "yuv444p"}.get(codec, "yuv420p")
        stream.gop_size = gop
        if codec == "libx264":
            stream.options = {"crf": "10", "preset": "ultrafast", "bf": "2"}
        else:
            stream.bit_rate = 4_000_000
        stream.codec_context.time_base = Fraction(1, rate)
        if aspect is not None:
            stream.codec_context.sample_aspect_ratio = Fraction(*aspect)
        if rotation is not None:
            stream.set_display_rotation(**rotation)
        voice = out.add_stream("libopus", rate=48000) if sound is not None else None
        for index in range(count):
            frame = av.VideoFrame.from_ndarray(picture(index, height, width), format="rgb24")
            frame.pts = index if pts is None else pts[index]
            frame.time_base = Fraction(1, rate)
            out.mux(stream.encode(frame))
        out.mux(stream.encode(None))
        if voice is not None:
            _add_silence(out, voice, sound)
    return Path(path)


def _add_silence(out, stream, seconds):
    for start in range(0, int(48000 * seconds), 960):
        frame = av.AudioFrame.from_ndarray(np.zeros((1, 2 * 960), dtype=np.int16), format="s16", layout="stereo")
        frame.sample_rate, frame.pts = 48000, start
        out.mux(stream.encode(frame))
    out.mux(stream.encode(None))


def make_gif(path, width, height, count=20):
    """Write a few bytes that announce pictures of any size; one pixel of each is drawn."""
    data = b"GIF89a" + struct.pack("<HHBBB", width, height, 0x80, 0, 0) + bytes([0, 0, 0, 255, 255, 255])
    shown = b"\x21\xf9\x04\x00\x05\x00\x00\x00\x2c" + struct.pack("<HHHHB", 0, 0, 1, 1, 0) + b"\x02\x02\x44\x01\x00"
    path.write_bytes(data + count * shown + b"\x3b")
    return path


def make_audio(path):
    """One second of silence."""
    with av.open(str(path), "w") as out:
        stream = out.add_stream("aac", rate=8000)
        frame = av.AudioFrame.from_ndarray(np.zeros((1, 8000), dtype=np.float32), format="fltp", layout="mono")
        frame.sample_rate = 8000
        frame.pts = 0
        out.mux(stream.encode(frame))
        out.mux(stream.encode(None))
    return Path(path)


def drop_avi_frame(path, index):
    """Leave one frame's chunk empty, as recorders do when nothing changed; without an index at the end."""
    data = path.read_bytes()
    movi = data.index(b"movi")
    at, end, chunks = movi + 4, data.index(b"idx1", movi), []
    while at < end and data[at : at + 2] == b"00":
        size = struct.unpack_from("<I", data, at + 4)[0]
        chunks.append(data[at : at + 8 + size + size % 2])
        at += len(chunks[-1])
    chunks[index] = chunks[index][:4] + bytes(4)
    body = b"movi" + b"".join(chunks)
    head = data[8 : movi - 4] + struct.pack("<I", len(body)) + body
    path.write_bytes(data[:4] + struct.pack("<I", len(head)) + head)
    return path


def encode_image(pixels, codec="png"):
    """Bytes of one PNG or JPEG image."""
    context = av.CodecContext.create(codec, "w")
    context.height, context.width = pixels.shape[:2]
    context.pix_fmt = "rgb24" if codec == "png" else "yuvj444p"
    context.time_base = Fraction(1, 25)
    frame = av.VideoFrame.from_ndarray(pixels, format="rgb24").reformat(format=context.pix_fmt)
    frame.pts = 0
    return b"".join(bytes(packet) for packet in [*context.encode(frame), *context.encode(None)])


def make_seq(path, count=6, *, image_format=201, padding=b"", promised=None, step=0.04, codec="mjpeg", fps=30.0):
    """Write Piotr's toolbox format, as its writer lays it out."""
    name = "Norpix seq".encode("utf-16-le").ljust(24, b"\0")
    header = b"\xed\xfe\0\0" + name + struct.pack("<iI", 3, 1024) + bytes(512)
    announced = count if promised is None else promised
    header += struct.pack("<9Id", 64, 48, 24, 8, 64 * 48 * 3, image_format, announced, 0, 0, fps)
    body = b""
    for index in range(count):
        image = encode_image(picture(index), codec)
        milliseconds = round(1000 * (1_000_000_000.5 + index * step)) % 1000
        seconds = int(1_000_000_000.5 + index * step)
        body += struct.pack("<I", len(image) + 4) + image + struct.pack("<IHH", seconds, milliseconds, 0) + padding
    path.write_bytes(header.ljust(1024, b"\0") + body)
    return path
