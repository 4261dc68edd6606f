"""The kernels of the layer, as the tests of it run them, and how their answers are compared."""

import importlib.util
from importlib import metadata

import numpy as np
import pytest
import torch

from whytube.subpath import Subpath

HAS_TRITON = importlib.util.find_spec("triton") is not None
if HAS_TRITON and not torch.cuda.is_available():
    # Older interpreters turn arrays of one element into numbers in a way that numpy no longer allows.
    old = tuple(map(int, metadata.version("triton").split(".")[:2])) < (3, 9)
    HAS_TRITON = not (old and tuple(map(int, np.__version__.split(".")[:2])) >= (2, 4))
DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
KERNELS = [
    pytest.param("reference", id="reference"),
    pytest.param("cpu", id="cpu"),
    pytest.param(
        "cuda",
        id="cuda" if torch.cuda.is_available() else "cuda-interpreted",
        marks=pytest.mark.skipif(not HAS_TRITON, reason="needs a triton whose interpreter works with this numpy"),
    ),
]
INTERPRETED = not torch.cuda.is_available()


def place(kernel: str, tensor: torch.Tensor) -> torch.Tensor:
    return tensor.to(DEVICE) if kernel != "cpu" else tensor


def assert_same(found: Subpath, wanted: Subpath) -> None:
    for name, a, b in zip(Subpath._fields, found, wanted, strict=True):
        assert torch.equal(a.cpu(), b.cpu()), f"{name}: {a} != {b}"


def tied_scores(seed: int, shape: tuple[int, ...]) -> torch.Tensor:
    """Small integers, so that ties abound, a seventh of the cells forbidden."""
    rng = np.random.default_rng(seed)
    scores = rng.integers(-2, 3, shape).astype(np.float32)
    scores[rng.random(shape) < 1 / 7] = -np.inf
    return torch.from_numpy(scores)
