// The list of videos: what is there, how far each is, what would help most, and adding more.

import { api, upload } from "./api.js";
import { complain, el, fill, find } from "./dom.js";
import { isStop } from "./jobs.js";
import { Work } from "./work.js";

const SHOWN = 4; // suggestions

export class VideoList {
  /** opened(id, word): a video, and perhaps a word of it, was picked. changed(): there are others now. */
  constructor(root, { opened, changed }) {
    Object.assign(this, { root, opened, changed });
    this.rows = [];
    this.id = null;
    this.work = new Work(find(".looking", root));
    find(".adding input", root).addEventListener("change", (event) => this.#upload(event.target));
    find("[data-do=add-folder]", root).addEventListener("click", () => this.#addAll(this.folder, ({ key }) => api.folderVideo(key)));
    find("[data-do=add-examples]", root).addEventListener("click", () => this.#addAll(this.examples, ({ name }) => api.example(name)));
    find("[data-do=look]", root).addEventListener("click", () => this.#look());
    document.addEventListener("dragover", (event) => event.dataTransfer?.types.includes("Files") && event.preventDefault());
    document.addEventListener("drop", (event) => {
      if (!event.dataTransfer?.files.length) return;
      event.preventDefault();
      this.#send([...event.dataTransfer.files]);
    });
    this.#offers();
  }

  async #offers() {
    const [folder, examples] = await Promise.all([api.folder(), api.examples()]).catch(() => [{ videos: [] }, { examples: [] }]);
    this.folder = folder.videos;
    this.examples = examples.examples;
    const all = find("[data-do=add-folder]", this.root);
    all.hidden = !this.folder.length;
    all.textContent = `Take the folder (${this.folder.length})`;
    this.#empty();
  }

  set(overview, id) {
    this.rows = overview.videos;
    this.id = id;
    fill(find(".list", this.root), ...this.rows.map((row) => this.#row(row)));
    this.#suggest(overview);
    this.#empty();
  }

  #empty() {
    find(".empty", this.root).hidden = this.rows.length > 0;
    find("[data-do=add-examples]", this.root).hidden = this.rows.length > 0 || !this.examples?.length;
  }

  #row({ video, label, predicted, boxes, marks, annotators }) {
    const facts = [label ?? predicted, `${video.frames} frames`, annotators.length > 1 ? `${annotators.length} people` : null];
    const told = marks ? `${marks} mark${marks === 1 ? "" : "s"}` : "nothing yet";
    const button = el(
      "button",
      { type: "button", "data-id": video.id, "aria-current": video.id === this.id ? "true" : null, title: video.name, on: { click: () => this.opened(video.id) } },
      el("span", { class: "name" }, video.name),
      el("small", {}, facts.filter(Boolean).join(" · ")),
      boxes ? el("span", { class: "count" }, String(boxes), el("span", { class: "out" }, " boxes")) : el("span", { class: "out" }, told),
    );
    return el("li", {}, button);
  }

  #suggest({ suggestions, undrafted }) {
    find(".suggested", this.root).hidden = !suggestions.length && !undrafted;
    const named = new Map(this.rows.map(({ video }) => [video.id, video.name]));
    const rows = suggestions.slice(0, SHOWN).map(({ video, attribute, why }) =>
      el("li", {}, el("button", { type: "button", class: "pick", on: { click: () => this.opened(video, attribute) } },
        el("b", {}, attribute), " in ", named.get(video) ?? "a video", el("small", {}, why))),
    );
    fill(find(".suggested ul", this.root), ...rows);
    const look = find("[data-do=look]", this.root);
    look.hidden = !undrafted || this.work.busy;
    look.textContent = `Let the model look at ${undrafted} video${undrafted === 1 ? "" : "s"}`;
  }

  /** Mark the video that is open. */
  current(id) {
    this.id = id;
    for (const button of this.root.querySelectorAll(".list button")) {
      if (button.dataset.id === id) button.setAttribute("aria-current", "true");
      else button.removeAttribute("aria-current");
    }
  }

  step(way) {
    const place = this.rows.findIndex(({ video }) => video.id === this.id);
    const next = this.rows[place + way];
    if (next) this.opened(next.video.id);
  }

  async #look() {
    find("[data-do=look]", this.root).hidden = true;
    try {
      await this.work.run({ kind: "draft", videos: null }, { name: "Looking at videos" });
    } catch (error) {
      if (!isStop(error)) complain(error.message);
    }
    this.changed();
  }

  async #upload(field) {
    const files = [...field.files];
    field.value = "";
    await this.#send(files);
  }

  async #send(files) {
    await this.#addAll(files, (file, told) => upload(file, { progress: (share) => told(`${Math.round(100 * share)} %`) }));
  }

  /** Add several, one after the other; those that are refused are told at the end. */
  async #addAll(things, add) {
    const line = find(".uploading", this.root);
    const wrong = [];
    line.hidden = false;
    for (const [i, thing] of things.entries()) {
      const told = (more = "") => (line.textContent = `Adding ${i + 1} of ${things.length}: ${thing.name} ${more}`);
      told();
      try {
        await add(thing, told);
      } catch (error) {
        wrong.push(`${thing.name}: ${error.message}`);
      }
    }
    line.hidden = true;
    if (wrong.length) complain(wrong.slice(0, 3).join(" ") + (wrong.length > 3 ? ` And ${wrong.length - 3} more.` : ""));
    await this.changed();
    if (!this.id && this.rows.length) this.opened(this.rows[0].video.id);
  }
}
