"""A worker process: loads the model once, then does one job after the other. Runs in a process of its own only.

Messages to it: ("run", id, kind, inputs, model), ("cancel", id). The end of the pipe is the end of the server, and ends
the worker. Messages from it: ("ready", description), ("refused", None, text) where the model cannot be loaded, and for
a job ("progress", id, done, total, text), ("answer", id, document), and at its end ("done", id, Outcome),
("cancelled", id), ("refused", id, text) or ("broken", id, traceback).
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import queue
import signal
import threading
import traceback
from importlib import import_module
from typing import TYPE_CHECKING, Any

import torch

from whytube.data.world import World
from whytube.errors import WhytubeError
from whytube.explainer.explainer import Explainer
from whytube.given import model_hash
from whytube.search.anytime import EFFORTS
from whytube.tubes import FILLS
from whytube.web.children import NICE
from whytube.web.taught import open_model
from whytube.web.work import KINDS, CancelledError

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    from whytube.models.find import Model


def main(pipe: Connection, model: str, device: str, threads: int) -> None:
    """Do jobs until the server ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the server ends its workers
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    with contextlib.suppress(OSError):
        os.nice(NICE)
    torch.set_num_threads(threads)
    desk = _Desk(pipe, device)
    try:
        desk.load(model)
    except WhytubeError as error:
        desk.send("refused", None, str(error))
        return
    desk.send("ready", describe(desk.model))
    threading.Thread(target=desk.listen, daemon=True).start()
    while True:
        desk.work(*desk.tasks.get())


def describe(model: Model) -> dict[str, Any]:
    """Say what a model knows: what /api/model shows, and a hash of everything that decides its answers."""
    classifier = model.classifier
    return {
        "name": classifier.title,
        "hash": _hash(model),
        "classes": list(classifier.classes),
        "attributes": list(model.attribute_names),
        "words": bool(model.attribute_names),
        "frames": classifier.frames,
        "size": list(classifier.size),
        "efforts": dict(EFFORTS),
        "fills": list(FILLS),
        "world": set(World.classes) <= set(classifier.classes),
    }


def _hash(model: Model) -> str:
    parts = [model_hash(model.classifier), model.name, repr(model.attribute_names)]
    if model.response is not None:
        parts.append(model_hash(model.response))
    if isinstance(model, Explainer):
        parts += [model_hash(model.scores), repr(model.table.tolist()), repr(model.fit)]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


class _Desk:
    """What one job at a time is done with; the Context of its function."""

    model: Any

    def __init__(self, pipe: Connection, device: str) -> None:
        self.tasks: queue.SimpleQueue[tuple[str, str, dict[str, Any], str]] = queue.SimpleQueue()
        self._pipe, self._device = pipe, device
        self._loaded = ""
        self._current = ""
        self._cancelled: set[str] = set()

    def load(self, model: str) -> None:
        """Load a model, unless it is the one that is there."""
        if model != self._loaded:
            self.model = open_model(model, device=self._device)
            self._loaded = model

    def listen(self) -> None:
        """Take messages, also while a job runs."""
        try:
            while True:
                what, *rest = self._pipe.recv()
                if what == "run":
                    self.tasks.put(tuple(rest))
                elif what == "cancel":
                    self._cancelled.add(rest[0])
        except (EOFError, OSError):
            os._exit(0)

    def work(self, ident: str, kind: str, inputs: dict[str, Any], model: str) -> None:
        """Do one job."""
        self._current = ident
        module, _, name = KINDS[kind].run.partition(":")
        try:
            if model != self._loaded:
                self.load(model)
                self.send("ready", describe(self.model))
            self.send("done", ident, getattr(import_module(module), name)(inputs, self))
        except CancelledError:
            self.send("cancelled", ident)
        except WhytubeError as error:
            self.send("refused", ident, str(error))
        except MemoryError:
            self.send("refused", ident, "there was not enough memory for this. Ask for less effort")
        except Exception:
            self.send("broken", ident, traceback.format_exc())
        self._cancelled.discard(ident)

    def progress(self, done: int, total: int, text: str = "") -> None:
        self._check()
        self.send("progress", self._current, done, total, text)

    def answer(self, document: dict[str, Any]) -> None:
        self._check()
        self.send("answer", self._current, document)

    def _check(self) -> None:
        if self._current in self._cancelled:
            raise CancelledError

    def send(self, *message: Any) -> None:
        """Tell the server; without one there is nothing left to do."""
        try:
            self._pipe.send(message)
        except OSError:
            os._exit(0)
