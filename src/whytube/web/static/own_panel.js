// "What if this were hidden?": draw a region, ask the network without it, and read what that did.

import { api } from "./api.js";
import { OWN } from "./colours.js";
import { complain, el, fill, find } from "./dom.js";
import { DrawTool } from "./draw.js";
import { verdictText } from "./evidence.js";
import { isStop } from "./jobs.js";
import { OwnTube } from "./own_tube.js";
import { changeText, evidenceTable } from "./reasons.js";

export class OwnPanel {
  constructor(pane) {
    this.pane = pane;
    this.root = find(".own", pane.root);
    this.opener = find("[data-do=draw]", pane.root);
    this.tube = null;
    this.answer = null; // {result, explanation}
    this.tool = new DrawTool(pane.stage.canvas, { frame: () => pane.player.goal, changed: () => this.#changed() });
    const on = (name, click) => find(`[data-do=${name}]`, this.root).addEventListener("click", click);
    this.opener.addEventListener("click", () => (this.tube ? this.#close() : this.#open()));
    on("add-box", () => this.tool.addBox());
    on("remove-box", () => this.#edit(() => this.tube.remove(this.#frame)));
    on("begin", () => this.#edit(() => this.tube.begin(this.#frame)));
    on("end", () => this.#edit(() => this.tube.end(this.#frame)));
    on("what-if", () => this.#ask());
    on("close-own", () => this.#close());
  }

  get #frame() {
    return this.pane.player.goal;
  }

  #edit(change) {
    change();
    this.#changed();
  }

  #open() {
    const { video, player } = this.pane;
    player.pause();
    this.pane.show();
    this.tube = new OwnTube(video, video.frames);
    this.tool.use(this.tube);
    this.pane.refresh();
    this.pane.stage.canvas.focus({ preventScroll: true });
  }

  #close() {
    this.reset();
    this.pane.show();
    this.pane.refresh();
    this.opener.focus();
  }

  /** Forget what was drawn. */
  reset() {
    this.tube = null;
    this.answer = null;
    this.tool.use(null);
  }

  #changed() {
    this.answer = null;
    if (this.pane.state.hidden) this.pane.show();
    this.pane.refresh();
  }

  async #ask() {
    const { tube, pane } = this;
    const { why = null, why_not = null } = pane.question ?? {};
    const body = { kind: "what_if", video: pane.video.id, why, why_not, tube: tube.toTube() };
    try {
      const job = await pane.side.run(body, { name: "Asking without your region" });
      const explanation = (await api.result(job.result)).document;
      if (this.tube !== tube) return;
      this.answer = { result: job.result, explanation };
      pane.refresh();
    } catch (error) {
      if (!isStop(error)) complain(error.message);
    }
  }

  /** The tube as the stage draws it. */
  tubes(hidden) {
    if (!this.tube || this.tube.empty) return [];
    const { tube } = this;
    const runs = () => [[tube.first, tube.last + 1]];
    const label = hidden ? "" : "yours";
    const moving = { at: (frame) => tube.at(frame), runs };
    return [{ key: OWN, rank: OWN, name: "your region", where: "drawn by hand", label, moving, drawn: true, dashed: hidden?.rank === OWN }];
  }

  render() {
    this.root.hidden = this.tube === null;
    this.opener.setAttribute("aria-expanded", String(this.tube !== null));
    if (!this.tube) return;
    const count = this.tube.keys.size;
    const span = `frames ${this.tube.first + 1} to ${this.tube.last + 1}`;
    find(".own-state", this.root).textContent =
      count === 0
        ? "Drag a box on the video, or add one with the button."
        : `${count === 1 ? "One box" : `${count} boxes, at frames ${this.tube.keyFrames.map((f) => f + 1).join(", ")}`}; the region lasts ${span}.`;
    find("[data-do=what-if]", this.root).disabled = count === 0;
    for (const name of ["remove-box", "begin", "end"]) find(`[data-do=${name}]`, this.root).disabled = count === 0;
    this.#told();
  }

  #told() {
    const place = find(".own-answer", this.root);
    place.hidden = this.answer === null;
    if (!this.answer) return fill(place);
    const { explanation } = this.answer;
    const [reason] = explanation.reasons;
    const { positive, negative } = explanation;
    const { hidden } = this.pane.state;
    const masked = (rank, name) => this.pane.toggleHidden(rank, name);
    return fill(
      place,
      el("p", { class: "verdict" }, el("strong", {}, verdictText(reason, positive, negative)), ` ${changeText(reason, explanation)}`),
      evidenceTable(reason, explanation, { rank: OWN, hidden, masked }),
    );
  }
}
