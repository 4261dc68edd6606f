// The page where one asks: which video, what the network said, which question, and the answers to it.

import { api } from "./api.js";
import { Together } from "./compare.js";
import { announce, complain, el, fill, find } from "./dom.js";
import { percent } from "./evidence.js";
import { isStop } from "./jobs.js";
import { Keys } from "./keys.js";
import { Pane } from "./pane.js";
import { Predictions } from "./predictions.js";
import { Start } from "./start.js";
import { beginSession } from "./token.js";
import { Work } from "./work.js";

class App {
  constructor(model) {
    this.model = model;
    this.video = null;
    this.together = new Together();
    this.picking = false; // whether the next class is the one to compare with
    this.start = new Start(find("#start"), { opened: (video) => this.openVideo(video) });
    this.start.setModel(model);
    this.predictions = new Predictions(find("#question"), { picked: (name) => this.pick(name) });
    this.work = new Work(find("#question .work"));
    this.why = find("[name=why]");
    this.k = find("[name=k]");
    this.effort = find("[name=effort]");
    this.panes = [this.#pane()];
    fill(find("#panes"), this.panes[0].root);
    this.#choices();
    this.#buttons();
    window.addEventListener("popstate", () => this.route());
  }

  #pane() {
    const pane = new Pane({
      answered: () => this.#answered(),
      moved: (frame) => this.together.moved(pane.player, frame),
      changed: () => this.together.changed(pane.player),
    });
    return pane;
  }

  #choices() {
    const { efforts, classes } = this.model;
    const told = ([name, tubes]) => el("option", { value: name, selected: name === "normal" }, `${name}: ${tubes} tried`);
    fill(this.effort, ...Object.entries(efforts).map(told));
    find(".options").open = window.matchMedia("(min-width: 80.01rem)").matches;
    fill(this.why, ...classes.map((name) => el("option", { value: name }, name)));
    for (const choice of [this.why, this.k, this.effort]) choice.addEventListener("change", () => this.#askAgain());
  }

  #buttons() {
    const on = (name, click) => find(`[data-do=${name}]`).addEventListener("click", click);
    on("another", () => this.home());
    on("compare", () => this.#compare());
    const pane = () => this.panes[0];
    this.keys = new Keys({
      toggle: () => pane().player.toggle(),
      step: (count) => pane().player.step(count),
      first: () => pane().player.step(-Infinity),
      last: () => pane().player.step(Infinity),
      select: (rank) => pane().select(rank),
      hide: () => pane().toggleHidden(),
      heat: () => pane().stage.setShow(pane().stage.show === "heat" ? "boxes" : "heat"),
      search: () => this.predictions.search.focus(),
    });
  }

  /** Show what the address names: an answer, a video, or the beginning. */
  async route() {
    complain(null);
    const { pathname, search } = window.location;
    const wanted = new URLSearchParams(search);
    const result = pathname.match(/^\/r\/([^/]+)$/)?.[1];
    try {
      if (result) await this.openResult(decodeURIComponent(result), wanted.get("with"));
      else if (wanted.get("video")) await this.openVideo(await api.video(wanted.get("video")), { write: false });
      else await this.home({ write: false });
    } catch (error) {
      await this.home({ write: false });
      complain(error.message);
    }
  }

  /** The beginning, where one chooses a video. */
  async home({ write = true } = {}) {
    for (const pane of this.panes) {
      pane.stop();
      pane.player.pause();
    }
    this.work.stop();
    this.#view("start");
    if (write) window.history.pushState(null, "", "/");
    try {
      await this.start.refresh();
    } catch (error) {
      complain(error.message);
    }
    if (write) find("#start h1").focus();
  }

  #view(name) {
    find("#start").hidden = name !== "start";
    find("#ask").hidden = name !== "ask";
    document.title = name === "ask" ? `${this.video.name} – whytube` : "whytube: why A, not B?";
  }

  /** Take a video and have it classified. */
  async openVideo(video, { write = true } = {}) {
    this.#take(video);
    if (write) window.history.pushState(null, "", `/?video=${encodeURIComponent(video.id)}`);
    find("#ask h1").focus();
    await this.#classify();
  }

  #take(video) {
    this.video = video;
    this.#part();
    this.#view("ask");
    fill(find("#ask h1"), video.name);
    find("#facts").textContent = `${video.duration.toFixed(1)} s · ${video.frames} frames · ${video.width} × ${video.height}`;
    this.panes[0].setVideo(video);
    this.predictions.set({ probabilities: {}, negatives: [] });
    this.#said(null);
    this.#answered({ write: false });
  }

  async #classify() {
    const { video } = this;
    try {
      const job = await this.work.run({ kind: "classify", video: video.id }, { name: "Classifying" });
      if (this.video !== video) return;
      this.#said(job.value);
    } catch (error) {
      if (!isStop(error)) complain(error.message, { retry: () => this.#classify() });
    }
  }

  /** Show what the network says; asked: the A of an answer that is shown, else the class that was predicted. */
  #said(value) {
    const said = find("#said");
    said.hidden = value === null;
    find("#question").classList.toggle("waiting", value === null);
    if (value === null) return;
    const { predicted, probabilities } = value;
    fill(said, "The network says ", el("b", { class: "class-a" }, predicted), ` (${percent(probabilities[predicted])})`);
    announce(said.textContent);
    this.predicted = predicted;
    const asked = this.panes[0].question?.why ?? predicted;
    this.why.value = asked;
    this.predictions.set({ probabilities, positive: asked, negatives: this.#negatives() });
  }

  #negatives() {
    return this.panes.map((pane) => pane.question?.why_not).filter(Boolean);
  }

  /** Ask "why not this class?", of the first answer or of the one beside it. */
  pick(name) {
    if (this.picking || this.panes.length > 1) this.#beside().ask(this.#question(name));
    else this.panes[0].ask(this.#question(name));
    this.picking = false;
    this.#asked();
    if (window.matchMedia("(max-width: 60rem)").matches) this.panes.at(-1).root.querySelector(".answer").scrollIntoView({ block: "nearest" });
  }

  #question(negative) {
    const { effort } = this;
    return { why: this.why.value, why_not: negative, k: Number(this.k.value), effort: effort.value };
  }

  #asked() {
    this.predictions.set({ positive: this.why.value, negatives: this.#negatives() });
    this.#comparing();
  }

  /** A choice has changed: what was asked is asked again with it. */
  #askAgain() {
    for (const pane of this.panes) {
      if (pane.question?.why_not && pane.question.why_not !== this.why.value) pane.ask(this.#question(pane.question.why_not));
    }
    this.#asked();
  }

  #compare() {
    if (this.panes.length > 1 || this.picking) {
      this.picking = false;
      this.#part();
      this.#answered();
    } else {
      this.picking = true;
      this.#comparing();
      this.predictions.search.focus();
    }
  }

  /** The pane of the second answer, made when it is first wanted. */
  #beside() {
    if (this.panes.length === 1) {
      const pane = this.#pane();
      this.panes.push(pane);
      find("#panes").append(pane.root);
      pane.setVideo(this.video);
      this.together.join(this.panes[0].player, pane.player);
      for (const each of this.panes) each.player.pause();
    }
    return this.panes[1];
  }

  #part() {
    this.together.part();
    for (const pane of this.panes.splice(1)) {
      pane.stop();
      pane.player.pause();
      pane.root.remove();
    }
    this.picking = false;
    this.#comparing();
  }

  #comparing() {
    const two = this.panes.length > 1;
    find("#ask").classList.toggle("comparing", two);
    find("[data-do=compare]").textContent = two ? "Stop comparing" : this.picking ? "Do not compare" : "Compare with another class";
    find("#pick-hint").textContent = this.picking ? "Pick a second class, to compare both answers." : two ? "Pick another class for the right side." : "Pick a class to ask why it was not that one.";
  }

  /** Let the address name the answers that are shown. */
  #answered({ write = true } = {}) {
    const [first, second] = this.panes.map((pane) => pane.state.result);
    find("[data-do=compare]").hidden = !first;
    if (!write || !first) return;
    const address = `/r/${first}${second ? `?with=${second}` : ""}`;
    if (window.location.pathname + window.location.search !== address) window.history.replaceState(null, "", address);
  }

  /** Show answers that are kept by the server. */
  async openResult(id, other = null) {
    const [first, second] = await Promise.all([api.result(id), other ? api.result(other) : null]);
    this.#take(await api.video(first.video));
    this.#settle(this.panes[0], first);
    if (second && second.video === first.video) this.#settle(this.#beside(), second);
    this.#comparing();
    await this.#classify();
  }

  #settle(pane, { id, document: explanation }) {
    const { settings, positive, negative } = explanation;
    const named = Object.entries(this.model.efforts).find(([, tubes]) => tubes === settings.effort)?.[0];
    if (settings.k) this.k.value = settings.k;
    if (named) this.effort.value = named;
    pane.question = { why: positive, why_not: negative, k: settings.k, effort: settings.effort };
    pane.open(id, explanation);
  }
}

async function main() {
  await beginSession();
  try {
    const app = new App(await api.model());
    find("#model").textContent = app.model.name;
    await app.route();
    document.body.dataset.ready = "";
  } catch (error) {
    complain(error.message, { retry: main });
  }
}

main();
