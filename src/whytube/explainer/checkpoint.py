"""Explainers on disk: one folder-free file with the scores, beside the classifier they explain."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from whytube.checkpoint import load_tensors, save_tensors
from whytube.errors import ModelError
from whytube.explainer.explainer import Explainer, build_scores

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping
    from pathlib import Path

    from whytube.classifiers.base import VideoClassifier

KIND = "explainer"


def save_explainer(
    path: str | os.PathLike[str],
    explainer: Explainer,
    *,
    provenance: Mapping[str, Any],
    metrics: Mapping[str, Any] | None = None,
) -> Path:
    """Write the scores, the words and the table; the classifier has a file of its own."""
    header = {
        "objective": explainer.objective,
        "classes": list(explainer.classes),
        "attributes": list(explainer.attributes),
        "table": explainer.table.int().tolist(),
        "metrics": dict(metrics or {}),
        "provenance": dict(provenance),
    }
    return save_tensors(path, explainer.scores.state_dict(), header, kind=KIND)


def load_explainer(path: str | os.PathLike[str], classifier: VideoClassifier) -> Explainer:
    """Read scores that were trained for this classifier."""
    tensors, header = load_tensors(path, kind=KIND)
    if tuple(header["classes"]) != classifier.classes:
        raise ModelError(f"cannot use {path}: it explains other classes than the classifier's")
    scores = build_scores(classifier, len(header["attributes"]))
    try:
        scores.load_state_dict(tensors)
    except RuntimeError as error:
        raise ModelError(f"cannot use {path}: it does not fit the classifier's maps. {error}") from error
    table = torch.tensor(header["table"], dtype=torch.bool)
    return Explainer(classifier, scores.eval(), tuple(header["attributes"]), table, header["objective"])
