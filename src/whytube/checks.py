"""Checks of arguments and of stored documents, in one wording: "`name` must be <expected>, got <what came>".

`build` is the one check of everything that is read from JSON: it makes a dataclass of plain values by its own
annotations, and names the place of what is wrong: `reasons[2].tube.boxes`.
"""

from __future__ import annotations

import difflib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from operator import index
from reprlib import repr as short
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, TypeVar, get_args, get_origin, get_type_hints, is_typeddict

from whytube.errors import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    import torch

Built = TypeVar("Built")
LONGEST = 120
"""Letters of a name in a message; what is read from a file may be of any length."""
DEEPEST = 32
"""Levels of lists and objects in values that a document may hold freely, such as settings."""


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
    """Require one of a few words."""
    options = list(choices)
    if value not in options:
        words = ", ".join(repr(c) for c in options)
        raise fail(name, f"one of {words}", repr(value))
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
    near = difflib.get_close_matches(name.lower(), [k.lower() for k in known], n=1, cutoff=0.5)
    match = next((k for k in known if near and k.lower() == near[0]), None)
    if match is not None:
        return ArgumentError(f"unknown {kind} {name[:LONGEST]!r}. Did you mean {match!r}?")
    listed = ", ".join(sorted(known)[:20]) + (", ..." if len(known) > 20 else "")
    return ArgumentError(f"unknown {kind} {name[:LONGEST]!r}. Known: {listed}")


def parse_json(text: str | bytes) -> Any:
    """Read JSON; ValueError for anything else, for too many levels, and for a key that an object names twice."""
    try:
        return json.loads(text, object_pairs_hook=_named_once)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _named_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError(f"an object names a key twice, among {short(list(found))}")
    return found


def build(form: type[Built], data: object, name: str = "data") -> Built:
    """Make a dataclass (or any other type that `_convert` knows) of values as JSON gives them.

    Missing fields take their defaults. Keys that the class derives, such as properties, are passed over, others are
    errors. An ArgumentError says where the data are wrong: `name` is what it calls them as a whole.
    """
    built: Built = _convert(form, data, "", name)
    return built


def _convert(form: Any, value: Any, place: str, whole: str) -> Any:
    """Make what an annotation says: a dataclass, list, tuple, mapping, array, number, text, X | None, or Any."""
    origin, parts, name = get_origin(form), get_args(form), place or whole
    if form is Any:
        return _plain(value, name)
    if origin is UnionType:  # X | None
        inner = next(part for part in parts if part is not NoneType)
        return None if value is None else _convert(inner, value, place, whole)
    if is_dataclass(form) or is_typeddict(form):
        return _object(form, value, place, whole)
    if origin in (dict, Mapping):
        _require(isinstance(value, dict) and all(isinstance(key, str) for key in value), name, "an object", value)
        return {key: _convert(parts[1], part, _inside(place, key), whole) for key, part in value.items()}
    if origin in (list, tuple, Sequence):
        _require(isinstance(value, (list, tuple)), name, "a list", value)
        exact = origin is tuple and parts[-1] is not Ellipsis
        _require(not exact or len(value) == len(parts), name, f"{len(parts)} values", value)
        found = [_convert(parts[at if exact else 0], x, f"{place}[{at}]", whole) for at, x in enumerate(value)]
        return tuple(found) if origin is tuple else found
    if origin is not None:  # numpy's NDArray
        return _array(get_args(parts[1])[0], value, name)
    return _scalar(form, value, name)


def _object(form: Any, value: Any, place: str, whole: str) -> Any:
    """Make a dataclass or TypedDict; what its own checks say is told with the place."""
    hints, needed = _fields(form)
    _require(isinstance(value, Mapping), place or whole, "an object", value)
    for key in needed - value.keys():
        raise ArgumentError(f"`{_inside(place, key)}` is missing")
    for key in value.keys() - hints.keys():
        if not isinstance(getattr(form, str(key), None), property):
            raise ArgumentError(f"`{_inside(place, str(key))}` is not known here")
    found = {key: _convert(hint, value[key], _inside(place, key), whole) for key, hint in hints.items() if key in value}
    try:
        return form(**found)
    except ArgumentError as error:
        raise ArgumentError(f"{place}: {error}" if place else str(error)) from error


@cache
def _fields(form: Any) -> tuple[dict[str, Any], frozenset[str]]:
    """Annotations of a dataclass or TypedDict by name, and the names that must be given."""
    hints = get_type_hints(form)
    if is_typeddict(form):
        return hints, form.__required_keys__
    needed = (field.name for field in fields(form) if field.default is MISSING and field.default_factory is MISSING)
    return hints, frozenset(needed)


def _scalar(form: Any, value: Any, name: str) -> Any:
    if form is str or form is bool:
        _require(isinstance(value, form), name, "text" if form is str else "true or false", value)
        return value
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if form is int:
        _require(number and isinstance(value, int) and abs(value) < 2**63, name, "an integer of 64 bits", value)
        return index(value)
    _require(number and abs(value) < 1e308 and math.isfinite(value), name, "a finite number", value)
    return float(value)


def _array(kind: Any, value: Any, name: str) -> Any:
    """Make a numpy array of nested lists of numbers; an empty list fits every kind."""
    import numpy as np

    expected = "a list of integers" if issubclass(kind, np.integer) else "a list of finite numbers, all rows alike"
    try:
        array = np.array(value)
        fits = array.size == 0 or array.dtype.kind in ("i" if issubclass(kind, np.integer) else "if")
        _require(isinstance(value, list) and fits and bool(np.isfinite(array).all()), name, expected, value)
    except (TypeError, ValueError, RecursionError) as error:
        if isinstance(error, ArgumentError):
            raise
        raise fail(name, expected, short(value)) from error
    return array.astype(kind)


def _plain(value: Any, name: str) -> Any:
    """Require what JSON can hold, without going deep: a value far down would break whoever walks it later."""
    level = [value]
    for _ in range(DEEPEST):
        for part in level:
            if isinstance(part, float) or (isinstance(part, int) and not isinstance(part, bool)):
                _scalar(type(part), part, name)
            else:
                fits = part is None or isinstance(part, (str, bool, list, tuple))
                fits = fits or (isinstance(part, dict) and all(isinstance(key, str) for key in part))
                _require(fits, name, "values that JSON can hold", part)
        level = [x for part in level if isinstance(part, (dict, list, tuple)) for x in _parts(part)]
        if not level:
            return value
    raise fail(name, f"nested at most {DEEPEST} deep", "more")


def _parts(value: dict[str, Any] | Sequence[Any]) -> Iterable[Any]:
    return value.values() if isinstance(value, dict) else value


def _inside(place: str, key: str) -> str:
    return f"{place}.{key[:LONGEST]}" if place else key[:LONGEST]


def _require(fits: bool, name: str, expected: str, got: object) -> None:
    if not fits:
        raise fail(name, expected, short(got))
