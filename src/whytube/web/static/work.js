// A line that tells how far a job is, with a button that stops it.

import { announce, el, fill } from "./dom.js";
import { isStop, progressShare, progressText, runJob } from "./jobs.js";

export class Work {
  constructor(root) {
    this.root = root;
    this.stopper = null;
    this.text = el("span", { class: "what" });
    this.bar = el("progress", { max: 1, "aria-label": "Progress" });
    this.cancel = el("button", { type: "button", class: "small", on: { click: () => this.stop() } }, "Cancel");
    fill(root, el("div", { class: "told" }, this.text, this.bar), this.cancel);
    root.hidden = true;
  }

  get busy() {
    return this.stopper !== null;
  }

  stop() {
    this.stopper?.abort();
  }

  /** Run a job, stopping the one before; name: what it does, for screen readers. Resolves with the job that is done. */
  async run(body, { name, answer = () => {} }) {
    this.stop();
    const mine = new AbortController();
    this.stopper = mine;
    this.#show("Sending", null);
    announce(`${name}: started`);
    try {
      const job = (state) => this.stopper === mine && this.#show(progressText(state), progressShare(state));
      const done = await runJob(body, { job, answer, signal: mine.signal });
      announce(`${name}: done`);
      return done;
    } catch (error) {
      if (this.stopper === mine) announce(isStop(error) ? `${name}: cancelled` : `${name}: failed`);
      throw error;
    } finally {
      if (this.stopper === mine) {
        this.stopper = null;
        this.root.hidden = true;
      }
    }
  }

  #show(text, share) {
    this.root.hidden = false;
    this.text.textContent = text;
    if (share === null) this.bar.removeAttribute("value");
    else this.bar.value = share;
  }
}
