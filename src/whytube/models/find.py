"""What a name stands for: a shipped model, a folder or file of a trained one, or FILE.py:NAME of the user's own."""

from __future__ import annotations

import importlib.util
import inspect
import os
import sys
import traceback
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import torch

from whytube.checks import fail, suggestion, unknown_name
from whytube.classifiers.base import VideoClassifier
from whytube.errors import ArgumentError, ModelError, WhytubeError
from whytube.explainer.explainer import Explainer
from whytube.models.files import find_weights, load_saved, nearest, read_card, shipped_names
from whytube.search.regions import RegionSearch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import ModuleType

Model: TypeAlias = Explainer | RegionSearch
"""What answers questions about its classifier: with words, or by regions alone."""


def find_device(name: str | torch.device) -> torch.device:
    """Find a device that is there; "auto" is the GPU if there is one."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError as error:
        near = suggestion(name, ("auto", "cpu", "cuda", "mps"))
        raise ArgumentError(f"unknown device {name!r}: use cpu, cuda or cuda:N{near}") from error
    if device.type not in ("cpu", "cuda", "mps"):
        raise ArgumentError(f"device {str(name)!r} is not supported: use cpu, cuda or cuda:N")
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise ArgumentError(f"there is no CUDA device {str(name)!r} here ({torch.cuda.device_count()} found): use cpu")
    return device


def load_model(
    model: str | os.PathLike[str] | Model | VideoClassifier,
    *,
    device: torch.device | str | None = None,
) -> Model:
    """Find a classifier with what explains it.

    Args:
        model: the name of a shipped model; a folder with classifier.safetensors and, for words, explainer.safetensors;
            a classifier's file; FILE.py:NAME, an object or a function in a Python file, which is run; or a classifier
            or explainer itself. A classifier without an explainer is explained by regions.
        device: where to move it, "auto" for the GPU if there is one; by default it stays where it is.
    """
    found: object = model
    if isinstance(model, str) and model.rpartition(":")[0].endswith(".py"):
        found = _run_own_file(model)
    elif isinstance(model, (str, os.PathLike)):
        if str(model).endswith(".py"):
            raise ModelError(
                f"cannot use {model}: expected FILE.py:NAME, with NAME an object or a function in the file"
            )
        found = load_saved(model)
    named = found is not model
    if isinstance(found, VideoClassifier):
        found = RegionSearch(found)
    if not isinstance(found, Model):
        expected = "a name, a path, an Explainer or a VideoClassifier: see whytube.wrap"
        raise fail("model", expected, f"a bare {type(found).__name__}")
    if named:
        found.classifier.title = Path(str(model)).name
    return found if device is None else found.to(find_device(device))


@dataclass(frozen=True)
class Listed:
    """A row of `whytube models list`; size: bytes on disk; accuracy: on its test clips, where its card says so."""

    name: str
    architecture: str
    classes: int
    explains: str
    size: int
    accuracy: float | None


def list_models() -> list[Listed]:
    """Return the shipped models."""
    rows = []
    for name in shipped_names():
        card, folder = read_card(name), find_weights(name).parent
        files = {file.name: file.stat().st_size for file in folder.glob("*.safetensors")}
        explains = "words and regions" if "explainer.safetensors" in files else "regions"
        accuracy = card.metrics.get("test accuracy")
        rows.append(Listed(name, card.architecture, len(card.classes), explains, sum(files.values()), accuracy))
    return rows


def _run_own_file(text: str) -> Model | VideoClassifier:
    """Run the file of FILE.py:NAME and take its NAME; a function is called."""
    path, name, made = own_object(text, _givers)
    with own_code(path):
        if not isinstance(made, Model | VideoClassifier) and callable(made):
            made = made()
    if not isinstance(made, Model | VideoClassifier):
        expected = "a VideoClassifier (see whytube.wrap) or an Explainer"
        raise ModelError(f"{name} in {path} must give {expected}, got {type(made).__name__}")
    return made


def own_object(text: str, names: Callable[[ModuleType], list[str]]) -> tuple[Path, str, Any]:
    """Run the file of FILE.py:NAME: its path, the name, and what stands under it.

    names: lists the names in the file's module that could be meant, for an error to suggest.
    """
    file, _, name = text.rpartition(":")
    path = Path(file)
    if not file.endswith(".py"):
        raise ModelError(f"cannot use {text}: expected FILE.py:NAME")
    if not path.is_file():
        raise ModelError(f"cannot read {path}: there is no such file{nearest(path)}")
    sys.path.insert(0, str(path.resolve().parent))  # its neighbours, as when Python runs it
    with own_code(path):
        module = _imported(path)
        if not hasattr(module, name):
            raise unknown_name("name in " + path.name, name, names(module))
        return path, name, getattr(module, name)


@contextmanager
def own_code(path: Path) -> Iterator[None]:
    """Turn what the code of a file of the user's own raises in a block into an error that names file and line."""
    try:
        yield
    except WhytubeError:
        raise
    except Exception as error:
        line = traceback.extract_tb(error.__traceback__)[-1]
        told = f"{type(error).__name__}: {error}"
        if not isinstance(error, SyntaxError):  # which names its own line
            told += f" (line {line.lineno} of {Path(line.filename).name})"
        raise ModelError(f"{path} failed with {told}") from error


def _givers(module: ModuleType) -> list[str]:
    """Names of what may give a model: models, and the file's own functions; not what it imports, nor its classes."""
    return [
        name
        for name, value in vars(module).items()
        if not name.startswith("_")
        and (
            isinstance(value, Model | VideoClassifier)
            or (inspect.isfunction(value) and value.__module__ == module.__name__)
        )
    ]


def _imported(path: Path) -> ModuleType:
    # Never over a module that is there already: a file called random.py must not become everybody's `random`.
    name = f"own_{path.stem}" if path.stem in sys.modules else path.stem
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ModelError(f"cannot read {path}: expected a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # before it runs: dataclasses look up the module of their annotations
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module
