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
    # A damaged pickle fails in as many ways as there are instructions in one.
    except (pickle.UnpicklingError, EOFError, ValueError, TypeError, LookupError, AttributeError, MemoryError) as error:
        raise DataError(f"cannot read {name}: it is damaged or no pickle ({error})") from error
    return found


class _ForbiddenError(pickle.UnpicklingError):
    """The pickle asks for something that is not on the list."""


def _numbers_only(*args: Any) -> np.dtype[Any]:
    """Build a dtype; one that holds Python objects could smuggle them in."""
    dtype: np.dtype[Any] = np.dtype(*args)
    if dtype.hasobject:
        raise _ForbiddenError("an array of Python objects")
    return dtype


class _ArrayUnpickler(pickle.Unpickler):
    allowed: ClassVar[dict[tuple[str, str], Any]] = {
        ("numpy", "ndarray"): np.ndarray,
        ("numpy", "dtype"): _numbers_only,
        **{
            (f"{package}.multiarray", name): getattr(multiarray, name)
            for package in ("numpy.core", "numpy._core")
            for name in ("_reconstruct", "scalar")
        },
    }

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in self.allowed:
            raise _ForbiddenError(f"{module}.{name}")
        return self.allowed[module, name]

    def persistent_load(self, pid: Any) -> Any:
        raise _ForbiddenError(f"a persistent object {pid!r}")
