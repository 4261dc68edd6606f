"""The videos that SOURCE stands for: a folder, a glob, a manifest, or addresses in an object store.

Addresses such as s3://bucket/clips/ are read through pyarrow's file systems.
"""

from __future__ import annotations

import csv
import fnmatch
import glob
import importlib.util
import io
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from whytube.data.folders import find_videos
from whytube.data.layout.videos import VIDEO_SUFFIXES
from whytube.errors import ArgumentError, DataError

if TYPE_CHECKING:
    from collections.abc import Iterable

MANIFESTS = (".csv", ".parquet")
LOOKS_LIKE_A_PATTERN = "*?["


@dataclass(frozen=True, slots=True)
class Listed:
    """A video: its path or address, and its true class, "" where that is not known."""

    video: str
    label: str = ""


def list_videos(source: str) -> list[Listed]:
    """List the videos of a source, in an order that does not change.

    A manifest is a CSV or Parquet file with a column `video` (paths relative to the manifest, or addresses) and perhaps
    `class`, the true class. A video may be listed several times; it is then explained as often.
    """
    if importlib.util.find_spec("pyarrow") is None:
        raise ArgumentError("pyarrow is not installed: pip install 'whytube[bulk]'")
    if source.lower().endswith(MANIFESTS):
        return _manifest(source)
    if "://" in source:
        return [Listed(address) for address in _stored(source)]
    if any(letter in source for letter in LOOKS_LIKE_A_PATTERN) and not Path(source).exists():
        found = sorted(glob.glob(source, recursive=True))  # noqa: PTH207 - a pattern from the root, too
        if not found:
            raise ArgumentError(
                f"no file fits {source}: write the pattern in quotes, ** stands for folders of any depth"
            )
        return [Listed(str(Path(path).absolute())) for path in found]
    if not Path(source).exists():
        raise ArgumentError(
            f"cannot find {source}: name a folder, a pattern, a manifest (.csv, .parquet) or an address"
        )
    return [Listed(str(path.absolute())) for path in find_videos([Path(source)])]


def is_address(video: str) -> bool:
    """Whether a video is in an object store, not in a folder."""
    return "://" in video


def open_address(address: str) -> tuple[Any, str]:
    """Return pyarrow's file system of an address, and the path in it."""
    from pyarrow import ArrowException, fs

    try:
        system, path = fs.FileSystem.from_uri(address)
    except (ArrowException, OSError, ValueError) as error:
        raise DataError(f"cannot use the address {address}: {_one_line(error)}") from error
    return system, path


def _stored(source: str) -> list[str]:
    """List the videos below an address, or those that fit a pattern in it."""
    from pyarrow import fs

    pattern = PurePosixPath(source.partition("://")[2])
    plain: list[str] = []
    for part in pattern.parts:
        if any(letter in part for letter in LOOKS_LIKE_A_PATTERN):
            break
        plain.append(part)
    scheme = source.partition("://")[0]
    root = f"{scheme}://{'/'.join(plain)}".replace(":////", ":///")
    system, path = open_address(root)
    try:
        info = system.get_file_info(path)
        if info.type == fs.FileType.File:
            return [root]
        files = system.get_file_info(fs.FileSelector(path, recursive=True))
    except OSError as error:
        raise DataError(f"cannot list {source}: {_one_line(error)}") from error
    names = sorted(file.path for file in files if file.type == fs.FileType.File)
    rest = "/".join(pattern.parts[len(plain) :])
    videos = [
        name
        for name in names
        if Path(name).suffix.lower() in VIDEO_SUFFIXES
        and (not rest or fnmatch.fnmatch(name.removeprefix(path).lstrip("/"), rest))
    ]
    if not videos:
        raise ArgumentError(f"there is no video at {source}")
    return [f"{root.rstrip('/')}/{name.removeprefix(path).lstrip('/')}" for name in videos]


def _manifest(source: str) -> list[Listed]:
    rows = _table(source)
    folder = source.rpartition("/")[0] if is_address(source) else str(Path(source).absolute().parent)
    found = []
    for line, (video, label) in enumerate(rows, start=2):
        if not video:
            raise DataError(f"{source}, row {line}: the column `video` is empty")
        whole = video if is_address(video) or Path(video).is_absolute() else f"{folder}/{video}"
        found.append(Listed(whole, label))
    if not found:
        raise DataError(f"{source} lists no video")
    return found


def _table(source: str) -> Iterable[tuple[str, str]]:
    """Columns `video` and `class` of a manifest."""
    from pyarrow import ArrowException, parquet

    try:
        if is_address(source):
            system, path = open_address(source)
            with system.open_input_file(path) as file:
                data = file.read()
        else:
            data = Path(source).read_bytes()
        if source.lower().endswith(".parquet"):
            table = parquet.read_table(io.BytesIO(data))
            columns = {
                name: table.column(name).to_pylist() for name in table.column_names if name in ("video", "class")
            }
        else:
            lines = list(csv.DictReader(io.StringIO(data.decode("utf-8-sig")), strict=True))
            named = lines[0].keys() if lines else ()
            columns = {name: [line.get(name) for line in lines] for name in ("video", "class") if name in named}
    except (ArrowException, OSError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"cannot read the manifest {source}: {_one_line(error)}") from error
    if "video" not in columns:
        raise DataError(f"the manifest {source} has no column `video`")
    videos = [str(video or "") for video in columns["video"]]
    return zip(videos, [str(label or "") for label in columns.get("class", [""] * len(videos))], strict=True)


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
