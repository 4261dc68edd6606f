"""`whytube bulk`: explain many videos into tables. `whytube query`: ask about them."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from whytube.cli.options import Device, Json, Overwrite, print_plain, print_result, progress_bar, require_new
from whytube.errors import ArgumentError


def bulk(
    source: Annotated[
        str,
        typer.Argument(help="A folder, a pattern in quotes, a manifest (.csv, .parquet), or an address (s3://...)."),
    ],
    out: Annotated[Path, typer.Option(help="Folder for the answers; the same command goes on with what is there.")],
    model: Annotated[str, typer.Option(help="A name, a folder, a file, or FILE.py:NAME.")] = "demo",
    negatives: Annotated[
        str, typer.Option(help="What to ask about: runner-up, all, or class names with commas between.")
    ] = "runner-up",
    k: Annotated[int, typer.Option("-k", help="How many reasons at most.")] = 2,
    effort: Annotated[str, typer.Option(help="Tubes that are tried: quick, normal, thorough, or a number.")] = "quick",
    area: Annotated[float, typer.Option(help="Largest share of the clip that a tube may cover.")] = 0.1,
    window: Annotated[
        float | None, typer.Option(help="Explain windows of so many seconds, one after the other: for long videos.")
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(
            help="Models that work at a time, on Ray; 0: in this process. By default one per core, or per GPU."
        ),
    ] = None,
    ray: Annotated[str | None, typer.Option(help="Join the Ray cluster at this address, or auto.")] = None,
    batch: Annotated[int, typer.Option(help="Videos that a model is asked about at a time.")] = 4,
    device: Device = "auto",
    as_json: Json = False,
) -> None:
    """Explain many videos: answers in OUT/reasons, videos that could not be explained in OUT/failures (Parquet).

    The exit code is 0 also where videos failed; 2 where the run could not go on, and the same command finishes it.

    Example: `whytube bulk clips/ --model jhmdb-i3d --out answers`
    """
    from whytube.bulk.listing import list_videos
    from whytube.bulk.output import Asked
    from whytube.bulk.run import run_bulk
    from whytube.checks import check_int
    from whytube.explainer.explainer import Explainer
    from whytube.given import model_hash
    from whytube.models import find_device, load_model
    from whytube.search.anytime import Effort, find_effort
    from whytube.versions import versions

    if window is not None and not 0 < window < 3600:
        raise ArgumentError(f"`window` must be a number of seconds, more than 0 and less than 3600, got {window}")
    if ":/" in str(out):  # what is left of s3://
        raise ArgumentError(f"`out` must be a folder, not an address, got {out}: mount the store, or copy the answers")
    how = Effort(tubes=find_effort(effort), area=area)
    where = device if ray is not None and device == "cuda" else str(find_device(device))  # the GPUs may be elsewhere
    if workers != 0 and where.startswith("cuda:"):
        raise ArgumentError("Ray gives each worker a GPU: use `device=cuda`, and CUDA_VISIBLE_DEVICES to choose")
    if workers is not None:
        check_int(workers, "workers", 0)
    loaded = load_model(model)
    named: str | tuple[str, ...] = negatives
    if negatives not in ("runner-up", "all"):
        classifier = loaded.classifier
        names = [name.strip() for name in negatives.split(",") if name.strip()]
        named = tuple(classifier.classes[classifier.class_index(name)] for name in names)
        if not named:
            raise ArgumentError("`negatives` must be runner-up, all, or class names with commas between")
    weights = model_hash(loaded.classifier)
    if isinstance(loaded, Explainer):
        weights += f"+{model_hash(loaded.scores)}"
    del loaded
    asked = Asked(
        model=str(Path(model).absolute()) if Path(model).exists() else model,
        model_hash=weights,
        negatives=named,
        k=check_int(k, "k", 1),
        effort=how.tubes,
        area=how.area,
        window=window,
        batch=check_int(batch, "batch", 1),
    )
    listed = list_videos(source)
    with progress_bar("explaining", unit="videos") as progress:
        summary = run_bulk(
            listed, asked, out, versions=versions(), workers=workers, device=where, ray=ray, progress=progress
        )
    told = f"{summary.explained} explained, {summary.failed} failed, {summary.before} done before"
    print_result(f"{out}: {told}, of {summary.videos}", asdict(summary), as_json=as_json)


def query(
    folder: Annotated[Path, typer.Argument(help="What `whytube bulk` wrote.")],
    top: Annotated[int, typer.Option(help="Rows of each table.")] = 10,
    html: Annotated[Path | None, typer.Option(help="Also write a page with the confusions and example clips.")] = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Ask about the answers of a bulk run: which words explain which confusions, and which are explained least.

    Example: `whytube query answers --html answers.html`
    """
    from whytube.bulk.query import Answers
    from whytube.checks import check_int

    require_new(html, overwrite=overwrite)
    answers = Answers(folder)
    found = answers.summary(check_int(top, "top", 1))
    if html is not None:
        from whytube.bulk.page import write_page

        write_page(answers, html)
    if as_json:
        print_result("", found, as_json=True)
        return
    for line in answers.lines(found, top):
        print_plain(line)
    if html is not None:
        print_plain(f"page: {html}")
