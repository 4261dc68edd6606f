"""`whytube bulk`: explain many videos into tables. `whytube query`: ask about them."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from whytube.cli.options import Device, Json, Overwrite, errors, print_plain, print_result, progress_bar, require_new
from whytube.errors import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from whytube.bulk.listing import Listed
    from whytube.classifiers.base import VideoClassifier


def bulk(
    source: Annotated[
        str,
        typer.Argument(help="A folder, a pattern in quotes, a manifest (.csv, .parquet), or an address (s3://...)."),
    ],
    out: Annotated[Path, typer.Option(help="Folder for the answers; the same command goes on with what is there.")],
    model: Annotated[str, typer.Option(help="A name, a folder, a file, or FILE.py:NAME.")] = "demo",
    negatives: Annotated[
        str,
        typer.Option(help="What to ask about: runner-up, all, label (the true class), or names with commas between."),
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
    from whytube.models.files import shipped_names
    from whytube.search.anytime import Effort, find_effort
    from whytube.versions import versions

    if window is not None and not 0 < window < 3600:
        raise ArgumentError(f"`window` must be a number of seconds, more than 0 and less than 3600, got {window}")
    if ":/" in str(out):  # what is left of s3://
        raise ArgumentError(f"`out` must be a folder, not an address, got {out}: mount the store, or copy the answers")
    how = Effort(tubes=find_effort(effort), area=area)
    # The GPUs of a cluster may be elsewhere, so that this machine cannot say whether there are any.
    where = device if ray is not None and device in ("auto", "cuda") else str(find_device(device))
    if workers != 0 and where.startswith("cuda:"):
        raise ArgumentError("Ray gives each worker a GPU: use `device=cuda`, and CUDA_VISIBLE_DEVICES to choose")
    if workers is not None:
        check_int(workers, "workers", 0)
    if ray is not None and not ray.strip():
        raise ArgumentError("`ray` must be the address of a cluster, HOST:PORT, or auto")
    loaded = load_model(model)
    named: str | tuple[str, ...] = negatives
    if negatives not in ("runner-up", "all", "label"):
        classifier = loaded.classifier
        names = [name.strip() for name in negatives.split(",") if name.strip()]
        try:
            found = [classifier.classes[classifier.class_index(name)] for name in names]
        except ArgumentError as error:
            raise ArgumentError(f"{error}; `negatives` may also be runner-up, all or label") from error
        named = tuple(dict.fromkeys(found))
        if not named:
            raise ArgumentError("`negatives` must be runner-up, all, label, or class names with commas between")
    shipped = str(Path(model)) in shipped_names()  # whatever is called like it here, as `make demo` makes a folder
    known = loaded.classifier
    weights = model_hash(known)
    if isinstance(loaded, Explainer):
        weights += f"+{model_hash(loaded.scores)}"
    del loaded
    asked = Asked(
        model=model if shipped else _found_anywhere(model),
        model_hash=weights,
        negatives=named,
        k=check_int(k, "k", 1),
        effort=how.tubes,
        area=how.area,
        window=window,
        batch=check_int(batch, "batch", 1),
    )
    listed = list_videos(source)
    if negatives == "label":
        _require_labels(source, listed, known)
    with progress_bar("explaining", unit="videos") as progress:
        try:
            summary = run_bulk(
                listed, asked, out, versions=versions(), workers=workers, device=where, ray=ray, progress=progress
            )
        except KeyboardInterrupt as stop:
            stop.add_note("the same command goes on with what is done")
            raise
    told = f"{summary.explained} explained, {summary.failed} failed, {summary.before} done before"
    why = f"; {out / 'failures'} and `whytube query {out}` say why" if summary.failed else ""
    print_result(f"{out}: {told}, of {summary.videos}{why}", asdict(summary), as_json=as_json)


def query(
    folder: Annotated[Path, typer.Argument(help="What `whytube bulk` wrote.")],
    top: Annotated[int, typer.Option(help="Rows of each table.")] = 10,
    html: Annotated[Path | None, typer.Option(help="Also write a page with the confusions and example clips.")] = None,
    clips: Annotated[int, typer.Option(help="Example clips on the page at most: some 20 kB each.")] = 72,
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

        write_page(answers, html, top, clips)
    if as_json:
        print_result("", found, as_json=True)
        return
    for line in answers.lines(found, top):
        print_plain(line)
    if html is not None:
        print_plain(f"page: {html}")


def _found_anywhere(model: str) -> str:
    """Name a folder, a file or FILE.py:NAME so that workers find it, whatever folder they are in."""
    file, colon, name = model.rpartition(":")
    if colon and file.endswith(".py"):
        return f"{Path(file).absolute()}:{name}"
    return str(Path(model).absolute()) if Path(model).exists() else model


def _require_labels(source: str, listed: Sequence[Listed], classifier: VideoClassifier) -> None:
    """Require classes of videos that the model has, and say of how many it has none."""
    labels = {one.label for one in listed if one.label}
    unknown = {label for label in labels if not _has_class(classifier, label)}
    if not labels - unknown:
        found = f"only others, as {min(unknown)!r}" if unknown else "none"
        what = f"`negatives=label` asks about true classes, and {source} has {found}"
        raise ArgumentError(f"{what}: give a manifest with a column `class`")
    lost = sum(one.label in unknown or not one.label for one in listed)
    if lost:
        text = f"{lost} of {len(listed)} videos have no class that the model knows: they are asked about the runner-up"
        errors.print(text, highlight=False, soft_wrap=True)


def _has_class(classifier: VideoClassifier, label: str) -> bool:
    try:
        classifier.class_index(label)
    except ArgumentError:
        return False
    return True
