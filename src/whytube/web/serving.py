"""Runs the server: one socket, one event loop, an orderly end on Ctrl-C or SIGTERM."""

from __future__ import annotations

import signal
import socket
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import uvicorn

from whytube.errors import ArgumentError
from whytube.web.app import build_app
from whytube.web.settings import ANY, LOOPBACK
from whytube.web.site import Site

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from whytube.web.settings import Settings


def serve(settings: Settings, announce: Callable[[str], None]) -> None:
    """Serve until a signal comes. announce: called with the address, once requests are heard."""
    with _bound(settings.host, settings.port) as listener:
        site = Site(settings)
        try:
            site.start()
            config = uvicorn.Config(
                build_app(site), log_level="warning", access_log=False, server_header=False, timeout_graceful_shutdown=3
            )
            listener.listen(1024)
            announce(address(settings, listener.getsockname()[1]))
            _Server(config, site).run(sockets=[listener])
        finally:
            site.stop()


def address(settings: Settings, port: int) -> str:
    """Write what a person opens in a browser; the token is after #, which browsers keep to themselves."""
    host = socket.gethostname() if settings.host in ANY else settings.host
    shown = f"[{host}]" if ":" in host else host
    return f"http://{shown}:{port}/" + (f"#token={settings.token}" if settings.token else "")


def needs_token(host: str) -> bool:
    """Whether others than this machine can reach the address."""
    return host not in LOOPBACK


@contextmanager
def _bound(host: str, port: int) -> Iterator[socket.socket]:
    """Take the port before anything else is done."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, port))
        except (OSError, OverflowError) as error:
            told = getattr(error, "strerror", None) or error
            raise ArgumentError(f"cannot listen on {host}, port {port}: {told}. Choose another `port`") from error
        yield listener


class _Server(uvicorn.Server):
    """Ends by itself on a signal, and lets those who follow jobs go first."""

    def __init__(self, config: uvicorn.Config, site: Site) -> None:
        super().__init__(config)
        self._site = site

    def handle_exit(self, sig: int, frame: Any) -> None:
        """Begin to stop."""
        self._site.board.close()
        super().handle_exit(sig, frame)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Hear signals while the server runs; a signal that stopped it is not given again, as its end is no failure."""
        heard = (signal.SIGINT, signal.SIGTERM)
        before = [signal.signal(number, self.handle_exit) for number in heard]
        try:
            yield
        finally:
            for number, handler in zip(heard, before, strict=True):
                signal.signal(number, handler)
