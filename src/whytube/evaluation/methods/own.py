"""Methods of a reader's own, FILE.py:NAME, in the same table as everybody else's."""

from __future__ import annotations

import hashlib
import inspect
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from whytube.errors import ModelError
from whytube.evaluation.judge import TruthMethod
from whytube.models.find import own_code, own_object

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from types import ModuleType

    from whytube.classifiers.base import VideoClassifier
    from whytube.search.verify import Method, Question, Regions


@dataclass(frozen=True, eq=False)
class OwnMethod:
    """A method from a file; what it raises names the file.

    contents: SHA-256 of the file, so that an evaluation does not go on with another version of it. seed: torch's random
    numbers start from it for every question, so that the answers are the same when they are asked again.
    """

    method: Method
    path: Path
    contents: str
    seed: int = 0

    @property
    def name(self) -> str:
        """The method's."""
        return self.method.name

    def __call__(self, question: Question, k: int) -> Regions:
        """Answer as the method does."""
        devices = [question.clips.device] if question.clips.device.type == "cuda" else []
        with own_code(self.path), torch.random.fork_rng(devices=devices):
            torch.manual_seed(self.seed)
            return self.method(question, k)


def load_method(
    text: str,
    classifier: VideoClassifier,
    *,
    attribute_names: Sequence[str],
    table: torch.Tensor,
    seed: int = 0,
) -> OwnMethod:
    """Make the method FILE.py:NAME: NAME, a function or class, is called with (classifier, attribute_names, table).

    attribute_names: the S words. table: (C, S) bool. It gives a Method: an object with a `name` that is called with a
    question and k, and returns Regions. Labels and true boxes are not for it.
    """
    path, name, maker = own_object(text, _makers)
    if not callable(maker):
        raise ModelError(f"{name} in {path} must be a function or a class, got {type(maker).__name__}")
    with own_code(path):
        made = maker(classifier, tuple(attribute_names), table.clone())
    called = getattr(made, "name", None)
    if not callable(made) or inspect.isfunction(made) or not isinstance(called, str) or not called:
        expected = "an object with a `name` (text) that is called with (question, k)"
        raise ModelError(f"{name} in {path} must give a method, {expected}, got {type(made).__name__}")
    if isinstance(made, TruthMethod):
        raise ModelError(f"{name} in {path} must give a method without `with_truth`: no method may see the truth")
    return OwnMethod(made, path, hashlib.sha256(path.read_bytes()).hexdigest(), seed)


def _makers(module: ModuleType) -> list[str]:
    """Names of the functions and classes that a file defines itself."""
    return [
        name
        for name, value in vars(module).items()
        if not name.startswith("_")
        and (inspect.isfunction(value) or inspect.isclass(value))
        and value.__module__ == module.__name__
    ]
