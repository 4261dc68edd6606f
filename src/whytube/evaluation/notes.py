"""What a reader must know beside the figures: controls that cannot differ, methods left out, empty columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from collections.abc import Mapping

WORDS = ("concept_accuracy", "right_box", "word_in_class", "word_said", "word_separates")
"""Figures of the word; all others are of the tube."""
WORDED = "worded"
"""Whether an answer has a word: kept beside the figures, not among the results."""
SHRUNK = "shrunk"
"""Whether a tube was above the area: kept likewise."""
COST = "masked_clips"
"""Clips that the classifier was run on for an answer."""


def without_words(figures: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Return figures (M, N, k) of a method; where it never says a word, those of words are NaN, not misses."""
    if figures[WORDED].any():
        return figures
    return {path: torch.full_like(values, torch.nan) if _of_word(path) else values for path, values in figures.items()}


def notes_on(
    figures: Mapping[str, Mapping[str, torch.Tensor]],
    controlled: Mapping[str, str],
    *,
    words: int,
    boxes: bool,
    right: bool,
) -> list[str]:
    """Return sentences on the figures (M, N, k) of methods by name; of each the answers to all cases.

    controlled: control -> the method whose answers it changes. words: S. boxes: whether any clip has boxes of
    attributes. right: whether the classifier is right on any clip that has.
    """
    notes = []
    silent = [name for name, found in figures.items() if not found["answered"].any()]
    for name in silent:
        why = "" if boxes else ": no clip has boxes of words"
        notes.append(f"`{name}` answered nothing and is left out{why}.")
    heard = {name: found for name, found in figures.items() if name not in silent}
    mute = [name for name, found in heard.items() if not found[WORDED].any()]
    for name, found in heard.items():
        large = int(found[SHRUNK].sum()) if SHRUNK in found else 0
        if large:
            notes.append(
                f"`{name}`: {large} of {found[SHRUNK].numel()} tubes were above the area and were shrunk to it."
            )
    told = [_on_control(name, like, heard, words=words) for name, like in controlled.items()]
    notes += [note for note in told if note]
    if len(mute) < len(heard):
        notes += [f"`{name}` says no words: it has no figures of words." for name in mute]
    if heard and all(bool(found["concept_accuracy.top1"].isnan().all()) for found in heard.values()):
        if len(mute) == len(heard):
            why = "no method says a word"
        elif not boxes:
            why = "no clip has boxes of words"
        else:
            why = "no answer can be judged" if right else "the classifier is right on no clip that has boxes of words"
        notes.append(f"Concept accuracy is not measured: {why}.")
    return notes


def _on_control(name: str, like: str, heard: Mapping[str, Mapping[str, torch.Tensor]], *, words: int) -> str | None:
    if name not in heard or like not in heard:
        return None
    ours, theirs = heard[name], heard[like]
    equal = {path: torch.equal(ours[path].nan_to_num(-1e9), theirs[path].nan_to_num(-1e9)) for path in ours}
    of_words = [path for path in ours if _of_word(path) or path == WORDED]
    apart = (*of_words, COST)  # what a control costs says nothing about its answers
    if not all(same for path, same in equal.items() if path not in apart):
        return None
    if not all(equal[path] for path in of_words):
        return f"`{name}` has the tubes of `{like}`: only figures of words can differ."
    why = "it has the same tubes, and no other word to say"
    if not theirs[WORDED].any():
        why = f"it has the same tubes, and `{like}` says no words"
    elif words == 1:
        why = "it has the same tubes, and there is only one word"
    return f"`{name}` cannot differ from `{like}` here: {why}. Its row says nothing."


def _of_word(path: str) -> bool:
    return path.split(".")[0] in WORDS
