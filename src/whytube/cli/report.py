"""`whytube report` and `whytube demo`: pages to look at."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from whytube.checks import check_int
from whytube.cli.options import (
    Device,
    Json,
    Overwrite,
    Seed,
    console,
    errors,
    print_json,
    print_plain,
    print_result,
    require_new,
)
from whytube.errors import ArgumentError

if TYPE_CHECKING:
    from whytube.explanation import Explanation


def report(
    out: Annotated[Path, typer.Option(metavar="FILE", help="The HTML file to write.")],
    explanations: Annotated[
        list[Path] | None,
        typer.Argument(metavar="EXPLANATION", help="Saved explanations (.json), or folders of them."),
    ] = None,
    results: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A results file of `whytube evaluate --out`.")
    ] = None,
    title: Annotated[str, typer.Option(metavar="TEXT", help="Heading of the page.")] = "Why A, not B?",
    as_json: Json = False,
    overwrite: Overwrite = False,
) -> None:
    """Write a page from saved explanations and results.

    The page is one HTML file with everything in it.

    Example: `whytube report why1.json why2.json --results results.json --out report.html`
    """
    import tempfile

    from whytube.evaluation.results import Results
    from whytube.report import overlay_video, source_problem, write_report
    from whytube.report.html import other_model

    require_new(out, overwrite=overwrite)
    saved = _saved(explanations or [])
    if not saved and results is None:
        raise ArgumentError(
            "there is nothing to report: give explanations that `whytube explain --save FILE.json` wrote, "
            "or --results with a file of `whytube evaluate --out`"
        )
    measured = None if results is None else Results.load(results)
    with tempfile.TemporaryDirectory() as folder:
        pairs: list[tuple[Explanation, Path | None]] = []
        for number, explanation in enumerate(saved):
            problem = source_problem(explanation)
            if problem:
                print_plain(f"{explanation.source}: {problem}", to=errors)
            there = not problem and Path(explanation.source).exists()
            drawn = overlay_video(explanation.source, explanation, Path(folder) / f"{number}.mp4") if there else None
            pairs.append((explanation, drawn))
        write_report(out, explanations=pairs, results=measured, title=title)
    left_out = other_model(measured, saved)
    if left_out:
        print_plain(left_out, to=errors)
    said = [{"source": e.source, "model": e.model, "sentence": e.sentence} for e in saved]
    result = {
        "report": str(out),
        "explanations": said,
        "results": results and str(results),
        "results_left_out": left_out or None,
    }
    print_result(f"wrote {out}", result, as_json=as_json)


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
    count: Annotated[int, typer.Option(help="Clips to evaluate on.")] = 16,
    seed: Seed = 0,
    device: Device = "auto",
    as_json: Json = False,
    overwrite: Overwrite = False,
) -> None:
    """Explain some clips of the embedded world, and write a page.

    It explains six clips, measures on --count more, and writes report.html with the videos to --out.

    Example: `whytube demo --out demo`
    """
    from whytube.cli.demo import MADE, run_demo
    from whytube.models import find_device

    check_int(count, "count", 1)
    require_new(*(out / name for name in MADE), overwrite=overwrite)
    where, screen = find_device(device), errors if as_json else console
    results = run_demo(out, train=train, count=count, seed=seed, device=where, console=screen)
    if as_json:
        print_json(results.to_dict())
