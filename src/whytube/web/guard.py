"""What every request must pass: Host, Origin, token and size; and what every answer carries.

It wraps the whole application, so that no route can forget it.
"""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import json
import socket
from http.cookies import CookieError, SimpleCookie
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException

from whytube.web.settings import ANY, LOOPBACK

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from whytube.web.settings import Settings

COOKIE = "whytube_token"
SAFE = ("GET", "HEAD", "OPTIONS")
UPLOAD = "/api/videos"
POLICY = (
    "default-src 'self'; img-src 'self' data: blob:; media-src 'self' blob:; object-src 'none'; base-uri 'none'; "
    "form-action 'self'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
CLOSE = {"connection": "close"}
"""With an answer that comes before the end of the request: the rest is not read."""
DRAINED = 1 << 28
"""Bytes beyond the limit that are read and forgotten before a request is refused."""
ENVELOPE = 1 << 16
"""Bytes of an upload's body around the file itself."""


class Guard:
    """The application behind all checks."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app, self._settings = app, settings
        self._hosts = {name.lower() for name in (*LOOPBACK, settings.host, *settings.hosts)}
        if settings.host in ANY:
            self._hosts.add(socket.gethostname().lower())
        self._uploads = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check a request, then pass it on."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return  # no websockets
        headers = Headers(scope=scope)
        problem = self._problem(scope, headers)
        if problem is not None:
            await _refuse(send, *problem)
            return
        upload = scope["method"] == "POST" and scope["path"] == UPLOAD
        limits = self._settings.limits
        if upload and self._uploads >= limits.uploads:
            await _refuse(send, 429, "too many uploads at the same time: try again in a few seconds")
            return
        most = limits.bytes + ENVELOPE if upload else limits.body
        if _length(headers) > most:
            if _length(headers) <= most + DRAINED:
                await _drained(receive, limits.idle)
            await _refuse(send, 413, _too_large(most))
            return
        self._uploads += upload
        try:
            await self._app(scope, _counted(receive, most, limits.idle), _with_headers(send))
        finally:
            self._uploads -= upload

    def _problem(self, scope: Scope, headers: Headers) -> tuple[int, str] | None:
        """Say why a request is refused, as a status and a text."""
        if not self._is_own(_name(headers.get("host", ""))):
            return 400, "this server is not asked for by that Host: start it with --allow-host NAME"
        if scope["method"] not in SAFE and not _same_origin(headers):
            return 403, "requests from other sites are refused"
        path = scope["path"]
        if path.startswith("/api/") and path != "/api/session" and not self._known(headers):
            return 401, "this server wants its token: open the address that it printed at its start"
        return None

    def _is_own(self, host: str) -> bool:
        """Whether the server may be asked for by this name.

        A page elsewhere may let its own name point here. It cannot do so with a number, so that a server for all
        addresses of the machine takes any.
        """
        return host in self._hosts or (self._settings.host in ANY and _is_number(host))

    def _known(self, headers: Headers) -> bool:
        """Whether a request shows the token, where one is wanted."""
        token = self._settings.token
        if token is None:
            return True
        scheme, _, given = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and same_token(given.strip(), token):
            return True
        try:
            cookie = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
        except CookieError:
            return False
        return cookie is not None and same_token(cookie.value, token)


def same_token(given: str, token: str) -> bool:
    """Compare in constant time."""
    return hmac.compare_digest(given.encode(), token.encode())


def _name(host: str) -> str:
    """Host header without its port: example.org, 127.0.0.1, ::1."""
    host = host.strip().lower()
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.rpartition(":")[0] if ":" in host else host


def _is_number(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _same_origin(headers: Headers) -> bool:
    """Whether a page of this server sent the request, or no page at all."""
    site = headers.get("sec-fetch-site")
    if site is not None and site not in ("same-origin", "none"):
        return False
    origin = headers.get("origin")
    return origin is None or urlsplit(origin).netloc.lower() == headers.get("host", "").strip().lower()


def _length(headers: Headers) -> int:
    text = headers.get("content-length", "0")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 20 else 0


def _too_large(most: int) -> str:
    return f"this request has more than {most / (1 << 20):.0f} MiB, the most that is taken"


def _counted(receive: Receive, most: int, idle: float) -> Receive:
    """Count the bytes of a body while they come; end one that is too large, or that stops coming."""
    taken = 0
    done = False

    async def limited() -> Message:
        nonlocal taken, done
        if done:
            return await receive()  # whether the client is still there
        try:
            message = await asyncio.wait_for(receive(), idle)
        except TimeoutError:
            raise HTTPException(408, f"nothing came for {idle:g} seconds: send it again", CLOSE) from None
        if message["type"] == "http.request":
            taken += len(message.get("body", b""))
            done = not message.get("more_body", False)
            if taken > most:
                if not done:
                    await _drained(receive, idle)
                raise HTTPException(413, _too_large(most), headers=CLOSE)
        return message

    return limited


async def _drained(receive: Receive, idle: float) -> None:
    """Read on and forget, within bounds: most clients hear an answer only after all was sent."""
    taken, more = 0, True
    while more and taken <= DRAINED:
        try:
            message = await asyncio.wait_for(receive(), idle)
        except TimeoutError:
            return
        taken += len(message.get("body", b""))
        more = bool(message.get("more_body", False))


def _with_headers(send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
        await send(message)

    return sending


async def _refuse(send: Send, status: int, text: str) -> None:
    body = json.dumps({"detail": text}).encode()
    headers = {**HEADERS, "content-type": "application/json", "content-length": str(len(body))}
    if status == 401:
        headers["www-authenticate"] = "Bearer"
    if status == 413:
        headers |= CLOSE
    if status == 429:
        headers["retry-after"] = "5"
    raw = [(name.encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": status, "headers": raw})
    await send({"type": "http.response.body", "body": body})
