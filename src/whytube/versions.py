"""What stands beside every number and every explanation: versions, commit, device."""

from __future__ import annotations

import os
import platform
import subprocess
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import torch

import whytube


def versions() -> dict[str, str]:
    """Versions of what computes."""
    found = {"whytube": whytube.__version__, "python": platform.python_version(), "torch": torch.__version__}
    return found | {"numpy": np.__version__} | _installed()


@cache
def _installed() -> dict[str, str]:
    """Versions of packages that are here; looking them up takes milliseconds, as much as a short explanation."""
    found = {}
    for package in ("numba", "triton", "av", "opencv-python", "opencv-python-headless"):
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found


def provenance(device: torch.device, *, seed: int | None = None) -> dict[str, Any]:
    """Commit, device and versions, to stand beside every number."""
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else platform.processor() or platform.machine()
    threads = torch.get_num_threads()
    return {"commit": commit(), "device": name, "threads": threads, "seed": seed, "versions": versions()}


@cache
def commit() -> str | None:
    """Name the source tree's commit, with "+" when files differ from it; None outside a checkout.

    WHYTUBE_COMMIT overrules: a copy of the tree, with an older history or none, may say there where it came from.
    """
    said, here = os.environ.get("WHYTUBE_COMMIT"), Path(__file__).parent
    if said:
        return said

    def git(*words: str) -> str:
        return subprocess.run(["git", *words], cwd=here, capture_output=True, text=True, check=True).stdout.strip()

    try:
        git("ls-files", "--error-unmatch", Path(__file__).name)  # else this is somebody else's repository
        return git("rev-parse", "--short=12", "HEAD") + ("+" if git("status", "--porcelain", "-uno") else "")
    except (OSError, subprocess.CalledProcessError):
        return None
