"""Look at the layers of any network: watch their outputs, and choose those whose features explain it.

One run on noise tells which layers give maps, and on which maps the logits depend.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from whytube.checks import shape_of, unknown_name
from whytube.classifiers.layouts import TOKENS, Layout, find_layout
from whytube.errors import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from whytube.classifiers.layouts import Grid

_LISTED = 12
"""How many outputs an error shows."""
# Hooks run for the innermost `watching` block of their own thread only.
_INNERMOST: ContextVar[object] = ContextVar("innermost", default=None)


@contextmanager
def watching(modules: Mapping[str, nn.Module], see: Callable[[str, Any], Any]) -> Iterator[None]:
    """Within the block, call `see(name, output)` after each run of a module.

    What `see` returns replaces the output; None keeps it. The hooks are removed after the block, also when the network
    raises. Several threads may watch the same modules, and blocks may be nested: each sees its own runs only.
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
    """Features in a module's output: the tensor, the first of a tuple, or `last_hidden_state` of a mapping."""
    if isinstance(output, Mapping):
        output = output.get("last_hidden_state")
    elif isinstance(output, (tuple, list)) and output:
        output = output[0]
    return output if isinstance(output, torch.Tensor) and output.is_floating_point() else None


def with_hidden(output: Any, features: torch.Tensor) -> Any:
    """Return the output with other features in the place where `hidden` finds them."""
    if isinstance(output, Mapping):
        return type(output)(**{**output, "last_hidden_state": features})
    if isinstance(output, tuple) and hasattr(output, "_fields"):
        return type(output)(features, *output[1:])
    if isinstance(output, (tuple, list)):
        return type(output)((features, *output[1:]))
    return features


@dataclass(frozen=True, eq=False)
class Seen:
    """Output of one layer for one clip."""

    name: str
    features: torch.Tensor
    layout: Layout


class Trial:
    """Outputs of a network's modules in one run, in the order in which they finished."""

    def __init__(self, model: nn.Module, *, frames: int) -> None:
        self.model, self.frames = model, frames
        self.modules = dict(model.named_modules())
        self.blocks = set(_blocks(model))
        self.features: dict[str, torch.Tensor] = {}
        self.shapes: dict[str, str] = {}
        self.grids: list[Grid] = []
        self.runs: dict[str, int] = {}

    def run(self, call: Callable[[], torch.Tensor], *, keep: Iterable[str] | None = None) -> torch.Tensor:
        """Watch `call`, which runs the network, and return its logits.

        keep: names of layers whose features are wanted. By default all outputs of 4 or 5 dimensions, and the outputs of
        repeated blocks: queries, keys and values have the shape of tokens, too, but are no features.
        """
        wanted = None if keep is None else set(keep)

        def see(name: str, output: Any) -> None:
            self.runs[name] = self.runs.get(name, 0) + 1
            features = hidden(output)
            if features is None:
                return
            self._note_grid(self.modules[name], features)
            self.shapes[name] = shape_of(features)
            kept = name in wanted if wanted is not None else features.ndim in (4, 5) or name in self.blocks
            if kept:
                self.features.pop(name, None)
                self.features[name] = features

        with watching(self.modules, see):
            return call()

    def _note_grid(self, module: nn.Module, features: torch.Tensor) -> None:
        if isinstance(module, nn.Conv3d) and features.ndim == 5:
            self.grids.append((features.shape[2], features.shape[3], features.shape[4]))
        elif isinstance(module, nn.Conv2d) and features.ndim == 4 and features.shape[0] == self.frames:
            self.grids.append((self.frames, features.shape[2], features.shape[3]))

    def maps(self, *, order: str | None, grid: Grid | None) -> list[Seen]:
        """Return the layers that ran once and gave a map."""
        found = []
        for name, features in self.features.items():
            layout = find_layout(features.shape, frames=self.frames, order=order, grid=grid, grids=self.grids)
            if layout is not None and self.runs[name] == 1:
                found.append(Seen(name, features, layout))
        return found

    def listed(self) -> str:
        """List the last modules with the shapes of their outputs."""
        last = list(self.shapes.items())[-_LISTED:]
        return ", ".join(f"{name or 'the model'} {shape}" for name, shape in last)


def named_layers(trial: Trial, names: Sequence[str], *, order: str | None, grid: Grid | None) -> dict[str, Layout]:
    """Layouts of the layers that the user named, finer grid first."""
    found = {seen.name: seen for seen in trial.maps(order=order, grid=grid)}
    for name in names:
        runs = trial.runs.get(name, 0)
        if runs != 1:
            raise ArgumentError(f"layer {name!r} ran {runs} times for one clip. Name a layer that runs once")
        if name not in found:
            shape = trial.shapes.get(name, "no tensor")
            raise ArgumentError(
                f"layer {name!r} gave {shape} for one clip, which is no map of at least 2 x 2 cells. Name another "
                f"layer; or say how its features stand (feature_layout), and for tokens their grid=(T, H, W)"
            )
    return _finer_first([found[name] for name in names])


def choose_layers(trial: Trial, logits: torch.Tensor, *, order: str | None, grid: Grid | None) -> dict[str, Layout]:
    """Choose one or two layers, finer grid first.

    Candidates ran once, gave a map, and the logits depend on more than one of its cells. (Of a last block that is read
    by its class token alone, they do not.) Chosen are the last candidate, and the last one before it with a finer grid.
    Tokens often have one grid throughout: then the block before it.
    """
    usable = _reaching(trial.maps(order=order, grid=grid), logits)
    if not usable:
        raise ArgumentError(
            f"no layer of {type(trial.model).__name__} gives a map that its logits depend on. Outputs for one clip: "
            f"{trial.listed()}. Name `layers`; or say how features stand (feature_layout), and for tokens their grid"
        )
    last = usable[-1]
    tokens = last.layout.order in TOKENS
    alike = [seen for seen in usable if (seen.layout.order in TOKENS) == tokens]
    finer = [seen for seen in alike if seen.layout.cells > last.layout.cells]
    if finer:
        return _finer_first([finer[-1], last])
    return _finer_first(alike[-2:] if tokens else [last])


def layer_name(model: nn.Module, layer: str | nn.Module) -> str:
    """Name of a layer that is given by name or as the module itself."""
    names: dict[str, nn.Module] = {name: module for name, module in model.named_modules() if name}
    if isinstance(layer, str):
        if layer not in names:
            raise unknown_name("layer", layer, names)
        return layer
    for name, module in names.items():
        if module is layer:
            return name
    raise ArgumentError(f"`layers` must be modules of the model or their names, got a {type(layer).__name__} elsewhere")


def _reaching(maps: list[Seen], logits: torch.Tensor) -> list[Seen]:
    """Keep maps with a gradient at more than one cell; of layers that give the same tensor, the outermost."""
    once = {id(seen.features): seen for seen in maps if seen.features.requires_grad}
    ordered = [seen for seen in maps if once.get(id(seen.features)) is seen]
    if not ordered or not logits.requires_grad:
        return []
    direction = torch.randn(logits.shape, generator=torch.Generator().manual_seed(0)).to(logits)
    slopes = torch.autograd.grad((logits * direction).sum(), [s.features for s in ordered], allow_unused=True)
    reaching = []
    for seen, slope in zip(ordered, slopes, strict=True):
        if slope is not None and int(seen.layout.to_map(slope, 1).abs().amax(1).count_nonzero()) > 1:
            reaching.append(seen)
    return reaching


def _finer_first(chosen: list[Seen]) -> dict[str, Layout]:
    return {seen.name: seen.layout for seen in sorted(chosen, key=lambda seen: -seen.layout.cells)}


def _blocks(model: nn.Module) -> Iterable[str]:
    """Names of repeated blocks: modules with children, in a list whose modules are all of one class."""
    for name, parent in model.named_modules():
        if isinstance(parent, (nn.ModuleList, nn.Sequential)) and len({type(child) for child in parent}) == 1:
            for place, child in parent.named_children():
                if any(True for _ in child.children()):
                    yield f"{name}.{place}" if name else place
