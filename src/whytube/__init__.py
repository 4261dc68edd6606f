"""Why did the network say A, not B? A word and a moving region, for any PyTorch video classifier."""

from typing import TYPE_CHECKING

from whytube.errors import ArgumentError, WhytubeError
from whytube.subpath import (
    MaxSubpathPool,
    Subpath,
    max_subpath,
    max_subpath_difference,
    min_subpath,
    min_subpath_difference,
    path_sum,
    top_subpaths,
)

if TYPE_CHECKING:
    from whytube.classifiers.wrap import wrap
    from whytube.explainer.explainer import Explainer
    from whytube.explaining import explain, explain_all
    from whytube.explanation import Explanation
    from whytube.models.find import load_model

__version__ = "0.1.0.dev0"

__all__ = [
    "ArgumentError",
    "Explainer",
    "Explanation",
    "MaxSubpathPool",
    "Subpath",
    "WhytubeError",
    "explain",
    "explain_all",
    "load_model",
    "max_subpath",
    "max_subpath_difference",
    "min_subpath",
    "min_subpath_difference",
    "path_sum",
    "top_subpaths",
    "wrap",
]

_LATER = {
    "Explainer": "whytube.explainer.explainer",
    "Explanation": "whytube.explanation",
    "explain": "whytube.explaining",
    "explain_all": "whytube.explaining",
    "load_model": "whytube.models.find",
    "wrap": "whytube.classifiers.wrap",
}


def __getattr__(name: str) -> object:
    """Import what explains when it is asked for, so that the layer alone stays light."""
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_LATER[name]), name)
