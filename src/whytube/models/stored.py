"""One safetensors file per model: tensors, and a JSON header that says what they are. Nothing is ever unpickled.

The header lies in the file's metadata under "whytube": {"schema": 1, "kind": "classifier", ...}. Readers refuse what
they do not know: another schema, another kind, a file that is cut off, weights that are not finite.
"""

from __future__ import annotations

import json
from pathlib import Path
from reprlib import repr as short
from typing import TYPE_CHECKING, Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from whytube.checks import fail
from whytube.documents import parse_json
from whytube.errors import ModelError
from whytube.files import whole_file

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    import torch

SCHEMA = 1
KEY = "whytube"
PICKLES = (".pt", ".pth", ".ckpt", ".pkl", ".pickle", ".bin", ".tar")
PICKLE_STARTS = (b"PK\x03\x04", b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05")


def save_tensors(
    path: str | os.PathLike[str], tensors: Mapping[str, torch.Tensor], header: Mapping[str, Any], *, kind: str
) -> Path:
    """Write tensors and header to `path`; the file appears under its name only once it is whole.

    header: anything JSON can hold, without the keys "schema" and "kind". An existing file is replaced.
    """
    target = Path(path)
    if target.suffix != ".safetensors":
        raise fail("path", "a file name that ends in .safetensors", repr(str(target)))
    _require_finite(tensors, target, "cannot write")
    text = _as_json({"schema": SCHEMA, "kind": kind, **header})
    whole = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}
    try:
        with whole_file(target, error=ModelError) as part:
            save_file(whole, part, metadata={KEY: text})
    except SafetensorError as error:
        raise ModelError(f"cannot write {target}: {error}") from error
    return target


def load_tensors(path: str | os.PathLike[str], *, kind: str) -> tuple[dict[str, torch.Tensor], dict[str, Any]]:
    """Read tensors (on the CPU) and header of a file of this kind."""
    source = Path(path)
    header = read_header(source, kind=kind)
    try:
        with safe_open(source, framework="pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a mapping)
    except (SafetensorError, OSError, AttributeError, KeyError, RuntimeError, TypeError, ValueError) as error:
        # What safetensors can store but torch cannot hold fails in torch's own ways.
        raise ModelError(f"cannot read {source}: {error}") from error
    _require_finite(tensors, source, "cannot use")
    return tensors, header


def read_header(path: str | os.PathLike[str], *, kind: str) -> dict[str, Any]:
    """Read what a file says about itself, without its tensors."""
    source = Path(path)
    _require_safetensors(source)
    try:
        with safe_open(source, framework="pt") as file:
            metadata = file.metadata() or {}
    except (SafetensorError, OSError) as error:
        raise ModelError(f"cannot read {source}: damaged, cut off, or not safetensors ({error})") from error
    if KEY not in metadata:
        raise ModelError(
            f"cannot use {source}: it has no whytube header. Write it with whytube, or wrap your own model"
        )
    try:
        header: dict[str, Any] = parse_json(metadata[KEY])
        schema, found = header.pop("schema"), header.pop("kind")
    except (ValueError, KeyError, AttributeError, TypeError) as error:
        raise ModelError(f"cannot use {source}: its whytube header is damaged ({error})") from error
    if schema != SCHEMA:
        told = f"its schema is {short(schema)}, this whytube knows {SCHEMA}"
        raise ModelError(f"cannot use {source}: {told}. Update whytube")
    if found != kind:
        raise ModelError(f"cannot use {source}: expected the weights of kind {kind!r}, got {short(found)}")
    return header


def _require_safetensors(source: Path) -> None:
    """Refuse what is no file, and pickles by name and by their first bytes."""
    if not source.is_file():
        raise ModelError(f"cannot read {source}: there is no such file")
    with source.open("rb") as file:
        start = file.read(4)
    if source.suffix.lower() in PICKLES or start.startswith(PICKLE_STARTS):
        raise ModelError(
            f"cannot read {source}: a pickle can run code when it is opened, so whytube reads none. Convert it to "
            "safetensors where you trust it: safetensors.torch.save_file(torch.load(path, weights_only=True), new_path)"
        )


def _require_finite(tensors: Mapping[str, torch.Tensor], path: Path, verb: str) -> None:
    for name, tensor in tensors.items():
        if tensor.is_complex() or (tensor.is_floating_point() and tensor.element_size() < 2):
            raise ModelError(f"{verb} {path}: tensor {name!r} is {tensor.dtype}, expected 16 to 64 bits, real")
        if tensor.is_floating_point() and not tensor.isfinite().all():
            raise ModelError(f"{verb} {path}: tensor {name!r} holds values that are NaN or infinite: train it again")


def _as_json(header: dict[str, Any]) -> str:
    try:
        return json.dumps(header, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise fail("header", "values that JSON can hold", error) from error
