// Drawing a tube on the canvas, with a pointer or with keys.

import { announce } from "./dom.js";
import { shifted } from "./own_tube.js";

const GRIP = 14; // CSS pixels around a corner that grab it

export class DrawTool {
  /** frame(): the frame that is shown. changed(): called when the tube has changed. */
  constructor(canvas, { frame, changed }) {
    Object.assign(this, { canvas, frame, changed });
    this.tube = null;
    this.drag = null;
    canvas.addEventListener("pointerdown", (event) => this.#down(event));
    canvas.addEventListener("pointermove", (event) => this.#move(event));
    canvas.addEventListener("pointerup", () => (this.drag = null));
    canvas.addEventListener("pointercancel", () => (this.drag = null));
    canvas.addEventListener("keydown", (event) => this.#key(event));
  }

  /** Draw on a tube, or stop drawing with null. */
  use(tube) {
    this.tube = tube;
    this.canvas.classList.toggle("drawing", tube !== null);
    this.canvas.setAttribute("role", tube === null ? "img" : "application");
    if (tube === null) this.canvas.removeAttribute("tabindex");
    else this.canvas.tabIndex = 0;
  }

  /** Put a box into the middle of the picture, or make the box that is there a key frame. */
  addBox() {
    const { width, height } = this.tube.size;
    const box = this.tube.at(this.frame()) ?? [width / 3, height / 3, (2 * width) / 3, (2 * height) / 3];
    this.#set(box);
    this.canvas.focus();
  }

  #set(box) {
    this.tube.set(this.frame(), box);
    this.changed();
  }

  /** Place of a pointer in pixels of the video, and how many of those a CSS pixel has. */
  #place(event) {
    const { left, top, width } = this.canvas.getBoundingClientRect();
    const scale = this.tube.size.width / width;
    return { x: (event.clientX - left) * scale, y: (event.clientY - top) * scale, scale };
  }

  #down(event) {
    if (!this.tube || event.button !== 0) return;
    event.preventDefault();
    this.canvas.focus({ preventScroll: true });
    this.canvas.setPointerCapture(event.pointerId);
    const { x, y, scale } = this.#place(event);
    this.drag = grabbed(this.tube.at(this.frame()), x, y, GRIP * scale);
  }

  #move(event) {
    if (!this.tube || !this.drag) return;
    const { x, y } = this.#place(event);
    if (this.drag.fixed) this.#set([...this.drag.fixed, x, y]);
    else this.#set(shifted(this.drag.box, [x - this.drag.x, y - this.drag.y], this.tube.size));
  }

  #key(event) {
    const way = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    const box = this.tube?.at(this.frame());
    if (!way || !box || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    event.stopPropagation();
    const step = (event.altKey ? 0.005 : 0.02) * Math.max(this.tube.size.width, this.tube.size.height);
    const [dx, dy] = way.map((part) => part * step);
    const [x1, y1, x2, y2] = box;
    this.#set(event.shiftKey ? [x1, y1, Math.max(x1, x2 + dx), Math.max(y1, y2 + dy)] : shifted(box, [dx, dy], this.tube.size));
    announce(`Box from ${this.tube.keys.get(this.frame()).map(Math.round).join(", ")}`);
  }
}

/** What a pointer at (x, y) grabs of a box: a corner, with the one across fixed; the box; or nothing, for a new one. */
export function grabbed(box, x, y, grip) {
  if (box) {
    const [x1, y1, x2, y2] = box;
    for (const [cx, cy, fx, fy] of [[x1, y1, x2, y2], [x2, y1, x1, y2], [x1, y2, x2, y1], [x2, y2, x1, y1]]) {
      if (Math.hypot(x - cx, y - cy) <= grip) return { fixed: [fx, fy] };
    }
    if (x > x1 && x < x2 && y > y1 && y < y2) return { box, x, y };
  }
  return { fixed: [x, y] };
}
