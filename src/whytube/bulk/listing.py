"""The videos that SOURCE stands for: a folder, a glob, a manifest, or addresses in an object store.

Addresses such as s3://bucket/clips/ are read through pyarrow's file systems. Settings of the file system may follow, as
in s3://bucket/clips/?endpoint_override=http://127.0.0.1:9000. Letters that no address may have, such as blanks, are
written as %20 and so on in the addresses that are listed; in those that are given they may stand as they are.
"""

from __future__ import annotations

import csv
import fnmatch
import glob
import importlib.util
import io
import re
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

from whytube.data.folders import find_videos
from whytube.data.layout.videos import VIDEO_SUFFIXES
from whytube.errors import ArgumentError, DataError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

MANIFESTS = (".csv", ".parquet")
LOOKS_LIKE_A_PATTERN = "*?["
SETTINGS = re.compile(r"\?(?=[a-z_]+=)")
"""Where settings begin in an address; any other question mark is of a pattern."""
PLAIN = "/%:@!$&'()*+,;=~"
"""Letters that an address may have, beside those of names."""


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
    if split_address(source)[0].lower().endswith(MANIFESTS):
        return _manifest(source)
    if is_address(source):
        return [Listed(address) for address in _stored(source)]
    if any(letter in source for letter in LOOKS_LIKE_A_PATTERN) and not Path(source).exists():
        found = sorted(glob.glob(source, recursive=True))  # noqa: PTH207 - a pattern from the root, too
        if not found:
            raise ArgumentError(
                f"no file fits {source}: write the pattern in quotes, ** stands for folders of any depth"
            )
        places = [Path(path).absolute() for path in found]
        if not _plain_suffix(source):  # the pattern does not say which files
            places = [place for place in places if place.is_dir() or place.suffix.lower() in VIDEO_SUFFIXES]
        videos = dict.fromkeys(video for place in places for video in _inside(place))
        if not videos:
            raise ArgumentError(f"no video fits {source}: the pattern may end in *.mp4 or the like")
        return [Listed(str(video)) for video in videos]
    if not Path(source).exists():
        raise ArgumentError(
            f"cannot find {source}: name a folder, a pattern, a manifest (.csv, .parquet) or an address"
        )
    return [Listed(str(path.absolute())) for path in find_videos([Path(source)])]


def _plain_suffix(pattern: str) -> bool:
    suffix = PurePosixPath(pattern).suffix
    return bool(suffix) and not any(letter in suffix for letter in LOOKS_LIKE_A_PATTERN)


def _inside(place: Path) -> list[Path]:
    """Return a video itself, or those in a folder; none where it has none."""
    try:
        return find_videos([place])
    except ArgumentError:
        return []


def is_address(video: str) -> bool:
    """Whether a video is in an object store, not in a folder."""
    return "://" in video


def split_address(address: str) -> tuple[str, str]:
    """Return an address or a path without its settings, and these: "" or what begins with a question mark."""
    found = SETTINGS.search(address) if is_address(address) else None
    return (address, "") if found is None else (address[: found.start()], address[found.start() :])


def open_address(address: str) -> tuple[Any, str]:
    """Return pyarrow's file system of an address, and the path in it."""
    from pyarrow import ArrowException, fs

    place, settings = split_address(address)
    try:
        system, path = fs.FileSystem.from_uri(quote(place, safe=PLAIN) + settings)
    except (ArrowException, OSError, ValueError) as error:
        raise DataError(f"cannot use the address {address}: {one_line(error)}") from error
    return system, path


def _stored(source: str) -> list[str]:
    """List the videos below an address, or those that fit a pattern in it."""
    from pyarrow import fs

    place, settings = split_address(source)
    scheme, _, inside = place.partition("://")
    pattern = PurePosixPath(inside)
    plain: list[str] = []
    for part in pattern.parts:
        if any(letter in part for letter in LOOKS_LIKE_A_PATTERN):
            break
        plain.append(part)
    root = f"{scheme}://{'/'.join(plain)}".replace(":////", ":///")
    system, path = open_address(root + settings)
    try:
        info = system.get_file_info(path)
        if info.type == fs.FileType.File:
            return [root + settings]
        files = system.get_file_info(fs.FileSelector(path, recursive=True))
    except OSError as error:
        raise DataError(f"cannot list {source}: {one_line(error)}") from error
    names = sorted(file.path for file in files if file.type == fs.FileType.File)
    rest = unquote("/".join(pattern.parts[len(plain) :]))
    below = [name.removeprefix(path).lstrip("/") for name in names if Path(name).suffix.lower() in VIDEO_SUFFIXES]
    videos = [name for name in below if not rest or _below(name.split("/"), rest.split("/"))]
    if not videos:
        raise ArgumentError(f"there is no video at {source}")
    return [f"{root.rstrip('/')}/{quote(name)}{settings}" for name in videos]


def _below(parts: Sequence[str], pattern: Sequence[str]) -> bool:
    """Whether a path, or a folder that it is in, fits a pattern."""
    return any(_fits(parts[:depth], pattern) for depth in range(1, len(parts) + 1))


def _fits(parts: Sequence[str], pattern: Sequence[str]) -> bool:
    """Whether the parts of a path fit those of a pattern, as `glob` has it: ** stands for any number of folders."""
    if not pattern:
        return not parts
    if pattern[0] == "**" and len(pattern) > 1:
        return any(_fits(parts[skipped:], pattern[1:]) for skipped in range(len(parts)))
    if not parts:
        return False
    return pattern[0] == "**" or (fnmatch.fnmatchcase(parts[0], pattern[0]) and _fits(parts[1:], pattern[1:]))


def _manifest(source: str) -> list[Listed]:
    rows = _table(source)
    place, settings = split_address(source)
    folder = place.rpartition("/")[0] if is_address(source) else str(Path(source).absolute().parent)
    found = []
    first = 1 if split_address(source)[0].lower().endswith(".parquet") else 2  # after the line of names
    for line, (video, label) in enumerate(rows, start=first):
        if not video:
            raise DataError(f"{source}, row {line}: the column `video` is empty")
        name = quote(video) if is_address(source) else video  # a name, not a part of an address
        whole = video if is_address(video) or Path(video).is_absolute() else f"{folder}/{name}{settings}"
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
        if split_address(source)[0].lower().endswith(".parquet"):
            table = parquet.read_table(io.BytesIO(data))
            named = table.column_names
            columns = {name: table.column(name).to_pylist() for name in named if name in ("video", "class")}
        else:
            lines = csv.DictReader(io.StringIO(data.decode("utf-8-sig")), strict=True)
            named, rows = list(lines.fieldnames or ()), list(lines)
            columns = {name: [row.get(name) for row in rows] for name in ("video", "class") if name in named}
    except (ArrowException, OSError, UnicodeDecodeError, csv.Error) as error:
        why = getattr(error, "strerror", None) or one_line(error)
        raise DataError(f"cannot read the manifest {source}: {why}") from error
    if "video" not in columns:
        raise DataError(f"the manifest {source} has no column `video`, but {', '.join(map(repr, named)) or 'none'}")
    videos = [str(video or "") for video in columns["video"]]
    return zip(videos, [str(label or "") for label in columns.get("class", [""] * len(videos))], strict=True)


def one_line(error: Exception) -> str:
    """Write what an error says in one line."""
    return " ".join(str(error).split())
