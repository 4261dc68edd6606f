"""Why did the network say A, not B? A word and a moving region, for any PyTorch video classifier."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from whytube.errors import ArgumentError, WhytubeError

if TYPE_CHECKING:
    from whytube.classifiers.wrap import wrap as wrap
    from whytube.data.layout import read_dataset as read_dataset
    from whytube.explainer.explainer import Explainer as Explainer
    from whytube.explaining import classify as classify
    from whytube.explaining import contrastive_map as contrastive_map
    from whytube.explaining import explain as explain
    from whytube.explaining import explain_all as explain_all
    from whytube.explaining import explain_rounds as explain_rounds
    from whytube.explaining import what_if as what_if
    from whytube.explanation import Explanation as Explanation
    from whytube.explanation import Reason as Reason
    from whytube.models.find import load_model as load_model
    from whytube.subpath import MaxSubpathPool as MaxSubpathPool
    from whytube.subpath import Subpath as Subpath
    from whytube.subpath import max_subpath as max_subpath
    from whytube.subpath import max_subpath_difference as max_subpath_difference
    from whytube.subpath import min_subpath as min_subpath
    from whytube.subpath import min_subpath_difference as min_subpath_difference
    from whytube.subpath import path_sum as path_sum
    from whytube.subpath import top_subpaths as top_subpaths
    from whytube.training.explainer import fit_explainer as fit_explainer
    from whytube.tubes import Tube as Tube
    from whytube.video import Clip as Clip

__version__ = "0.1.0.dev0"

# Imported when first asked for: torch takes a second or two, and `whytube --help` does not need it.
_LATER = {
    "Clip": "whytube.video",
    "Explainer": "whytube.explainer.explainer",
    "Explanation": "whytube.explanation",
    "MaxSubpathPool": "whytube.subpath",
    "Reason": "whytube.explanation",
    "Subpath": "whytube.subpath",
    "Tube": "whytube.tubes",
    "classify": "whytube.explaining",
    "contrastive_map": "whytube.explaining",
    "explain": "whytube.explaining",
    "explain_all": "whytube.explaining",
    "explain_rounds": "whytube.explaining",
    "fit_explainer": "whytube.training.explainer",
    "load_model": "whytube.models.find",
    "max_subpath": "whytube.subpath",
    "max_subpath_difference": "whytube.subpath",
    "min_subpath": "whytube.subpath",
    "min_subpath_difference": "whytube.subpath",
    "path_sum": "whytube.subpath",
    "read_dataset": "whytube.data.layout",
    "top_subpaths": "whytube.subpath",
    "what_if": "whytube.explaining",
    "wrap": "whytube.classifiers.wrap",
}
__all__ = ["ArgumentError", "WhytubeError", "__version__", *_LATER]


def __getattr__(name: str) -> object:
    """Import a public name."""
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_LATER[name]), name)


def __dir__() -> list[str]:
    """List the public names, without the modules that happen to be loaded."""
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
