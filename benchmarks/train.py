"""One training step of the paper's objective against its straightforward writing with autograd: time and memory.

python benchmarks/train.py [--device cpu] [--seed 0] [--quick | --full] [--out FILE.json] [--compare] [--profile]
"""

from __future__ import annotations

import contextlib
import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch.nn.functional import conv2d, softplus

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # a program finds only its own folder

from benchmarks.measure import extra_bytes, milliseconds, options, publish
from whytube.errors import WhytubeError
from whytube.explainer import values
from whytube.explainer.objective import class_term
from whytube.explainer.scores import Forms, Scores
from whytube.subpath import other_classes
from whytube.subpath.reference import compose
from whytube.versions import provenance

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@dataclass(frozen=True)
class Sizes:
    """A batch of the explanation module's training."""

    batch: int
    classes: int
    attributes: int
    of_clip: int
    channels: tuple[int, int]
    grids: tuple[tuple[int, int, int], tuple[int, int, int]]


# The paper's UCF101-24: batch 30, 24 classes, 256-d 14x14 and 512-d 7x7 features of 16 frames. It does not say how many
# attributes S(x) has: the 8 are ours.
SIZES = {
    "cuda": Sizes(30, 24, 39, 8, (256, 512), ((16, 14, 14), (16, 7, 7))),
    "cpu": Sizes(4, 24, 22, 6, (32, 64), ((16, 16, 16), (16, 8, 8))),
    "quick": Sizes(2, 3, 5, 2, (4, 4), ((3, 4, 4), (3, 2, 2))),
}


def run(device: torch.device, *, seed: int = 0, quick: bool = False, full: bool = False) -> dict[str, Any]:
    """Measure forward plus backward of both, after checking that they agree.

    quick: tiny sizes. full: the paper's sizes on any device, where a CPU takes minutes.
    """
    sizes = _sizes(device, quick=quick, full=full)
    ours, plain = (_step(term, sizes, device, seed) for term in (class_term, straightforward))
    with _tensor_float32(False):
        _agree(ours(), plain())
    slow = full and device.type == "cpu"
    counts = {"repeats": 1 if slow else 2 if quick else 10, "warmup": 0 if slow else 3}
    with _tensor_float32(True):
        fast, plainly = (milliseconds(call, device, **counts) for call in (ours, plain))
        fast_extra, slow_extra = (extra_bytes(call, device) for call in (ours, plain))
    return {
        "benchmark": "train",
        "sizes": json.loads(json.dumps(asdict(sizes))),  # lists, as they come back from a file
        "milliseconds": {"ours": fast, "straightforward": plainly, "ratio": plainly / fast},
        "extra_bytes": {"ours": fast_extra, "straightforward": slow_extra},
        "provenance": provenance(device, seed=seed),
    }


def compare(device: torch.device, *, seed: int = 0, quick: bool = False, full: bool = False) -> str:
    """Measure the step with volumes of several sizes at a time; return a table."""
    step = _step(class_term, _sizes(device, quick=quick, full=full), device, seed)
    rows, size = (
        ["| volumes at a time | forward + backward | extra memory |", "| ---: | ---: | ---: |"],
        values.VOLUME_BYTES,
    )
    try:
        for mebibytes in (96, 128, 160, 192, 256):
            values.VOLUME_BYTES = mebibytes << 20
            with _tensor_float32(True):
                time, extra = milliseconds(step, device, repeats=2 if quick else 10), extra_bytes(step, device)
            memory = "unknown" if extra is None else f"{extra / 2**20:.0f} MiB"
            rows.append(f"| {mebibytes} MiB | {time:.2f} ms | {memory} |")
    finally:
        values.VOLUME_BYTES = size
    return "\n".join(rows)


def profile(device: torch.device, *, seed: int = 0, quick: bool = False, full: bool = False) -> str:
    """Tell which operations our step spends its time in, the longest first."""
    step = _step(class_term, _sizes(device, quick=quick, full=full), device, seed)
    kinds = [torch.profiler.ProfilerActivity.CPU]
    if device.type == "cuda":
        kinds.append(torch.profiler.ProfilerActivity.CUDA)
    with _tensor_float32(True):
        step()
        with torch.profiler.profile(activities=kinds) as recorded:
            step()
    kind = "cuda" if device.type == "cuda" else "cpu"
    return str(recorded.key_averages().table(sort_by=f"self_{kind}_time_total", row_limit=40, max_name_column_width=70))


def _sizes(device: torch.device, *, quick: bool, full: bool) -> Sizes:
    return SIZES["quick" if quick else "cuda" if full else device.type]


def _step(
    term: Callable[..., torch.Tensor], sizes: Sizes, device: torch.device, seed: int
) -> Callable[[], tuple[torch.Tensor, ...]]:
    """Forward plus backward of `term` on random features, the same for the same seed."""
    torch.manual_seed(seed)
    size = (sizes.grids[0][1] * 8, sizes.grids[0][2] * 8)
    scores = Scores(sizes.classes, sizes.attributes, sizes.channels, Forms(sizes.grids, size, sizes.grids[0][0])).to(
        device
    )
    maps = tuple(
        torch.randn(sizes.batch, d, *grid, device=device).relu()
        for d, grid in zip(sizes.channels, sizes.grids, strict=True)
    )
    positive = torch.randint(sizes.classes, (sizes.batch,), device=device)
    present = torch.zeros(sizes.batch, sizes.attributes, dtype=torch.bool, device=device)
    present[:, : sizes.of_clip] = True
    weights = [*scores.class_weights, *scores.attribute_weights]
    return lambda: torch.autograd.grad(term(scores, maps, positive, present), weights)


def straightforward(
    scores: Scores, maps: tuple[torch.Tensor, ...], positive: torch.Tensor, present: torch.Tensor
) -> torch.Tensor:
    """Eq. (7) as the paper describes it: a convolution per shape, all differences, a chain of standard layers."""
    attributes = present.nonzero()[:, 1].view(len(positive), -1)  # (B, s)
    classes = scores.class_weights[0].shape[0]
    negative = other_classes(positive, classes)
    losses = []
    for b in range(len(positive)):
        volumes = []
        for scale, h in enumerate(maps):
            w_c, w_s = scores.class_weights[scale][:, None], scores.attribute_weights[scale][attributes[b]][None]
            w_cs = (w_c * w_s + w_c + w_s).flatten(0, 1)  # (C * s, d, 3, 3)
            for window in scores.windows.view(-1, 3, 3):
                m = conv2d(h[b].transpose(0, 1), w_cs * window, padding=1)  # (T, C * s, H, W)
                volumes.append(scores.forms.to_common(m.transpose(0, 1), scale))
        m = torch.stack(volumes, 1).unflatten(0, (classes, -1))  # type: ignore[no-untyped-call]  # (C, s, K, T, H, W)
        difference = (m[positive[b]][None] - m[negative[b]]).flatten(0, 1)
        losses.append(softplus(compose(-difference)).view(classes - 1, -1).mean(1).sum())
    return torch.stack(losses).mean()


def table(report: dict[str, Any]) -> str:
    """Write the report as text."""
    ms, extra, source = report["milliseconds"], report["extra_bytes"], report["provenance"]
    rows = ["| | forward + backward | extra memory |", "| --- | ---: | ---: |"]
    for name in ("ours", "straightforward"):
        memory = "unknown" if extra[name] is None else f"{extra[name] / 2**20:.0f} MiB"
        rows.append(f"| {name} | {ms[name]:.2f} ms | {memory} |")
    share = f", memory {extra['straightforward'] / extra['ours']:.1f} x less" if extra["ours"] else ""
    rows += [
        "",
        f"{ms['ratio']:.1f} x faster{share}; {source['device']}, commit {source['commit']}, sizes {report['sizes']}.",
    ]
    return "\n".join(rows)


@contextlib.contextmanager
def _tensor_float32(allowed: bool) -> Iterator[None]:
    """Let convolutions and matrix products alike use a GPU's TF32, or neither."""
    before = torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = allowed
    try:
        yield
    finally:
        torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32 = before


def _agree(ours: tuple[torch.Tensor, ...], plain: tuple[torch.Tensor, ...]) -> None:
    for a, b in zip(ours, plain, strict=True):
        if (a - b).norm() > 1e-2 * b.norm():
            raise WhytubeError("the training step and its straightforward writing disagree: this is a bug")


def main(words: list[str] | None = None) -> None:
    """Measure, print the table, write the report."""
    parser = options(__doc__)
    parser.add_argument("--full", action="store_true", help="the paper's sizes also on a CPU, in minutes")
    parser.add_argument("--compare", action="store_true", help="then several sizes of chunks")
    parser.add_argument("--profile", action="store_true", help="then the operations that take longest")
    given = parser.parse_args(words)
    setting = {"seed": given.seed, "quick": given.quick, "full": given.full}
    report = run(given.device, **setting)
    publish(report, table(report), given.out)
    for wanted, tell in ((given.compare, compare), (given.profile, profile)):
        if wanted:
            print("\n" + tell(given.device, **setting))


if __name__ == "__main__":
    main()
