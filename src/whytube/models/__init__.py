"""Models by name: find, load, save and list classifiers with their explainers.

find.py             what a name, a folder, a file or FILE.py:NAME stands for
classifier_file.py  a classifier on disk, with its card
explainer_file.py   an explainer on disk
stored.py           the safetensors file behind both
presets.py          networks to train, by name

Beside the code lie the shipped models: a folder each, with classifier.safetensors, card.md and, where the model has
words, explainer.safetensors.
"""

from whytube.models.classifier_file import Card, load_backbone, load_classifier, read_card, save_classifier
from whytube.models.explainer_file import load_explainer, save_explainer
from whytube.models.find import Listed, list_models, load_model
from whytube.models.presets import PRESETS, build_classifier

__all__ = [
    "PRESETS",
    "Card",
    "Listed",
    "build_classifier",
    "list_models",
    "load_backbone",
    "load_classifier",
    "load_explainer",
    "load_model",
    "read_card",
    "save_classifier",
    "save_explainer",
]
