// The answer in words: the sentence, then every reason with its word, fit, verdict and what hiding it did.

import { reasonColour, reasonInk } from "./colours.js";
import { el, fill, icon } from "./dom.js";
import { fillName, meanChange, percent, seconds, telling, verdict, verdictText, wordOf } from "./evidence.js";
import { pathName } from "./tubes.js";

/** A word on the colour of its reason. */
export function wordChip(text, rank) {
  return el("span", { class: "word", style: { "--colour": reasonColour(rank), "--on": reasonInk(rank) } }, text);
}

/** The sentence as nodes: words on their colours, A and B in theirs; all else as it stands. */
export function sentenceNodes(explanation) {
  const { sentence, positive, negative, reasons } = explanation;
  const marks = reasons
    .map((reason, rank) => ({ text: `"${reason.attribute}"`, node: () => wordChip(reason.attribute, rank), named: reason.attribute }))
    .filter(({ named }) => named);
  const asked = `${positive}, not ${negative}`;
  const question = () => [el("b", { class: "class-a" }, positive), ", not ", el("b", { class: "class-b" }, negative)];
  const at = sentence.indexOf(asked);
  if (at < 0) return split(sentence, marks);
  return [...split(sentence.slice(0, at), marks), ...question(), ...split(sentence.slice(at + asked.length), marks)];
}

function split(text, marks) {
  const hit = marks
    .map((mark) => ({ ...mark, at: text.indexOf(mark.text) }))
    .filter(({ at }) => at >= 0)
    .sort((a, b) => a.at - b.at)[0];
  if (!hit) return text ? [text] : [];
  return [text.slice(0, hit.at), hit.node(), ...split(text.slice(hit.at + hit.text.length), marks)];
}

/**
 * A table of what hiding a tube did: a row per way of hiding, a column for A and for B.
 *
 * watch: {rank, hidden, masked} makes a button of each way, which plays the video so; null where that cannot be yet.
 */
export function evidenceTable(reason, { positive, negative }, watch = null) {
  const head = el(
    "thead",
    {},
    el("tr", {}, el("td"), el("th", { scope: "col", class: "class-a" }, positive), el("th", { scope: "col", class: "class-b" }, negative)),
  );
  const rows = reason.evidence.map((e) =>
    el(
      "tr",
      {},
      el("th", { scope: "row" }, watch ? watchButton(reason, e.fill, watch) : fillName(e.fill)),
      change("a", e.positive_before, e.positive_after),
      change("b", e.negative_before, e.negative_after),
    ),
  );
  const caption = `How sure the network is, before and after this region was …${watch ? " (press to watch)" : ""}`;
  return el("table", { class: "evidence" }, el("caption", {}, caption), head, el("tbody", {}, ...rows));
}

function watchButton(reason, name, { rank, hidden, masked }) {
  const pressed = hidden?.rank === rank && hidden.fill === name;
  const label = `${fillName(name)}: play the video with ${reason.attribute || "the region"} hidden so`;
  const attributes = { type: "button", class: "watch", "aria-pressed": String(pressed), "aria-label": label, "data-focus": `hide-${rank}-${name}` };
  return el("button", { ...attributes, on: { click: () => masked(rank, name) } }, icon(pressed ? "pause" : "play"), fillName(name));
}

function change(kind, before, after) {
  const bar = el("span", { class: `bar bar-${kind}`, style: { "--before": `${100 * before}%`, "--after": `${100 * after}%` } }, el("i"));
  const text = [percent(before), el("span", { class: "arrow", "aria-hidden": "true" }, " → "), el("span", { class: "out" }, " then "), percent(after)];
  return el("td", {}, el("span", { class: "change" }, ...text), bar);
}

/** What hiding did, as one sentence with the means over all ways of hiding. */
export function changeText(reason, { positive, negative }) {
  if (!reason.evidence.length) return "";
  const { positive: a, negative: b } = meanChange(reason);
  return `Then the network gives ${positive} ${percent(a[1])} instead of ${percent(a[0])}, and ${negative} ${percent(b[1])} instead of ${percent(b[0])}.`;
}

function whenAndWhere(reason, explanation) {
  const { frames, times } = reason.tube;
  if (!frames.length) return "";
  const [height, width] = explanation.size;
  const when = times ? `${seconds(times[0])} to ${seconds(times.at(-1))}` : `frames ${frames[0] + 1} to ${frames.at(-1) + 1}`;
  return `Seen ${when}, ${pathName(reason.tube, { width, height })}`;
}

export class Reasons {
  /**
   * pointed(rank | null): when one points at a reason. selected(rank): when one picks it.
   * masked(rank, fill): when one wants to see it hidden.
   */
  constructor(sentence, list, { pointed, selected, masked }) {
    Object.assign(this, { sentence, list, pointed, selected, masked });
  }

  /** Show an explanation; state: {selected: rank | null, hidden: {rank, fill} | null, busy}. */
  render(explanation, state) {
    const focused = this.list.contains(document.activeElement) ? document.activeElement.dataset.focus : null;
    if (explanation === null) {
      fill(this.sentence);
      return fill(this.list);
    }
    fill(this.sentence, ...sentenceNodes(explanation));
    const named = telling(explanation);
    fill(this.list, ...explanation.reasons.map((reason, rank) => this.#item(reason, rank, explanation, named.includes(rank), state)));
    if (focused) this.list.querySelector(`[data-focus="${focused}"]`)?.focus();
    return undefined;
  }

  #item(reason, rank, explanation, named, state) {
    const selected = state.selected === rank;
    const title = el(
      "button",
      {
        type: "button",
        class: "reason-title",
        "aria-pressed": String(selected),
        "data-focus": `reason-${rank}`,
        on: { click: () => this.selected(rank), focus: () => this.pointed(rank), blur: () => this.pointed(null) },
      },
      el("kbd", { "aria-hidden": "true" }, String(rank + 1)),
      wordChip(wordOf(reason), rank),
      reason.fit === null ? null : el("span", { class: "fit" }, `the word fits: ${percent(reason.fit)}`),
    );
    const { positive, negative } = explanation;
    const watch = state.busy ? null : { rank, hidden: state.hidden, masked: this.masked };
    const parts = [
      title,
      el("p", { class: "verdict" }, el("strong", {}, verdictText(reason, positive, negative)), ` ${changeText(reason, explanation)}`),
      el("p", { class: "where" }, whenAndWhere(reason, explanation)),
      reason.evidence.length ? evidenceTable(reason, explanation, watch) : null,
    ];
    const look = `reason ${verdict(reason).replaceAll(" ", "-")}${named ? "" : " untold"}${selected ? " selected" : ""}`;
    const on = { pointerenter: () => this.pointed(rank), pointerleave: () => this.pointed(null) };
    return el("li", { class: look, style: { "--colour": reasonColour(rank) }, on }, ...parts);
  }
}
