"""wrap(): make any PyTorch network that classifies clips a VideoClassifier, so that it can be explained."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from whytube.checks import check_choice, check_int, fail, shape_of
from whytube.classifiers.base import Features, VideoClassifier, evaluating
from whytube.classifiers.layers import (
    Trial,
    choose_layers,
    hidden,
    layer_name,
    named_layers,
    watching,
    with_hidden,
)
from whytube.classifiers.layouts import LAYOUTS, Layout
from whytube.errors import ArgumentError, ModelError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

INPUT_LAYOUTS = ("CTHW", "TCHW")


def wrap(
    model: nn.Module,
    *,
    classes: Sequence[str],
    layers: Sequence[str | nn.Module] | None = None,
    frames: int = 16,
    size: int | tuple[int, int] = (112, 112),
    mean: Sequence[float] = (0.0, 0.0, 0.0),
    std: Sequence[float] = (1.0, 1.0, 1.0),
    preprocess: Callable[[torch.Tensor], Any] | None = None,
    input_layout: str = "CTHW",
    feature_layout: str | None = None,
    grid: tuple[int, int, int] | None = None,
    logits: Callable[[Any], torch.Tensor] | None = None,
) -> WrappedClassifier:
    """Make a network a classifier that can be explained. The network is neither changed nor copied.

    Args:
        model: takes clips and gives logits (B, C): a tensor, the first of a tuple, or a field `logits`.
        classes: the C class names, in the order of the logits.
        layers: names or modules of the layers whose features are used; by default see `choose_layers`.
        frames: T of the model's clips.
        size: their (H, W), or one number for squares.
        mean: subtracted from the red, green and blue of clips in [0, 1].
        std: by which they are then divided.
        preprocess: instead of mean, std and input_layout: a function of clips (B, 3, T, H, W) in [0, 1] that returns
            the model's input.
        input_layout: "CTHW" if the model takes (B, 3, T, H, W), "TCHW" if it takes (B, T, 3, H, W).
        feature_layout: of the layers' features, one of LAYOUTS; by default by their number of dimensions.
        grid: (T, H, W) of tokens; by default that of a convolution with as many cells.
        logits: a function that finds logits (B, C) in the model's output.

    >>> net = nn.Sequential(nn.Conv3d(3, 8, 4, stride=(2, 4, 4)), nn.ReLU(), nn.AdaptiveAvgPool3d(1), nn.Flatten())
    >>> wrapped = wrap(net.append(nn.Linear(8, 2)), classes=["jump", "run"], frames=8, size=(32, 32))
    >>> wrapped.layers, wrapped.map_shapes()
    (('1',), ((8, 3, 8, 8),))
    """
    if not isinstance(model, nn.Module) or isinstance(model, VideoClassifier):
        raise fail("model", "a torch.nn.Module that is no VideoClassifier yet", type(model).__name__)
    if preprocess is not None and (tuple(mean), tuple(std)) != ((0.0,) * 3, (1.0,) * 3):
        raise ArgumentError("give either `preprocess` or `mean` and `std`, not both")
    wrapped = WrappedClassifier(
        model,
        classes,
        frames=frames,
        size=(size, size) if isinstance(size, int) else size,
        mean=mean,
        std=std,
        preprocess=preprocess,
        input_layout=check_choice(input_layout, "input_layout", INPUT_LAYOUTS),
        find_logits=logits,
    )
    if feature_layout is not None:
        check_choice(feature_layout, "feature_layout", LAYOUTS)
    if grid is not None:
        if len(grid) != 3:
            raise fail("grid", "(T, H, W) in cells", repr(grid))
        grid = (check_int(grid[0], "grid[0]", 1), check_int(grid[1], "grid[1]", 1), check_int(grid[2], "grid[2]", 1))
    names = None if layers is None else list(dict.fromkeys(layer_name(model, layer) for layer in layers))
    if names == []:
        raise fail("layers", "at least one layer, or None for an automatic choice", "none")
    wrapped.layouts = _find_layers(wrapped, names, feature_layout, grid)
    return wrapped


class WrappedClassifier(VideoClassifier):
    """A network that was not made for whytube; see `wrap`.

    model: the network. layouts: of the layers whose features are used, by name, finer grid first.
    """

    architecture = "wrapped"

    def __init__(
        self,
        model: nn.Module,
        classes: Sequence[str],
        *,
        frames: int,
        size: tuple[int, int],
        mean: Sequence[float],
        std: Sequence[float],
        preprocess: Callable[[torch.Tensor], Any] | None,
        input_layout: str,
        find_logits: Callable[[Any], torch.Tensor] | None,
    ) -> None:
        super().__init__(classes, frames=frames, size=size)
        self.model, self.title = model, type(model).__name__
        self.preprocess, self.input_layout, self.find_logits = preprocess, input_layout, find_logits
        self.layouts: dict[str, Layout] = {}
        for name, values in (("mean", mean), ("std", std)):
            if len(values) != 3 or not all(value > 0 or name == "mean" for value in values):
                raise fail(name, "three numbers, of red, green and blue", repr(values))
            like = next(model.parameters(), torch.empty(0))
            buffer = torch.tensor(values, dtype=torch.float32, device=like.device).view(1, 3, 1, 1, 1)
            self.register_buffer(name, buffer, persistent=False)

    mean: torch.Tensor
    std: torch.Tensor

    @property
    def layers(self) -> tuple[str, ...]:
        """Names of the layers whose features are used, finer grid first."""
        return tuple(self.layouts)

    @property
    def settings(self) -> dict[str, Any]:
        """What is known of it; a network of another library cannot be built from this."""
        return {
            "model": type(self.model).__name__,
            "layers": list(self.layers),
            "frames": self.frames,
            "size": list(self.size),
            "mean": self.mean.flatten().tolist(),
            "std": self.std.flatten().tolist(),
        }

    def forward(self, clips: torch.Tensor) -> torch.Tensor:
        """Logits without hooks on any layer: (B, 3, T, H, W) -> (B, C)."""
        return self._logits(self.model(self._prepared(clips)), len(clips))

    def features(self, clips: torch.Tensor) -> Features:
        """Clips (B, 3, T, H, W) in [0, 1] -> logits (B, C) and the layers' maps (B, d, T, H, W).

        The network goes on from the maps, so that logits have gradients at the maps. Later layers that work in place do
        not change them.
        """
        prepared, batch = self._prepared(clips), len(clips)
        maps: dict[str, torch.Tensor] = {}

        def see(name: str, output: Any) -> Any:
            found = hidden(output)
            if found is None or name in maps:
                what = "gave no tensor" if found is None else "ran twice"
                raise ModelError(f"layer {name!r} {what} for these clips. Name another layer in `wrap`")
            layout = self.layouts[name]
            maps[name] = layout.to_map(found, batch).float()
            return with_hidden(output, layout.from_map(maps[name].to(found.dtype), found))

        with watching({name: self.model.get_submodule(name) for name in self.layouts}, see):
            output = self.model(prepared)
        missing = [name for name in self.layouts if name not in maps]
        if missing:
            raise ModelError(f"layer {missing[0]!r} did not run for these clips. Name another layer in `wrap`")
        return Features(self._logits(output, batch), tuple(maps[name] for name in self.layouts))

    def _prepared(self, clips: torch.Tensor) -> Any:
        """Input of the model, in new memory: a model may change its input."""
        self.check_clips(clips)
        given = self.preprocess(clips.clone()) if self.preprocess else self._normalised(clips)
        if not isinstance(given, torch.Tensor):
            return given
        return given.to(next((p.dtype for p in self.model.parameters() if p.is_floating_point()), given.dtype))

    def _normalised(self, clips: torch.Tensor) -> torch.Tensor:
        normalised = (clips - self.mean) / self.std
        return normalised.transpose(1, 2) if self.input_layout == "TCHW" else normalised

    def _logits(self, output: Any, batch: int) -> torch.Tensor:
        found = self.find_logits(output) if self.find_logits else _usual_logits(output)
        expected = (batch, len(self.classes))
        if not isinstance(found, torch.Tensor) or tuple(found.shape) != expected:
            got = f"shape {shape_of(found)}" if isinstance(found, torch.Tensor) else type(found).__name__
            raise ModelError(f"the model must give logits of shape {expected}, got {got}. See `classes` and `logits`")
        return found.float()


def _usual_logits(output: Any) -> Any:
    """Find logits in the usual places."""
    if isinstance(output, Mapping) and "logits" in output:
        return output["logits"]
    if hasattr(output, "logits"):
        return output.logits
    return output[0] if isinstance(output, (tuple, list)) and output else output


def _find_layers(
    wrapped: WrappedClassifier, names: list[str] | None, order: str | None, grid: tuple[int, int, int] | None
) -> dict[str, Layout]:
    """Run once on noise, then look up the named layers, or choose some, by their outputs."""
    noise = torch.rand(1, 3, wrapped.frames, *wrapped.size, generator=torch.Generator().manual_seed(0))
    clip = noise.to(wrapped.mean.device).requires_grad_(names is None)
    trial = Trial(wrapped.model, frames=wrapped.frames)
    with evaluating(wrapped), torch.inference_mode(False), torch.set_grad_enabled(names is None):
        try:
            logits = trial.run(lambda: wrapped(clip), keep=names)
        except ModelError:
            raise
        except Exception as error:
            took = "" if wrapped.preprocess else f" of layout {wrapped.input_layout}"
            raise ArgumentError(
                f"the model cannot run on a clip of {wrapped.frames} frames of {wrapped.size[0]} x {wrapped.size[1]}"
                f"{took}: {error}. Check frames, size, input_layout and preprocess"
            ) from error
        if names is not None:
            return named_layers(trial, names, order=order, grid=grid)
        return choose_layers(trial, logits, order=order, grid=grid)
