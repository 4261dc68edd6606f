"""The best tube through a volume of scores: usable on its own, knows nothing of videos or classes.

layer.py       what a user calls: max_subpath, min_subpath, their difference forms, top_subpaths, MaxSubpathPool
operator.py    a search to be done (`Job`), the torch operator that does it, choice of kernel, gradient
reference.py   the paper's chain of standard operations
cpu.py         fused kernel for CPUs (numba)
cuda.py        fused kernel for CUDA; cuda_kernels.py is its Triton source
"""

from whytube.subpath.layer import (
    MaxSubpathPool,
    Subpath,
    max_subpath,
    max_subpath_difference,
    min_subpath,
    min_subpath_difference,
    path_sum,
    top_subpaths,
)
from whytube.subpath.operator import backend_for, other_classes, use_backend

__all__ = [
    "MaxSubpathPool",
    "Subpath",
    "backend_for",
    "max_subpath",
    "max_subpath_difference",
    "min_subpath",
    "min_subpath_difference",
    "other_classes",
    "path_sum",
    "top_subpaths",
    "use_backend",
]
