"""Fit a classifier, then the explainer of a classifier: one loop, two losses, recipes by name."""

from whytube.training.classifier import Judgement, evaluate_classifier, fit_classifier
from whytube.training.explainer import fit_explainer
from whytube.training.history import History, Record, tensorboard
from whytube.training.recipe import EXPLAINER_RECIPES, RECIPES, Recipe, find_recipe

__all__ = [
    "EXPLAINER_RECIPES",
    "RECIPES",
    "History",
    "Judgement",
    "Recipe",
    "Record",
    "evaluate_classifier",
    "find_recipe",
    "fit_classifier",
    "fit_explainer",
    "tensorboard",
]
