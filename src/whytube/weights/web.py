"""Open addresses as pip would: with its certificates, its proxy and the credentials that stand in its addresses."""

from __future__ import annotations

import base64
import ssl
from http.client import HTTPResponse, HTTPSConnection
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit, urlunsplit
from urllib.request import HTTPSHandler, ProxyHandler, Request, build_opener, url2pathname

if TYPE_CHECKING:
    from collections.abc import Mapping

    from whytube.weights.pip_settings import PipSettings

SCHEMES = ("http", "https", "file")


class Web:
    """Opens http, https and file addresses; errors are OSErrors."""

    def __init__(self, settings: PipSettings) -> None:
        self.settings = settings
        self.credentials = {
            urlsplit(bare(url)).netloc: _basic(url)
            for url in (*settings.indexes, *settings.find_links)
            if urlsplit(url).username
        }

    def open(self, url: str, headers: Mapping[str, str] | None = None) -> Any:
        """Open an address; the answer is read like a file and closed by `with`."""
        parts = urlsplit(bare(url))
        if parts.scheme not in SCHEMES:
            raise OSError(f"cannot open {bare(url)}: expected an http, https or file address")
        if parts.scheme == "file":
            path = Path(url2pathname(parts.path))
            return (path / "index.html" if path.is_dir() else path).open("rb")
        request = Request(bare(url), headers={"User-Agent": "whytube", **(headers or {})})
        if authorization := _basic(url) if urlsplit(url).username else self.credentials.get(parts.netloc):
            request.add_unredirected_header("Authorization", authorization)  # not for hosts that it redirects to
        proxy = ProxyHandler(dict.fromkeys(("http", "https"), self.settings.proxy) if self.settings.proxy else None)
        return build_opener(_Https(self.settings), proxy).open(request, timeout=self.settings.timeout)


class _Https(HTTPSHandler):
    """Checks every host's certificate, except where pip trusts the host; one that it redirects to is judged anew."""

    def __init__(self, settings: PipSettings) -> None:
        super().__init__()
        self.trusted = {host.split(":")[0] for host in settings.trusted_hosts}
        self.cert = settings.cert

    def https_open(self, request: Request) -> HTTPResponse:
        context = ssl.create_default_context(cafile=self.cert)
        if urlsplit(request.full_url).hostname in self.trusted:  # not request.host, which may be the proxy's
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        return self.do_open(HTTPSConnection, request, context=context)


def bare(url: str) -> str:
    """Return the address without its credentials: the form that may be shown and is asked for."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


def _basic(url: str) -> str:
    parts = urlsplit(url)
    pair = f"{unquote(parts.username or '')}:{unquote(parts.password or '')}"
    return "Basic " + base64.b64encode(pair.encode()).decode()
