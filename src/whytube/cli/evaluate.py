"""`whytube evaluate`: measure explanations."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from whytube.checks import check_int
from whytube.cli.config import Config  # noqa: TC001 - typer reads it at run time
from whytube.cli.options import (
    Data,
    Device,
    Json,
    Model,
    Overwrite,
    Seed,
    console,
    errors,
    last_part,
    open_source,
    print_json,
    progress_bar,
    require_new,
    resumable,
    write_json,
)
from whytube.errors import ArgumentError
from whytube.files import make_folder

if TYPE_CHECKING:
    import torch

    from whytube.classifiers.base import VideoClassifier
    from whytube.evaluation.state import Share


def evaluate(
    model: Model = "demo",
    data: Data = "world",
    split: Annotated[str, typer.Option(help="Clips to judge on: test; val while you develop.")] = "test",
    count: Annotated[int, typer.Option(help="Clips of the split; 0 for all of them.")] = 96,
    negatives: Annotated[
        str | None,
        typer.Option(
            metavar="N",
            help="Most probable negative classes to ask about, or all: every class but A, as in Fig. 5 of the paper. "
            "By default 3.",
        ),
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
        str,
        typer.Option(
            help="Baselines, peers and controls of the model's own tubes, separated by commas. "
            "all-peers: every peer, one shot and verified."
        ),
    ] = "grad-cam,centre,detector-box,true-box,random-tube,random-verified,random-attribute,shuffled-attributes,"
    "ours-unverified,paper+verified",
    effort: Annotated[
        str,
        typer.Option(
            "--effort", metavar="EFFORT", help="Tubes that ours tries: quick, normal, thorough, or their number."
        ),
    ] = "normal",
    regions: Annotated[
        bool, typer.Option("--regions", help="Explain without words, also a model that has some.")
    ] = False,
    fit_weight: Annotated[
        float, typer.Option(help="Weight of how well a word fits, against how much its tube moves the decision.")
    ] = 1.0,
    tubes: Annotated[
        int | None,
        typer.Option(help="Tubes that verified peers and random-verified try; by default as many as cost the same."),
    ] = None,
    own_methods: Annotated[
        list[str] | None,
        typer.Option(
            "--method",
            metavar="FILE.py:NAME",
            help="A method of your own, see docs/benchmark.md. May be given again.",
        ),
    ] = None,
    fills: Annotated[
        str,
        typer.Option(
            help="What regions are masked with: mean, blur, freeze; zero, still, shift and noise, which do not count. "
            "zero is the paper's, and stands in a column of its own."
        ),
    ] = "mean,blur,freeze,zero",
    k: Annotated[
        int,
        typer.Option(
            "-k", "--k", metavar="N", help="Pairs of word and region that every method gives; each is evaluated alone."
        ),
    ] = 1,
    area: Annotated[
        float, typer.Option(help="Largest share of the clip that a tube may cover; larger ones are shrunk. 1 for any.")
    ] = 0.1,
    curves: Annotated[
        bool, typer.Option("--curves", help="Also measure insertion and deletion over the regions; takes longer.")
    ] = False,
    judge_with: Annotated[
        str | None,
        typer.Option(metavar="MODEL", help="Also mask the same regions on this model, of the same classes and clips."),
    ] = None,
    random_weights: Annotated[
        bool, typer.Option("--random-weights", help="A control: the classifier forgets what it learned first.")
    ] = False,
    device: Device = "auto",
    seed: Seed = 0,
    config: Config = None,
    out: Annotated[Path | None, typer.Option(help="Also write the results to this file (JSON).")] = None,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume",
            help="Go on with an evaluation that was interrupted, or put its shares together; needs its --out.",
        ),
    ] = False,
    share: Annotated[
        str | None,
        typer.Option(
            metavar="I/N",
            help="Judge every Nth batch of clips alone, from the Ith on, in one of N processes. The same command with "
            "--resume instead, once all have ended, puts the shares together.",
        ),
    ] = None,
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
    from whytube.evaluation.methods import Called, Remembered, available, load_method, make_methods
    from whytube.evaluation.state import shares_of, state_path
    from whytube.evaluation.suite import evaluate as run_suite
    from whytube.explainer.explainer import Explainer
    from whytube.given import model_hash
    from whytube.models import find_device, forget_weights, load_explainer, load_model
    from whytube.search.anytime import Effort, find_effort
    from whytube.search.response import untrained_response
    from whytube.search.verify import SELECTING_FILLS

    check_int(count, "count", 0)
    check_int(k, "k", 1)
    require_new(out, overwrite=overwrite)
    state, part = None if out is None else state_path(out), None if share is None else _share(share)
    if state is None and (resume or part):
        name = "resume" if resume else "share"
        raise ArgumentError(f"`{name}` needs `out`: the name of the file that the results go to")
    kept = state if state is None or part is None else part.path(state)
    _require_new_state(kept, state, resume=resume, overwrite=overwrite)
    where = find_device(device)
    explainer = load_model(model, device=where)
    classifier = explainer.classifier
    source = open_source(data, size=classifier.size, frames=classifier.frames, seed=seed)
    if random_weights:
        forget_weights(classifier, seed=seed)
    other_model = None if judge_with is None else load_model(judge_with, device=where).classifier
    how = Effort(tubes=find_effort(effort), area=area, fit_weight=fit_weight, seed=seed)
    explainer = explainer.regions(how) if regions else explainer.with_effort(how)
    response = explainer.response or untrained_response(classifier)
    cost = explainer.effort.masked_clips(response if explainer.verifies else None)
    tubes = round(cost / len(SELECTING_FILLS)) if tubes is None else tubes
    own = Remembered(explainer)
    methods: list[Any] = [own]
    known = {explainer.name: explainer} if isinstance(explainer, Explainer) else {}
    for text in other or []:
        name, equals, path = text.rpartition("=")
        further = load_explainer(path, classifier).to(where).with_effort(explainer.effort)
        methods.append(Called(further, name) if equals else further)
        known[methods[-1].name] = further
    names, table = source.attribute_names, source.table
    for text in own_methods or []:
        methods.append(load_method(text, classifier, attribute_names=names, table=table, seed=seed))
    wanted_peers = [name for name in peers.split(",") if name]
    there = available(wanted_peers, known)
    for name in (name for name in wanted_peers if name not in there):
        errors.print(
            f"without {name}: there is no explainer to make it of, see --with", highlight=False, soft_wrap=True
        )
    methods += make_methods(there, classifier, source, like=own, explainers=known, seed=seed, tubes=tubes, area=area)
    asked = _asked(negatives, len(classifier.classes))
    wanted = clips_to_take(source, split, count or None)
    batch_size = _evaluated_at_a_time(classifier, where)
    of_each = f"{asked} negative{'' if asked == 1 else 's'} of each"
    told = f"{wanted} clips of {data}, {of_each}, {len(methods)} methods, regions masked with {fills}"
    errors.print(f"evaluating: {told}", highlight=False, soft_wrap=True)
    if state is not None:
        make_folder(state.parent, error=ArgumentError)
    with resumable(kept), progress_bar("evaluating, clip") as progress:
        results = run_suite(
            methods,
            classifier,
            source,
            split=split,
            count=count or None,
            negatives=asked,
            fills=fills.split(","),
            k=k,
            area=area,
            curves=curves,
            judge_with=other_model,
            device=where,
            batch_size=batch_size,
            seed=seed,
            state=state,
            resume=resume,
            share=part,
            progress=progress,
        )
    searched = {"effort": how.tubes, "fit_weight": how.fit_weight, "regions": regions} | {
        "tubes of verified peers": tubes,
        "fills": list(SELECTING_FILLS),
    }
    results = results.with_provenance(
        search=searched,
        model=Path(model).name,
        model_hash=model_hash(classifier),
        data=Path(data).name,
        config=last_part(config),
    )
    if random_weights:
        results = results.with_provenance(weights="random")
    if part is None:
        write_json(results.to_dict(), out)
        for done in [] if state is None else [state, *shares_of(state)]:
            done.unlink(missing_ok=True)
    else:
        text = f"kept in {kept}; once all {part.of} shares are, --resume instead of --share writes {out}"
        errors.print(text, highlight=False, soft_wrap=True)
    if as_json:
        print_json(results.to_dict())
    else:
        print_results(results, console)


def _asked(negatives: str | None, classes: int) -> int:
    """Return how many negatives are asked about: a number, "all", or 3 where nothing was said."""
    from whytube.evaluation.suite import check_negatives

    if negatives is None:
        return min(3, classes - 1)
    return check_negatives(int(negatives) if negatives.removeprefix("-").isdecimal() else negatives, classes)


def _evaluated_at_a_time(classifier: VideoClassifier, device: torch.device) -> int:
    """Return how many clips are evaluated between two saved states: on a CPU a large one takes a minute by itself."""
    if device.type != "cpu":
        return 16
    pixels = classifier.frames * classifier.size[0] * classifier.size[1]
    return max(1, min(16, 2**18 // pixels))


def _share(text: str) -> Share:
    from whytube.evaluation.state import Share

    number, _, of = text.partition("/")
    if not (number.isdecimal() and of.isdecimal()):
        raise ArgumentError(f"`share` must be like 1/4, the first of four, got {text}")
    return Share(int(number), int(of))


def _require_new_state(own: Path | None, whole: Path | None, *, resume: bool, overwrite: bool) -> None:
    """Keep what an interrupted evaluation found, unless it goes on or is given up.

    own: the state of this run. whole: that of the whole evaluation, beside which shares lie.
    """
    from whytube.evaluation.state import missing_shares, shares_of

    shares = [] if whole is None or own != whole else shares_of(whole)
    if own != whole and whole is not None and whole.exists():
        raise ArgumentError(f"{whole} is of a run without shares: go on with --resume, or remove it")
    if own is not None and resume and not own.exists() and not shares:
        errors.print(f"there is no {own} to resume from: beginning anew", highlight=False, soft_wrap=True)
    if resume and shares:
        text, missing = f"putting {len(shares)} shares together", missing_shares(shares)
        if missing:
            text = f"there is no share {', '.join(map(str, missing))}: judging its clips here, if it still runs stop it"
        errors.print(text, highlight=False, soft_wrap=True)
    for path in [own, *shares]:
        require_new(path, overwrite=resume or overwrite, also=", go on with --resume")
