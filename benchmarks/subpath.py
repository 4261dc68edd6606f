"""The maximum-subpath layer against the paper's composition: same inputs, same run.

python benchmarks/subpath.py [--device cpu] [--seed 0] [--quick] [--out FILE.json]
python benchmarks/subpath.py [--device cpu] --check     compares kernels and gradients instead; exits 1 if they differ
"""

from __future__ import annotations

import sys
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch.nn.functional import max_pool2d, relu

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # a program finds only its own folder

from benchmarks.measure import device_milliseconds, extra_bytes, milliseconds, options, publish
from whytube.errors import ArgumentError, WhytubeError
from whytube.subpath import backend_for, use_backend
from whytube.subpath.layer import max_subpath, max_subpath_difference, min_subpath, min_subpath_difference, path_sum
from whytube.subpath.reference import compose
from whytube.versions import provenance

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from whytube.subpath import Subpath

CASES = {
    "cuda": ((5520, 8, 16, 14, 14), (5520, 8, 64, 14, 14)),
    "cpu": ((920, 8, 16, 14, 14), (40, 8, 16, 14, 14)),
}
DIFFERENCES = {"cuda": (30, 24, 8, 8, 16, 14, 14), "cpu": (2, 24, 8, 8, 16, 14, 14)}
QUICK = {"volume": (6, 2, 4, 5, 5), "difference": (2, 3, 2, 2, 4, 5, 5)}


@dataclass(frozen=True)
class Row:
    """One line of the table; times in milliseconds, memory in bytes beyond input and gradient."""

    shape: tuple[int, ...]
    job: str
    floor: float
    ours: float
    ours_extra: int | None
    composition: float | None = None
    composition_extra: int | None = None
    indexed: float | None = None
    input_bytes: int = 0
    tied_items: int = 0
    device: float | None = None

    @property
    def ratio(self) -> float | None:
        """How many times faster than the composition."""
        return None if self.composition is None else self.composition / self.ours


def run(device: torch.device, *, seed: int = 0, quick: bool = False) -> dict[str, Any]:
    """Measure every case on `device`; `quick` uses tiny volumes (to try the program, not for numbers)."""
    repeats = 2 if quick else 20
    volumes = (QUICK["volume"],) if quick else CASES[device.type]
    rows = [row for shape in volumes for row in _plain(shape, device, seed, repeats)]
    rows += _difference(QUICK["difference"] if quick else DIFFERENCES[device.type], device, seed, repeats)
    return {
        "benchmark": "subpath",
        "backend": backend_for(device),
        "dtype": "float32",
        "rows": [{**asdict(row), "ratio": row.ratio} for row in rows],
        "provenance": provenance(device, seed=seed),
    }


def _plain(shape: tuple[int, ...], device: torch.device, seed: int, repeats: int) -> Iterator[Row]:
    scores = _random(shape, device, seed)
    ties = _agree(scores)
    floor = milliseconds(lambda: scores.amax(), device, repeats=repeats)
    size = scores.nbytes

    ones = torch.ones(shape[0], device=device)

    def gradient(layer: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[], object]:
        def call() -> object:
            leaf = scores.detach().requires_grad_()
            (grad,) = torch.autograd.grad(layer(leaf), leaf, ones)
            # Pages that a CPU hands out untouched cost when they are read: read them inside the measurement.
            return grad.sum().item() if device.type == "cpu" else grad

        return call

    def search() -> object:
        return max_subpath(scores)

    def ours(x: torch.Tensor) -> torch.Tensor:
        return max_subpath(x).value

    # The composition has no path but through its derivative (section 3.5), so its time for the path includes backward.
    theirs: dict[str, Any] = {
        "composition": milliseconds(gradient(compose), device, repeats=repeats),
        "composition_extra": _beyond(gradient(compose), device, size),
        "indexed": milliseconds(gradient(compose_by_index), device, repeats=max(2, repeats // 4), warmup=1),
        "input_bytes": size,
        "tied_items": ties,
    }
    for job, call, kept in (("value and path", search, 0), ("forward + backward", gradient(ours), size)):
        fast = milliseconds(call, device, repeats=repeats)
        extra, alone = _beyond(call, device, kept), device_milliseconds(call, device)
        yield Row(shape, job, floor, fast, extra, device=alone, **theirs)


def compose_by_index(scores: torch.Tensor, *, radius: int = 1, fixed: bool = False) -> torch.Tensor:
    """`compose` as it is first written down, with `scores[:, :, t]`: each backward step writes a full-size gradient."""
    window = 2 * radius + 1
    state = scores[:, :, 0]
    best = state.flatten(1).amax(1)
    for t in range(1, scores.shape[2]):
        past = state if fixed else state.amax(1, keepdim=True)
        state = scores[:, :, t] + max_pool2d(relu(past), window, stride=1, padding=radius)
        best = torch.maximum(best, state.flatten(1).amax(1))
    return best


def _difference(shape: tuple[int, ...], device: torch.device, seed: int, repeats: int) -> Iterator[Row]:
    m = _random(shape, device, seed)
    positive = torch.arange(shape[0], device=device) % shape[1]
    _agree_on_differences(m, positive)
    floor = milliseconds(lambda: m.amax(), device, repeats=repeats)

    def gradient() -> object:
        leaf = m.detach().requires_grad_()
        value = min_subpath_difference(leaf, positive).value
        (grad,) = torch.autograd.grad(value, leaf, torch.ones_like(value))
        return grad.sum().item() if device.type == "cpu" else grad

    for job, call, kept in (
        ("maximum of differences, path", lambda: max_subpath_difference(m, positive), 0),
        ("minimum of differences, path", lambda: min_subpath_difference(m, positive), 0),
        ("minimum of differences, forward + backward", gradient, m.nbytes),
    ):
        fast, extra = milliseconds(call, device, repeats=repeats), _beyond(call, device, kept)
        alone = device_milliseconds(call, device)
        yield Row(shape, job, floor, fast, extra, input_bytes=m.nbytes, device=alone)


def _beyond(call: Callable[[], object], device: torch.device, kept: int) -> int | None:
    """Peak memory of `call` beyond the `kept` bytes of its result."""
    peak = extra_bytes(call, device)
    return None if peak is None else max(0, peak - kept)


def _random(shape: tuple[int, ...], device: torch.device, seed: int) -> torch.Tensor:
    generator = torch.Generator(device=device).manual_seed(seed)
    return torch.randn(shape, generator=generator, device=device)


def _agree(scores: torch.Tensor) -> int:
    """Fail unless layer and composition give the same values and gradients; return the number of items with ties.

    In float32 two paths can have equal sums. The composition then spreads its gradient over both; the layer keeps one.
    """
    grads, values = [], []
    for layer in (compose, lambda x: max_subpath(x).value):
        leaf = scores.detach().requires_grad_()
        value = layer(leaf)
        grads.append(torch.autograd.grad(value.sum(), leaf)[0].flatten(1))
        values.append(value.detach())
    tied = (grads[0] != grads[1]).any(1)
    sums = [(grad[tied] * scores.flatten(1)[tied]).sum(1) for grad in grads]
    close = torch.allclose(sums[0], sums[1], rtol=1e-4)
    if not torch.equal(*values) or not close or int(tied.sum()) > 0.01 * len(scores):
        raise WhytubeError(f"the layer and the composition disagree on {tuple(scores.shape)}: this is a bug")
    return int(tied.sum())


def _agree_on_differences(m: torch.Tensor, positive: torch.Tensor) -> None:
    """Fail unless the difference form finds, for one item, what the search on stored differences finds."""
    others = [c for c in range(m.shape[1]) if c != int(positive[0])]
    stored = m[0, positive[0]] - m[0, others]
    for ours, plain in ((max_subpath_difference, max_subpath), (min_subpath_difference, min_subpath)):
        found, wanted = ours(m[:1], positive[:1]), plain(stored)
        if not all(torch.equal(a[0], b) for a, b in zip(found, wanted, strict=True)):
            raise WhytubeError(
                f"the difference form and stored differences disagree on {tuple(m.shape)}: this is a bug"
            )


def table(report: dict[str, Any]) -> str:
    """Write the report as a Markdown table with its provenance below."""
    on_device = any(row["device"] is not None for row in report["rows"])
    head = ["volume", "job", "read once", "ours", *(["ours, device alone"] if on_device else []), "extra memory"]
    head += ["composition", "ratio", "by index", "ratio", "its extra memory"]
    lines = ["| " + " | ".join(head) + " |", "| --- | --- |" + " ---: |" * (len(head) - 2)]
    for row in report["rows"]:
        size = row["input_bytes"]
        cells = [
            " x ".join(str(n) for n in row["shape"]),
            row["job"],
            f"{row['floor']:.3f} ms",
            f"{row['ours']:.3f} ms",
        ]
        cells += [f"{row['device']:.3f} ms"] if on_device else []
        cells += [_share(row["ours_extra"], size)]
        for ms in (row["composition"], row["indexed"]):
            cells += ["", ""] if ms is None else [f"{ms:.2f} ms", f"{ms / row['ours']:.1f} x"]
        cells += ["" if row["composition"] is None else _share(row["composition_extra"], size)]
        lines.append("| " + " | ".join(cells) + " |")
    source = report["provenance"]
    versions = ", ".join(f"{name} {version}" for name, version in source["versions"].items())
    lines += [
        "",
        f"{source['device']}, {report['dtype']}, kernel `{report['backend']}`, {source['threads']} threads, "
        f"seed {source['seed']}, commit {source['commit']}; {versions}.",
    ]
    return "\n".join(lines)


def _share(extra: int | None, size: int) -> str:
    return "unknown" if extra is None else f"{100 * extra / size:.1f} %"


def check(device: torch.device, seed: int) -> list[str]:
    """Compare the device's kernel with the reference on small volumes: answers and gradients; return what differs."""
    wrong = []
    for number, (shape, forms, radius, dtype, search) in enumerate(
        product(
            ((5, 3, 6, 5, 7), (4, 1, 9, 8, 8), (0, 2, 3, 4, 4)),
            ("free", "fixed"),
            (0, 1, 3),
            (torch.float64, torch.float32, torch.float16, torch.bfloat16),
            (max_subpath, min_subpath),
        )
    ):
        volumes = _random(shape, device, seed + number).to(dtype).requires_grad_()
        lengths = torch.arange(shape[0], device=device) * 2 % (shape[2] + 1)
        case = f"{search.__name__} of {shape}, {forms} forms, radius {radius}, {dtype}"
        found = search(volumes, radius=radius, forms=forms, lengths=lengths)
        with use_backend("reference"):
            wanted = search(volumes.detach(), radius=radius, forms=forms, lengths=lengths)
        weight = torch.arange(1.0, 1 + shape[0], device=device).to(found.value.dtype)
        wrong += _differ(case, found, wanted, weight, path_sum(volumes, wanted.cells), volumes)
    m = _random((3, 4, 2, 2, 5, 6, 6), device, seed).requires_grad_()
    positive = torch.tensor([3, 0, 1], device=device)
    listed = torch.tensor([[0, 1], [1, 3], [2, 2]], device=device)
    each = torch.arange(3, device=device)[:, None]
    for negative, forms in product((None, listed), ("free", "fixed")):
        chosen = negative if negative is not None else torch.tensor([[0, 1, 2], [1, 2, 3], [0, 2, 3]], device=device)
        stored = m[each, positive[:, None]] - m[each, chosen]
        for search, plain in ((max_subpath_difference, max_subpath), (min_subpath_difference, min_subpath)):
            found = search(m, positive, negative, forms=forms)
            with use_backend("reference"):
                wanted = plain(stored.detach(), forms=forms)
            weight = torch.arange(1.0, 1 + wanted.value.numel(), device=device).view_as(wanted.value)
            case = f"{search.__name__}, {forms} forms, {'all' if negative is None else 'listed'} negatives"
            wrong += _differ(case, found, wanted, weight, path_sum(stored, wanted.cells), m)
    return wrong + _check_errors(m, positive)


def _differ(
    case: str, found: Subpath, wanted: Subpath, weight: torch.Tensor, sums: torch.Tensor, leaf: torch.Tensor
) -> list[str]:
    """Name what differs: the answer, or the gradient of the weighted value from that of `sums` along the paths."""
    names = [name for name, a, b in zip(found._fields, found, wanted, strict=True) if not torch.equal(a, b)]
    ours = torch.autograd.grad((found.value * weight).sum(), leaf)[0]
    theirs = torch.autograd.grad((sums * weight).sum(), leaf, retain_graph=True)[0]
    if ours.dtype != leaf.dtype or not torch.equal(ours, theirs):
        names.append("gradient")
    return [f"{case}: {', '.join(names)}"] if names else []


def _check_errors(m: torch.Tensor, positive: torch.Tensor) -> list[str]:
    """Bad scores and classes must be errors, at the latest when gradients have been made."""
    bad = m.detach().clone()
    bad[1, 0] = torch.nan
    wrong = []
    for case, scores, classes in (("NaN", bad, positive), ("an unknown class", m.detach(), positive + 2)):
        try:
            leaf = scores.requires_grad_()
            torch.autograd.grad(max_subpath_difference(leaf, classes).value.sum(), leaf)
        except ArgumentError:
            continue
        wrong.append(f"{case}: no error")
    return wrong


def main(words: list[str] | None = None) -> None:
    """Measure, print the table, write the report; or check."""
    parser = options(__doc__)
    parser.add_argument("--check", action="store_true", help="compare kernels and gradients; measure nothing")
    given = parser.parse_args(words)
    if given.check:
        wrong = check(given.device, given.seed)
        print("\n".join(wrong) or f"kernel `{backend_for(given.device)}` agrees with the reference")
        sys.exit(1 if wrong else 0)
    report = run(given.device, seed=given.seed, quick=given.quick)
    publish(report, table(report), given.out)


if __name__ == "__main__":
    main()
