"""Stored documents: JSON that is read, and made into the dataclass that it stands for, checked in one place.

`build` follows the annotations of the dataclass and names the place of what is wrong: `reasons[2].tube.boxes`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from operator import index
from reprlib import repr as short
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, TypeVar, get_args, get_origin, get_type_hints, is_typeddict

from whytube.checks import LONGEST, fail
from whytube.errors import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Iterable

Built = TypeVar("Built")
DEEPEST = 32
"""Levels of lists and objects in values that a document may hold freely, such as settings."""


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
