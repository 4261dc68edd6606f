"""Pickles of plain data, read without running anything that is in them.

A pickle names what it wants called. This reader knows numpy's own array builders by name and refuses every other one,
so a file can give dicts, lists, tuples, sets, strings, bytes, numbers and numpy arrays of numbers, and nothing else.
"""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy._core import multiarray

from whytube.errors import DataError

if TYPE_CHECKING:
    from typing import BinaryIO

_DAMAGE = (
    pickle.UnpicklingError,
    EOFError,
    ValueError,
    TypeError,
    LookupError,
    AttributeError,
    MemoryError,
    RecursionError,
)
"""A damaged pickle fails in as many ways as there are instructions in one."""


def load_arrays(file: BinaryIO, *, encoding: str = "ASCII") -> Any:
    """Read one pickled object made of plain containers, strings, numbers and numpy arrays; anything else is an error.

    encoding: of strings that Python 2 wrote; its numpy arrays need "latin1".
    """
    name = getattr(file, "name", "this pickle")
    try:
        found = _ArrayUnpickler(file, encoding=encoding).load()
    except _ForbiddenError as error:
        raise DataError(
            f"cannot read {name}: expected plain data and numpy arrays, got {error}, which could run code. "
            "Use the original file, or convert it where you trust it"
        ) from error
    except _DAMAGE as error:
        raise DataError(f"cannot read {name}: it is damaged or no pickle ({error})") from error
    return found


class _ForbiddenError(pickle.UnpicklingError):
    """The pickle asks for something that is not on the list."""


class _Dtype:
    """Stands for a dtype while its pickle is read.

    numpy's own believes the flags in the file, by which any dtype, even one in use, can come to hold Python objects.
    """

    def __init__(self, code: str, *_copying: Any) -> None:
        self.code = code
        self.state: tuple[Any, ...] = (3, "|", None, None, None, -1, -1, 0)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.state = state

    def build(self) -> np.dtype[Any]:
        """Build the dtype from its description alone."""
        _version, order, inner, names, fields, itemsize, _alignment, _flags = self.state
        spec: Any = self.code
        if inner is not None:
            spec = (inner[0].build(), inner[1])
        elif fields is not None:
            formats, offsets = zip(*((fields[name][0].build(), fields[name][1]) for name in names), strict=True)
            spec = {"names": list(names), "formats": formats, "offsets": offsets, "itemsize": itemsize}
        dtype: np.dtype[Any] = np.dtype(spec)
        if dtype.hasobject:
            raise _ForbiddenError("an array of Python objects")
        # The order of a structure is that of its fields, which have their own.
        return dtype if inner is not None or fields is not None else dtype.newbyteorder(order)


class _Array(np.ndarray[Any, Any]):
    """An array that takes its dtype from a _Dtype alone."""

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        version, shape, dtype, fortran, data = state
        super().__setstate__((version, shape, dtype.build(), fortran, data))


def _reconstruct(kind: Any, shape: tuple[int, ...], code: str | bytes) -> _Array:
    """Give the empty array that its state will fill; all arrays are pickled as an empty one of bytes."""
    if (kind, shape) != (_ndarray, (0,)) or code not in ("b", b"b"):
        raise _ForbiddenError(f"an array of {code!r} without its state")
    return _Array(0, dtype=np.int8)


def _scalar(dtype: _Dtype, data: bytes) -> Any:
    return multiarray.scalar(dtype.build(), data)


def _ndarray(*_args: Any) -> None:
    """Stand for numpy's class, which files name but never call."""
    raise _ForbiddenError("a call of numpy.ndarray")


class _ArrayUnpickler(pickle.Unpickler):
    allowed: ClassVar[dict[tuple[str, str], Any]] = {
        ("numpy", "ndarray"): _ndarray,
        ("numpy", "dtype"): _Dtype,
        **{
            (f"{package}.multiarray", name): stand_in
            for package in ("numpy.core", "numpy._core")
            for name, stand_in in (("_reconstruct", _reconstruct), ("scalar", _scalar))
        },
    }

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in self.allowed:
            raise _ForbiddenError(f"{module}.{name}")
        return self.allowed[module, name]

    def persistent_load(self, pid: Any) -> Any:
        raise _ForbiddenError(f"a persistent object {pid!r}")
