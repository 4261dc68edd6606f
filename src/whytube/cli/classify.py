"""`whytube classify`: what a network says about videos, without any why."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 - typer reads it at run time
from typing import Annotated, Any

import typer

from whytube.checks import check_int
from whytube.cli.options import Device, Json, MaxPixels, Model, print_json, print_plain
from whytube.errors import WhytubeError


def classify(
    videos: Annotated[
        list[Path],
        typer.Argument(metavar="VIDEO", help="Video files, folders of frames, .seq files, or folders of videos."),
    ],
    model: Model = "demo",
    top: Annotated[int, typer.Option(metavar="N", help="How many classes.")] = 5,
    salvage: Annotated[bool, typer.Option("--salvage", help="Use what decodes of a damaged file.")] = False,
    max_pixels: MaxPixels = 1 << 26,
    as_json: Json = False,
    device: Device = "auto",
) -> None:
    """Print the most probable classes of videos.

    With --json it is a list with an object for every video.

    Example: `whytube classify clip.mp4 --model i3d-kinetics-400 --top 3`
    """
    from whytube.cli.many import each, tell_failures, told
    from whytube.data.folders import find_videos
    from whytube.explaining import classify as probabilities
    from whytube.models import load_model

    check_int(top, "top", 1)
    found = find_videos(videos)
    known = load_model(model, device=device)
    failed: dict[Path, WhytubeError] = {}
    plain: list[dict[str, Any]] = []
    work = each(
        "classifying", found, lambda video: probabilities(video, known, top=top, salvage=salvage, max_pixels=max_pixels)
    )
    for video, said in work:
        row: dict[str, Any] = {"source": str(video.absolute()), "model": known.classifier.title}
        if isinstance(said, WhytubeError):
            failed[video] = said
            plain.append({**row, "error": told(said)})
            continue
        plain.append({**row, "probabilities": said})
        if not as_json:
            lines = [str(video)] if len(found) > 1 else []
            lines += [f"{100 * p:5.1f} %  {name}" for name, p in said.items()]
            print_plain("\n".join(lines))
    if as_json:
        print_json(plain)
    if len(found) == 1 and failed:
        raise failed[found[0]]
    tell_failures(failed, len(found))
