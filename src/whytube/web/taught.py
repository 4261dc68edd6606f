"""A taught model on the disk: the explainer, and the name of the model whose classifier it explains."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from whytube.files import read_json, whole_folder, write_whole
from whytube.models import load_explainer, load_model, save_explainer

if TYPE_CHECKING:
    from whytube.models.find import Model
    from whytube.training.teach import Taught

WEIGHTS, BASE = "explainer.safetensors", "base.json"


def save_taught(folder: Path, taught: Taught, base: str, videos: int) -> None:
    """Write a taught explainer to a new folder, which appears only once it is whole. videos: that it was taught by."""
    with whole_folder(folder) as part:
        told = {"base": base, "videos": videos, "words": [asdict(word) for word in taught.words]}
        save_explainer(part / WEIGHTS, taught.explainer, provenance=told)
        write_whole(part / BASE, json.dumps({"base": base}))


def open_model(name: str, *, device: str) -> Model:
    """Load a model: what `load_model` takes, or the folder of one that was taught."""
    folder = Path(name)
    if not (folder / BASE).is_file():
        return load_model(name, device=device)
    base = load_model(read_json(folder / BASE)["base"], device=device)
    return load_explainer(folder / WEIGHTS, base.classifier).to(base.device)
