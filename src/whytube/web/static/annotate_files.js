// Files of other tools, in and out; and how far people agree.

import { ApiError, request } from "./api.js";
import { el, fill, find } from "./dom.js";

const FORMATS = {
  cvat: "CVAT for video 1.1 (XML)",
  "label-studio": "Label Studio (JSON)",
  beaverdam: "BeaverDam (JSON)",
  coco: "COCO-style (JSON)",
  tables: "whytube's own table (CSV)",
};

export class Files {
  constructor(dialog, page) {
    Object.assign(this, { dialog, page });
    this.told = find(".told", dialog);
    for (const select of dialog.querySelectorAll("[name=format]")) {
      fill(select, ...Object.entries(FORMATS).map(([value, text]) => el("option", { value }, text)));
    }
    find(".export", dialog).addEventListener("submit", (event) => this.#export(event));
    find(".import", dialog).addEventListener("submit", (event) => this.#import(event));
    find("[data-do=close]", dialog).addEventListener("click", () => dialog.close());
  }

  open() {
    const people = [...new Set(this.page.overview.videos.flatMap(({ annotators }) => annotators))].sort();
    fill(find(".export [name=annotator]", this.dialog), el("option", { value: "" }, "everybody"), ...people.map((name) => el("option", { value: name }, name)));
    for (const option of this.dialog.querySelectorAll("option[value=this]")) option.disabled = !this.page.video;
    this.told.textContent = "";
    this.dialog.showModal();
  }

  #query(form, more = {}) {
    const data = new FormData(form);
    const query = new URLSearchParams({ format: data.get("format"), ...more });
    if (data.get("which") === "this") query.set("video", this.page.video.id);
    if (data.get("annotator")) query.set("annotator", data.get("annotator"));
    return query;
  }

  async #export(event) {
    event.preventDefault();
    try {
      const answer = await fetch(`/api/annotation-files?${this.#query(event.target)}`);
      if (!answer.ok) throw new ApiError(answer.status, (await answer.json()).detail);
      const name = answer.headers.get("content-disposition")?.match(/filename="([^"]+)"/)?.[1] ?? "annotations";
      const link = el("a", { href: URL.createObjectURL(await answer.blob()), download: name });
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 10000);
      this.told.textContent = `Downloaded ${name}.`;
    } catch (error) {
      this.told.textContent = error.message;
    }
  }

  async #import(event) {
    event.preventDefault();
    const form = event.target;
    const body = new FormData();
    body.append("file", find("[name=file]", form).files[0]);
    try {
      const answer = await fetch(`/api/annotation-files?${this.#query(form, { annotator: this.page.annotator })}`, { method: "POST", body });
      const told = await answer.json();
      if (!answer.ok) throw new ApiError(answer.status, told.detail);
      const count = Object.values(told.videos).reduce((sum, number) => sum + number, 0);
      const videos = Object.values(told.videos).filter(Boolean).length;
      this.told.textContent = `Brought ${count} tracks and marks to ${videos} video${videos === 1 ? "" : "s"}; ${told.same} were there already.`;
      await this.page.refresh();
    } catch (error) {
      this.told.textContent = error.message;
    }
  }
}

export class Agreeing {
  constructor(dialog) {
    this.dialog = dialog;
    this.body = find(".body", dialog);
    find("[data-do=close]", dialog).addEventListener("click", () => dialog.close());
  }

  async open() {
    fill(this.body, el("p", {}, "Comparing …"));
    this.dialog.showModal();
    try {
      const { pairs, how } = await request("GET", "/api/agreement");
      const paragraphs = how.split("\n\n").map((text) => el("p", {}, el("small", {}, text)));
      fill(this.body, pairs.length ? this.#table(pairs) : el("p", {}, "Only one person has drawn so far. Another one who takes another name at the top can draw the same videos, without seeing the first one's boxes."), ...paragraphs);
    } catch (error) {
      fill(this.body, el("p", { class: "wrong" }, error.message));
    }
  }

  #table(pairs) {
    const number = (value, of) => (value === null ? "–" : `${value.toFixed(2)}${of}`);
    const head = ["people", "boxes: mean IoU", "marks: agree", "kappa"].map((name) => el("th", { scope: "col" }, name));
    const rows = pairs.map(({ annotators, iou, tracks, frames, agree, kappa, marks }) =>
      el("tr", {}, el("th", { scope: "row" }, annotators.join(" and ")), el("td", {}, number(iou, ` (${tracks} words in videos, ${frames} frames)`)),
        el("td", {}, number(agree, ` (${marks})`)), el("td", {}, number(kappa, ""))),
    );
    return el("div", { class: "wide-table", tabindex: "0", role: "region", "aria-label": "Agreement of pairs" }, el("table", { class: "figures" }, el("thead", {}, el("tr", {}, ...head)), el("tbody", {}, ...rows)));
  }
}
