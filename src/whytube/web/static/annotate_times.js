// The time line of the annotating page: a slider, and under it a lane per track with its key frames.

import { runs } from "./annotate_model.js";
import { reasonColour } from "./colours.js";
import { el, fill } from "./dom.js";
import { seconds } from "./evidence.js";

export class Times {
  /** sought(frame): a person goes to a frame. chose(word, track): a person picks a track. */
  constructor(root, { sought, chose }) {
    Object.assign(this, { root, sought, chose, count: 1, fps: 1 });
    this.slider = el("input", {
      type: "range", class: "slider", min: 0, max: 0, step: 1, value: 0, "aria-label": "Frame of the video",
      on: { input: () => sought(Number(this.slider.value)) },
    });
    this.rows = el("div", { class: "rows" });
    fill(root, this.slider, this.rows);
  }

  setVideo({ frames, fps }) {
    Object.assign(this, { count: frames, fps });
    this.slider.max = frames - 1;
    fill(this.rows);
    this.setFrame(0);
  }

  setFrame(frame) {
    this.slider.value = frame;
    this.slider.setAttribute("aria-valuetext", `frame ${frame + 1} of ${this.count}, ${seconds(frame / this.fps)}`);
    this.root.style.setProperty("--now", this.#share(frame + 0.5));
  }

  set(page) {
    const { state, annotator, word, track } = page;
    const mine = state.tracks.filter((each) => each.annotator === annotator);
    const place = ({ attribute }) => page.overview.words.findIndex((row) => row.word === attribute);
    mine.sort((a, b) => place(a) - place(b) || a.track - b.track);
    fill(this.rows, ...mine.map((each) => this.#row(each, page.rank(each.attribute), each.attribute === word && each.track === track)));
  }

  #share(frame) {
    return `${(100 * frame) / this.count}%`;
  }

  #row(track, rank, chosen) {
    const colour = { "--colour": reasonColour(rank) };
    const bars = runs(track, this.count).map(({ first, end, kind }) =>
      el("span", { class: `run ${kind}`, style: { ...colour, "--from": this.#share(first), "--to": this.#share(end) } }),
    );
    const ticks = track.keys.filter(({ frame }) => frame < this.count).map(({ frame, outside }) =>
      el("span", { class: `tick${outside ? " outside" : ""}`, style: { ...colour, "--at": this.#share(frame + 0.5) } }),
    );
    const lane = el("div", { class: "lane" }, ...bars, ...ticks, el("span", { class: "now" }));
    lane.addEventListener("pointerdown", (event) => {
      const { left, width } = lane.getBoundingClientRect();
      this.chose(track.attribute, track.track);
      this.sought(Math.min(Math.max(0, Math.floor(((event.clientX - left) / width) * this.count)), this.count - 1));
    });
    const shown = track.keys.filter(({ outside }) => !outside).length;
    const label = `${track.attribute}${track.track > 1 ? ` ${track.track}` : ""}, ${shown} key frame${shown === 1 ? "" : "s"}`;
    const name = el("button", { type: "button", title: track.attribute, "aria-label": label, "aria-pressed": String(chosen), on: { click: () => this.chose(track.attribute, track.track) } },
      el("span", { class: "dot-colour", "aria-hidden": "true", style: colour }),
      el("span", {}, track.track > 1 ? `${track.attribute} ${track.track}` : track.attribute));
    return el("div", { class: "time", "data-chosen": chosen }, name, lane);
  }
}
