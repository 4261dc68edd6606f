"""`whytube explain`, `whytube report` and `whytube demo`: answers for a person."""

from __future__ import annotations

import contextlib
import ctypes
import json
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from whytube.checks import check_int
from whytube.cli.options import (
    Device,
    JsonFile,
    Overwrite,
    OwnModel,
    Seed,
    console,
    errors,
    find_device,
    require_new,
    write_json,
)
from whytube.cli.profile import Profile
from whytube.errors import ArgumentError
from whytube.explanation import RULE

if TYPE_CHECKING:
    from whytube.explanation import Explanation


def explain(
    video: Annotated[Path, typer.Argument(help="A video file, a folder of frames, or a .seq.")],
    model: OwnModel = "demo",
    why: Annotated[str | None, typer.Option("--why", help="Class A; by default the predicted one.")] = None,
    why_not: Annotated[str | None, typer.Option("--not", help="Class B; by default the runner-up.")] = None,
    every: Annotated[
        bool, typer.Option("--all", help="Ask about every other class as B, the likeliest first.")
    ] = False,
    k: Annotated[int, typer.Option("-k", help="How many reasons at most.")] = 2,
    as_json: Annotated[bool, typer.Option("--json", help="Print the explanation as JSON; with --all a list.")] = False,
    save: Annotated[Path | None, typer.Option(help="Also save the explanation to this file.")] = None,
    overlay: Annotated[Path | None, typer.Option(help="Also write the video with its tubes drawn (.mp4).")] = None,
    salvage: Annotated[bool, typer.Option("--salvage", help="Use what decodes of a damaged file.")] = False,
    profile: Annotated[bool, typer.Option("--profile", help="Say where the time went, on stderr.")] = False,
    overwrite: Overwrite = False,
    device: Device = "auto",
) -> None:
    """Explain why a video was classified as A, not as B.

    Example: `whytube explain clip.mp4 --not waltz -k 3 --overlay why.mp4`

    With a network of your own: `whytube explain clip.mp4 --model my_model.py:build`, where `build` is a function (or an
    object) in your file that gives a classifier, see `whytube.wrap`. Your file is run as any Python program is.
    """
    from whytube.explaining import explain as answer
    from whytube.explaining import explain_all
    from whytube.models import load_model

    check_int(k, "k", 1)
    clock = Profile()
    clock.started("start and imports")
    require_new(save, overlay, overwrite=overwrite)
    if every and (why_not or save or overlay):
        raise ArgumentError("--all answers for every class: leave out --not, --save and --overlay")
    if overlay is not None and overlay.suffix != ".mp4":
        raise ArgumentError(f"--overlay writes an .mp4, got {overlay.name}")
    if model == "demo":
        errors.print("The demo model knows only the 24 dances of the embedded world.", style="dim", highlight=False)
    _keep_freed_memory()
    explainer = load_model(model, device=find_device(device))
    clock.spent("load model")
    if every:
        explanations = explain_all(video, explainer, why=why, k=k, salvage=salvage)
    else:
        explanations = (answer(video, explainer, why=why, why_not=why_not, k=k, salvage=salvage),)
    explanation = explanations[0]
    clock.spent("other", of_which=explanation.timings)
    if save is not None:
        explanation.save(save, overwrite=overwrite)
    if overlay is not None:
        from whytube.report import overlay_video

        overlay_video(video, explanation, overlay)
    if as_json:
        plain = [found.to_dict() for found in explanations]
        typer.echo(json.dumps(plain if every else plain[0], indent=1))
    elif every:
        for found in explanations:
            console.print(found.sentence, markup=False, highlight=False, soft_wrap=True)
    else:
        _show(explanation)
    clock.spent("write and print")
    if profile:
        clock.show(errors)


def _keep_freed_memory() -> None:
    """Have the C library (glibc) keep what tensors free: with every masked clip the same large ones come again.

    On two cores, handing them back to the system took a seventh of the time of an answer by I3D.
    """
    trim, mmap = -1, -3  # malloc.h: M_TRIM_THRESHOLD, M_MMAP_THRESHOLD
    with contextlib.suppress(AttributeError, OSError, TypeError):
        library = ctypes.CDLL(None)
        library.mallopt(mmap, 1 << 30)
        library.mallopt(trim, (1 << 31) - 1)


def _show(explanation: Explanation) -> None:
    console.print(explanation.sentence, markup=False, highlight=False, soft_wrap=True)
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
    if explanation.reasons:
        console.print(table)
        console.print(RULE, style="dim", highlight=False)


def report(
    out: Annotated[Path, typer.Option(help="The HTML file to write.")],
    explanations: Annotated[
        list[Path] | None, typer.Argument(help="Saved explanations (.json), or folders of them.")
    ] = None,
    results: Annotated[Path | None, typer.Option(help="A results file of `whytube evaluate --json`.")] = None,
    title: Annotated[str, typer.Option(help="Heading of the page.")] = "Why A, not B?",
    json_file: JsonFile = None,
    overwrite: Overwrite = False,
) -> None:
    """Write one self-contained page from saved explanations and results.

    Example: `whytube report why1.json why2.json --results results.json --out report.html`
    """
    import tempfile

    from whytube.evaluation.results import Results
    from whytube.report import overlay_video, write_report

    require_new(out, json_file, overwrite=overwrite)
    saved = _saved(explanations or [])
    if not saved and results is None:
        raise ArgumentError(
            "there is nothing to report: give explanations that `whytube explain --save FILE.json` wrote, "
            "or --results with a file of `whytube evaluate --json`"
        )
    measured = None if results is None else Results.load(results)
    with tempfile.TemporaryDirectory() as folder:
        pairs = [
            (explanation, overlay_video(explanation.source, explanation, Path(folder) / f"{number}.mp4"))
            for number, explanation in enumerate(saved)
        ]
        write_report(out, explanations=pairs, results=measured, title=title)
    said = [{"source": e.source, "sentence": e.sentence} for e in saved]
    write_json({"report": str(out), "explanations": said, "results": results and str(results)}, json_file)
    console.print(f"wrote {out}", highlight=False)


def _saved(places: list[Path]) -> list[Explanation]:
    """Load explanations from files, and all of those in folders."""
    from whytube.explanation import Explanation as Saved

    files: list[Path] = []
    for place in places:
        found = sorted(place.glob("*.json")) if place.is_dir() else [place]
        if not found:
            raise ArgumentError(f"{place} holds no explanations (.json): write some with `whytube explain --save`")
        files += found
    return [Saved.load(path) for path in files]


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the report, the overlay videos and the results.")] = Path(
        "demo"
    ),
    train: Annotated[bool, typer.Option("--train", help="Train classifier and explainer from nothing first.")] = False,
    count: Annotated[int, typer.Option(help="Clips to evaluate on.")] = 96,
    seed: Seed = 0,
    device: Device = "auto",
    overwrite: Overwrite = False,
) -> None:
    """Explain a handful of clips of the embedded world, measure on more, and write a page to look at.

    Example: `whytube demo --out demo`
    """
    from whytube.cli.demo import MADE, run_demo

    check_int(count, "count", 1)
    require_new(*(out / name for name in MADE), overwrite=overwrite)
    run_demo(out, train=train, count=count, seed=seed, device=find_device(device), console=console)
