"""MATLAB files, for those who have scipy: the only module that imports it."""

from __future__ import annotations

import zlib
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from whytube.errors import DataError

if TYPE_CHECKING:
    from pathlib import Path

EXTRA = "pip install 'whytube[mat]'"


def can_read_mat() -> bool:
    """Tell whether scipy is here."""
    return find_spec("scipy") is not None


def read_mat(path: Path, variable: str) -> Any:
    """Read one variable of a MATLAB file up to version 7.2: arrays, structs as dicts, struct arrays as lists."""
    if not can_read_mat():
        raise DataError(f"reading {path} needs scipy, which is not here: {EXTRA}")
    from scipy.io import loadmat
    from scipy.io.matlab import MatReadError

    try:
        found = loadmat(path, variable_names=[variable], simplify_cells=True)
    except NotImplementedError as error:
        raise DataError(f"{path} is of MATLAB's version 7.3; expected 7.2 or older. Save it with -v7") from error
    except (OSError, ValueError, TypeError, LookupError, MatReadError, zlib.error) as error:
        raise DataError(f"cannot read {path} as a MATLAB file: {error}") from error
    if variable not in found:
        raise DataError(f"{path} has no variable {variable!r}; is it another file of the data set?")
    return found[variable]
