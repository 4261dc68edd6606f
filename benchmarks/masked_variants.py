"""I3D on whole clips without gradients, timed in every precision: plainly, and as the library runs it.

Used by masked.py --variants. Plainly is torch's own convolution and pooling; the library has others where they are
quicker (classifiers/inference.py).
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import torch
from torch.nn import functional

from benchmarks.measure import milliseconds
from whytube.classifiers import I3D, i3d, inference
from whytube.models import load_classifier

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch import Tensor, nn

PRECISIONS = ("float32", "tf32", "float16", "bfloat16")


def run(device: torch.device, *, seed: int, quick: bool) -> dict[str, Any]:
    """Time every way on the same random clips, and compare its logits with float32's."""
    torch.manual_seed(seed)
    model = I3D(["a", "b"], frames=8, size=(32, 32)) if quick else load_classifier("jhmdb-i3d")
    batch = 1 if quick else 16 if device.type == "cuda" else 2
    clips = torch.rand(batch, 3, model.frames, *model.size, device=device)
    clips[:, :, :, : model.size[0] // 2] *= 0.2
    model = model.for_inference().to(device)
    with _set("float32", ours=False), torch.inference_mode():
        exact = model(clips)
    rows = []
    for precision in PRECISIONS:
        network, dtype = model.for_inference(), getattr(torch, precision, torch.float32)
        network.get_submodule("stages").to(dtype)
        x = clips.to(dtype, memory_format=torch.channels_last_3d)
        for ours in (False, True):
            with _set(precision, ours=ours), torch.inference_mode():
                error = float((network(x) - exact).abs().max())
                took = milliseconds(lambda: network(x), device, repeats=2 if quick else 8, warmup=1 if quick else 2)  # noqa: B023
            figures = {"milliseconds_a_clip": took / batch, "largest_error": error}
            rows.append({"precision": precision, "way": "ours" if ours else "plain", **figures})
    return {"batch": batch, "frames": model.frames, "size": list(model.size), "ways": rows}


@contextlib.contextmanager
def _set(precision: str, *, ours: bool) -> Iterator[None]:
    """Let I3D run in this way."""
    flags = torch.backends.cudnn, torch.backends.cuda.matmul
    before = flags[0].allow_tf32, flags[1].allow_tf32, i3d.max_pool, i3d.convolve_relu, i3d.space
    flags[0].allow_tf32 = flags[1].allow_tf32 = precision == "tf32"
    if not ours:
        i3d.max_pool, i3d.convolve_relu, i3d.space = (
            _max_pool,
            _convolve_relu,
            lambda _, widths: (None, [None] * len(widths)),
        )
    try:
        yield
    finally:
        flags[0].allow_tf32, flags[1].allow_tf32, i3d.max_pool, i3d.convolve_relu, i3d.space = before


def _convolve_relu(x: Tensor, conv: nn.Conv3d, pads: inference.Pads, _out: Tensor | None = None) -> Tensor:
    padding = [before for before, _ in pads]
    if any(before != after for before, after in pads):
        x, padding = inference.pad(x, pads), [0, 0, 0]
    return functional.conv3d(x, conv.weight, conv.bias, conv.stride, padding).relu_()  # type: ignore[arg-type]


def _max_pool(x: Tensor, kernel: inference.Triple, stride: inference.Triple, pads: inference.Pads) -> Tensor:
    return functional.max_pool3d(inference.pad(x, pads), kernel, stride)


def table(report: dict[str, Any]) -> str:
    """Write the ways as text."""
    rows = [
        f"I3D, {report['batch']} clips of {report['frames']} x {report['size'][0]} x {report['size'][1]}",
        "",
        "| precision | way | ms a clip | largest error |",
        "| --- | --- | ---: | ---: |",
    ]
    for row in report["ways"]:
        figures = f"{row['milliseconds_a_clip']:.3f} | {row['largest_error']:.1e}"
        rows.append(f"| {row['precision']} | {row['way']} | {figures} |")
    return "\n".join(rows)
