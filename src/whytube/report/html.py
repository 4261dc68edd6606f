"""Self-contained HTML: the report, with clips that play and what was said about them; and a card for notebooks."""

from __future__ import annotations

import base64
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from whytube.errors import ExplanationError, WhytubeError
from whytube.explanation import FIT_RULE, GUESS_RULE, RULE
from whytube.files import write_whole
from whytube.given import video_hash
from whytube.report.charts import swatch
from whytube.report.draw import reason_colour
from whytube.report.measured import Measured, provenance_rows
from whytube.report.overlay import overlay_video, sampled_clip
from whytube.video.arrays import SOURCE

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Sequence

    from jinja2 import Environment

    from whytube.evaluation.results import Results
    from whytube.explanation import Explanation, Reason

CHECKED = (
    "Tubes were really masked and the classifier run again: bars show the probabilities with the tube masked, "
    f"the upright line where they stood before. {RULE}"
)
# Longer side of the clip in a notebook, its quality as in `write_video`, and the most bytes that it may have.
NOTEBOOK_SIDE, NOTEBOOK_CRF, NOTEBOOK_BYTES = 400, 27, 2_000_000
NOT_CHECKED = "No tube was checked by masking it and running the classifier again, so take these as guesses."


def write_report(
    path: str | os.PathLike[str],
    *,
    explanations: Iterable[tuple[Explanation, bytes | str | os.PathLike[str] | None]] = (),
    results: Results | None = None,
    title: str = "Why A, not B?",
) -> Path:
    """Write the report; an existing file is replaced once the new one is whole.

    explanations: each with its overlay video, as the bytes of an mp4 or the path of one; None where there is none.
    results: left out where they are not of the one model that explained all clips; the page then says so.
    """
    shown = list(explanations)
    left_out = other_model(results, [explanation for explanation, _ in shown])
    results = None if left_out else results
    page = (
        _environment()
        .get_template("template.html")
        .render(
            title=title,
            checked=_checked([reason for explanation, _ in shown for reason in explanation.reasons]),
            fitted=FIT_RULE if any(r.fit is not None for explanation, _ in shown for r in explanation.reasons) else "",
            guessed=GUESS_RULE if any(explanation.guessed for explanation, _ in shown) else "",
            facts=_facts(results, len(shown)),
            left_out=left_out,
            models=len(_models([explanation for explanation, _ in shown])),
            cards=[(e, None if video is None else _base64(video), source_problem(e)) for e, video in shown],
            measured=Measured.of(results) if results is not None and results.methods else None,
            provenance=provenance_rows(results) if results is not None else (),
        )
    )
    return write_whole(path, page.encode("utf-8", "replace").decode(), error=ExplanationError)


def notebook_html(explanation: Explanation) -> str:
    """Show one explanation as a notebook does: a card with the sampled frames, the sentence and the evidence."""
    problem, video = source_problem(explanation), None
    if not problem:
        scale = NOTEBOOK_SIDE / max(explanation.size)
        with tempfile.TemporaryDirectory() as folder:
            try:
                clip = sampled_clip(explanation.source, explanation)
                made = overlay_video(clip, explanation, Path(folder) / "o.mp4", scale=scale, crf=NOTEBOOK_CRF)
                video = _base64(made) if made.stat().st_size <= NOTEBOOK_BYTES else None
                problem = "" if video else "The clip is too large to show here; overlay_video writes it to a file."
            except WhytubeError as error:
                problem = f"The clip cannot be shown: {error}"
    page = _environment().get_template("notebook.html")
    return page.render(explanation=explanation, video=video, problem=problem).encode("utf-8", "replace").decode()


def source_problem(explanation: Explanation) -> str:
    """Say why the video of an explanation cannot be shown, or is not what was explained; "" where all is well."""
    path = Path(explanation.source)
    if not path.is_absolute():
        return (
            "The frames were given as an array, which an explanation does not keep." if _is_array(explanation) else ""
        )
    try:
        there = path.exists()
    except OSError:  # a name that is too long, say
        there = False
    if not there:
        return f"The video is no longer at {path}."
    if explanation.video_hash and video_hash(path) != explanation.video_hash:
        return "The video has changed since it was explained."
    return ""


def _is_array(explanation: Explanation) -> bool:
    return explanation.source == SOURCE and not Path(SOURCE).exists()


def other_model(results: Results | None, explanations: Sequence[Explanation]) -> str:
    """Say that results are not of the one model that explained all clips; "" where they are, or nothing is known."""
    models = _models(explanations)
    if results is None or not models:
        return ""
    name, weights = results.provenance.get("model"), results.provenance.get("model_hash")
    if len(models) == 1:
        (known, digest) = next(iter(models))
        if (weights == digest) if weights and digest else (not name or not known or name == known):
            return ""
    of = f"the model {name}" if isinstance(name, str) else "several models" if name else "a model that they do not name"
    clips = " and ".join(sorted({known or "a model without a name" for known, _ in models}))
    return f"The results were left out: they are of {of}, and the clips were explained with {clips}."


def _models(explanations: Sequence[Explanation]) -> set[tuple[str, str]]:
    """Name and hash of every model that is known."""
    return {(e.model, e.model_hash) for e in explanations if e.model or e.model_hash}


def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("whytube.report", ""),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals.update(sentence=_sentence, reason_colour=reason_colour, swatch=swatch, fit_rule=FIT_RULE)
    return environment


def _base64(video: bytes | str | os.PathLike[str]) -> str:
    try:
        content = video if isinstance(video, bytes) else Path(video).read_bytes()
    except OSError as error:
        raise ExplanationError(f"cannot read the overlay video {video!s}: {error.strerror or error}") from error
    return base64.b64encode(content).decode("ascii")


def _checked(reasons: list[Reason]) -> str:
    """Claim no more than was done."""
    checked = [bool(reason.evidence) for reason in reasons]
    if any(checked):
        return CHECKED if all(checked) else f"{CHECKED} Reasons without bars were not checked."
    return NOT_CHECKED if reasons else ""


def _facts(results: Results | None, count: int) -> list[tuple[str, str]]:
    """Choose the few numbers at the top, each with what it is."""
    facts = [(str(count), "clip explained" if count == 1 else "clips explained")] if count else []
    if results is not None:
        facts.append((f"{results.classifier.accuracy.mean:.1%}", "classifier accuracy"))
    if results is not None and results.methods:
        name = "ours" if "ours" in results.methods else next(iter(results.methods))
        top3 = results.methods[name].figure("negative_class_accuracy.top3").mean
        facts.append((f"{top3:.2f}", f"negative class accuracy, top 3 ({name})"))
    return facts


def _sentence(explanation: Explanation, word: Callable[[str, int], str]) -> str:
    """Mark up the sentence: class names, and words by the template's macro `word(text, rank)`."""
    from markupsafe import Markup, escape

    ranks = {reason.attribute: rank for rank, reason in reversed(list(enumerate(explanation.reasons)))}
    said = explanation.say(
        word=lambda text: word(text, ranks[text]),
        positive=Markup('<b class="class-a">{}</b>').format,
        negative=Markup('<b class="class-b">{}</b>').format,
        other=escape,
    )
    return Markup(said)
