"""`whytube train`: fit a classifier, then its explainer, and teach that more words."""

from __future__ import annotations

import os
import shutil
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from whytube.checks import unknown_name
from whytube.cli.config import Changes, Config, changed, read_changes
from whytube.cli.options import (
    Data,
    Device,
    Json,
    Overwrite,
    Seed,
    errors,
    last_part,
    open_source,
    print_result,
    progress_bar,
    require_new,
    resumable,
    training_bar,
    write_json,
)
from whytube.cli.processes import follow, number, processes
from whytube.errors import ArgumentError, WhytubeError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    import torch

    from whytube.classifiers.base import VideoClassifier
    from whytube.data.source import Source
    from whytube.search.response import Response
    from whytube.training.recipe import Recipe

train = typer.Typer(help="Fit a classifier, then its explainer, and teach that more words.", no_args_is_help=True)
train.callback()(follow)

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
    random_labels: Annotated[
        bool, typer.Option("--random-labels", help="A control: every training clip gets a class of chance first.")
    ] = False,
    half: Annotated[bool, typer.Option("--half", help="Store filters as float16, at half the size.")] = False,
    test: Annotated[int, typer.Option(help="Clips of the test split to judge it on; 0 for all.")] = 480,
    val: Annotated[
        int,
        typer.Option(metavar="N", help="Clips of the val split to judge it on too, to choose by; none unless said."),
    ] = 0,
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

    On four GPUs: `torchrun --nproc-per-node 4 -m whytube train classifier ...`, see docs/training.md.
    """
    from whytube.data.source import RandomLabels, clips_to_take
    from whytube.models import save_classifier, weights_fingerprint
    from whytube.training.classifier import FILE, fit_classifier
    from whytube.training.plan import plan_classifier
    from whytube.training.recipe import find_recipe
    from whytube.versions import provenance

    with processes(device) as (ranks, where):
        if ranks.first:
            require_new(report, overwrite=overwrite)
            _require_new_run(out, ("classifier.safetensors", FILE), resume=resume, overwrite=overwrite)
        asked = read_changes(changes, clips=clips, distinct=distinct, lr=lr, seed=seed, fc_layers=fc_layers)
        how, settings = changed(find_recipe(recipe), asked)
        _check_settings(settings, preset, pretrained, how)
        blank = _network(["any", "other"], preset, pretrained, settings, seed)
        source = open_source(data, size=blank.size, frames=blank.frames, seed=seed, again=how.distinct is None)
        judged = {"test": clips_to_take(source, "test", test or None)}
        judged |= {"val": clips_to_take(source, "val", val)} if val else {}
        model = _network(source.classes, preset, pretrained, settings, seed)
        origin = provenance(where, seed=seed) | {"data": Path(data).name, "recipe": recipe}
        origin |= {"pretrained": last_part(pretrained), "config": last_part(config)} | number(ranks)
        if random_labels:
            source, origin["labels"] = RandomLabels(source, seed=seed), "random"
        plan = plan_classifier(model, source, how, where, processes=ranks.size)
        curves = out / "tensorboard" / "classifier" if tensorboard and ranks.first else None
        with resumable(out / FILE), training_bar(plan, curves=curves) as bar:
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
                ranks=ranks,
                pretrained=weights_fingerprint(pretrained) if pretrained else None,
            )
    if not ranks.first:
        return
    path = out / "classifier.safetensors"
    save = partial(save_classifier, path, model, provenance=origin, recipe=asdict(how), half=half)
    metrics = _save_and_judge(save, source, judged, where, how.batch_size, seconds=history.records[-1].seconds)
    result = {"classifier": metrics, "history": history.to_dict(), "provenance": origin}
    write_json(result, report)
    said = f"{path}: {100 * metrics['test accuracy']:.1f} % of {judged['test']} test clips right"
    print_result(said, result, as_json=as_json)


@train.command("explainer")
def train_explainer(
    out: Out,
    classifier: Annotated[
        str | None,
        typer.Option(help="A file, a name, or FILE.py:NAME of yours; by default classifier.safetensors in --out."),
    ] = None,
    data: Data = "world",
    objective: Annotated[str, typer.Option(help="paper, paper-sgd, two-sided, ours or ours+class.")] = "ours",
    shapes: Annotated[
        str,
        typer.Option(
            help="Forms of a tube's boxes: multiple, those of the paper's section 3.6, or single, one cell of the last "
            "map, as in its section 3.2."
        ),
    ] = "multiple",
    response: Annotated[
        str | None,
        typer.Option(
            help="An explainer of the same classifier that has learnt what masking does: no masked runs are made."
        ),
    ] = None,
    permuted_table: Annotated[
        bool, typer.Option("--permuted-table", help="A control: classes exchange their attributes first.")
    ] = False,
    recipe: Annotated[str, typer.Option(help="How to train: paper, paper-tuned, converging, demo, laptop.")] = "demo",
    clips: Clips = None,
    distinct: Distinct = None,
    lr: Rate = None,
    boxes: Annotated[
        int | None,
        typer.Option(help="Clips per attribute whose boxes are learnt from; by default all there are, 5 in the world."),
    ] = None,
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

    Example: `whytube train explainer --out runs/mine --objective paper --recipe paper-tuned`

    On four GPUs: `torchrun --nproc-per-node 4 -m whytube train explainer ...`, see docs/training.md.
    """
    from whytube.data.source import PermutedTable
    from whytube.given import model_hash
    from whytube.models import load_model
    from whytube.training.explainer import FILE, fit_explainer
    from whytube.training.plan import plan_explainer
    from whytube.training.recipe import EXPLAINER_RECIPES, find_recipe
    from whytube.versions import provenance

    with processes(device) as (ranks, where):
        if ranks.first:
            require_new(report, overwrite=overwrite)
            _require_new_run(out, ("explainer.safetensors", FILE), resume=resume, overwrite=overwrite)
        asked = read_changes(changes, clips=clips, distinct=distinct, lr=lr, boxes=boxes, seed=seed)
        how, others = changed(find_recipe(recipe, EXPLAINER_RECIPES), asked)
        if others:
            raise unknown_name("field of a recipe", next(iter(others)), asdict(how))
        trained = out / "classifier.safetensors"
        if classifier is None and not trained.exists():
            raise ArgumentError(
                f"there is no {trained}: run `whytube train classifier` first, or name one, `classifier`"
            )
        model = load_model(classifier or trained, device=where).classifier
        source = open_source(data, size=model.size, frames=model.frames, seed=seed)
        learnt = _response_of(response, model, where) if response else None
        origin = provenance(where, seed=seed) | {
            "data": Path(data).name,
            "recipe": recipe,
            "objective": objective,
            "shapes": shapes,
        }
        taken = None if learnt is None else f"{last_part(response)} {model_hash(learnt)[:16]}"
        origin |= {"config": last_part(config), "response": taken} | number(ranks)
        if permuted_table:
            source, origin["table"] = PermutedTable(source, seed=seed), "permuted"
        told = replace(how, masked_runs=0) if learnt else how
        plan = plan_explainer(model, source, told, where, objective=objective, shapes=shapes, processes=ranks.size)
        curves = out / "tensorboard" / "explainer" if tensorboard and ranks.first else None
        with resumable(out / FILE), training_bar(plan, curves=curves) as bar:
            _, history = fit_explainer(
                model,
                source,
                how,
                objective=objective,
                shapes=shapes,
                response=learnt,
                device=where,
                out_dir=out,
                resume=resume,
                progress=bar.record,
                on_step=bar.step,
                provenance=origin,
                ranks=ranks,
            )
    if not ranks.first:
        return
    result = {"history": history.to_dict(), "provenance": origin}
    write_json(result, report)
    said = f"{out / 'explainer.safetensors'}: loss {history.records[-1].loss:.3f}"
    print_result(said, result, as_json=as_json)


def _response_of(name: str, classifier: VideoClassifier, device: torch.device) -> Response:
    """Take what masking does from another explainer of the same classifier."""
    from whytube.explainer.explainer import Explainer
    from whytube.models import fingerprint, load_model

    other = load_model(name, device=device)
    if fingerprint(other.classifier) != fingerprint(classifier):
        raise ArgumentError(f"`response` must be a model with the same classifier: that of {name} is another one")
    if not isinstance(other, Explainer) or other.response is None:
        raise ArgumentError(f"`response` must be a model that has learnt what masking does: {name} has not")
    return other.response


@train.command("words")
def train_words(
    data: Annotated[str, typer.Option(help="A folder of videos with boxes, see docs/data.md.")],
    out: Annotated[Path, typer.Option(help="New folder for the taught model.")],
    model: Annotated[str, typer.Option(help="Whose explainer to teach: a name, a folder, or FILE.py:NAME.")] = "demo",
    steps: Annotated[int | None, typer.Option(help="Steps of learning where words are.")] = None,
    seed: Seed = 0,
    device: Device = "auto",
    report: Annotated[Path | None, typer.Option("--save", help="Also write what was reached to this file.")] = None,
    as_json: Json = False,
    overwrite: Overwrite = False,
) -> None:
    """Teach a model where words are, and new words, from a few boxes.

    Example: `whytube train words --model demo --data my_videos --out runs/taught`
    """
    from whytube.explainer.explainer import Explainer
    from whytube.files import whole_folder
    from whytube.models import find_device, load_model, save_explainer
    from whytube.models.files import find_weights
    from whytube.training.teach import STEPS, teach
    from whytube.versions import provenance

    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise ArgumentError("`train words` takes seconds in one process: run it without torchrun")
    require_new(report, overwrite=overwrite)
    where = find_device(device)
    explainer = load_model(model, device=where)
    if not isinstance(explainer, Explainer):
        raise ArgumentError(
            f"{model} has no words to teach: fit an explainer first, see whytube train explainer --help"
        )
    source = open_source(
        data, size=explainer.classifier.size, frames=explainer.classifier.frames, seed=seed, again=True
    )
    with whole_folder(out, error=ArgumentError) as folder:
        with progress_bar("teaching") as progress:
            taught = teach(explainer, source, steps=steps or STEPS, seed=seed, on_step=progress)
        origin = provenance(where, seed=seed) | {"data": Path(data).name, "model": Path(model).name}
        if ".py:" not in model:
            shutil.copyfile(find_weights(model), folder / "classifier.safetensors")
        save_explainer(folder / "explainer.safetensors", taught.explainer, provenance=origin)
    told = {name: None if placed is None else asdict(placed) for name, placed in taught.placed.items()}
    result = {"words": [asdict(word) for word in taught.words], **told, "provenance": origin}
    write_json(result, report)
    print_result(f"{out}: {taught.sentence}", result, as_json=as_json)


def _require_new_run(out: Path, files: tuple[str, ...], *, resume: bool, overwrite: bool) -> None:
    """Keep the weights and the state of an earlier run, unless it goes on or is given up.

    files: the weights, then the state.
    """
    if resume and not (out / files[-1]).exists():
        errors.print(f"there is no run to resume in {out}: beginning anew", highlight=False, soft_wrap=True)
    require_new(*(out / name for name in files), overwrite=resume or overwrite, also=", go on with --resume")


def _save_and_judge(
    save: Callable[..., Path],
    source: Source,
    counts: Mapping[str, int],
    device: torch.device,
    batch_size: int,
    *,
    seconds: float,
) -> dict[str, Any]:
    """Save a classifier, judge what its file holds, which may be rounded, and write that into the file.

    counts: clips of each split to judge it on. batch_size: that of the training, so that judging needs no more memory.
    """
    from whytube.models import load_classifier
    from whytube.training.classifier import evaluate_classifier

    saved = load_classifier(save(metrics={"seconds": seconds})).to(device)
    metrics: dict[str, Any] = {}
    for split, count in counts.items():
        accuracy = evaluate_classifier(saved, source, split, count, batch_size=batch_size).accuracy
        metrics |= {f"{split} accuracy": accuracy, f"{split} clips": count}
    save(metrics=metrics | {"seconds": seconds})
    return metrics | {"seconds": seconds}


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
