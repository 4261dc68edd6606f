// A tube that a person draws: boxes at key frames, linear in between, from a first frame to a last one.

import { interpolated } from "./tubes.js";

export const LEAST = 4; // pixels of the video: the smallest side of a box

export class OwnTube {
  /** size: {width, height} of the video's frames; frames: how many it has. */
  constructor(size, frames) {
    this.size = size;
    this.keys = new Map(); // frame -> box
    this.first = 0;
    this.last = frames - 1;
    this.frames = frames;
  }

  get empty() {
    return this.keys.size === 0;
  }

  get keyFrames() {
    return [...this.keys.keys()].sort((a, b) => a - b);
  }

  /** Draw the box of a frame; it is kept inside the picture, and given a least size. */
  set(frame, box) {
    this.keys.set(frame, kept(box, this.size));
    this.first = Math.min(this.first, frame);
    this.last = Math.max(this.last, frame);
  }

  remove(frame) {
    this.keys.delete(frame);
  }

  /** Let the tube begin at a frame; boxes drawn before it still say how it moves. */
  begin(frame) {
    this.first = frame;
    this.last = Math.max(this.last, frame);
  }

  end(frame) {
    this.last = frame;
    this.first = Math.min(this.first, frame);
  }

  /** The box at a frame, or null where the tube is not. */
  at(frame) {
    if (this.empty || frame < this.first || frame > this.last) return null;
    const frames = this.keyFrames;
    return interpolated({ frames, boxes: frames.map((key) => this.keys.get(key)) }, frame);
  }

  /** The tube as the server takes it: its ends and the key frames between them. */
  toTube() {
    const inside = this.keyFrames.filter((frame) => frame > this.first && frame < this.last);
    const frames = [...new Set([this.first, ...inside, this.last])];
    return { frames, boxes: frames.map((frame) => this.at(frame).map((value) => Math.round(100 * value) / 100)) };
  }
}

/** A box with its corners in order, of a least size, inside the picture. */
export function kept([x1, y1, x2, y2], { width, height }) {
  const [left, right] = side(Math.min(x1, x2), Math.max(x1, x2), width);
  const [top, bottom] = side(Math.min(y1, y2), Math.max(y1, y2), height);
  return [left, top, right, bottom];
}

function side(low, high, size) {
  const inside = (value) => Math.min(Math.max(0, value), size);
  const start = Math.max(0, Math.min(inside(low), size - LEAST));
  return [start, Math.min(size, Math.max(inside(high), start + LEAST))];
}

/** Move a box without changing its size. */
export function shifted([x1, y1, x2, y2], [dx, dy], { width, height }) {
  const x = Math.min(Math.max(dx, -x1), width - x2);
  const y = Math.min(Math.max(dy, -y1), height - y2);
  return [x1 + x, y1 + y, x2 + x, y2 + y];
}
