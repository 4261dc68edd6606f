// The picture with its boxes: draws them, and turns mouse, pen, touch and keys into boxes, zoom and pan.

import { HANDLES, boxBetween, fitted, handlePoint, held, hit, moved, resized, zoomed } from "./annotate_model.js";
import { paintBoxes } from "./paint.js";

const REACH = { mouse: 8, pen: 12, touch: 20 }; // screen pixels around a handle
const DRAWN = 4; // screen pixels that a pointer moves before it draws
const CURSORS = { nw: "nwse", se: "nwse", ne: "nesw", sw: "nesw", n: "ns", s: "ns", e: "ew", w: "ew" };

/**
 * boxes(frame): what there is to see, [{box, id, label, rank, chosen, dashed, dim, mine}], the chosen one first.
 * drawn(box): a new box for the chosen attribute. changed(box, final): the chosen box is moved or resized.
 * chose(id): another box was picked. busy(): a pointer begins to draw.
 */
export class Stage {
  constructor(root, player, { boxes, drawn, changed, chose, busy }) {
    Object.assign(this, { root, player, boxes, drawn, changed, chose, busy });
    this.canvas = player.canvas;
    this.size = { width: 16, height: 9 };
    this.view = null;
    this.pointers = new Map();
    this.gesture = null; // {kind: "draw" | "change" | "pan" | "pinch", ...}
    this.panning = false; // the space key is down: a drag moves the picture
    this.panned = false; // one did
    player.draw = (context, frame) => this.#paint(context, frame);
    const on = (name, handler, options) => this.canvas.addEventListener(name, handler, options);
    on("pointerdown", (event) => this.#down(event));
    on("pointermove", (event) => this.#move(event));
    on("pointerup", (event) => this.#up(event));
    on("pointercancel", (event) => this.#cancel(event));
    on("wheel", (event) => this.#wheel(event), { passive: false });
    on("contextmenu", (event) => event.preventDefault());
    new ResizeObserver(() => this.#resized()).observe(root);
  }

  /** Show pictures of another size. */
  show(size) {
    this.size = size;
    this.view = null;
    this.gesture = null;
    this.#resized();
  }

  get room() {
    return { width: this.root.clientWidth || 1, height: this.root.clientHeight || 1 };
  }

  get zoom() {
    return this.view ? this.view.scale / fitted(this.size, this.room).scale : 1;
  }

  zoomBy(factor, point = [this.room.width / 2, this.room.height / 2]) {
    this.#look(zoomed(this.view, factor, point, this.size, this.room));
  }

  zoomOut() {
    this.#look(fitted(this.size, this.room));
  }

  panBy(dx, dy) {
    this.#look(held({ ...this.view, x: this.view.x + dx, y: this.view.y + dy }, this.size, this.room));
  }

  redraw() {
    this.player.redraw();
  }

  /** Stop what a pointer is doing, and leave the box as it was. */
  stop() {
    const { gesture } = this;
    this.gesture = null;
    if (gesture?.kind === "change" && gesture.now) this.changed(gesture.box, null);
    this.redraw();
    return gesture !== null;
  }

  #resized() {
    const fit = fitted(this.size, this.room);
    this.#look(this.view && this.view.scale > fit.scale ? held(this.view, this.size, this.room) : fit);
  }

  #look(view) {
    this.view = view;
    const { video } = this.player;
    video.style.width = `${this.size.width}px`;
    video.style.height = `${this.size.height}px`;
    video.style.transform = `translate(${view.x}px, ${view.y}px) scale(${view.scale})`;
    this.root.dataset.zoom = this.zoom.toFixed(3);
    this.root.dispatchEvent(new CustomEvent("look"));
    this.redraw();
  }

  /** A point of an event in pixels of the window, and of the picture. */
  #screen(event) {
    const edge = this.canvas.getBoundingClientRect();
    return [event.clientX - edge.left, event.clientY - edge.top];
  }

  #picture([x, y]) {
    return [(x - this.view.x) / this.view.scale, (y - this.view.y) / this.view.scale];
  }

  #onScreen([x1, y1, x2, y2]) {
    const { scale, x, y } = this.view;
    return [x1 * scale + x, y1 * scale + y, x2 * scale + x, y2 * scale + y];
  }

  #down(event) {
    this.root.focus({ preventScroll: true });
    event.preventDefault();
    this.canvas.setPointerCapture(event.pointerId);
    const screen = this.#screen(event);
    this.pointers.set(event.pointerId, screen);
    if (this.pointers.size === 2) return this.#pinch();
    if (this.pointers.size > 2) return undefined;
    if (event.button === 1 || this.panning) {
      this.gesture = { kind: "pan", last: screen };
      return undefined;
    }
    if (event.button !== 0) return undefined;
    this.busy();
    const found = this.#under(screen, event.pointerType);
    const [x, y] = this.#picture(screen);
    if (found?.box.chosen) {
      this.gesture = { kind: "change", handle: found.what, box: found.box.box, from: [x, y], now: null };
    } else {
      // A click on another box picks it; a drag draws, also over others.
      this.gesture = { kind: "draw", from: [x, y], start: screen, over: found?.box.id ?? null, now: null };
    }
    return undefined;
  }

  #under(screen, pointer) {
    const reach = REACH[pointer] ?? REACH.mouse;
    const mine = this.boxes(this.player.frame).filter((each) => each.mine);
    for (const box of mine) {
      const what = hit(this.#onScreen(box.box), screen, box.chosen ? reach : 0);
      if (what) return { box, what: box.chosen ? what : "move" };
    }
    return null;
  }

  #pinch() {
    if (this.gesture?.kind === "change" && this.gesture.now) this.changed(this.gesture.box, null);
    const [a, b] = [...this.pointers.values()];
    this.gesture = { kind: "pinch", apart: Math.hypot(a[0] - b[0], a[1] - b[1]), middle: middle(a, b) };
  }

  #move(event) {
    const screen = this.#screen(event);
    if (!this.pointers.has(event.pointerId)) return this.#point(screen, event.pointerType);
    this.pointers.set(event.pointerId, screen);
    const { gesture } = this;
    if (!gesture) return undefined;
    const here = this.#picture(screen);
    if (gesture.kind === "pan") {
      this.panned = true;
      this.panBy(screen[0] - gesture.last[0], screen[1] - gesture.last[1]);
      gesture.last = screen;
    } else if (gesture.kind === "pinch" && this.pointers.size === 2) {
      const [a, b] = [...this.pointers.values()];
      const [apart, centre] = [Math.hypot(a[0] - b[0], a[1] - b[1]), middle(a, b)];
      this.panBy(centre[0] - gesture.middle[0], centre[1] - gesture.middle[1]);
      if (gesture.apart > 0) this.zoomBy(apart / gesture.apart, centre);
      Object.assign(gesture, { apart, middle: centre });
    } else if (gesture.kind === "draw") {
      const far = Math.hypot(screen[0] - gesture.start[0], screen[1] - gesture.start[1]) >= DRAWN;
      if (far || gesture.now) gesture.now = boxBetween(gesture.from, here, this.size);
      this.redraw();
    } else if (gesture.kind === "change") {
      const [dx, dy] = [here[0] - gesture.from[0], here[1] - gesture.from[1]];
      const change = gesture.handle === "move" ? moved : (box, x, y, size) => resized(box, gesture.handle, x, y, size);
      gesture.now = change(gesture.box, dx, dy, this.size);
      this.changed(gesture.now, false);
    }
    return undefined;
  }

  #point(screen, pointer) {
    const found = this.#under(screen, pointer);
    const side = found?.box.chosen ? CURSORS[found.what] : null;
    const free = found ? (found.box.chosen ? "move" : "pointer") : "crosshair";
    this.canvas.style.cursor = this.panning ? "grab" : side ? `${side}-resize` : free;
  }

  #up(event) {
    this.pointers.delete(event.pointerId);
    const { gesture } = this;
    if (gesture?.kind === "pinch") {
      if (this.pointers.size === 0) this.gesture = null;
      return;
    }
    this.gesture = null;
    if (gesture?.kind === "draw") {
      if (gesture.now) this.drawn(gesture.now);
      else if (gesture.over !== null) this.chose(gesture.over);
      this.redraw();
    } else if (gesture?.kind === "change" && gesture.now) {
      this.changed(gesture.now, true);
    }
  }

  #cancel(event) {
    this.pointers.delete(event.pointerId);
    this.stop();
  }

  #wheel(event) {
    event.preventDefault();
    const factor = Math.exp(-event.deltaY * (event.deltaMode === 1 ? 0.05 : 0.002));
    this.zoomBy(factor, this.#screen(event));
  }

  #paint(context, frame) {
    if (!this.view) return;
    const { room } = this;
    const shown = this.boxes(frame);
    const placed = shown.map((each) => ({ ...each, strong: each.chosen, box: this.#onScreen(each.box) }));
    const rubber = this.gesture?.kind === "draw" ? this.gesture.now : null;
    if (rubber) placed.unshift({ box: this.#onScreen(rubber), rank: this.rank ?? 0, label: "", dashed: true });
    paintBoxes(context, placed, room);
    const chosen = placed.find((each) => each.chosen && each.mine);
    if (chosen) paintHandles(context, chosen.box);
    this.canvas.dataset.boxes = JSON.stringify(shown.map(({ id, box }) => [id, ...box]));
  }
}

const middle = (a, b) => [(a[0] + b[0]) / 2, (a[1] + b[1]) / 2];

function paintHandles(context, box) {
  const density = window.devicePixelRatio || 1;
  context.save();
  context.lineWidth = 1.5 * density;
  context.fillStyle = "#ffffff";
  context.strokeStyle = "rgb(0 0 0 / .8)";
  const small = Math.min(box[2] - box[0], box[3] - box[1]) < 36;
  for (const handle of HANDLES.filter((each) => !small || each.length === 2)) {
    const [x, y] = handlePoint(box, handle).map((value) => value * density);
    context.beginPath();
    context.arc(x, y, (handle.length === 2 ? 5 : 3.5) * density, 0, 2 * Math.PI);
    context.fill();
    context.stroke();
  }
  context.restore();
}
