"""The report: one self-contained HTML file with clips that play, what was said about them, and how well it holds."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import TYPE_CHECKING

from whytube.errors import ExplanationError
from whytube.explanation import RULE
from whytube.files import write_whole
from whytube.report.charts import swatch
from whytube.report.draw import reason_colour
from whytube.report.measured import Measured, provenance_rows

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable

    from whytube.evaluation.results import Results
    from whytube.explanation import Explanation, Reason

CHECKED = (
    "Tubes were really masked and the classifier run again: bars show the probabilities with the tube masked, "
    f"the upright line where they stood before. {RULE}"
)
NOT_CHECKED = "No tube was checked by masking it and running the classifier again, so take these as guesses."


def write_report(
    path: str | os.PathLike[str],
    *,
    explanations: Iterable[tuple[Explanation, bytes | str | os.PathLike[str]]] = (),
    results: Results | None = None,
    title: str = "Why A, not B?",
) -> Path:
    """Write the report; an existing file is replaced once the new one is whole.

    explanations: each with its overlay video, as the bytes of an mp4 or the path of one.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined

    shown = list(explanations)
    environment = Environment(
        loader=PackageLoader("whytube.report", ""),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals.update(sentence=_sentence, reason_colour=reason_colour, swatch=swatch)
    page = environment.get_template("template.html").render(
        title=title,
        checked=_checked([reason for explanation, _ in shown for reason in explanation.reasons]),
        facts=_facts(results, len(shown)),
        cards=[(explanation, _base64(video)) for explanation, video in shown],
        measured=Measured.of(results) if results is not None and results.methods else None,
        provenance=provenance_rows(results) if results is not None else (),
    )
    return write_whole(path, page, error=ExplanationError)


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
    from markupsafe import Markup

    ranks = {reason.attribute: rank for rank, reason in reversed(list(enumerate(explanation.reasons)))}
    said = explanation.say(
        word=lambda text: word(text, ranks[text]),
        positive=Markup('<b class="class-a">{}</b>').format,
        negative=Markup('<b class="class-b">{}</b>').format,
    )
    return Markup(said)
