"""An interrupted run on disk: weights, optimizer state and history, in one safetensors file."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import torch

from whytube.data.source import fingerprint
from whytube.errors import ModelError
from whytube.models.stored import load_tensors, save_tensors
from whytube.training.history import History

if TYPE_CHECKING:
    from pathlib import Path

    from whytube.classifiers.base import VideoClassifier
    from whytube.data.source import Source
    from whytube.training.recipe import Recipe

KIND = "training run"
FILE = "run.safetensors"


class Saving:
    """Says after which records a run is saved: every so many, and where the last time is half a minute ago."""

    SECONDS = 30.0

    def __init__(self, every: int) -> None:
        self.every, self.last = every, time.monotonic()

    def due(self, records: int, *, end: bool) -> bool:
        """Whether to save after this many records; `end` of the run always."""
        late = time.monotonic() - self.last >= self.SECONDS
        if not (end or late or records % self.every == 0):
            return False
        self.last = time.monotonic()
        return True


def save_state(
    folder: Path,
    model: torch.nn.Module,
    optimizer: torch.optim.Optimizer,
    *,
    step: int,
    run: dict[str, Any],
    history: History,
    file: str = FILE,
) -> Path:
    """Write the run as it stands after `step` steps; `run` is what must be the same when it goes on."""
    tensors = {f"model.{name}": tensor for name, tensor in model.state_dict().items()}
    for place, state in optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer.{place}.{name}": value for name, value in state.items() if value is not None}
    header = {"step": step, "run": run, "history": history.to_dict()}
    return save_tensors(folder / file, tensors, header, kind=KIND)


def load_state(
    folder: Path, model: torch.nn.Module, optimizer: torch.optim.Optimizer, *, run: dict[str, Any], file: str = FILE
) -> tuple[int, History]:
    """Put model and optimizer back to where a run stopped; return its steps and history. The run must be the same."""
    tensors, header = load_tensors(folder / file, kind=KIND)
    for name, value in run.items():
        if header["run"].get(name) != value:
            raise ModelError(
                f"cannot resume {folder / file}: its {name} is {header['run'].get(name)!r}, expected {value!r}. "
                "Use the same settings, or another folder"
            )
    model.load_state_dict({name[6:]: value for name, value in tensors.items() if name.startswith("model.")})
    _load_optimizer(optimizer, {name[10:]: value for name, value in tensors.items() if name.startswith("optimizer.")})
    return int(header["step"]), History.from_dict(header["history"])


def _load_optimizer(optimizer: torch.optim.Optimizer, tensors: dict[str, torch.Tensor]) -> None:
    """Fill the state of a fresh optimizer, each tensor on the device and in the layout of its parameter."""
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    for name, value in tensors.items():
        place, key = name.split(".", 1)
        parameter = parameters[int(place)]
        like_parameter = value.shape == parameter.shape and value.ndim > 0
        optimizer.state[parameter][key] = torch.empty_like(parameter).copy_(value) if like_parameter else value


def describe(model: VideoClassifier, source: Source, recipe: Recipe) -> dict[str, Any]:
    """Return what must agree between the sittings of a run, as JSON gives it back."""
    plain = {name: list(v) if isinstance(v, tuple) else v for name, v in asdict(recipe).items()}
    settings = {f"model's {name}": value for name, value in model.settings.items()}
    known = {
        "architecture": model.architecture,
        "classes": list(model.classes),
        "attributes": list(source.attribute_names),
    }
    return plain | known | settings | {"data's fingerprint": fingerprint(source)}
