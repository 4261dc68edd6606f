"""Fit what is explained."""

from whytube.training.classifier import fit_classifier
from whytube.training.evaluate import Judgement, evaluate_classifier
from whytube.training.history import History, Record
from whytube.training.recipe import RECIPES, Recipe, find_recipe

__all__ = [
    "RECIPES",
    "History",
    "Judgement",
    "Recipe",
    "Record",
    "evaluate_classifier",
    "find_recipe",
    "fit_classifier",
]
