"""Explainers on disk: one file with the scores, the words and the table; the classifier has a file of its own."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

import torch

from whytube.errors import ArgumentError, ModelError
from whytube.explainer.explainer import Explainer, build_scores
from whytube.explainer.objective import find_objective
from whytube.models.stored import load_tensors, save_tensors

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping
    from pathlib import Path

    from whytube.classifiers.base import VideoClassifier

KIND = "explainer"
_LAST_WEIGHTS = 4


def save_explainer(
    path: str | os.PathLike[str],
    explainer: Explainer,
    *,
    provenance: Mapping[str, Any],
    recipe: Mapping[str, Any] | None = None,
    metrics: Mapping[str, Any] | None = None,
) -> Path:
    """Write an explainer, without its classifier; recipe: how it was trained, metrics: what it reached."""
    header = {
        "objective": explainer.objective,
        "classifier": fingerprint(explainer.classifier),
        "classes": list(explainer.classes),
        "attributes": list(explainer.attribute_names),
        "table": explainer.table.int().tolist(),
        "recipe": None if recipe is None else dict(recipe),
        "metrics": dict(metrics or {}),
        "provenance": dict(provenance),
    }
    return save_tensors(path, explainer.scores.state_dict(), header, kind=KIND)


def fingerprint(classifier: VideoClassifier) -> str:
    """Tell classifiers apart by the last thing that training decides: the weights of the head.

    Networks from elsewhere have their own names: there it is the last weights, and the settings, which name the layers.
    """
    digest = hashlib.sha256()
    state = classifier.state_dict()
    head = [tensor for name, tensor in sorted(state.items()) if name.startswith("head.")]
    if not head:
        head = list(state.values())[-_LAST_WEIGHTS:]
        digest.update(json.dumps(classifier.settings, sort_keys=True).encode())
    for tensor in head:
        digest.update(tensor.detach().cpu().float().contiguous().numpy().tobytes())
    return digest.hexdigest()[:16]


def load_explainer(path: str | os.PathLike[str], classifier: VideoClassifier) -> Explainer:
    """Read scores that were trained for this classifier."""
    tensors, header = load_tensors(path, kind=KIND)
    try:
        classes, attributes = tuple(header["classes"]), tuple(header["attributes"])
        table = torch.tensor(header["table"], dtype=torch.bool)
        objective = header["objective"]
        find_objective(objective)
    except (KeyError, TypeError, ValueError) as error:  # an unknown objective is a ValueError, too
        raise ModelError(f"cannot use {path}: its header is damaged ({error})") from error
    if classes != classifier.classes:
        raise ModelError(f"cannot use {path}: it explains other classes than the classifier's")
    if header.get("classifier") not in (None, fingerprint(classifier)):
        raise ModelError(f"cannot use {path}: it was trained for another classifier. Train an explainer for this one")
    scores = build_scores(classifier, len(attributes))
    try:
        scores.load_state_dict(tensors)
        return Explainer(classifier, scores.eval(), attributes, table, objective)
    except (RuntimeError, ArgumentError) as error:
        raise ModelError(f"cannot use {path}: it does not fit the classifier's maps. {error}") from error
