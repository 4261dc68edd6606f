"""Ways to run I3D on whole clips without gradients, timed beside each other: precision, poolings, first convolution.

Used by masked.py --variants. The library has one way; this says whether it is the right one on a device.
"""

from __future__ import annotations

import contextlib
import functools
import time
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import torch
from torch.nn import functional

from benchmarks.measure import milliseconds
from whytube.classifiers import I3D, i3d, inference
from whytube.models import load_classifier

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from torch import Tensor, nn


@dataclass(frozen=True)
class Way:
    """How I3D is run.

    pool: "torch" (max_pool3d), "along" (one dimension after the other), "frames" (2-d, then time), "triton".
    stem: "strided" (as published) or "cells" (2 x 2 x 2 pixels as channels).
    relu: "own" or "fused" with cuDNN's convolution.
    search: cuDNN tries its algorithms on the first run. compiled: with torch.compile.
    """

    precision: str = "float32"
    pool: str = "torch"
    stem: str = "strided"
    relu: str = "own"
    search: bool = False
    compiled: bool = False


FAST = Way("float16", "frames", "cells")
WAYS = (
    Way(),
    Way(pool="frames", stem="cells"),
    Way("tf32"),
    Way("tf32", "frames", "cells"),
    Way("float16"),
    Way("float16", search=True),
    Way("float16", pool="along"),
    Way("float16", pool="frames"),
    Way("float16", pool="triton"),
    Way("float16", stem="cells"),
    FAST,
    replace(FAST, precision="bfloat16"),
    replace(FAST, search=True),
    replace(FAST, pool="triton"),
    replace(FAST, pool="triton", search=True),
    replace(FAST, pool="triton", relu="fused"),
    replace(FAST, pool="triton", relu="fused", search=True),
)
QUICK = (Way(), Way(pool="frames", stem="cells"), replace(FAST, precision="bfloat16"), replace(FAST, pool="triton"))
COMPILED = (replace(FAST, pool="along", compiled=True), replace(FAST, pool="along", compiled=True, search=True))


def run(device: torch.device, *, seed: int, quick: bool, compiled: bool) -> dict[str, Any]:
    """Time every way on the same random clips, and compare its logits with float32's."""
    torch.manual_seed(seed)
    model = I3D(["a", "b"], frames=8, size=(32, 32)) if quick else load_classifier("jhmdb-i3d")
    assert isinstance(model, I3D)
    batch = 1 if quick else 16 if device.type == "cuda" else 2
    clips = torch.rand(batch, 3, model.frames, *model.size, device=device)
    clips[:, :, :, : model.size[0] // 2] *= 0.2
    model = model.for_inference().to(device)
    with _set(Way()), torch.inference_mode():
        exact = model(clips)
    rows = []
    for way in (*(QUICK if quick else WAYS), *(COMPILED if compiled else ())):
        began = time.perf_counter()
        try:
            found = _measured(way, model, clips, exact, device, quick=quick)
        except Exception as error:  # a way that a device does not have is a row that says so
            found = {"error": f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"[:100]}
        rows.append({**asdict(way), **found, "seconds": time.perf_counter() - began})
    return {"batch": batch, "frames": model.frames, "size": list(model.size), "ways": rows}


def _measured(
    way: Way, model: I3D, clips: Tensor, exact: Tensor, device: torch.device, *, quick: bool
) -> dict[str, Any]:
    dtype = getattr(torch, way.precision, torch.float32)
    network = model.for_inference()
    network.stages.to(dtype)
    x = clips.to(dtype, memory_format=torch.channels_last_3d)
    call: Callable[[Tensor], Tensor] = torch.compile(network) if way.compiled else network
    with _set(way), torch.inference_mode():
        error = float((call(x) - exact).abs().max())
        took = milliseconds(lambda: call(x), device, repeats=2 if quick else 8, warmup=1 if quick else 2)
    return {"milliseconds_a_clip": took / len(clips), "largest_error": error}


@contextlib.contextmanager
def _set(way: Way) -> Iterator[None]:
    """Let I3D run in this way, whatever the library would choose."""
    flags = torch.backends.cudnn, torch.backends.cuda.matmul
    before = flags[0].allow_tf32, flags[1].allow_tf32, flags[0].benchmark, i3d.max_pool, i3d.convolve, i3d.Unit.forward
    flags[0].allow_tf32 = flags[1].allow_tf32 = way.precision == "tf32"
    flags[0].benchmark = way.search
    i3d.max_pool, i3d.convolve = _pool(way.pool), functools.partial(_convolve, cells=way.stem == "cells")
    if way.relu == "fused":
        i3d.Unit.forward = _fused  # type: ignore[method-assign]
    try:
        yield
    finally:
        flags[0].allow_tf32, flags[1].allow_tf32, flags[0].benchmark = before[:3]
        i3d.max_pool, i3d.convolve, i3d.Unit.forward = before[3:]  # type: ignore[method-assign]


def _pool(name: str) -> Callable[..., Tensor]:
    if name == "triton":
        from benchmarks.pool_triton import max_pool

        return max_pool
    if name == "frames":
        return lambda x, kernel, stride: inference.pool_along(
            inference.pool_frames(x, kernel[1:], stride[1:]), kernel[:1], stride[:1]
        )
    return functional.max_pool3d if name == "torch" else inference.pool_along


def _convolve(x: Tensor, conv: nn.Conv3d, pads: inference.Pads, *, cells: bool) -> Tensor:
    if cells and x.shape[1] == 3:
        return inference.convolve_cells(inference.pad(x, pads), conv.weight, conv.bias, conv.stride)  # type: ignore[arg-type]
    if any(before != after for before, after in pads):
        return functional.conv3d(inference.pad(x, pads), conv.weight, conv.bias, conv.stride)
    return functional.conv3d(x, conv.weight, conv.bias, conv.stride, [before for before, _ in pads])


def _fused(self: i3d.Unit, x: Tensor, pads: inference.Pads | None = None) -> Tensor:
    """Run a unit with bias and relu inside cuDNN's convolution."""
    conv = self.conv
    pads = i3d.same_padding(x.shape[2:], self.kernel, self.stride) if pads is None else pads
    if x.shape[1] == 3:
        return functional.relu(i3d.convolve(x, conv, pads), inplace=True)
    return torch.cudnn_convolution_relu(
        x, conv.weight, conv.bias, conv.stride, [before for before, _ in pads], conv.dilation, conv.groups
    )


def table(report: dict[str, Any]) -> str:
    """Write the ways as text."""
    rows = [
        f"I3D, {report['batch']} clips of {report['frames']} x {report['size'][0]} x {report['size'][1]}",
        "",
        "| precision | pooling | first convolution | relu | cuDNN tries | compiled | ms a clip | largest error |",
        "| --- | --- | --- | --- | --- | --- | ---: | ---: |",
    ]
    for row in report["ways"]:
        said = [
            row["precision"],
            row["pool"],
            row["stem"],
            row["relu"],
            *("yes" if row[f] else "no" for f in ("search", "compiled")),
        ]
        figures = (
            [row["error"], ""]
            if "error" in row
            else [f"{row['milliseconds_a_clip']:.3f}", f"{row['largest_error']:.1e}"]
        )
        rows.append("| " + " | ".join([*said, *figures]) + " |")
    return "\n".join(rows)
