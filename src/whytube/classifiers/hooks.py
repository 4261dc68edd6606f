"""Look at what modules give while a network runs, and leave nothing behind."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from torch import nn

# The innermost block of this thread: hooks of other blocks, and of other threads, keep still while it runs.
_INNERMOST: ContextVar[object] = ContextVar("innermost", default=None)


@contextmanager
def watching(modules: Mapping[str, nn.Module], see: Callable[[str, Any], Any]) -> Iterator[None]:
    """Call `see(name, output)` after each run of a module within the block; what it returns replaces the output.

    None keeps the output. The hooks are gone after the block, also when the network raises or is interrupted. Several
    threads may watch the same modules, and blocks may be nested: each sees its own runs only.
    """
    me = object()

    def hook(name: str) -> Callable[..., Any]:
        return lambda _module, _inputs, output: see(name, output) if _INNERMOST.get() is me else None

    handles = []
    outer = _INNERMOST.set(me)
    try:
        for name, module in modules.items():
            handles.append(module.register_forward_hook(hook(name)))
        yield
    finally:
        _INNERMOST.reset(outer)
        for handle in handles:
            handle.remove()


def hidden(output: Any) -> torch.Tensor | None:
    """Return the features of a module's output: itself, the first of a tuple, or `last_hidden_state` of a mapping."""
    if isinstance(output, Mapping):
        output = output.get("last_hidden_state")
    elif isinstance(output, (tuple, list)) and output:
        output = output[0]
    return output if isinstance(output, torch.Tensor) and output.is_floating_point() else None


def with_hidden(output: Any, features: torch.Tensor) -> Any:
    """Put other features into an output that `hidden` can read."""
    if isinstance(output, Mapping):
        return type(output)(**{**output, "last_hidden_state": features})
    if isinstance(output, tuple) and hasattr(output, "_fields"):
        return type(output)(features, *output[1:])
    if isinstance(output, (tuple, list)):
        return type(output)((features, *output[1:]))
    return features
