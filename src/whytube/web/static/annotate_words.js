// The list of words: which the video has, which are drawn, and adding a new one.

import { presence } from "./annotate_model.js";
import { reasonColour } from "./colours.js";
import { el, fill, find } from "./dom.js";

export class Words {
  /** chose(word), marked(word, value), added(word): what a person did. */
  constructor(root, { chose, marked, added }) {
    Object.assign(this, { root, chose, marked, added });
    this.order = [];
    this.field = find(".find input", root);
    this.button = find(".find button", root);
    this.field.addEventListener("input", () => this.page && this.set(this.page));
    find(".find", root).addEventListener("submit", (event) => {
      event.preventDefault();
      this.#submit();
    });
  }

  #submit() {
    const typed = this.field.value.trim();
    if (!typed) return;
    const known = this.page.overview.words.find(({ word }) => word.toLowerCase() === typed.toLowerCase());
    this.field.value = "";
    if (known) this.chose(known.word);
    else this.added(typed);
    find("#board").focus();
  }

  /** The word to begin with: one that the video probably has. */
  first(page) {
    const [likely] = this.#groups(page);
    return likely[0]?.word ?? null;
  }

  #groups({ overview, state, annotator, drafts }) {
    const likely = [];
    const others = [];
    for (const row of overview.words) {
      const said = state ? presence(state, annotator, row.word) : "unknown";
      const near = said !== "unknown" || drafts.get(row.word)?.likely || !row.known;
      (near ? likely : others).push({ ...row, said });
    }
    return [likely, others];
  }

  set(page) {
    this.page = page;
    const typed = this.field.value.trim().toLowerCase();
    const fits = ({ word }) => word.toLowerCase().includes(typed);
    const [likely, others] = this.#groups(page).map((rows) => rows.filter(fits));
    this.order = [...likely, ...others].map(({ word }) => word);
    const focus = document.activeElement?.closest?.(".word") ? [document.activeElement.closest(".word").dataset.word, document.activeElement.dataset.part] : null;
    fill(
      find(".groups", this.root),
      ...this.#group("Probably in this video", likely, page),
      ...this.#group("Other words", others, page),
    );
    if (focus) this.#focus(...focus);
    const known = page.overview.words.some(({ word }) => word.toLowerCase() === typed);
    this.button.hidden = !typed || known;
    this.button.textContent = `Add “${this.field.value.trim()}”`;
  }

  #focus(word, part) {
    for (const row of this.root.querySelectorAll(".word")) {
      if (row.dataset.word === word) row.querySelector(`[data-part=${part}]`)?.focus();
    }
  }

  #group(title, rows, page) {
    if (!rows.length) return [];
    return [el("h3", {}, title), el("ul", { "aria-label": title }, ...rows.map((row) => this.#row(row, page)))];
  }

  #row({ word, said }, page) {
    const drawn = page.state.tracks.filter((each) => each.annotator === page.annotator && each.attribute === word);
    const keys = drawn.reduce((sum, { keys: all }) => sum + all.filter(({ outside }) => !outside).length, 0);
    const marked = page.state.marks.some((each) => each.annotator === page.annotator && each.attribute === word);
    const chosen = word === page.word;
    const name = el(
      "button",
      { type: "button", class: "name", "data-part": "name", title: word, "aria-pressed": String(chosen), on: { click: () => this.chose(word) } },
      el("span", { class: "dot-colour", "aria-hidden": "true", style: { "--colour": page.colours.has(word) ? reasonColour(page.rank(word)) : "transparent" } }),
      el("span", {}, word),
      keys ? el("small", {}, `${keys} key${keys === 1 ? "" : "s"}`) : null,
    );
    const choice = (part, value, text, label) => {
      const on = marked && said === value;
      const implied = !marked && said === value;
      return el("button", {
        type: "button",
        class: `mark-it ${part}${implied ? " implied" : ""}`,
        "data-part": part,
        "aria-pressed": String(on || implied),
        "aria-label": `${label}: ${word}`,
        title: implied ? "A box says so" : label,
        on: { click: () => this.marked(word, on ? "unknown" : value) },
      }, text);
    };
    const state = `word${chosen ? " chosen" : ""}${said === "has_not" ? " not" : ""}`;
    return el("li", { class: state, "data-word": word }, name, choice("yes", "has", "✓", "Has it"), choice("no", "has_not", "✕", "Does not have it"));
  }

  step(way) {
    if (!this.order.length) return;
    const place = this.order.indexOf(this.page.word);
    this.chose(this.order[(place + way + this.order.length) % this.order.length]);
  }
}
