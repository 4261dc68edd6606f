"""Argument checks, in one wording: "`name` must be <expected>, got <what came>"."""

from __future__ import annotations

import difflib
import math
from typing import TYPE_CHECKING

from whytube.errors import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    import torch

LONGEST = 120
"""Letters of a name in a message; what is read from a file may be of any length."""


def fail(name: str, expected: str, got: object) -> ArgumentError:
    """Build (not raise) the error for argument `name`."""
    return ArgumentError(f"`{name[:LONGEST]}` must be {expected}, got {got}")


def shape_of(tensor: torch.Tensor) -> str:
    """Write a shape as it stands in docstrings: (3, 16, 112, 112)."""
    return f"({', '.join(str(int(n)) for n in tensor.shape)})"


def check_tensor(
    tensor: object, name: str, shape: str, *, ndim: int | None = None, min_ndim: int = 0, floating: bool = True
) -> torch.Tensor:
    """Require a tensor with `ndim` (or at least `min_ndim`) dimensions; `shape` is how the message writes them."""
    import torch  # here, so that the command line can check its options without it

    if not isinstance(tensor, torch.Tensor):
        raise fail(name, f"a tensor of shape {shape}", type(tensor).__name__)
    if (ndim is not None and tensor.ndim != ndim) or tensor.ndim < min_ndim:
        raise fail(name, f"of shape {shape}", shape_of(tensor))
    if floating and not tensor.is_floating_point():
        raise fail(name, "a floating-point tensor", str(tensor.dtype))
    return tensor


def check_int(value: object, name: str, low: int, high: int | None = None) -> int:
    """Require low <= value (<= high)."""
    expected = f"an integer of at least {low}" if high is None else f"an integer from {low} to {high}"
    if isinstance(value, bool) or not isinstance(value, int):
        raise fail(name, expected, repr(value))
    if value < low or (high is not None and value > high):
        raise fail(name, expected, value)
    return value


def check_size(size: object, name: str = "size") -> tuple[int, int]:
    """Require (height, width), two integers of at least 1."""
    if not isinstance(size, (tuple, list)) or len(size) != 2:
        raise fail(name, "(height, width)", repr(size))
    return check_int(size[0], f"{name}[0]", 1), check_int(size[1], f"{name}[1]", 1)


def check_finite(value: object, name: str) -> float:
    """Require a number that is neither NaN nor infinite."""
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise fail(name, "a number", repr(value)) from None
    if not math.isfinite(number):
        raise fail(name, "a finite number", number)
    return number


def check_probability(value: object, name: str) -> float:
    """Require a number from 0 to 1; rounding errors of a softmax in float32 pass."""
    number = check_finite(value, name)
    if not -1e-6 <= number <= 1 + 1e-6:
        raise fail(name, "a probability in [0, 1]", number)
    return min(max(number, 0.0), 1.0)


def check_choice(value: str, name: str, choices: Iterable[str]) -> str:
    """Require one of a few words; the error suggests the nearest."""
    options = list(choices)
    if value not in options:
        words = ", ".join(repr(c) for c in options)
        raise fail(name, f"one of {words}", f"{value!r}{suggestion(value, options)}")
    return value


def find_name(kind: str, name: str, known: Sequence[str]) -> int:
    """Place of a name in a list; blanks, underscores, hyphens and case may differ where that leaves one choice."""
    if name in known:
        return known.index(name)
    alike = [place for place, other in enumerate(known) if _bare(other) == _bare(name)]
    if len(alike) != 1:
        raise unknown_name(kind, name, known)
    return alike[0]


def _bare(name: str) -> str:
    return "".join(c for c in name.casefold() if c not in " _-")


def unknown_name(kind: str, name: str, known: Collection[str]) -> ArgumentError:
    """Build the error for a name that is not in a list, with the nearest one that is."""
    near = suggestion(name, known)
    if near:
        return ArgumentError(f"unknown {kind} {name[:LONGEST]!r}{near}")
    listed = ", ".join(sorted(known)[:20]) + (f", ... ({len(known)} in all)" if len(known) > 20 else "")
    return ArgumentError(f"unknown {kind} {name[:LONGEST]!r}. Known: {listed}")


def suggestion(name: object, known: Collection[str]) -> str:
    """Return ". Did you mean ...?" with the nearest known name, "" where none is near."""
    near = difflib.get_close_matches(str(name).lower(), [k.lower() for k in known], n=1, cutoff=0.55)
    match = next((k for k in known if near and k.lower() == near[0]), None)
    return "" if match is None else f". Did you mean {match!r}?"
