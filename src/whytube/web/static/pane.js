// One question about a video, with its answer: the video on the left, the words on the right.

import { api } from "./api.js";
import { OWN } from "./colours.js";
import { announce, complain, fill, find } from "./dom.js";
import { fillName, telling, wordOf } from "./evidence.js";
import { isStop } from "./jobs.js";
import { OwnPanel } from "./own_panel.js";
import { Reasons } from "./reasons.js";
import { Share } from "./share.js";
import { Stage, movingBox } from "./stage.js";
import { pathName } from "./tubes.js";
import { Work } from "./work.js";

const NOTHING = { explanation: null, result: null, selected: null, pointed: null, hidden: null };

export class Pane {
  /** answered(result): called with the id of a finished answer. moved(frame), changed(): as of the player. */
  constructor({ answered = () => {}, moved = () => {}, changed = () => {} } = {}) {
    this.root = find("#pane").content.firstElementChild.cloneNode(true);
    this.answered = answered;
    this.state = { ...NOTHING };
    this.work = new Work(find(".answer .work", this.root));
    this.side = new Work(find(".stage .work", this.root));
    this.stage = new Stage(find(".stage", this.root), { moved, changed, pointed: (key) => this.#point(key === null ? null : Number(key)) });
    this.reasons = new Reasons(find(".sentence", this.root), find(".reasons", this.root), {
      pointed: (rank) => this.#point(rank),
      selected: (rank) => this.select(rank),
      masked: (rank, fillOfIt) => this.toggleHidden(rank, fillOfIt),
    });
    this.own = new OwnPanel(this);
    this.share = new Share(find(".share", this.root));
    find(".hidden-note button", this.root).addEventListener("click", () => this.show());
  }

  get player() {
    return this.stage.player;
  }

  /** Take a video; whatever was asked of another is stopped. */
  setVideo(video) {
    this.stop();
    this.video = video;
    this.question = null;
    this.state = { ...NOTHING };
    this.stage.setVideo(video, api.playUrl(video.id));
    this.own.reset();
    this.#render();
  }

  stop() {
    this.work.stop();
    this.side.stop();
  }

  /** Ask why, and show the reasons as they come. question: {why, why_not, k, effort}. */
  async ask(question) {
    complain(null);
    this.show();
    this.state = { ...this.state, explanation: null, result: null, selected: null };
    this.#remark("");
    this.question = question;
    const body = { kind: "explain", video: this.video.id, ...question };
    const current = () => this.question === question;
    try {
      const running = this.work.run(body, { name: "Looking for reasons", answer: (sofar) => current() && this.#sofar(sofar) });
      this.#render();
      const job = await running;
      if (current()) this.open(job.result, (await api.result(job.result)).document);
    } catch (error) {
      if (!current()) return;
      if (!isStop(error)) complain(error.message, { retry: () => this.ask(question) });
      this.#remark(isStop(error) && this.state.explanation ? "Stopped. This is the best that was found so far; it was not kept." : isStop(error) ? "Stopped before there was an answer." : "");
      this.#render();
    }
  }

  /** Show an answer that is kept by the server. */
  open(result, explanation) {
    this.state = { ...this.state, explanation, result };
    this.#remark("");
    this.#render();
    announce(`Answer: ${explanation.sentence}`);
    this.answered(result);
  }

  #sofar(explanation) {
    if (this.state.explanation === null) announce(`First answer: ${explanation.sentence}`);
    this.state = { ...this.state, explanation };
    this.#remark("So far; the search goes on.");
    this.#render();
  }

  #remark(text) {
    find(".remark", this.root).textContent = text;
  }

  #point(rank) {
    if (this.state.pointed === rank) return;
    this.state.pointed = rank;
    this.#drawTubes();
  }

  /** Pick a reason, or let it go where it was picked. */
  select(rank) {
    if (!this.state.explanation?.reasons[rank]) return;
    this.state.selected = this.state.selected === rank ? null : rank;
    this.#render();
    const reason = this.state.explanation.reasons[rank];
    announce(this.state.selected === null ? "No reason selected" : `Reason ${rank + 1}: ${wordOf(reason)}`);
  }

  /** Play the video with a tube hidden, or as it was. Without a rank: the reason that is selected, or the first. */
  toggleHidden(rank = this.state.selected ?? 0, fillOfIt = null) {
    const evidence = this.#evidence(rank);
    const chosen = fillOfIt ?? evidence[0]?.fill;
    const { hidden } = this.state;
    if (hidden && (fillOfIt === null || (hidden.rank === rank && hidden.fill === chosen))) return this.show();
    return chosen ? this.#hide(rank, chosen) : undefined;
  }

  #evidence(rank) {
    const reason = rank === OWN ? this.own.answer?.explanation.reasons[0] : this.state.explanation?.reasons[rank];
    return reason?.evidence ?? [];
  }

  async #hide(rank, name) {
    const [result, reason] = rank === OWN ? [this.own.answer.result, 0] : [this.state.result, rank];
    if (!result) return;
    const { video } = this;
    try {
      const job = await this.side.run({ kind: "masked", result, reason, fill: name }, { name: "Hiding the region" });
      if (this.video !== video) return;
      this.state.hidden = { rank, fill: name };
      this.player.swap(job.value.url);
      this.#render();
    } catch (error) {
      if (!isStop(error)) complain(error.message);
    }
  }

  /** Play the video as it is. */
  show() {
    if (!this.state.hidden) return;
    this.state.hidden = null;
    this.player.swap(api.playUrl(this.video.id));
    this.#render();
  }

  /** Draw all again, after something has changed. */
  refresh() {
    this.#render();
  }

  #render() {
    const { explanation, result } = this.state;
    this.reasons.render(explanation, { ...this.state, busy: result === null });
    find(".tried", this.root).hidden = !explanation || telling(explanation).length > 0 || !explanation.reasons.length;
    find(".sentence", this.root).classList.toggle("growing", result === null);
    this.#name(explanation?.negative ?? this.question?.why_not);
    this.share.set(result);
    this.own.render();
    this.#note();
    this.#drawTubes();
  }

  /** Two answers side by side are told apart by their class. */
  #name(negative) {
    const about = negative ? `, why not ${negative}` : "";
    find(".stage", this.root).setAttribute("aria-label", `Video${about}`);
    find(".answer", this.root).setAttribute("aria-label", `Answer${about}`);
    find(".own", this.root).setAttribute("aria-label", `A region of your own${about}`);
  }

  #note() {
    const { hidden } = this.state;
    const note = find(".hidden-note", this.root);
    note.hidden = hidden === null;
    if (!hidden) return;
    const word = this.state.explanation?.reasons[hidden.rank]?.attribute;
    const what = hidden.rank === OWN ? "your region" : word ? `“${word}”` : "the region";
    fill(find("span", note), `Playing with ${what} ${fillName(hidden.fill)}`);
  }

  #drawTubes() {
    const { explanation, hidden, pointed, selected } = this.state;
    if (!this.video) return;
    const named = explanation ? telling(explanation) : [];
    const tubes = (explanation?.reasons ?? []).map((reason, rank) => ({
      key: rank,
      rank,
      name: wordOf(reason),
      where: pathName(reason.tube, this.video),
      label: hidden ? "" : reason.attribute || "region",
      moving: movingBox(reason, explanation),
      dashed: hidden?.rank === rank,
      quiet: !named.includes(rank) || (hidden !== null && hidden.rank !== rank),
    }));
    this.stage.setTubes([...tubes, ...this.own.tubes(hidden)], explanation, pointed ?? selected);
  }
}
