// Share an answer by its link, and download it: overlay videos, JSON, a page of its own, tracks for CVAT.

import { api } from "./api.js";
import { announce, complain, el, find } from "./dom.js";
import { isStop } from "./jobs.js";
import { Work } from "./work.js";

export class Share {
  constructor(root) {
    this.root = root;
    this.result = null;
    this.work = new Work(find(".work", root));
    this.link = find(".link", root);
    find("[data-do=share]", root).addEventListener("click", () => this.#toggle());
    find("[data-do=copy]", root).addEventListener("click", () => this.#copy());
    for (const button of root.querySelectorAll("[data-style]")) {
      button.addEventListener("click", () => this.#overlay(button.dataset.style));
    }
  }

  /** Take the result that is shown; null for none. */
  set(result) {
    this.root.hidden = result === null;
    if (result === this.result) return;
    this.result = result;
    this.link.hidden = true;
    find("[data-do=share]", this.root).setAttribute("aria-expanded", "false");
    if (result === null) return this.work.stop();
    for (const link of this.root.querySelectorAll("a[data-file]")) link.href = api.resultUrl(result, link.dataset.file);
    find("input", this.link).value = new URL(`/r/${result}`, window.location.href).href;
    return undefined;
  }

  #toggle() {
    this.link.hidden = !this.link.hidden;
    find("[data-do=share]", this.root).setAttribute("aria-expanded", String(!this.link.hidden));
    if (this.link.hidden) return;
    find("input", this.link).select();
    this.#copy();
  }

  async #copy() {
    const field = find("input", this.link);
    const told = find(".copied", this.link);
    field.select();
    try {
      await navigator.clipboard.writeText(field.value);
      told.textContent = "Copied.";
    } catch {
      told.textContent = "Copy it with Ctrl+C or ⌘C."; // without https a browser lets nobody write there
    }
    announce(told.textContent);
  }

  /** Have the video with boxes or heat made, then download it. */
  async #overlay(style) {
    const { result } = this;
    try {
      const job = await this.work.run({ kind: "overlay", result, style }, { name: "Making the video" });
      const link = el("a", { href: job.value.url, download: style === "heat" ? "heat.mp4" : "overlay.mp4", hidden: true });
      document.body.append(link);
      link.click();
      link.remove();
    } catch (error) {
      if (!isStop(error)) complain(error.message);
    }
  }
}
