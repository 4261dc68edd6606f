// The time line: a slider over the frames of a video, and under it a track per reason, bright where its tube is.

import { reasonColour } from "./colours.js";
import { el, fill } from "./dom.js";
import { seconds } from "./evidence.js";

export class Timeline {
  /** sought(frame): called when a person goes to a frame. pointed(key | null): when one points at a track. */
  constructor(root, { sought, pointed = () => {} }) {
    this.root = root;
    this.count = 1;
    this.fps = 1;
    this.slider = el("input", {
      type: "range",
      min: 0,
      max: 0,
      step: 1,
      value: 0,
      "aria-label": "Frame of the video",
      on: { input: () => sought(Number(this.slider.value)) },
    });
    this.tracks = el("div", { class: "tracks" });
    this.tracks.addEventListener("pointerdown", (event) => this.#drag(event, sought));
    this.tracks.addEventListener("pointermove", (event) => event.buttons & 1 && this.#drag(event, sought));
    this.tracks.addEventListener("pointerover", (event) => pointed(event.target.closest(".track")?.dataset.key ?? null));
    this.tracks.addEventListener("pointerleave", () => pointed(null));
    this.readout = el("p", { class: "readout" });
    this.bed = el("div", { class: "bed" }, this.slider, this.tracks);
    fill(root, this.bed, this.readout);
  }

  #drag(event, sought) {
    event.preventDefault();
    this.tracks.setPointerCapture(event.pointerId);
    const { left, width } = this.tracks.getBoundingClientRect();
    const frame = Math.floor(((event.clientX - left) / width) * this.count);
    sought(Math.min(Math.max(0, frame), this.count - 1));
  }

  /** Take the frames of a video. */
  setVideo({ frames, fps }) {
    this.count = frames;
    this.fps = fps;
    this.slider.max = frames - 1;
    this.root.style.setProperty("--count", frames);
    this.setFrame(0);
  }

  /** Show tracks: [{key, rank, name, runs, dim, strong}], runs as [first frame, end). */
  setTracks(tracks) {
    const share = (frame) => `${(100 * frame) / this.count}%`;
    fill(
      this.tracks,
      ...tracks.map(({ key, rank, name, runs, dim, strong }) => {
        const bars = runs.map(([first, end]) =>
          el("span", { class: "run", style: { "--from": share(first), "--to": share(end), "--colour": reasonColour(rank) } }),
        );
        const state = `track${dim ? " dim" : ""}${strong ? " strong" : ""}`;
        return el("div", { class: state, "data-key": key, title: `${name}: ${this.#told(runs)}` }, ...bars);
      }),
      el("span", { class: "head" }),
    );
  }

  #told(runs) {
    return runs.map(([first, end]) => `frames ${first + 1} to ${end}`).join(", ") || "in no frame";
  }

  setFrame(frame) {
    this.slider.value = frame;
    const where = `frame ${frame + 1} of ${this.count}`;
    this.slider.setAttribute("aria-valuetext", `${where}, ${seconds(frame / this.fps)}`);
    this.readout.textContent = `${where} · ${seconds(frame / this.fps)}`;
    this.root.style.setProperty("--now", `${(100 * (frame + 0.5)) / this.count}%`);
  }
}
