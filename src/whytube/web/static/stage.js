// The video with what is drawn on it: buttons, time line, and the choice between boxes, heat and nothing.

import { fill, find, icon } from "./dom.js";
import { drawHeat } from "./heat.js";
import { paintBoxes } from "./paint.js";
import { Player } from "./player.js";
import { Timeline } from "./timeline.js";
import { MovingBox } from "./tubes.js";

const calm = () => window.matchMedia("(prefers-reduced-motion: reduce)").matches;
let count = 0;

export class Stage {
  /** moved(frame), changed(): as of the player. sought(): when a person moves in time. pointed(key): see Timeline. */
  constructor(root, { moved = () => {}, changed = () => {}, pointed = () => {} } = {}) {
    this.root = root;
    this.screen = find(".screen", root);
    this.canvas = find("canvas", root);
    this.tubes = []; // [{key, rank, label, name, moving: {at, runs}, dashed, quiet}]
    this.explanation = null;
    this.pointed = null;
    this.show = "boxes";
    this.timeline = new Timeline(find(".timeline", root), {
      sought: (frame) => {
        this.player.pause();
        this.player.seek(frame);
      },
      pointed,
    });
    this.player = new Player(find("video", root), this.canvas, {
      draw: (context, frame) => this.#draw(context, frame),
      moved: (frame) => {
        this.timeline.setFrame(frame);
        moved(frame);
      },
      changed: () => {
        this.#button();
        changed();
      },
    });
    this.#controls();
  }

  #controls() {
    const on = (name, click) => find(`[data-do=${name}]`, this.root).addEventListener("click", click);
    on("play", () => this.player.toggle());
    on("back", () => this.player.step(-1));
    on("next", () => this.player.step(1));
    fill(find("[data-do=back]", this.root), icon("back"));
    fill(find("[data-do=next]", this.root), icon("next"));
    find("[name=speed]", this.root).addEventListener("change", (event) => {
      this.player.video.defaultPlaybackRate = Number(event.target.value);
      this.player.video.playbackRate = Number(event.target.value);
    });
    count += 1;
    for (const choice of this.root.querySelectorAll("[name=show]")) {
      choice.name = `show-${count}`; // every video has its own choice
      choice.addEventListener("change", () => this.setShow(choice.value));
    }
    this.#button();
  }

  #button() {
    const button = find("[data-do=play]", this.root);
    fill(button, icon(this.player?.playing ? "pause" : "play"));
    button.setAttribute("aria-label", this.player?.playing ? "Pause" : "Play");
  }

  setShow(value) {
    this.show = value;
    for (const choice of this.root.querySelectorAll(".show input")) choice.checked = choice.value === value;
    this.player.redraw();
  }

  /** Show a video of the server, as its API describes it. */
  setVideo(video, url) {
    this.video = video;
    this.root.style.setProperty("--ratio", video.width / video.height);
    this.timeline.setVideo(video);
    this.setTubes([], null);
    this.player.load(url, video);
    if (!calm()) this.player.play();
  }

  /** Draw tubes, best first; the explanation gives heat. `strong` is the key of the one that is pointed at. */
  setTubes(tubes, explanation, strong = null) {
    Object.assign(this, { tubes, explanation, pointed: strong });
    this.timeline.setTracks(
      tubes.map(({ key, rank, name, moving, quiet, drawn }) => ({
        key,
        rank,
        name,
        runs: moving.runs(this.video.frames),
        dim: !drawn && (quiet || (strong !== null && strong !== key)),
        strong: strong === key,
      })),
    );
    this.canvas.setAttribute("aria-label", this.#told());
    this.player.redraw();
  }

  #told() {
    const marked = this.tubes.filter(({ quiet }) => !quiet);
    const list = marked.map(({ name, where }) => `${name}, ${where}`).join("; ");
    return marked.length ? `Video with ${marked.length === 1 ? "a marked region" : `${marked.length} marked regions`}: ${list}` : "Video without marked regions";
  }

  #draw(context, frame) {
    if (!this.video) return;
    const explained = this.tubes.some(({ quiet, drawn }) => !quiet && !drawn);
    if (this.show === "heat" && this.explanation && explained) drawHeat(context, this.explanation, frame);
    const shown = this.tubes.filter((tube) => this.#isShown(tube));
    const boxes = shown.flatMap((tube) => {
      const box = tube.moving.at(frame);
      const other = !tube.drawn && this.pointed !== null && this.pointed !== tube.key;
      return box ? [{ box, rank: tube.rank, label: tube.label, dashed: tube.dashed, strong: this.pointed === tube.key, dim: other }] : [];
    });
    paintBoxes(context, boxes, this.video);
  }

  /** Tubes that do not move the decision are only shown when one points at them; one that is drawn by hand always is. */
  #isShown(tube) {
    if (tube.drawn) return true;
    return this.show === "boxes" && (!tube.quiet || this.pointed === tube.key);
  }
}

/** A reason of an explanation as the stage draws it. */
export const movingBox = (reason, explanation) => new MovingBox(reason.tube, explanation.frames);
