// What the network said: every class with its probability, a search, and the choice of A and B.

import { el, fill, find } from "./dom.js";
import { percent } from "./evidence.js";

const FEW = 6; // classes that are shown before one searches
const FEWER = 3; // and once a question is asked, where the answer stands below

/** Names without what people type differently: case, blanks, underscores, hyphens. */
const plain = (name) => name.toLowerCase().replace(/[\s_-]+/g, " ").trim();

/** Classes that a search finds, those that begin with it first; all of them for "". */
export function found(names, search) {
  const wanted = plain(search);
  const starts = names.filter((name) => plain(name).startsWith(wanted));
  return wanted ? [...starts, ...names.filter((name) => !starts.includes(name) && plain(name).includes(wanted))] : names;
}

export class Predictions {
  /** picked(class): called with the B that a person picks. */
  constructor(root, { picked }) {
    this.picked = picked;
    this.probabilities = {};
    this.negatives = [];
    this.all = false;
    this.search = find("[name=search]", root);
    this.list = find(".classes", root);
    this.more = find(".more", root);
    this.none = find(".none", root);
    this.search.addEventListener("input", () => this.render());
    this.search.addEventListener("keydown", (event) => this.#key(event));
    this.more.addEventListener("click", () => {
      this.all = !this.all;
      this.render();
    });
  }

  /** Take probabilities by class, and the question asked: positive A and negatives B. */
  set({ probabilities = this.probabilities, positive = null, negatives = [] }) {
    Object.assign(this, { probabilities, positive, negatives });
    this.render();
  }

  #key(event) {
    const first = find("button", this.list);
    if (event.key === "ArrowDown" && first) {
      event.preventDefault();
      first.focus();
    } else if (event.key === "Enter" && first && this.search.value) {
      event.preventDefault();
      first.click();
    } else if (event.key === "Escape" && this.search.value) {
      event.stopPropagation();
      this.search.value = "";
      this.render();
    }
  }

  #pick(name) {
    this.search.value = "";
    this.all = false;
    this.picked(name);
    const button = [...this.list.querySelectorAll("button")].find((each) => each.dataset.name === name);
    button?.focus({ preventScroll: true });
  }

  render() {
    const names = Object.keys(this.probabilities).sort((a, b) => this.probabilities[b] - this.probabilities[a]);
    const searching = this.search.value.trim() !== "";
    const hits = found(names, this.search.value);
    const asked = [this.positive, ...this.negatives].filter(Boolean);
    const few = this.negatives.length && window.matchMedia("(max-width: 80rem)").matches ? FEWER : FEW;
    const shown = searching || this.all ? hits : hits.filter((name, i) => i < few || asked.includes(name));
    fill(this.list, ...shown.map((name) => this.#row(name)));
    this.search.placeholder = `Search ${names.length} classes`;
    this.more.hidden = searching || names.length <= few;
    this.more.textContent = this.all ? "Show fewer" : `Show all ${names.length}`;
    this.more.setAttribute("aria-expanded", String(this.all));
    this.none.hidden = hits.length > 0 || names.length === 0;
  }

  #row(name) {
    const p = this.probabilities[name];
    const kind = name === this.positive ? "a" : this.negatives.includes(name) ? "b" : "other";
    const bar = el("span", { class: `bar bar-${kind}`, style: { "--after": `${100 * p}%` } }, el("i"));
    const told = [el("span", { class: "name" }, name), " ", el("span", { class: "chance" }, percent(p)), bar];
    if (kind === "a") {
      return el("li", { class: "class a" }, el("span", { class: "tag" }, "why this …"), " ", ...told);
    }
    const button = el(
      "button",
      {
        type: "button",
        class: "pick",
        "data-name": name,
        "aria-pressed": String(kind === "b"),
        on: { click: () => this.#pick(name) },
      },
      el("span", { class: "tag" }, "why not?"),
      " ",
      ...told,
    );
    return el("li", { class: `class ${kind}` }, button);
  }
}
