// Where one begins: drop or choose a video, or take an example, one of the folder, or one that was here before.

import { api, upload } from "./api.js";
import { announce, complain, el, fill, find } from "./dom.js";
import { isStop } from "./jobs.js";

const RECENT = 8;

export class Start {
  /** opened(video): called with the video that a person chose. */
  constructor(root, { opened }) {
    this.root = root;
    this.opened = opened;
    this.stopper = null;
    this.file = find("input[type=file]", root);
    this.file.addEventListener("change", () => {
      if (this.file.files.length) this.send(this.file.files[0]);
      this.file.value = ""; // so that the same file can be chosen again
    });
    find("[data-do=stop-upload]").addEventListener("click", () => this.stopper?.abort());
    this.#dropping();
  }

  /** A file may be dropped anywhere on the page. */
  #dropping() {
    const holdsFile = (event) => [...(event.dataTransfer?.types ?? [])].includes("Files");
    const over = (on) => document.body.classList.toggle("dropping", on);
    document.addEventListener("dragover", (event) => {
      if (!holdsFile(event)) return;
      event.preventDefault();
      over(true);
    });
    document.addEventListener("dragleave", (event) => event.relatedTarget === null && over(false));
    document.addEventListener("drop", (event) => {
      if (!holdsFile(event)) return;
      event.preventDefault();
      over(false);
      if (event.dataTransfer.files.length) this.send(event.dataTransfer.files[0]);
    });
  }

  /** Upload a file and open it. */
  async send(file) {
    this.stopper?.abort();
    const mine = new AbortController();
    this.stopper = mine;
    complain(null);
    const line = find("#uploading");
    line.hidden = false;
    const progress = (share) => {
      find("progress", line).value = share;
      find("span", line).textContent = share < 1 ? `Sending ${file.name}` : `Reading ${file.name}`;
      if (share === 1) find("progress", line).removeAttribute("value");
    };
    progress(0);
    announce(`Sending ${file.name}`);
    await this.#open(() => upload(file, { progress, signal: mine.signal }), { retry: () => this.send(file) });
    if (this.stopper === mine) {
      this.stopper = null;
      line.hidden = true;
    }
  }

  async #open(get, { retry = null } = {}) {
    complain(null);
    this.root.setAttribute("aria-busy", "true");
    try {
      this.opened(await get());
    } catch (error) {
      if (isStop(error)) announce("Stopped");
      else complain(error.message, { retry: error.status === 0 || error.status === 429 ? retry : null });
    } finally {
      this.root.removeAttribute("aria-busy");
    }
  }

  /** Tell what the server takes. */
  setModel({ limits }) {
    const parts = [];
    if (limits?.bytes) parts.push(`up to ${Math.round(limits.bytes / 2 ** 20)} MB`);
    if (limits?.seconds) parts.push(`${limits.seconds >= 120 ? `${Math.round(limits.seconds / 60)} minutes` : `${limits.seconds} s`} long`);
    find(".limits", this.root).textContent = parts.length ? `Any common format, ${parts.join(" and ")}.` : "Any common format.";
  }

  /** Ask the server what there is to begin with. */
  async refresh() {
    const [examples, folder, recent] = await Promise.all([api.examples(), api.folder(), api.videos(RECENT)]);
    this.#list(".examples", examples.examples, ({ name, title }) => this.#choice(title, () => api.example(name)));
    this.#list(".folder", folder.videos, ({ key, name }) => this.#choice(name, () => api.folderVideo(key)));
    this.#list(".recent", recent.videos, (video) => this.#recent(video));
  }

  #list(where, items, make) {
    const section = find(where, this.root);
    section.hidden = items.length === 0;
    fill(find("ul", section), ...items.map(make));
  }

  #choice(title, get) {
    return el("li", {}, el("button", { type: "button", class: "choice", on: { click: () => this.#open(get) } }, title));
  }

  #recent(video) {
    const told = `${video.duration.toFixed(1)}\u00a0s · ${video.width} × ${video.height}`;
    const open = el("button", { type: "button", class: "choice", on: { click: () => this.#open(async () => video) } }, el("span", {}, video.name), el("small", {}, told));
    const remove = el("button", { type: "button", class: "small quiet", "aria-label": `Remove ${video.name}`, on: { click: () => this.#remove(video) } }, "Remove");
    return el("li", { class: "kept" }, open, remove);
  }

  async #remove(video) {
    if (!window.confirm(`Remove ${video.name} and its answers from the server?`)) return;
    try {
      await api.removeVideo(video.id);
      await this.refresh();
    } catch (error) {
      complain(error.message);
    }
  }
}
