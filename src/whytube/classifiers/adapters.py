"""Wrap networks of torchvision and Hugging Face with the classes, sizes and normalisation that these libraries know."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch import nn

from whytube.checks import fail, unknown_name
from whytube.classifiers.wrap import WrappedClassifier, wrap
from whytube.errors import ArgumentError, ModelError

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

_TORCHVISION_LAYOUTS = {"SwinTransformer3d": "THWC", "MViT": "(THW)C"}
"""By class of network; the others are convolutional."""
_TORCHVISION_FRAMES = {"SwinTransformer3d": 32, "S3D": 64}
"""By class of network; the others take 16."""
_KINETICS = ((0.43216, 0.394666, 0.37645), (0.22803, 0.22145, 0.216989))
"""Mean and deviation of torchvision's convolutional networks for Kinetics."""
_TORCHVISION_NORMS = {
    "SwinTransformer3d": ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
    "MViT": ((0.45,) * 3, (0.225,) * 3),
}
"""Mean and deviation by class of network, where they are others."""
_PROCESSOR = "preprocessor_config.json"


def from_torchvision(
    model: nn.Module | str,
    *,
    weights: Any = None,
    classes: Sequence[str] | None = None,
    layers: Sequence[str | nn.Module] | None = None,
    frames: int | None = None,
    size: tuple[int, int] | None = None,
    mean: Sequence[float] | None = None,
    std: Sequence[float] | None = None,
) -> WrappedClassifier:
    """Wrap a video network of torchvision: r3d_18, mc3_18, r2plus1d_18, s3d, mvit_v1_b, mvit_v2_s, swin3d_t, ...

    Args:
        model: its name in torchvision, or the network itself.
        weights: as torchvision names them: "DEFAULT", or a member of the weights' enumeration. If `model` is a name,
            they are loaded (torchvision may download them). They tell classes, size and normalisation.
        classes: the class names; by default those of the weights.
        layers: as for `wrap`.
        frames: T; by default 32 for Swin, 64 for S3D, 16 for others.
        size: (H, W); by default that of the weights, without weights 112 x 112 for ResNets, 224 x 224 for others.
            Frames are resized whole, not cropped.
        mean: as for `wrap`; by default that of the weights, without weights what torchvision publishes for networks of
            this class.
        std: as mean.
    """
    if isinstance(model, str):
        network, found = _torchvision_model(model, weights)
    elif isinstance(weights, str):
        raise fail("weights", "a member of the weights' enumeration where the network itself is given", repr(weights))
    else:
        network, found = model, weights
    kind = type(network).__name__
    preset = None if found is None else found.transforms()
    usual = _TORCHVISION_NORMS.get(kind, _KINETICS) if preset is None else (preset.mean, preset.std)
    if size is None and preset is not None:
        size = (preset.crop_size[0], preset.crop_size[-1])
    if classes is None:
        if found is None:
            raise ArgumentError("give `classes`, the class names in the order of the logits; only weights know them")
        classes = found.meta["categories"]
    return wrap(
        network,
        classes=classes,
        layers=layers,
        frames=frames or _TORCHVISION_FRAMES.get(kind, 16),
        size=size or ((112, 112) if kind == "VideoResNet" else (224, 224)),
        mean=mean or usual[0],
        std=std or usual[1],
        feature_layout=_TORCHVISION_LAYOUTS.get(kind),
    )


def _torchvision_model(name: str, weights: Any) -> tuple[nn.Module, Any]:
    """Build a network by name, with weights or untrained: (network, member of the weights' enumeration)."""
    try:
        from torchvision import models
    except ImportError as error:
        raise ModelError(
            "torchvision's networks need torchvision, which is not installed: pip install torchvision"
        ) from error
    known = models.list_models(module=models.video)
    if name not in known:
        raise unknown_name("video network of torchvision", name, known)
    if isinstance(weights, str):
        members = models.get_model_weights(name).__members__
        wanted = weights.rpartition(".")[2]
        if wanted not in members:
            raise unknown_name(f"weights of {name}", wanted, members)
        weights = members[wanted]
    return models.get_model(name, weights=weights), weights


def from_hugging_face(
    model: nn.Module | str | os.PathLike[str],
    *,
    classes: Sequence[str] | None = None,
    layers: Sequence[str | nn.Module] | None = None,
    mean: Sequence[float] | None = None,
    std: Sequence[float] | None = None,
) -> WrappedClassifier:
    """Wrap a network of `AutoModelForVideoClassification`: VideoMAE, TimeSformer, ViViT and others like them.

    Args:
        model: a folder that `save_pretrained` wrote, a name on the hub (which downloads it), or the network itself.
        classes: the class names; by default `id2label` of the network's config.
        layers: as for `wrap`.
        mean: as for `wrap`; by default that in preprocessor_config.json beside the weights. Needed if there is none.
        std: as mean.
    """
    network = model if isinstance(model, nn.Module) else _hugging_face_model(model)
    config: Any = getattr(network, "config", None)
    missing = [name for name in ("num_frames", "image_size", "id2label") if not hasattr(config, name)]
    if missing:
        raise fail("model", "a video classifier of transformers", f"one whose config has no {missing[0]}")
    if mean is None or std is None:
        usual = _normalisation(model if not isinstance(model, nn.Module) else config._name_or_path)
        if usual is None:
            raise ArgumentError(f"give `mean` and `std`: there is no {_PROCESSOR} beside the weights that says them")
        mean, std = mean or usual[0], std or usual[1]
    side = config.image_size
    return wrap(
        network,
        classes=classes or [config.id2label[place] for place in sorted(config.id2label)],
        layers=layers,
        frames=config.num_frames,
        size=(side, side) if isinstance(side, int) else tuple(side),
        mean=mean,
        std=std,
        input_layout="TCHW",
        # TimeSformer alone goes through time first, then from place to place.
        feature_layout="(HWT)C" if config.model_type == "timesformer" else "(THW)C",
    )


def _hugging_face_model(place: str | os.PathLike[str]) -> nn.Module:
    try:
        from transformers import AutoModelForVideoClassification
    except ImportError as error:
        raise ModelError("this needs transformers, which is not installed: pip install 'whytube[hf]'") from error
    try:
        network: nn.Module = AutoModelForVideoClassification.from_pretrained(place)
    except (OSError, ValueError) as error:
        raise ModelError(f"cannot read {place} as a video classifier of transformers: {error}") from error
    return network


def _normalisation(place: str | os.PathLike[str]) -> tuple[list[float], list[float]] | None:
    """Mean and deviation for clips in [0, 1], from the file beside the weights; None where there is none.

    The library normalises bytes * factor - offset; our clips are bytes / 255.
    """
    path: str | None = str(Path(place) / _PROCESSOR)
    if not Path(place).is_dir():
        from transformers.utils import cached_file

        path = cached_file(str(place), _PROCESSOR, _raise_exceptions_for_missing_entries=False) if place else None
    if path is None or not Path(path).is_file():
        return None
    try:
        said = json.loads(Path(path).read_text(encoding="utf-8"))
        factor = 255 * said.get("rescale_factor", 1 / 255) if said.get("do_rescale", True) else 255.0
        offset = 1.0 if said.get("offset", False) else 0.0
        plain = not said.get("do_normalize", True)
        means, deviations = ([0.0] * 3, [1.0] * 3) if plain else (said["image_mean"], said["image_std"])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ModelError(f"cannot use {path}: it says no image_mean and image_std ({error})") from error
    return [(offset + m) / factor for m in means], [d / factor for d in deviations]
