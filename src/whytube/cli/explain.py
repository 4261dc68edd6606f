"""`whytube explain`: why a video was classified as A, not as B."""

from __future__ import annotations

import contextlib
import ctypes
import json
import textwrap
import time
from pathlib import Path  # noqa: TC003 - typer reads it at run time
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from whytube.cli.options import Device, Json, MaxPixels, Model, Overwrite, console, errors, require_new
from whytube.errors import ArgumentError
from whytube.files import make_folder

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from whytube.explanation import Explanation


def explain(
    video: Annotated[Path, typer.Argument(help="A video file, a folder of frames, or a .seq.")],
    model: Model = "demo",
    why: Annotated[str | None, typer.Option("--why", help="Class A; by default the predicted one.")] = None,
    why_not: Annotated[
        str | None, typer.Option("--why-not", "--not", help="Class B; by default the runner-up.")
    ] = None,
    every: Annotated[
        bool, typer.Option("--all", help="Ask about every other class as B, the likeliest first.")
    ] = False,
    k: Annotated[int, typer.Option("-k", help="How many reasons at most.")] = 2,
    as_json: Json = False,
    save: Annotated[Path | None, typer.Option(help="Also save the explanation to this file.")] = None,
    overlay: Annotated[Path | None, typer.Option(help="Also write the video with its tubes drawn (.mp4).")] = None,
    salvage: Annotated[bool, typer.Option("--salvage", help="Use what decodes of a damaged file.")] = False,
    max_pixels: MaxPixels = 1 << 26,
    profile: Annotated[bool, typer.Option("--profile", help="Say where the time went, on stderr.")] = False,
    overwrite: Overwrite = False,
    device: Device = "auto",
) -> None:
    """Explain why a video was classified as A, not as B.

    Example: `whytube explain clip.mp4 --why-not waltz -k 3 --overlay why.mp4`

    With a network of your own: `whytube explain clip.mp4 --model my_model.py:build`, where `build` is a function (or an
    object) in your file that gives a classifier, see `whytube.wrap`. Your file is run as any Python program is.
    """
    began = time.perf_counter()
    if save or overlay:
        require_new(save, overlay, overwrite=overwrite)
        for path in (save, overlay):
            if path is not None:
                make_folder(path.parent, error=ArgumentError)
    if every and (why_not or save or overlay):
        raise ArgumentError("--all answers for every class: leave out --why-not, --save and --overlay")
    if overlay is not None and overlay.suffix != ".mp4":
        raise ArgumentError(f"--overlay writes an .mp4, got {overlay.name}")
    if model == "demo":
        errors.print("The demo model knows only the 24 dances of the embedded world.", style="dim", highlight=False)

    from whytube.explaining import explain as explain_one
    from whytube.explaining import explain_all
    from whytube.models import load_model

    imported = time.perf_counter()
    _keep_freed_memory()
    explainer = load_model(model, device=device)
    loaded = time.perf_counter()
    if every:
        explanations = explain_all(video, explainer, why=why, k=k, salvage=salvage, max_pixels=max_pixels)
    else:
        explanations = (
            explain_one(video, explainer, why=why, why_not=why_not, k=k, salvage=salvage, max_pixels=max_pixels),
        )
    explained = time.perf_counter()
    if save is not None:
        explanations[0].save(save, overwrite=overwrite)
    if overlay is not None:
        from whytube.report import overlay_video

        overlay_video(video, explanations[0], overlay, salvage=salvage, max_pixels=max_pixels)
    _print(explanations, every=every, as_json=as_json)
    if profile:
        stages = {"import": imported - began, **explanations[0].timings}
        stages["load model"] += loaded - imported
        stages["other"] = explained - loaded - sum(explanations[0].timings.values())
        stages["write and print"] = time.perf_counter() - explained
        print_profile(stages)


def _keep_freed_memory() -> None:
    """Have the C library (glibc) keep memory that tensors free: every masked clip asks for the same large blocks.

    Measured for I3D on two cores, three runs each: a question about nine attributes took 27.5 instead of 33.0 seconds
    of CPU, one about two 9.6 instead of 10.3. Large pages (THP_MEM_ALLOC_ENABLE) saved less, and nothing beside this.
    """
    trim, mmap = -1, -3  # malloc.h: M_TRIM_THRESHOLD, M_MMAP_THRESHOLD
    with contextlib.suppress(AttributeError, OSError, TypeError):
        library = ctypes.CDLL(None)
        library.mallopt(mmap, 1 << 30)
        library.mallopt(trim, (1 << 31) - 1)


def _print(explanations: Sequence[Explanation], *, every: bool, as_json: bool) -> None:
    if as_json:
        plain = [explanation.to_dict() for explanation in explanations]
        typer.echo(json.dumps(plain if every else plain[0], indent=1, allow_nan=False))
        return
    for explanation in explanations:
        console.print(explanation.sentence, markup=False, highlight=False, soft_wrap=True)
    if not every and explanations[0].reasons:
        _print_evidence(explanations[0])


def _print_evidence(explanation: Explanation) -> None:
    """Print a row per reason and fill. A long word or verdict goes on in the rows of its further fills."""
    from whytube.explanation import RULE

    head = ("word", "decision", explanation.score_name, "frames", "seconds", "fill", "p(A)", "p(B)")
    table = Table(*head, box=None, pad_edge=False)
    for column in table.columns[3:]:
        column.no_wrap = True
    for reason in explanation.reasons:
        tube = reason.tube
        frames = f"{tube.frames[0]}-{tube.frames[-1]}" if len(tube) else "none"
        times = f"{tube.times[0]:.2f}-{tube.times[-1]:.2f}" if len(tube) and tube.times is not None else ""
        words, verdicts = (textwrap.wrap(text, 10) for text in (reason.word, reason.verdict))
        for row, evidence in enumerate(reason.evidence):
            last = row == len(reason.evidence) - 1
            word, verdict = (" ".join(lines[row:] if last else lines[row : row + 1]) for lines in (words, verdicts))
            first = (word, verdict, *((f"{reason.score:+.2f}", frames, times) if row == 0 else ("",) * 3))
            a = f"{evidence.positive_before:.2f}→{evidence.positive_after:.2f}"
            b = f"{evidence.negative_before:.2f}→{evidence.negative_after:.2f}"
            table.add_row(*first, evidence.fill, a, b)
    console.print(table)
    console.print(RULE, style="dim", highlight=False)


def print_profile(stages: Mapping[str, float]) -> None:
    """Print seconds by stage to stderr, their share and their sum."""
    total = sum(stages.values())
    table = Table("", box=None, padding=(0, 1), show_footer=True)
    table.columns[0].footer = "total"
    table.add_column("seconds", f"{total:.2f}", justify="right")
    table.add_column("share", "100 %", justify="right")
    for stage, seconds in stages.items():
        table.add_row(stage, f"{seconds:.2f}", f"{100 * seconds / total:.0f} %")
    errors.print(table)
