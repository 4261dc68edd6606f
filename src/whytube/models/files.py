"""Classifiers and explainers on disk: save and load them, by path or by the name of a shipped model.

A classifier's file holds its weights and a card: how to build it, how it was trained, how good it is. An explainer's
file holds scores, attribute names and the table, and a fingerprint of the classifier that they were trained for.
"""

from __future__ import annotations

import difflib
import hashlib
import json
from dataclasses import asdict, dataclass, field, replace
from inspect import signature
from pathlib import Path
from reprlib import repr as short
from typing import TYPE_CHECKING, Any, Required, TypedDict, TypeVar, Unpack

import torch

from whytube.checks import check_choice, check_int, check_probability, unknown_name
from whytube.classifiers.c3d_resnet import C3DResNet
from whytube.classifiers.i3d import I3D
from whytube.documents import build
from whytube.errors import ArgumentError, ModelError
from whytube.explainer.explainer import OBJECTIVES, Explainer
from whytube.explainer.fit import FitCurve  # noqa: TC001 (a card is built by its annotations)
from whytube.explainer.scores import SHAPE_SETS, build_scores
from whytube.models.stored import load_tensors, read_header, save_tensors
from whytube.search.response import Response

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence

    from whytube.classifiers.base import VideoClassifier

ARCHITECTURES: dict[str, type[VideoClassifier]] = {C3DResNet.architecture: C3DResNet, I3D.architecture: I3D}
SHIPPED = Path(__file__).parent
LAST_TENSORS = 4
"""How many tensors tell wrapped networks apart."""
LONGEST = 400
"""Letters of an error of torch that are repeated."""
UNFIT = "its weights do not fit its settings"

Stored = TypeVar("Stored")


class Told(TypedDict, total=False):
    """What a file says about where its weights come from.

    provenance: data, commit, machine. recipe: how they were trained. metrics: what they reached.
    """

    provenance: Required[Mapping[str, Any]]
    recipe: Mapping[str, Any] | None
    metrics: Mapping[str, Any] | None


def _plain(told: Told) -> dict[str, Any]:
    """Give every entry, as JSON can hold it."""
    recipe = told.get("recipe")
    return {
        "recipe": None if recipe is None else dict(recipe),
        "metrics": dict(told.get("metrics") or {}),
        "provenance": dict(told["provenance"]),
    }


@dataclass(frozen=True)
class Card:
    """What a classifier's file says beside its weights.

    architecture, settings, classes: how to build it. recipe: how it was trained. metrics: what it reached.
    provenance: on what data, at which commit, on which machine.
    """

    architecture: str
    settings: dict[str, Any]
    classes: tuple[str, ...]
    recipe: dict[str, Any] | None = None
    metrics: dict[str, Any] = field(default_factory=dict)
    provenance: dict[str, Any] = field(default_factory=dict)


RESPONSE = "response."
"""What the names of a response's tensors begin with in an explainer's file."""


@dataclass(frozen=True)
class ResponseCard:
    """How to build the response that an explainer's file holds beside its scores."""

    cut: str
    channels: int
    cost: float

    def __post_init__(self) -> None:
        check_int(self.channels, "channels", 1)
        check_probability(self.cost, "cost")


@dataclass(frozen=True)
class ExplainerCard:
    """What an explainer's file says beside its scores; `classifier` is the fingerprint of the one that it explains.

    fit: how fits are made of places, and how reliable they are; None where there were too few boxes. shapes: a name of
    SHAPE_SETS, which files of earlier versions do not have.
    """

    objective: str
    classes: tuple[str, ...]
    attributes: tuple[str, ...]
    table: list[list[int]]
    classifier: str | None = None
    recipe: dict[str, Any] | None = None
    metrics: dict[str, Any] = field(default_factory=dict)
    provenance: dict[str, Any] = field(default_factory=dict)
    fit: FitCurve | None = None
    response: ResponseCard | None = None
    shapes: str = "multiple"

    def __post_init__(self) -> None:
        check_choice(self.shapes, "shapes", SHAPE_SETS)
        if self.objective not in OBJECTIVES:
            raise unknown_name("objective", self.objective, OBJECTIVES)
        if len({len(row) for row in self.table}) > 1:
            raise ArgumentError("`table` must have rows of one length")
        if self.fit is not None and len(self.fit.boxes) != len(self.attributes):
            raise ArgumentError("`fit` must have a number of boxes for every attribute")


def shipped_names() -> list[str]:
    """Names of the models that come with the package."""
    return sorted(file.parent.name for file in SHIPPED.glob("*/classifier.safetensors"))


def find_weights(path_or_name: str | os.PathLike[str]) -> Path:
    """Path of a classifier's file, from the name of a shipped model, a model's folder, or that path itself."""
    path = Path(path_or_name)
    if len(path.parts) == 1 and path.name in shipped_names():
        path = SHIPPED / path.name
    elif len(path.parts) == 1 and not path.suffix and not path.exists():
        here = [file.parent.name for file in Path().glob("*/classifier.safetensors")]
        raise unknown_name("model", path.name, [*shipped_names(), *here])
    if path.is_dir() and not (path / "classifier.safetensors").exists():
        raise ModelError(f"cannot use the folder {path}: expected classifier.safetensors in it, there is no such file")
    if not path.exists():
        known = f". Name a shipped model ({', '.join(shipped_names())}), or a folder or file of a trained one"
        raise ModelError(f"cannot read {path}: there is no such file{nearest(path) or known}")
    return path / "classifier.safetensors" if path.is_dir() else path


def nearest(path: Path) -> str:
    """Suggest what lies beside a path that does not exist, and is called nearly so."""
    try:
        beside = [other.name for other in path.parent.iterdir()]
    except OSError:
        return ""
    near = difflib.get_close_matches(path.name, beside, n=1, cutoff=0.6)
    return f". Did you mean {path.with_name(near[0])}?" if near else ""


def load_saved(path_or_name: str | os.PathLike[str]) -> Explainer | VideoClassifier:
    """Read a model: of a name or a folder the explainer, where there is one; of a file the classifier alone."""
    path = find_weights(path_or_name)
    classifier = load_classifier(path).for_inference()
    explainer = path.with_name("explainer.safetensors")
    file_given = path == Path(path_or_name)
    return classifier if file_given or not explainer.exists() else load_explainer(explainer, classifier)


def save_classifier(
    path: str | os.PathLike[str],
    model: VideoClassifier,
    *,
    half: bool = False,
    **told: Unpack[Told],
) -> Path:
    """Write a classifier as one safetensors file with its card.

    told: see Told.
    half: store the filters of the body as float16. The head stays float32: explainers know their classifier by it.
    """
    if model.architecture not in ARCHITECTURES:
        raise ModelError(
            f"cannot save a classifier of architecture {model.architecture!r}, as it could not be built again. "
            "Save the weights with the library that the network comes from, and the explainer with save_explainer"
        )
    tensors = model.state_dict()
    if half:
        tensors = {name: _halved(name, tensor) for name, tensor in tensors.items()}
    card = Card(model.architecture, model.settings, model.classes, **_plain(told))
    return save_tensors(path, tensors, asdict(card), kind="classifier")


def load_classifier(path_or_name: str | os.PathLike[str]) -> VideoClassifier:
    """Read a classifier, ready to use (evaluation mode, float32)."""
    path, tensors, card = _read(path_or_name)
    model = _build(path, card, card.classes)
    fill(model, tensors, path, UNFIT)
    return model.eval()


def load_backbone(
    path_or_name: str | os.PathLike[str], classes: Sequence[str], *, seed: int = 0, **changes: Any
) -> VideoClassifier:
    """Read a classifier without its head, to train it for other classes (as the paper, UCF101-24 to Olympic Sports).

    seed: decides the weights of the new head. changes: replace stored settings.
    """
    path, tensors, card = _read(path_or_name)
    model = _build(path, replace(card, settings=card.settings | changes), classes, seed=seed)
    kept = {name: tensor for name, tensor in tensors.items() if not name.startswith("head.")}
    fresh = {name: tensor for name, tensor in model.state_dict().items() if name.startswith("head.")}
    fill(model, kept | fresh, path, UNFIT)
    return model


def read_card(path_or_name: str | os.PathLike[str]) -> Card:
    """Read what a classifier's file says about it, without the weights."""
    path = find_weights(path_or_name)
    return _card(path, read_header(path, kind="classifier"))


def weights_fingerprint(path_or_name: str | os.PathLike[str]) -> str:
    """First 16 digits of the SHA-256 of the names and values of all tensors in a classifier's file."""
    _, tensors, _ = _read(path_or_name)
    digest = hashlib.sha256()
    for name, tensor in sorted(tensors.items()):
        digest.update(name.encode())
        digest.update(tensor.contiguous().numpy().data)
    return digest.hexdigest()[:16]


def fingerprint(classifier: VideoClassifier) -> str:
    """First 16 digits of the SHA-256 of the `head.*` tensors; without a head, of the last tensors and the settings."""
    digest = hashlib.sha256()
    state = classifier.state_dict()
    last = [tensor for name, tensor in sorted(state.items()) if name.startswith("head.")]
    if not last:
        last = list(state.values())[-LAST_TENSORS:]
        digest.update(json.dumps(classifier.settings, sort_keys=True).encode())
    for tensor in last:
        digest.update(tensor.detach().cpu().float().contiguous().numpy().tobytes())
    return digest.hexdigest()[:16]


def save_explainer(path: str | os.PathLike[str], explainer: Explainer, **told: Unpack[Told]) -> Path:
    """Write an explainer without its classifier; told: see Told."""
    header = {
        "objective": explainer.objective,
        "classifier": fingerprint(explainer.classifier),
        "classes": list(explainer.classes),
        "attributes": list(explainer.attribute_names),
        "table": explainer.table.int().tolist(),
        "fit": None if explainer.fit is None else asdict(explainer.fit),
        "shapes": explainer.scores.forms.shape_set,
        **_plain(told),
    }
    tensors, response = explainer.scores.state_dict(), explainer.response
    if response is not None:
        header["response"] = asdict(ResponseCard(response.cut, response.channels, response.cost))
        tensors |= {f"{RESPONSE}{name}": tensor for name, tensor in response.state_dict().items()}
    return save_tensors(path, tensors, header, kind="explainer")


def load_explainer(path: str | os.PathLike[str], classifier: VideoClassifier) -> Explainer:
    """Read an explainer that was trained for this classifier; another's is refused."""
    tensors, header = load_tensors(path, kind="explainer")
    told = read_as(ExplainerCard, header, path, "its header is damaged")
    if told.classes != classifier.classes:
        raise ModelError(f"cannot use {path}: it explains other classes than the classifier's")
    if told.classifier not in (None, fingerprint(classifier)):
        raise ModelError(f"cannot use {path}: it was trained for another classifier. Train an explainer for this one")
    bias, wrong = "class_bias" in tensors, "it does not fit the classifier's maps"
    scores = build_scores(classifier, len(told.attributes), shapes=told.shapes, class_bias=bias)
    # Before `paper` had a class bias and standardised features, the name stood for what is `paper-sgd` now.
    objective = "paper-sgd" if told.objective == "paper" and not bias else told.objective
    own = {name: tensors.pop(name) for name in list(tensors) if told.response is not None and name.startswith(RESPONSE)}
    fill(scores, tensors, path, wrong)
    response = None if told.response is None else _response(told.response, own, classifier, path, wrong)
    try:
        table = torch.tensor(told.table, dtype=torch.bool)
        return Explainer(classifier, scores.eval(), told.attributes, table, objective, told.fit, response)
    except (RuntimeError, ValueError) as error:
        raise ModelError(f"cannot use {path}: {wrong}. {_one_line(error)}") from error


def _response(
    card: ResponseCard,
    tensors: Mapping[str, torch.Tensor],
    classifier: VideoClassifier,
    path: str | os.PathLike[str],
    wrong: str,
) -> Response:
    """Build the response that an explainer's file holds; tensors: those that begin with RESPONSE."""
    if card.cut not in classifier.cuts:
        raise ModelError(f"cannot use {path}: {wrong}. It was trained for the stage {short(card.cut)}")
    keep = tensors.get(f"{RESPONSE}keep")
    if keep is None or card.channels != len(keep):  # before memory is taken for as many
        raise ModelError(f"cannot use {path}: {wrong}. Its response is not of {card.channels} channels")
    response = Response(card.cut, card.channels, card.cost)
    fill(response, {name.removeprefix(RESPONSE): tensor for name, tensor in tensors.items()}, path, wrong)
    return response


def _halved(name: str, tensor: torch.Tensor) -> torch.Tensor:
    """Turn filters into float16; vectors (normalisations, biases) are few and may exceed its range."""
    return tensor.half() if tensor.is_floating_point() and tensor.ndim > 1 and not name.startswith("head.") else tensor


def _read(path_or_name: str | os.PathLike[str]) -> tuple[Path, dict[str, torch.Tensor], Card]:
    path = find_weights(path_or_name)
    tensors, header = load_tensors(path, kind="classifier")
    return path, tensors, _card(path, header)


def _card(path: Path, header: dict[str, Any]) -> Card:
    if header.pop("base", None) is not None:
        raise ModelError(
            f"cannot use {path}: it holds only what differs from other weights, a format of earlier versions. "
            "Make a whole file of it with studies/whole_weights.py of whytube's source"
        )
    return read_as(Card, header, path, "its card is damaged")


def _build(path: Path, card: Card, classes: Sequence[str], *, seed: int = 0) -> VideoClassifier:
    if card.architecture not in ARCHITECTURES:
        known = ", ".join(ARCHITECTURES)
        told = f"unknown architecture {short(card.architecture)}; this whytube knows {known}"
        raise ModelError(f"cannot use {path}: {told}")
    try:
        return construct(card.architecture, classes, settings=card.settings, seed=seed)
    except (ArithmeticError, AttributeError, RuntimeError, TypeError, ValueError) as error:  # the last: ArgumentError
        # Layers of torch say in their own ways what they cannot be.
        raise ModelError(f"cannot use {path}: {_one_line(error)}") from error


def read_as(form: type[Stored], header: Mapping[str, Any], path: str | os.PathLike[str], wrong: str) -> Stored:
    """Make a dataclass of what a file says about itself; `wrong` begins the error where it does not fit."""
    try:
        return build(form, header, "header")
    except ArgumentError as error:
        raise ModelError(f"cannot use {path}: {wrong} ({error})") from error


def fill(
    module: torch.nn.Module, tensors: Mapping[str, torch.Tensor], path: str | os.PathLike[str], wrong: str
) -> None:
    """Copy a file's tensors into a module; `wrong` begins the error where they are not the module's own."""
    for name, tensor in module.state_dict().items():
        if name in tensors and tensors[name].is_floating_point() != tensor.is_floating_point():
            raise ModelError(f"cannot use {path}: {wrong}. {name!r} is {tensors[name].dtype}, expected {tensor.dtype}")
    try:
        module.load_state_dict(dict(tensors))
    except RuntimeError as error:
        raise ModelError(f"cannot use {path}: {wrong}. {_one_line(error)}") from error


def _one_line(error: Exception) -> str:
    text = " ".join(str(error).split())
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} ..."


def construct(architecture: str, classes: Sequence[str], *, settings: dict[str, Any], seed: int = 0) -> VideoClassifier:
    """Build a network of a named architecture without touching the global random state."""
    known = settings_of(architecture)
    for name in settings:
        if name not in known:
            raise unknown_name(f"setting of {architecture}", name, known)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return ARCHITECTURES[architecture](classes, **settings)


def forget_weights(classifier: VideoClassifier, *, seed: int = 0) -> None:
    """Give a classifier the weights of a new one of its architecture, in place: a control that has learned nothing."""
    if classifier.architecture not in ARCHITECTURES:
        known = ", ".join(ARCHITECTURES)
        raise ModelError(f"cannot make the weights of {classifier.title} random: only those of {known} can be")
    fresh = construct(classifier.architecture, classifier.classes, settings=classifier.settings, seed=seed)
    folded = classifier.state_dict().keys() != fresh.state_dict().keys()  # as `load_saved` has them
    classifier.load_state_dict((fresh.for_inference() if folded else fresh).state_dict())


def settings_of(architecture: str) -> list[str]:
    """Return the names of the settings of an architecture."""
    return [name for name in signature(ARCHITECTURES[architecture]).parameters if name != "classes"]
