"""Where the user's pip looks for packages: its configuration files and its environment variables."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from dataclasses import dataclass

PYPI = "https://pypi.org/simple"
SECTIONS = (":env:", "download", "global")
"""Of pip's configuration, the stronger first."""


@dataclass(frozen=True)
class PipSettings:
    """What pip would use: addresses of indexes, then of pages or folders with links, then how to reach them."""

    indexes: tuple[str, ...] = (PYPI,)
    find_links: tuple[str, ...] = ()
    cert: str | None = None
    proxy: str | None = None
    trusted_hosts: tuple[str, ...] = ()
    timeout: float = 60.0


def read_pip_settings() -> PipSettings:
    """Ask pip for its configuration; where there is no pip, read the variables it would have read."""
    found = _listed() or {
        f":env:.{n[4:].lower().replace('_', '-')}": v for n, v in os.environ.items() if n[:4] == "PIP_"
    }

    def option(name: str) -> str:
        return next((found[f"{s}.{name}"] for s in SECTIONS if f"{s}.{name}" in found), "")

    indexes = (option("index-url") or PYPI, *option("extra-index-url").split())
    return PipSettings(
        indexes=() if option("no-index").lower() in ("1", "true", "yes", "on") else indexes,
        find_links=tuple(option("find-links").split()),
        cert=option("cert") or None,
        proxy=option("proxy") or None,
        trusted_hosts=tuple(option("trusted-host").split()),
        timeout=_seconds(option("timeout") or option("default-timeout")),
    )


def _listed() -> dict[str, str]:
    """Read `pip config list`: lines of key='value', of all files and variables, each key with the value that counts."""
    command = [sys.executable, "-m", "pip", "config", "list"]
    listed = subprocess.run(command, capture_output=True, text=True, check=False)
    pairs = (line.split("=", 1) for line in listed.stdout.splitlines() if "=" in line)
    return {key: str(ast.literal_eval(value)) for key, value in pairs if value[:1] in "'\""}


def _seconds(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return PipSettings.timeout
