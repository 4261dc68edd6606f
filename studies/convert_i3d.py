"""Published I3D weights, as a Flax checkpoint names them, to those of our I3D."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    import numpy as np

BRANCHES = {
    "Branch_0/Conv3d_0a_1x1": "branch_0",
    "Branch_1/Conv3d_0a_1x1": "branch_1.0",
    "Branch_1/Conv3d_0b_3x3": "branch_1.1",
    "Branch_2/Conv3d_0a_1x1": "branch_2.0",
    "Branch_2/Conv3d_0b_3x3": "branch_2.1",
    "Branch_3/Conv3d_0b_1x1": "branch_3",
}
CLASS_LAYER = "Logits/Conv3d_0c_1x1"


def convert_i3d(arrays: Any) -> dict[str, torch.Tensor]:
    """Turn {"params": {stage: ...}, "batch_stats": {stage: ...}} into the state of `I3D`."""
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
