"""`whytube train` and `whytube evaluate`."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from whytube.checks import check_int, unknown_name
from whytube.cli.config import Changes, Config, changed, read_changes
from whytube.cli.options import (
    Data,
    Device,
    Json,
    Model,
    Overwrite,
    Seed,
    console,
    errors,
    open_source,
    print_json,
    print_result,
    progress_bar,
    require_new,
    training_bar,
    write_json,
)
from whytube.errors import ArgumentError, WhytubeError
from whytube.files import make_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    import torch

    from whytube.classifiers.base import VideoClassifier
    from whytube.data.source import Source
    from whytube.training.recipe import Recipe

train = typer.Typer(help="Fit a classifier, then the explainer of a classifier.", no_args_is_help=True)

Out = Annotated[Path, typer.Option(help="Folder for weights, history and the state to resume from.")]
Resume = Annotated[bool, typer.Option("--resume", help="Go on from the state in --out.")]
Clips = Annotated[int | None, typer.Option(help="How many clips to show in all; by default the recipe's.")]
Distinct = Annotated[int | None, typer.Option(help="How many different clips to keep; by default the recipe's.")]
Rate = Annotated[float | None, typer.Option("--lr", help="Learning rate; by default the recipe's.")]
Curves = Annotated[bool, typer.Option("--tensorboard", help="Also write curves to OUT/tensorboard/.")]
History = Annotated[
    Path | None,
    typer.Option("--save", help="Also write the history of the run and what it reached to this file (JSON)."),
]


@train.command("classifier")
def train_classifier(
    out: Out,
    data: Data = "world",
    preset: Annotated[str, typer.Option(help="Architecture: c3d-resnet, c3d-resnet-small, i3d.")] = "c3d-resnet-small",
    pretrained: Annotated[
        str | None, typer.Option(help="Go on from the body of this classifier (and its architecture).")
    ] = None,
    fc_layers: Annotated[int | None, typer.Option(help="Of a c3d-resnet: 1 to 3, as in the paper's study.")] = None,
    recipe: Annotated[str, typer.Option(help="How to train: paper, demo, world, fine-tune, laptop, scratch.")] = "demo",
    clips: Clips = None,
    distinct: Distinct = None,
    lr: Rate = None,
    changes: Changes = None,
    config: Config = None,
    half: Annotated[bool, typer.Option("--half", help="Store filters as float16, at half the size.")] = False,
    test: Annotated[int, typer.Option(help="Clips of the test split to judge it on; 0 for all.")] = 480,
    device: Device = "auto",
    seed: Seed = 0,
    resume: Resume = False,
    tensorboard: Curves = False,
    report: History = None,
    as_json: Json = False,
    overwrite: Overwrite = False,
) -> None:
    """Train a classifier.

    Example: `whytube train classifier --data my_videos --out runs/mine --pretrained i3d-kinetics-400 --recipe laptop`
    """
    from whytube.data.source import clips_to_take
    from whytube.models import find_device, save_classifier, weights_fingerprint
    from whytube.training.classifier import FILE, fit_classifier
    from whytube.training.plan import plan_classifier
    from whytube.training.recipe import find_recipe
    from whytube.versions import provenance

    require_new(report, overwrite=overwrite)
    _require_new_run(out, ("classifier.safetensors", FILE), resume=resume, overwrite=overwrite)
    asked = read_changes(changes, clips=clips, distinct=distinct, lr=lr, seed=seed, fc_layers=fc_layers)
    where, (how, settings) = find_device(device), changed(find_recipe(recipe), asked)
    _check_settings(settings, preset, pretrained, how)
    blank = _network(["any", "other"], preset, pretrained, settings, seed)
    source = open_source(data, size=blank.size, frames=blank.frames, seed=seed)
    judged = clips_to_take(source, "test", test or None)
    model = _network(source.classes, preset, pretrained, settings, seed)
    origin = provenance(where, seed=seed) | {"data": Path(data).name, "recipe": recipe}
    origin |= {"pretrained": _name(pretrained), "config": _name(config)}
    plan = plan_classifier(model, source, how, where)
    with training_bar(plan, curves=out / "tensorboard" / "classifier" if tensorboard else None) as bar:
        history = fit_classifier(
            model,
            source,
            how,
            device=where,
            out_dir=out,
            resume=resume,
            progress=bar.record,
            on_step=bar.step,
            provenance=origin,
            pretrained=weights_fingerprint(pretrained) if pretrained else None,
        )
    path = out / "classifier.safetensors"
    save = partial(save_classifier, path, model, provenance=origin, recipe=asdict(how), half=half)
    metrics = _save_and_judge(save, source, judged, where, how.batch_size, seconds=history.records[-1].seconds)
    result = {"classifier": metrics, "history": history.to_dict(), "provenance": origin}
    write_json(result, report)
    said = f"{path}: {100 * metrics['test accuracy']:.1f} % of {judged} test clips right"
    print_result(said, result, as_json=as_json)


@train.command("explainer")
def train_explainer(
    out: Out,
    classifier: Annotated[
        str | None,
        typer.Option(help="A file, a name, or FILE.py:NAME of yours; by default classifier.safetensors in --out."),
    ] = None,
    data: Data = "world",
    objective: Annotated[str, typer.Option(help="paper, two-sided, ours or ours+class.")] = "ours",
    permuted_table: Annotated[
        bool, typer.Option("--permuted-table", help="A control: classes exchange their attributes first.")
    ] = False,
    recipe: Annotated[str, typer.Option(help="How to train: paper, converging, demo, laptop.")] = "demo",
    clips: Clips = None,
    distinct: Distinct = None,
    lr: Rate = None,
    seed: Seed = 0,
    changes: Changes = None,
    config: Config = None,
    resume: Resume = False,
    tensorboard: Curves = False,
    device: Device = "auto",
    report: History = None,
    as_json: Json = False,
    overwrite: Overwrite = False,
) -> None:
    """Train the explainer of a frozen classifier.

    Example: `whytube train explainer --out runs/mine --objective paper --recipe paper`
    """
    from whytube.data.source import PermutedTable
    from whytube.models import find_device, load_model
    from whytube.training.explainer import FILE, fit_explainer
    from whytube.training.plan import plan_explainer
    from whytube.training.recipe import EXPLAINER_RECIPES, find_recipe
    from whytube.versions import provenance

    require_new(report, overwrite=overwrite)
    _require_new_run(out, ("explainer.safetensors", FILE), resume=resume, overwrite=overwrite)
    asked = read_changes(changes, clips=clips, distinct=distinct, lr=lr, seed=seed)
    where, (how, others) = find_device(device), changed(find_recipe(recipe, EXPLAINER_RECIPES), asked)
    if others:
        raise unknown_name("field of a recipe", next(iter(others)), asdict(how))
    model = load_model(classifier or out / "classifier.safetensors", device=where).classifier
    source = open_source(data, size=model.size, frames=model.frames, seed=seed)
    origin = provenance(where, seed=seed) | {"data": Path(data).name, "recipe": recipe, "objective": objective}
    origin["config"] = _name(config)
    if permuted_table:
        source, origin["table"] = PermutedTable(source, seed=seed), "permuted"
    plan = plan_explainer(model, source, how, where)
    with training_bar(plan, curves=out / "tensorboard" / "explainer" if tensorboard else None) as bar:
        _, history = fit_explainer(
            model,
            source,
            how,
            objective=objective,
            device=where,
            out_dir=out,
            resume=resume,
            progress=bar.record,
            on_step=bar.step,
            provenance=origin,
        )
    result = {"history": history.to_dict(), "provenance": origin}
    write_json(result, report)
    said = f"{out / 'explainer.safetensors'}: loss {history.records[-1].loss:.3f}"
    print_result(said, result, as_json=as_json)


def evaluate(
    model: Model = "demo",
    data: Data = "world",
    count: Annotated[int, typer.Option(help="Test clips; 0 for all of them.")] = 96,
    negatives: Annotated[
        int | None, typer.Option(help="Most probable negative classes to ask about; by default 3, or all there are.")
    ] = None,
    other: Annotated[
        list[str] | None,
        typer.Option(
            "--with",
            metavar="FILE",
            help="A further explainer of the classifier: its file, or NAME=FILE. May be given again.",
        ),
    ] = None,
    peers: Annotated[
        str, typer.Option(help="Baselines, peers and controls of the model's own tubes, separated by commas.")
    ] = "grad-cam,centre,detector-box,true-box,random-tube,random-verified,random-attribute,shuffled-attributes",
    fills: Annotated[
        str, typer.Option(help="What regions are masked with: mean, blur, freeze, zero.")
    ] = "mean,blur,freeze",
    device: Device = "auto",
    seed: Seed = 0,
    config: Config = None,
    out: Annotated[Path | None, typer.Option(help="Also write the results to this file (JSON).")] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with an evaluation that was interrupted; needs its --out.")
    ] = False,
    as_json: Json = False,
    overwrite: Overwrite = False,
) -> None:
    """Measure explanations with the metrics of the paper.

    These are negative class accuracy, positive drop and concept accuracy. With --out, what is found is kept beside that
    file until all is done, so that an evaluation that was interrupted can go on.

    Example: `whytube evaluate --model runs/mine --data my_videos --count 0 --out results.json`
    """
    from whytube.cli.demo import print_results
    from whytube.data.source import clips_to_take
    from whytube.evaluation.methods import Called, Remembered, make_methods
    from whytube.evaluation.state import state_path
    from whytube.evaluation.suite import evaluate as run_suite
    from whytube.explaining import model_hash
    from whytube.models import find_device, load_explainer, load_model

    check_int(count, "count", 0)
    require_new(out, overwrite=overwrite)
    state = None if out is None else state_path(out)
    if resume and state is None:
        raise ArgumentError("`resume` needs `out`: the name of the file that the results go to")
    _require_new_state(state, resume=resume, overwrite=overwrite)
    where = find_device(device)
    explainer = load_model(model, device=where)
    classifier = explainer.classifier
    source = open_source(data, size=classifier.size, frames=classifier.frames, seed=seed)
    own = Remembered(explainer)
    methods: list[Any] = [own]
    for text in other or []:
        name, equals, path = text.rpartition("=")
        further = load_explainer(path, classifier).to(where)
        methods.append(Called(further, name) if equals else further)
    methods += make_methods([name for name in peers.split(",") if name], classifier, source, like=own, seed=seed)
    wanted = clips_to_take(source, "test", count or None)
    batch_size = _evaluated_at_a_time(classifier, where)
    told = f"{wanted} clips, {len(methods)} methods, regions masked with {fills}"
    errors.print(f"evaluating: {told}", highlight=False, soft_wrap=True)
    if state is not None:
        make_folder(state.parent, error=ArgumentError)
    with _kept(state), progress_bar("evaluating, clip") as progress:
        results = run_suite(
            methods,
            classifier,
            source,
            count=count or None,
            negatives=min(3, len(classifier.classes) - 1) if negatives is None else negatives,
            fills=fills.split(","),
            device=where,
            batch_size=batch_size,
            seed=seed,
            state=state,
            resume=resume,
            progress=progress,
        )
    results = results.with_provenance(
        model=Path(model).name, model_hash=model_hash(classifier), data=Path(data).name, config=_name(config)
    )
    write_json(results.to_dict(), out)
    if state is not None:
        state.unlink(missing_ok=True)
    if as_json:
        print_json(results.to_dict())
    else:
        print_results(results, console)


@contextmanager
def _kept(state: Path | None) -> Iterator[None]:
    """Say how to go on with an evaluation that is interrupted."""
    try:
        yield
    except KeyboardInterrupt as stop:
        if state is not None and state.exists():
            stop.add_note("--resume goes on from what was found so far")
        raise


def _evaluated_at_a_time(classifier: VideoClassifier, device: torch.device) -> int:
    """Return how many clips are evaluated between two saved states: on a CPU a large one takes a minute by itself."""
    if device.type != "cpu":
        return 16
    pixels = classifier.frames * classifier.size[0] * classifier.size[1]
    return max(1, min(16, 2**20 // pixels))


def _require_new_state(state: Path | None, *, resume: bool, overwrite: bool) -> None:
    """Keep what an interrupted evaluation found, unless it goes on or is given up."""
    if state is not None and resume and not state.exists():
        errors.print(f"there is no {state} to resume from: beginning anew", highlight=False, soft_wrap=True)
    require_new(state, overwrite=resume or overwrite, also=", go on with --resume")


def _require_new_run(out: Path, files: tuple[str, ...], *, resume: bool, overwrite: bool) -> None:
    """Keep the weights and the state of an earlier run, unless it goes on or is given up.

    files: the weights, then the state.
    """
    if resume and not (out / files[-1]).exists():
        errors.print(f"there is no run to resume in {out}: beginning anew", highlight=False, soft_wrap=True)
    require_new(*(out / name for name in files), overwrite=resume or overwrite, also=", go on with --resume")


def _save_and_judge(
    save: Callable[..., Path], source: Source, count: int, device: torch.device, batch_size: int, *, seconds: float
) -> dict[str, Any]:
    """Save a classifier, judge what its file holds, which may be rounded, and write that into the file.

    batch_size: that of the training, so that judging needs no more memory.
    """
    from whytube.models import load_classifier
    from whytube.training.classifier import evaluate_classifier

    saved = load_classifier(save(metrics={"seconds": seconds})).to(device)
    accuracy = evaluate_classifier(saved, source, "test", count, batch_size=batch_size).accuracy
    metrics = {"test accuracy": accuracy, "test clips": count, "seconds": seconds}
    save(metrics=metrics)
    return metrics


def _check_settings(settings: Iterable[str], preset: str, pretrained: str | None, recipe: Recipe) -> None:
    """Refuse what is neither a setting of the network nor, as a typo would have it, a field of the recipe."""
    from whytube.models import known_settings

    known = known_settings(preset, pretrained)
    for name in settings:
        if name not in known:
            raise unknown_name("field of the recipe or setting of the network", name, [*asdict(recipe), *known])


def _network(
    classes: Sequence[str], preset: str, pretrained: str | None, settings: dict[str, Any], seed: int
) -> VideoClassifier:
    from whytube.models import build_classifier, load_backbone

    try:
        if pretrained:
            return load_backbone(pretrained, classes, seed=seed, **settings)
        return build_classifier(preset, classes, seed=seed, **settings)
    except WhytubeError:
        raise
    except (TypeError, ValueError) as error:  # layers of torch say in their own way what they cannot be
        given = ", ".join(f"{name}={value}" for name, value in settings.items())
        raise ArgumentError(f"the network cannot be built with {given}: {error}") from error


def _name(path: str | Path | None) -> str | None:
    """Return the last part of a path: where things lie on this machine is nobody's business."""
    return None if path is None else Path(path).name
