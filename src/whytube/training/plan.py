"""What a training will take, said before it begins: steps, clips, memory, and whether the memory is there."""

from __future__ import annotations

import copy
import weakref
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from whytube.explainer.explainer import find_objective
from whytube.training.features import bytes_of_features, place_of_features
from whytube.training.loop import AHEAD
from whytube.training.memory import free_bytes, used_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from whytube.classifiers.base import VideoClassifier
    from whytube.data.source import Source
    from whytube.training.recipe import Recipe

GB = 1e9
MARGIN = 1.3
"""For what libraries take beside the tensors of a step: without it, peaks were 1.1 to 1.4 times the estimate."""


@dataclass(frozen=True)
class Plan:
    """What a run will take.

    Attributes:
        steps, batch_size, clips: optimizer steps, clips of each, clips shown in all.
        different: clips in the training split that are shown; None where there is no end of them.
        memory: bytes at the peak, estimated; None where the network cannot be followed without running it.
        available: bytes that are free on the device; None where the system does not say.
        masked_runs: runs of the classifier on masked clips that follow.
        features: bytes of features that are kept, see features.py; part of `memory`, if they are on the same device.
        processes: that train together; memory is what each of them takes.
    """

    steps: int
    batch_size: int
    clips: int
    different: int | None
    memory: int | None
    available: int | None
    device: str
    masked_runs: int = 0
    features: int = 0
    processes: int = 1

    def __str__(self) -> str:
        some = "" if self.different is None else f" of {self.different} different ones"
        text = f"{self.steps} steps of {self.batch_size} clips: {self.clips} shown{some}"
        text += f", then {self.masked_runs} masked" if self.masked_runs else ""
        text += f", by {self.processes} processes" if self.processes > 1 else ""
        text += f", features kept ({self.features / GB:.1f} GB)" if self.features else ""
        if self.memory is None:
            return f"{text}; how much memory cannot be told for this network"
        free = "" if self.available is None else f", {self.available / GB:.1f} GB are free"
        each = " each" if self.processes > 1 else ""
        return f"{text}; about {self.memory / GB:.1f} GB of {self._kind}{each}{free}"

    @property
    def warning(self) -> str | None:
        """What to change, where the memory will not do."""
        if self.memory is None or self.available is None or self.memory <= self.available:
            return None
        return (
            f"this will probably not fit: about {self.memory / GB:.1f} GB of {self._kind} are needed, "
            f"{self.available / GB:.1f} GB are free. Use --recipe laptop (for a classifier with --pretrained), "
            f"or smaller batches, --set batch_size={max(self.batch_size // 4, 1)}, "
            "and where many clips are kept, fewer of them, --distinct"
        )

    @property
    def _kind(self) -> str:
        return "memory" if self.device == "cpu" else "GPU memory"


def plan_classifier(
    model: VideoClassifier, source: Source, recipe: Recipe, device: torch.device, *, processes: int = 1
) -> Plan:
    """Say what `fit_classifier` will take, in each of several processes."""

    def step(net: VideoClassifier, clips: torch.Tensor) -> None:
        net.train()
        if recipe.freeze:
            net.freeze_below(recipe.freeze)
        changed = clips.clone()  # the random changes make at least one new batch
        net(changed).square().mean().backward()

    trained = sum(tensor.nbytes for tensor in model.parameters())
    mixed = recipe.precision == "bfloat16" and device.type == "cuda"
    settings: dict[str, Any] = {"states": 2 * trained, "share": 0.6 if mixed else 1.0, "processes": processes}
    return _plan(model, source, recipe, device, step, **settings)


def plan_explainer(
    classifier: VideoClassifier,
    source: Source,
    recipe: Recipe,
    device: torch.device,
    *,
    objective: str = "ours",
    shapes: str = "multiple",
    processes: int = 1,
) -> Plan:
    """Say what `fit_explainer` will take, in each process: the classifier's forward pass, and the features it keeps."""

    def step(net: VideoClassifier, clips: torch.Tensor) -> None:
        net.eval()
        with torch.no_grad():
            net.features(clips)

    searches = find_objective(objective).verify and classifier.response_cut is not None
    runs = recipe.masked_runs if searches else 0
    made = _plan(classifier, source, recipe, device, step, processes=processes)
    size, place = 0, None
    if made.different is not None:
        maps = classifier.map_shapes()[-1:] if shapes == "single" else classifier.map_shapes()
        size = bytes_of_features(maps, len(classifier.classes), made.different)
        place = place_of_features(size, device, clips=made.different, shown=recipe.clips, processes=processes)
    if place is not None and processes > 1:  # each process then runs whole batches, once
        made = replace(_plan(classifier, source, recipe, device, step), available=made.available, processes=processes)
    memory = made.memory + size if made.memory is not None and place == device else made.memory
    return replace(made, masked_runs=runs, memory=memory, features=0 if place is None else size)


def _plan(
    model: VideoClassifier,
    source: Source,
    recipe: Recipe,
    device: torch.device,
    step: Callable[[Any, torch.Tensor], None],
    *,
    states: int = 0,
    share: float = 1.0,
    processes: int = 1,
) -> Plan:
    """Add up the peak of a step, what the optimizer keeps, the clips that are kept, and what is in use already.

    share: of the step's memory that mixed precision leaves.
    """
    different = source.count("train")
    if recipe.distinct is not None:
        different = min(recipe.distinct, recipe.distinct if different is None else different)
    clip = 3 * model.frames * model.size[0] * model.size[1]
    kept = clip * (different or 0) if recipe.distinct is not None else 0
    own = -(-recipe.batch_size // processes)
    kept += AHEAD * own * clip * 4 if recipe.distinct is None else 0  # floats
    peak = peak_of_step(model, own, step)
    memory = None if peak is None else int(MARGIN * share * peak) + states + kept
    if memory is not None and device.type == "cpu":
        memory += used_bytes()
    shown = different if different is None else min(different, recipe.clips)
    free = free_bytes(device)
    if free is not None and device.type == "cpu":
        free = free // processes + used_bytes()  # what this process holds already is counted on both sides
    if memory is not None and recipe.distinct is None and device.type == "cpu":
        cached = _cached(source, clip, different)  # as much as there is room for: no reason why a run would not fit
        memory += cached if free is None else min(cached, max(free - memory, 0))
    shape = (recipe.steps, recipe.batch_size, recipe.steps * recipe.batch_size, shown)
    return Plan(*shape, memory, free, device.type, processes=processes)


def _cached(source: Source, clip: int, different: int | None) -> int:
    """Bytes of decoded clips that a source keeps by itself."""
    return min(getattr(source, "cache_bytes", 0), clip * (different or 0))


def peak_of_step(model: VideoClassifier, batch_size: int, step: Callable[[Any, torch.Tensor], None]) -> int | None:
    """Bytes of all tensors that live at one time while `step` runs on a batch, without computing anything.

    The network runs on shapes alone. None where it does what needs values.
    """
    try:
        shapes = copy.deepcopy(model).to("meta")
        weights = sum(tensor.nbytes for tensor in (*shapes.parameters(), *shapes.buffers()))
        clips = torch.empty(batch_size, 3, model.frames, *model.size, device="meta")
        with Live() as live:
            step(shapes, clips)
    except Exception:  # a network of the user's own may do anything with its values
        return None
    return int(weights + clips.nbytes + live.most)


class Live(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts the bytes of storages that were made inside and still live."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.now = self.most = 0
        self.known: weakref.WeakSet[torch.UntypedStorage] = weakref.WeakSet()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        out = func(*args, **(kwargs or {}))
        inputs = {leaf.untyped_storage() for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)}
        for leaf in tree_leaves(out):
            if not isinstance(leaf, torch.Tensor):
                continue
            storage = leaf.untyped_storage()
            if storage not in self.known and storage not in inputs:
                self.known.add(storage)
                self._change(storage.nbytes())
                weakref.finalize(storage, self._change, -storage.nbytes())
        return out

    def _change(self, size: int) -> None:
        self.now += size
        self.most = max(self.most, self.now)
