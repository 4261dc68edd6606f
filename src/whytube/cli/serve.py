"""`whytube serve`: the page in the browser."""

from __future__ import annotations

import importlib.util
import re
import secrets
from pathlib import Path  # noqa: TC003 - typer reads it at run time
from typing import Annotated

import typer

from whytube.checks import check_int
from whytube.cli.options import Device, Json, Model, print_json, print_plain
from whytube.errors import ArgumentError


def serve(
    model: Model = "demo",
    host: Annotated[
        str,
        typer.Option(
            metavar="ADDRESS",
            help="Address to listen on; others than this machine's own need a token, which is printed.",
        ),
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(metavar="N", help="Port to listen on; 0 takes a free one.")] = 8000,
    store: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Where videos and results are kept; by default in your data directory."),
    ] = None,
    videos: Annotated[Path | None, typer.Option(metavar="FOLDER", help="A folder of videos to pick from.")] = None,
    workers: Annotated[int, typer.Option(metavar="N", help="Processes that hold the model.")] = 1,
    queue: Annotated[int, typer.Option(metavar="N", help="Jobs that may wait.")] = 100,
    max_mib: Annotated[int, typer.Option(metavar="N", help="Largest upload, in MiB.")] = 256,
    max_seconds: Annotated[float, typer.Option(metavar="N", help="Longest video.")] = 600.0,
    max_pixels: Annotated[int, typer.Option(metavar="N", help="Largest frame, in pixels.")] = 1 << 23,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A further name that the server is asked for by, as behind a proxy."),
    ] = None,
    token: Annotated[
        str | None, typer.Option(metavar="TEXT", envvar="WHYTUBE_TOKEN", help="The token, instead of a new one.")
    ] = None,
    device: Device = "auto",
    as_json: Json = False,
) -> None:
    """Serve a page to ask "why not B?" of your own videos.

    Open the address that it prints. Ctrl-C stops it; what was asked goes on after the next start.

    Example: `whytube serve --model jhmdb-i3d --videos clips`
    """
    for name in ("fastapi", "uvicorn", "python_multipart"):
        if importlib.util.find_spec(name) is None:
            raise ArgumentError(f"the page needs {name}, which is not installed: pip install 'whytube[web]'")
    from whytube.web.serving import needs_token
    from whytube.web.serving import serve as run
    from whytube.web.settings import Limits, Settings, default_store

    check_int(port, "port", 0, 65535)
    check_int(workers, "workers", 1, 64)
    if videos is not None and not videos.is_dir():
        raise ArgumentError(f"`videos` must be a folder, got {videos}")
    if token is not None and re.fullmatch(r"[\w.~-]{8,200}", token, re.ASCII) is None:
        raise ArgumentError("`token` must be 8 to 200 letters, digits, or - . _ ~, which fit into an address")
    if needs_token(host) and token is None:
        token = secrets.token_urlsafe(24)
    limits = Limits(
        bytes=check_int(max_mib, "max_mib", 1) << 20,
        seconds=max_seconds,
        pixels=check_int(max_pixels, "max_pixels", 1),
        queue=check_int(queue, "queue", 1),
    )
    settings = Settings(
        model=model,
        store=(store or default_store()).absolute(),
        device=device,
        host=host,
        port=port,
        videos=None if videos is None else videos.absolute(),
        token=token,
        hosts=tuple(allow_host or ()),
        workers=workers,
        limits=limits,
    )

    def announce(address: str) -> None:
        if as_json:
            print_json({"url": address, "token": token, "model": model, "store": str(settings.store)})
        else:
            print_plain(f"whytube is at {address} (Ctrl-C stops it)")

    run(settings, announce)
