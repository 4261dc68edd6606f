// Teaching: what would be taught, the one button, how well words are placed before and after, and which model answers.

import { request } from "./api.js";
import { complain, el, fill, find } from "./dom.js";
import { isStop } from "./jobs.js";
import { Work } from "./work.js";

const percent = (share) => `${Math.round(100 * share)} %`;
const FIGURES = [
  ["pointing", "points into the box", percent],
  ["iou", "overlap (IoU)", (value) => value.toFixed(2)],
  ["right", "right box first", percent],
];

export class Teaching {
  constructor(dialog, page) {
    Object.assign(this, { dialog, page });
    this.options = {}; // of the job, beyond what the page asks: steps
    this.body = find(".body", dialog);
    this.work = new Work(find(".work", dialog));
    find("[data-do=close]", dialog).addEventListener("click", () => dialog.close());
  }

  async open() {
    fill(this.body, el("p", {}, "Looking at what was drawn …"));
    this.dialog.showModal();
    await this.#show();
  }

  async #show(report = null) {
    try {
      const [told, models] = await Promise.all([request("GET", "/api/teaching"), request("GET", "/api/teaching/models")]);
      const newest = report ?? models.models.find(({ current }) => current) ?? null;
      const parts = [newest && (await this.#result(newest)), this.#offer(told)];
      fill(this.body, ...(report ? parts : parts.reverse()), this.#models(models)); // what is new comes first
    } catch (error) {
      fill(this.body, el("p", { class: "wrong" }, error.message));
    }
  }

  #offer({ videos, words, can }) {
    const names = Object.entries(words).sort((a, b) => b[1] - a[1]);
    if (!can) return el("p", {}, "This model answers without words, so it cannot be taught any.");
    if (!names.length) return el("p", {}, "Nothing is drawn yet. Draw boxes of a word in a few videos: three key frames in five videos are a good beginning.");
    const list = names.map(([word, count]) => `“${word}” in ${count}`).join(", ");
    const few = names.filter(([, count]) => count < 2).length;
    return el(
      "section",
      { class: "offer" },
      el("p", {}, `Boxes in ${videos} video${videos === 1 ? "" : "s"}: ${list}.`),
      few ? el("p", {}, el("small", {}, "A new word that is drawn in one video only is learnt, with nothing left to judge it by. A known one stays as it is.")) : null,
      el("button", { type: "button", class: "primary", "data-do": "start", on: { click: () => this.start() } }, "Teach these words"),
    );
  }

  async start() {
    find("[data-do=start]", this.body).disabled = true;
    const video = this.page.video?.id ?? null;
    try {
      const job = await this.work.run({ kind: "teach", video, ...this.options }, { name: "Teaching" });
      const { models } = await request("GET", "/api/teaching/models");
      await this.#show(models.find(({ id }) => id === job.id) ?? models[0]);
      find(".result h3", this.body)?.focus();
    } catch (error) {
      if (!isStop(error)) complain(error.message);
      await this.#show();
      if (!isStop(error)) this.body.prepend(el("p", { class: "wrong", role: "alert" }, error.message));
    }
  }

  /** What a teaching brought: a table of words, and the asked video before and after. */
  async #result({ id, report, asked, current, created }) {
    const use = el("button", { type: "button", class: "primary", "data-do": "use", on: { click: () => this.#use(id) } }, "Answer with it from now on");
    return el(
      "section",
      { class: "result", "data-id": id },
      el("h3", { tabindex: "-1" }, `Taught on ${new Date(created).toLocaleString()}`),
      el("p", {}, "Judged on videos that were held out: each was placed by what was learnt from the others. A new word knows nothing before."),
      el("div", { class: "wide-table", tabindex: "0", role: "region", "aria-label": "How well words are placed" }, this.#table(report)),
      asked ? await this.#asked(asked) : null,
      current ? el("p", {}, "This model answers now.") : el("p", {}, use),
    );
  }

  #table({ words, before, after }) {
    const head = el("tr", {}, el("th", { scope: "col" }, "word"), el("th", { scope: "col" }, "videos"),
      ...FIGURES.map(([, name]) => el("th", { scope: "col" }, name)), el("th", { scope: "col" }, "boxes judged"));
    const rows = words.map((row) => this.#row(row.word, row, row.new ? "new" : row.kept ? "kept as it was" : ""));
    const all = before && after ? el("tfoot", {}, this.#row("all", { before, after, clips: "" }, "")) : null;
    return el("table", { class: "figures" }, el("caption", {}, "Before → after, on boxes drawn or between key frames"), el("thead", {}, head), el("tbody", {}, ...rows), all);
  }

  #row(name, { before, after, clips }, note) {
    const cells = FIGURES.map(([key, , write]) => {
      if (!before || !after) return el("td", {}, "–");
      const change = after[key] - before[key];
      const state = Math.abs(change) < 0.005 ? "" : change > 0 ? "better" : "worse";
      return el("td", {}, `${write(before[key])} → `, el("span", { class: state }, write(after[key])));
    });
    return el("tr", {}, el("th", { scope: "row" }, name, note ? el("small", {}, ` ${note}`) : null), el("td", {}, String(clips)), ...cells, el("td", {}, String(after?.boxes ?? 0)));
  }

  async #asked({ before, after }) {
    const [old, now] = await Promise.all([before, after].map((id) => request("GET", `/api/results/${encodeURIComponent(id)}`)));
    const card = (title, { id, document: answer }) =>
      el("div", {}, el("h3", {}, title), el("p", {}, answer.sentence), el("p", {}, el("a", { href: `/r/${encodeURIComponent(id)}` }, "Look at it")));
    return el("div", { class: "asked" }, card("The video before", old), card("The video now", now));
  }

  #models({ base, current, models }) {
    if (!models.length) return null;
    const choice = (id, text) =>
      el("label", {}, el("input", { type: "radio", name: "model", checked: id === current, on: { change: () => this.#use(id) } }), el("span", {}, text));
    const taught = ({ id, created, report }) => {
      const words = report.words.filter(({ kept }) => !kept).map(({ word }) => word);
      return choice(id, `taught ${new Date(created).toLocaleString()}: ${words.slice(0, 4).join(", ")}${words.length > 4 ? " …" : ""}`);
    };
    return el("fieldset", { class: "models" }, el("legend", {}, "Which model answers"), choice(null, `${base}, as it was`), ...models.map(taught));
  }

  async #use(id) {
    try {
      await request("PUT", "/api/teaching/current", { model: id });
      await this.page.refresh();
      const { models } = await request("GET", "/api/teaching/models");
      await this.#show(models.find((each) => each.id === id) ?? null);
    } catch (error) {
      complain(error.message);
    }
  }
}
