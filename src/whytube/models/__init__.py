"""Models by name: find, load, save and list classifiers with their explainers.

find.py     what a name, a folder, a file or FILE.py:NAME stands for
files.py    classifiers, with their cards, and explainers on disk
stored.py   the safetensors file behind both
presets.py  networks to train, by name

Beside the code lie the shipped models: a folder each, with card.md, classifier.safetensors and, for words,
explainer.safetensors.
"""

from whytube.models.files import (
    Card,
    fingerprint,
    forget_weights,
    load_backbone,
    load_classifier,
    load_explainer,
    read_card,
    save_classifier,
    save_explainer,
    weights_fingerprint,
)
from whytube.models.find import Listed, Model, find_device, list_models, load_model
from whytube.models.presets import PRESETS, build_classifier, known_settings

__all__ = [
    "PRESETS",
    "Card",
    "Listed",
    "Model",
    "build_classifier",
    "find_device",
    "fingerprint",
    "forget_weights",
    "known_settings",
    "list_models",
    "load_backbone",
    "load_classifier",
    "load_explainer",
    "load_model",
    "read_card",
    "save_classifier",
    "save_explainer",
    "weights_fingerprint",
]
