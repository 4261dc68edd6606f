"""Training on several devices: the processes that torchrun started, as one training. Nothing else knows of them.

Every process has a share of each batch and a copy of the weights. A loss is given per share, so that the shares' losses
add up to that of the batch, and gradients are summed (DistributedDataParallel). One process is the case of one share.

When one process ends early, so do all: who began it says why, the others are quiet (`FailedElsewhereError`).
"""

from __future__ import annotations

import contextlib
import os
import warnings
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeVar

import torch
from torch import distributed

from whytube.checks import fail
from whytube.errors import ArgumentError, ModelError, WhytubeError
from whytube.models import find_device

if TYPE_CHECKING:
    from collections.abc import Iterator

T = TypeVar("T")

PATIENCE = timedelta(hours=1)
"""How long a process waits for the others: the first one may be learning places, or writing."""
_ENDED = "ended by"
_STOPPED = "stopped"


class FailedElsewhereError(WhytubeError):
    """Another process of this training failed, and says why."""


@dataclass(frozen=True)
class Share:
    """Which clips of a batch of `total` a process has: those from `start` to before `stop`.

    weight: their part of the batch. A process for which none is left works on the first, with a weight of 0.
    """

    start: int
    stop: int
    total: int

    @property
    def rows(self) -> slice:
        """The clips of the process, among those of the batch."""
        return slice(self.start, self.stop) if self.weight else slice(0, 1)

    @property
    def count(self) -> int:
        """How many these are."""
        return max(self.stop - self.start, 1)

    @property
    def weight(self) -> float:
        """The part of the batch that counts here."""
        return (self.stop - self.start) / self.total


def whole_share(total: int) -> Share:
    """Return the share of who has all clips."""
    return Share(0, total, total)


@dataclass(frozen=True)
class Ranks:
    """The processes of a training, as one of them sees it: it is number `rank` of `size`.

    joined: whether a process that is alone goes the way of several, as tests do to try it on one GPU.
    """

    rank: int = 0
    size: int = 1
    joined: bool = False

    @property
    def talks(self) -> bool:
        """Whether there is a group of processes to talk to."""
        return self.size > 1 or self.joined

    @property
    def first(self) -> bool:
        """Whether this is the process that prints, saves, and does what is done once."""
        return self.rank == 0

    def share(self, total: int) -> Share:
        """Return this process's share of a batch; shares differ by at most one clip."""
        return Share(total * self.rank // self.size, total * (self.rank + 1) // self.size, total)

    def check_batch(self, batch_size: int) -> None:
        """Require a clip of every batch for each process."""
        if batch_size < self.size:
            raise fail("batch_size", f"at least {self.size}, a clip for each process", batch_size)

    def sum(self, tensor: torch.Tensor) -> torch.Tensor:
        """Add up what all processes give, of one shape."""
        if not self.talks:
            return tensor
        total = tensor.detach().clone(memory_format=torch.contiguous_format)
        distributed.all_reduce(total)
        return total

    def whole(self, part: torch.Tensor, share: Share) -> torch.Tensor:
        """Put the rows of all processes together, in the order of the batch."""
        if not self.talks:
            return part
        kind = torch.uint8 if part.dtype is torch.bool else part.dtype  # of which there are sums
        rows = part.new_zeros(share.total, *part.shape[1:], dtype=kind)
        if share.weight:
            rows[share.rows] = part.to(kind)
        distributed.all_reduce(rows)
        return rows.to(part.dtype)

    def given(self, value: T) -> T:
        """Return the first process's value, in all; its tensors are on the CPU."""
        if not self.talks:
            return value
        box = [value]
        distributed.broadcast_object_list(box, src=0, device=torch.device("cpu"))
        return box[0]

    def parallel(self, module: torch.nn.Module, *, unused: bool = False) -> torch.nn.Module:
        """Have gradients averaged over the processes, also of modules with parameters that are `unused`."""
        if not self.talks:
            return module
        # Said of kernels of one cell, whose strides mean nothing.
        warnings.filterwarnings("ignore", message="Grad strides do not match bucket view strides")
        return torch.nn.parallel.DistributedDataParallel(module, find_unused_parameters=unused)


ALONE = Ranks()


@contextlib.contextmanager
def together(
    device: torch.device | str = "auto", *, join: bool = False, backend: str | None = None
) -> Iterator[tuple[Ranks, torch.device]]:
    """Join the processes that torchrun started for the length of a block; where it started none, there is one.

    Gives the processes and the device of this one: with CUDA a GPU each. On the CPU they talk by gloo, else by NCCL.
    join, backend: for tests. A single process of torchrun's forms a group, too; and with "gloo" on a GPU several
    processes share one, which NCCL refuses.
    """
    size = int(os.environ.get("WORLD_SIZE", "1")) if "RANK" in os.environ else 1
    if size == 1 and not (join and "RANK" in os.environ):
        yield ALONE, find_device(device)
        return
    try:
        store, rank, size = next(distributed.rendezvous("env://", timeout=PATIENCE))  # type: ignore[attr-defined]
    except ValueError as error:  # a variable is missing
        raise ArgumentError(f"cannot find the other processes: {error}. Start them with torchrun") from error
    ranks = Ranks(rank, size, join)
    shared = backend == "gloo"
    backend = backend or ("cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo")
    own = distributed.PrefixStore("group", store)  # type: ignore[attr-defined]
    try:
        distributed.init_process_group(backend, store=own, rank=rank, world_size=size, timeout=PATIENCE)
        yield ranks, _own_device(device, shared=shared)
    except BaseException as error:
        _tell(error, ranks, store)
        raise
    distributed.destroy_process_group()  # not after a failure: that would wait for processes that are gone


def _own_device(device: torch.device | str, *, shared: bool) -> torch.device:
    """Find the device of this process: with CUDA the GPU of its number on this machine; shared: they may be fewer."""
    found = find_device(device)
    if found.type != "cuda":
        return found
    if found.index is not None:
        raise fail("device", "cuda or cpu, as each process takes a GPU of its own", str(device))
    place, there = int(os.environ.get("LOCAL_RANK", "0")), torch.cuda.device_count()
    if shared:
        place %= there
    if place >= there:
        raise ArgumentError(f"more processes than GPUs: there are {there}, so use --nproc-per-node {there}")
    torch.cuda.set_device(place)
    return torch.device("cuda", place)


def _tell(error: BaseException, ranks: Ranks, store: Any) -> None:
    """Let the others know that this process ends; raise what it says instead, where another one was the first."""
    stopped = isinstance(error, KeyboardInterrupt)
    mine = f"{ranks.rank} {_STOPPED if stopped else ''}"
    try:
        cause = store.compare_set(_ENDED, "", mine).decode()
    except RuntimeError:  # who keeps the store is gone
        cause = f"? {_STOPPED}"
    if stopped:
        return
    if cause != mine:
        who = f"process {cause.split()[0]} of {ranks.size}"
        if ranks.first and cause.endswith(_STOPPED):  # it said nothing itself
            raise ModelError(f"{who} was stopped: go on with `resume=True`") from error
        raise FailedElsewhereError(f"{who} failed") from error
    if _is_of_connection(error):
        raise ModelError(f"another of the {ranks.size} processes is gone: go on with `resume=True`") from error


def _is_of_connection(error: BaseException) -> bool:
    told = str(error).lower()
    return isinstance(error, distributed.DistError) or (
        isinstance(error, RuntimeError) and any(word in told for word in ("gloo", "nccl", "connection closed"))
    )
