"""The report: one self-contained HTML file with clips that play, what was said about them, and how well it holds."""

from __future__ import annotations

import base64
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any

from whytube.errors import ExplanationError
from whytube.explanation import RULE
from whytube.files import write_whole
from whytube.report.draw import reason_colour
from whytube.report.measured import DASH, measured_html, provenance_html
from whytube.report.results import measure, methods_of

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Mapping

    from whytube.explanation import Evidence, Explanation, Reason

SHOWN_CLASSES = 5
CHECKED = (
    "Tubes were really masked and the classifier run again: bars show the probabilities with the tube masked, "
    f"the upright line where they stood before. {RULE}"
)
NOT_CHECKED = "No tube was checked by masking it and running the classifier again, so take these as guesses."


def write_report(
    path: str | os.PathLike[str],
    *,
    explanations: Iterable[tuple[Explanation, bytes | str | os.PathLike[str]]] = (),
    results: Mapping[str, Any] | None = None,
    title: str = "Why A, not B?",
) -> Path:
    """Write the report; an existing file is replaced once the new one is whole.

    explanations: each with its overlay video, as the bytes of an mp4 or the path of one.
    results: what an evaluation wrote: {"classifier", "methods", "provenance"}; every part may be missing.
    """
    shown = list(explanations)
    cards = [_card(explanation, _bytes(video), number) for number, (explanation, video) in enumerate(shown, 1)]
    template = Template(files(__package__).joinpath("template.html").read_text(encoding="utf-8"))
    page = template.substitute(
        title=escape(title),
        checked=_checked([reason for explanation, _ in shown for reason in explanation.reasons]),
        facts=_facts(results, len(cards)),
        explanations=f'<section id="explanations"><h2>Explained</h2>{"".join(cards)}</section>' if cards else "",
        measured=measured_html(results),
        provenance=provenance_html(results),
    )
    return write_whole(path, page, error=ExplanationError)


def _bytes(video: bytes | str | os.PathLike[str]) -> bytes:
    if isinstance(video, bytes):
        return video
    try:
        return Path(video).read_bytes()
    except OSError as error:
        raise ExplanationError(f"cannot read the overlay video {video}: {error.strerror or error}") from error


def _checked(reasons: list[Reason]) -> str:
    """Claim no more than was done."""
    checked = [bool(reason.evidence) for reason in reasons]
    if any(checked):
        return CHECKED if all(checked) else f"{CHECKED} Reasons without bars were not checked."
    return NOT_CHECKED if reasons else ""


def _facts(results: Mapping[str, Any] | None, count: int) -> str:
    """Write the few numbers at the top."""
    facts = [(str(count), "clip explained" if count == 1 else "clips explained")] if count else []
    accuracy = measure((results or {}).get("classifier") or {}, ("accuracy",))
    if accuracy:
        facts.append((f"{accuracy.value:.1%}", "classifier accuracy"))
    methods = methods_of(results)
    name = next((name for name in ("ours", *methods) if name in methods), "")
    top = measure(methods.get(name, {}), ("negative_class_accuracy", "top3"))
    if top:
        facts.append((f"{top.value:.2f}", f"negative class accuracy, top 3 ({name})"))
    return "".join(f"<li><strong>{escape(value)}</strong> {escape(label)}</li>" for value, label in facts)


def _card(explanation: Explanation, video: bytes, number: int) -> str:
    """Write one clip: its video, the sentence, each reason with what masking it did, and the probabilities."""
    data = base64.b64encode(video).decode("ascii")
    reasons = "".join(_reason(explanation, reason, rank) for rank, reason in enumerate(explanation.reasons))
    length = f"{explanation.duration:.1f} s, " if explanation.duration else ""
    facts = f"{escape(explanation.source)} · {length}{len(explanation.frames)} frames looked at"
    return (
        f'<article class="card" aria-labelledby="said-{number}">'
        f'<div class="screen"><video src="data:video/mp4;base64,{data}" muted loop playsinline autoplay tabindex="0"'
        f' aria-label="{escape(explanation.sentence)}"></video><p class="source">{facts}</p></div>'
        f'<div class="said"><p class="sentence" id="said-{number}">{_sentence(explanation)}</p>{reasons}'
        f"{_probabilities(explanation)}</div></article>"
    )


def _sentence(explanation: Explanation) -> str:
    """Write the sentence with class names and words set off; the words are those of `Explanation.sentence`."""
    ranks = {reason.attribute: rank for rank, reason in reversed(list(enumerate(explanation.reasons)))}

    def word(text: str) -> str:
        return _word(text, ranks[text])

    return explanation.say(word=word, positive=_named("b", "a"), negative=_named("b", "b"))


def _named(tag: str, kind: str) -> Any:
    return lambda text: f'<{tag} class="class-{kind}">{escape(text)}</{tag}>'


def _word(text: str, rank: int) -> str:
    colour = reason_colour(rank)
    return f'<span class="word" style="background:{colour.css};color:{colour.ink.css}">{escape(text)}</span>'


def _reason(explanation: Explanation, reason: Reason, rank: int) -> str:
    when = ""
    if reason.tube.times is not None and len(reason.tube):
        when = f"{reason.tube.times[0]:.2f}{DASH}{reason.tube.times[-1]:.2f} s"
    rows = "".join(_evidence(evidence) for evidence in reason.evidence)
    table = (
        f'<table class="evidence"><thead><tr><td></td><th scope="col">p({escape(explanation.positive)})</th>'
        f'<th scope="col">p({escape(explanation.negative)})</th></tr></thead><tbody>{rows}</tbody></table>'
    )
    return (
        f'<details class="reason"{" open" if reason in explanation.telling else ""}>'
        f"<summary>{_word(reason.word, rank)}<span>{escape(explanation.score_name)} {reason.score:+.2f}</span>"
        f'<span>{when}</span><span class="verdict {"yes" if reason.moved else "no"}">decision {reason.verdict}</span>'
        f"</summary>{table if rows else ''}</details>"
    )


def _evidence(evidence: Evidence) -> str:
    a = _bar("a", evidence.positive_before, evidence.positive_after)
    b = _bar("b", evidence.negative_before, evidence.negative_after)
    return f'<tr><th scope="row">{escape(evidence.fill)}</th><td>{a}</td><td>{b}</td></tr>'


def _bar(kind: str, before: float, after: float) -> str:
    """Draw a probability after masking as a bar, with a line where it stood before."""
    style = f"--before:{before:.2%};--after:{after:.2%}"
    return (
        f'<span class="bar bar-{kind}" style="{style}" aria-hidden="true"><i></i></span>'
        f'<span class="change">{before:.2f} → {after:.2f}</span>'
    )


def _probabilities(explanation: Explanation) -> str:
    ranked = sorted(explanation.probabilities.items(), key=lambda pair: -pair[1])[:SHOWN_CLASSES]
    kinds = {explanation.positive: "a", explanation.negative: "b"}
    rows = "".join(
        f'<tr><th scope="row">{escape(name)}</th><td><span class="bar bar-{kinds.get(name, "other")}" '
        f'style="--after:{p:.2%}" aria-hidden="true"><i></i></span><span class="change">{p:.3f}</span></td></tr>'
        for name, p in ranked
    )
    if not rows:
        return ""
    body = f'<table class="evidence">{rows}</table>'
    return f'<details class="classes"><summary>What the classifier said</summary>{body}</details>'
