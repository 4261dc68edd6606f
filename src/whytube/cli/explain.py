"""`whytube explain`: why a video was classified as A, not as B."""

from __future__ import annotations

import contextlib
import ctypes
import json
import textwrap
import time
from pathlib import Path  # noqa: TC003 - typer reads it at run time
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from whytube.checks import unknown_name
from whytube.cli.options import Device, Json, MaxPixels, Model, Overwrite, console, errors, require_new, write_json
from whytube.errors import ArgumentError
from whytube.files import make_folder

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from whytube.explanation import Explanation
    from whytube.models.find import Model as Explaining

STYLES = ("boxes", "heat", "grad-cam")
KINDS = ("mp4", "gif", "png")
"""What --overlay and --sheet take with --out, where every video gets a file of its own."""


def explain(
    videos: Annotated[
        list[Path],
        typer.Argument(
            metavar="VIDEO", help="A video file, a folder of frames, a .seq; or several, or folders of videos."
        ),
    ],
    model: Model = "demo",
    why: Annotated[
        str | None, typer.Option("--why", metavar="CLASS", help="Class A; by default the predicted one.")
    ] = None,
    why_not: Annotated[
        str | None,
        typer.Option("--why-not", "--not", metavar="CLASS", help="Class B; by default the runner-up."),
    ] = None,
    every: Annotated[
        bool, typer.Option("--all", help="Ask about every other class as B, the likeliest first.")
    ] = False,
    k: Annotated[int, typer.Option("-k", metavar="N", help="How many reasons at most.")] = 2,
    effort: Annotated[
        str | None,
        typer.Option(
            "--effort",
            metavar="EFFORT",
            help="How many tubes are tried: quick, normal, thorough, or their number; normal, with --all quick.",
        ),
    ] = None,
    area: Annotated[
        float, typer.Option(metavar="SHARE", help="Largest volume of a tube, as a fraction of the clip's.")
    ] = 0.1,
    as_json: Json = False,
    save: Annotated[Path | None, typer.Option(metavar="FILE", help="Also save the explanation (.json).")] = None,
    overlay: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Also draw it on the video: .mp4, .gif, or .png for one frame. With --out: mp4, gif, png.",
        ),
    ] = None,
    sheet: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also draw it on frames side by side (.png). With --out: png.")
    ] = None,
    style: Annotated[
        str,
        typer.Option(
            "--style", metavar="STYLE", help="What is drawn: boxes; heat, the evidence; grad-cam, a map to compare."
        ),
    ] = "boxes",
    coco: Annotated[Path | None, typer.Option(metavar="FILE", help="Also write the tubes as COCO's JSON.")] = None,
    cvat: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also write the tubes as tracks for CVAT (.xml).")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="For several videos: a folder with a JSON file for each.")
    ] = None,
    salvage: Annotated[bool, typer.Option("--salvage", help="Use what decodes of a damaged file.")] = False,
    max_pixels: MaxPixels = 1 << 26,
    profile: Annotated[bool, typer.Option("--profile", help="Say where the time went, on stderr.")] = False,
    overwrite: Overwrite = False,
    device: Device = "auto",
) -> None:
    """Explain why a video was classified as A, not as B.

    Example: `whytube explain clip.mp4 --why-not waltz -k 3 --overlay why.mp4`

    Several videos: `whytube explain a.mp4 b.mp4 folder/ --out whys`. What whys/ holds already is not made again, a
    video that cannot be explained does not stop the others, and --json prints one list.

    With a network of your own: `whytube explain clip.mp4 --model my_model.py:build`, where `build` is a function (or an
    object) in your file that gives a classifier, see `whytube.wrap`. Your file is run as any Python program is.
    """
    began = time.perf_counter()
    if style not in STYLES:
        raise unknown_name("style", style, STYLES)
    several = len(videos) > 1 or out is not None or _holds_videos(videos[0])
    if several:
        _check_several(out, overlay, sheet, every=every, profile=profile, alone=(save, coco, cvat))
    elif save or overlay or sheet or coco or cvat:
        _check_one(videos[0], save, overlay, sheet, coco, cvat, overwrite=overwrite)
    if every and (why_not or save or overlay or sheet or coco or cvat):
        options = "--why-not, --save, --overlay, --sheet, --coco and --cvat"
        raise ArgumentError(f"--all answers for every class: leave out {options}")
    if model == "demo":
        errors.print("The demo model knows only the 24 dances of the embedded world.", style="dim", highlight=False)

    from whytube.explaining import explain as explain_one
    from whytube.explaining import explain_all
    from whytube.models import load_model

    imported = time.perf_counter()
    _keep_freed_memory()
    explainer = load_model(model, device=device)
    loaded = time.perf_counter()
    tried = effort or ("quick" if every else "normal")
    how: dict[str, Any] = {"k": k, "effort": tried, "area": area, "salvage": salvage, "max_pixels": max_pixels}
    if several:
        from whytube.cli.many import Asked, explain_many
        from whytube.data.folders import find_videos
        from whytube.given import model_hash
        from whytube.search.anytime import Effort, find_effort

        settings = explainer.with_effort(Effort(tubes=find_effort(tried), area=area)).settings
        names = explainer.classifier.classes
        a, b = (None if name is None else names[explainer.classifier.class_index(name)] for name in (why, why_not))
        explain_many(
            find_videos(videos),
            lambda video: explain_one(video, explainer, why=why, why_not=why_not, **how),
            lambda video, explanation, path: _draw_beside(
                video, explanation, path, explainer, overlay, sheet, style=style, overwrite=overwrite
            ),
            Asked(a, b, {**settings, "k": k}, model_hash(explainer.classifier)),
            out=out,
            overwrite=overwrite,
            as_json=as_json,
        )
        return
    video = videos[0]
    if every:
        explanations = explain_all(video, explainer, why=why, **how)
    else:
        explanations = (explain_one(video, explainer, why=why, why_not=why_not, **how),)
    explained = time.perf_counter()
    if save is not None:
        explanations[0].save(save, overwrite=overwrite)
    if overlay or sheet:
        _draw(video, explanations[0], explainer, overlay, sheet, style=style)
    if coco:
        write_json(explanations[0].to_coco(), coco)
    if cvat:
        from whytube.data.formats import explained as tracks_of
        from whytube.data.formats import write_annotations

        write_annotations(cvat, tracks_of(explanations[0]), format="cvat", overwrite=overwrite)
    _print(explanations, every=every, as_json=as_json)
    if profile:
        stages = {"import": imported - began, **explanations[0].timings}
        stages["load model"] += loaded - imported
        stages["other"] = explained - loaded - sum(explanations[0].timings.values())
        stages["write and print"] = time.perf_counter() - explained
        print_profile(stages)


def _holds_videos(place: Path) -> bool:
    """Whether something is a folder of videos; an empty one is left to the reader of frames, which says so."""
    try:
        if not place.is_dir() or not any(place.iterdir()):
            return False
    except OSError:
        return False
    from whytube.data.folders import holds_frames

    return not holds_frames(place)


def _check_one(
    video: Path, save: Path | None, overlay: Path | None, sheet: Path | None, *exported: Path | None, overwrite: bool
) -> None:
    """Check the files of one explanation before any work is done, and make their folders."""
    require_new(save, overlay, sheet, *exported, overwrite=overwrite)
    for path in (save, overlay, sheet, *exported):
        if path is not None and path.exists() and video.exists() and path.samefile(video):
            raise ArgumentError(f"{path} is the video that is explained: choose another name")
    if overlay is not None and overlay.suffix.lower().removeprefix(".") not in KINDS:
        raise ArgumentError(f"--overlay must end in .mp4, .gif or .png, got {overlay.name}")
    if sheet is not None and sheet.suffix.lower() != ".png":
        raise ArgumentError(f"--sheet must end in .png, got {sheet.name}")
    for path in (save, overlay, sheet, *exported):
        if path is not None:
            make_folder(path.parent, error=ArgumentError)


def _check_several(
    out: Path | None,
    overlay: Path | None,
    sheet: Path | None,
    *,
    every: bool,
    profile: bool,
    alone: tuple[Path | None, ...],
) -> None:
    """Check what does not go with several videos."""
    if every or profile or any(alone):
        options = "--all, --profile, --save, --coco and --cvat"
        raise ArgumentError(f"{options} are for one video: give --out DIR to save every explanation")
    if out is None and (overlay or sheet):
        raise ArgumentError("--overlay and --sheet of several videos need --out DIR, the folder to write to")
    for option, kind, kinds in (("--overlay", overlay, KINDS), ("--sheet", sheet, ("png",))):
        if kind is not None and _kind(kind) not in kinds:
            raise ArgumentError(f"{option} must be {', '.join(kinds)} with --out, got {kind}")


def _kind(name: Path) -> str:
    return str(name).removeprefix(".")


def _draw(
    video: Path,
    explanation: Explanation,
    explainer: Explaining,
    overlay: Path | None,
    sheet: Path | None,
    *,
    style: str,
) -> None:
    """Write the pictures of an explanation that were asked for."""
    from whytube.explaining import contrastive_map
    from whytube.explanation import MUCH
    from whytube.report import contact_sheet, overlay_video, read_as
    from whytube.video import write_png

    heat = None
    if style == "grad-cam":
        asked: dict[str, Any] = {"why": explanation.positive, "why_not": explanation.negative}
        heat = MUCH * contrastive_map(video, explainer, **asked, **read_as(explanation))
    drawn = "heat" if style == "heat" else "boxes"
    if overlay is not None:
        overlay_video(video, explanation, overlay, style=drawn, heat=heat)
    if sheet is not None:
        write_png(sheet, contact_sheet(video, explanation, style=drawn, heat=heat))


def _draw_beside(
    video: Path,
    explanation: Explanation,
    path: Path,
    explainer: Explaining,
    overlay: Path | None,
    sheet: Path | None,
    *,
    style: str,
    overwrite: bool,
) -> None:
    """Write the pictures of one of several explanations beside its file, where they are not there yet."""
    stem = path.stem if style == "boxes" else f"{path.stem}-{style}"
    drawn = None if overlay is None else path.with_name(f"{stem}.{_kind(overlay)}")
    side = None if sheet is None else path.with_name(f"{stem}-sheet.png")
    wanted = [file if file is not None and (overwrite or not file.exists()) else None for file in (drawn, side)]
    if any(wanted):
        _draw(video, explanation, explainer, *wanted, style=style)


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
        said = explanation.sentence if every else explanation.text
        console.print(said, markup=False, highlight=False, soft_wrap=True)
    if not every and explanations[0].reasons:
        _print_evidence(explanations[0])


def _print_evidence(explanation: Explanation) -> None:
    """Print a row per reason and fill. A long word or verdict goes on in the rows of its further fills."""
    from whytube.explanation import FIT_RULE, GUESS_RULE, RULE

    fitted = any(reason.fit is not None for reason in explanation.reasons)
    head = ("word", "decision", explanation.score_name, "frames", "seconds", "fill", "p(A)", "p(B)")
    table = Table(*head, box=None, pad_edge=False)
    for column in table.columns[3:]:
        column.no_wrap = True
    for reason in explanation.reasons:
        tube = reason.tube
        frames = f"{tube.frames[0]}-{tube.frames[-1]}" if len(tube) else "none"
        times = f"{tube.times[0]:.2f}-{tube.times[-1]:.2f}" if len(tube) and tube.times is not None else ""
        word = reason.word if reason.fit is None else f"{reason.word} (fits: {100 * reason.fit:.0f} %)"
        words, verdicts = (textwrap.wrap(text, 10) for text in (word, reason.verdict))
        for row, evidence in enumerate(reason.evidence):
            last = row == len(reason.evidence) - 1
            word, verdict = (" ".join(lines[row:] if last else lines[row : row + 1]) for lines in (words, verdicts))
            first = (word, verdict, *((f"{reason.score:+.2f}", frames, times) if row == 0 else ("",) * 3))
            a = f"{evidence.positive_before:.2f}→{evidence.positive_after:.2f}"
            b = f"{evidence.negative_before:.2f}→{evidence.negative_after:.2f}"
            table.add_row(*first, evidence.fill, a, b)
    console.print(table)
    rules = (RULE, *([FIT_RULE] if fitted else []), *([GUESS_RULE] if explanation.guessed else []))
    console.print(" ".join(rules), style="dim", highlight=False)


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
