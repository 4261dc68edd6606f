// Boxes of a tube at any frame of a video, as `boxes_between` of whytube/report/draw.py has them.
// A tube is {frames: [..], boxes: [[x1, y1, x2, y2]..]}; boxes are in pixels of the video's own frames.

/** Index of the first of the rising `values` that is not below `wanted`. */
function firstNotBelow(values, wanted) {
  let low = 0;
  let high = values.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] < wanted) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Boxes between the frames of a tube: linear, and constant past the ends. Frames rise strictly; there is at least one. */
export function interpolated({ frames, boxes }, frame) {
  const after = firstNotBelow(frames, frame);
  if (after === 0) return boxes[0];
  if (after === frames.length) return boxes[after - 1];
  const share = (frame - frames[after - 1]) / (frames[after] - frames[after - 1]);
  return boxes[after].map((value, i) => boxes[after - 1][i] + share * (value - boxes[after - 1][i]));
}

/** A tube between the frames that the classifier saw, `sampled`. */
export class MovingBox {
  constructor(tube, sampled) {
    const known = sampled.length ? [...new Set(sampled)].sort((a, b) => a - b) : tube.frames;
    this.tube = tube;
    this.known = known;
    this.member = new Set(tube.frames);
    this.middles = known.slice(1).map((frame, i) => (frame + known[i]) / 2);
    this.reach = Math.max(1, ...known.slice(1).map((frame, i) => frame - known[i])) / 2;
  }

  /** The box at a frame, or null: a frame belongs to the tube if the nearest sampled frame does. */
  at(frame) {
    if (!this.tube.frames.length || !this.known.length) return null;
    const nearest = this.known[firstNotBelow(this.middles, frame)];
    if (!this.member.has(nearest) || Math.abs(nearest - frame) > this.reach) return null;
    return interpolated(this.tube, frame);
  }

  /** Runs [first, end) of frames that the tube is in, of a video with `count` frames. */
  runs(count) {
    const found = [];
    for (let frame = 0; frame < count; frame += 1) {
      const box = this.at(frame);
      if (box === null || box[2] <= box[0] || box[3] <= box[1]) continue;
      const last = found.at(-1);
      if (last?.[1] === frame) last[1] = frame + 1;
      else found.push([frame, frame + 1]);
    }
    return found;
  }
}

const ROWS = ["upper", "middle", "lower"];
const COLUMNS = ["left", "centre", "right"];

/** Where the middle of a box is in a picture, in words: "upper left", "centre", "bottom". */
export function placeName(box, { width, height }) {
  const third = (value, size) => Math.min(2, Math.max(0, Math.floor((3 * value) / size)));
  const row = ROWS[third((box[1] + box[3]) / 2, height)];
  const column = COLUMNS[third((box[0] + box[2]) / 2, width)];
  if (row === "middle") return column;
  if (column === "centre") return row === "upper" ? "top" : "bottom";
  return `${row} ${column}`;
}

/** Where a tube goes, in words, for people who do not see it. */
export function pathName(tube, size) {
  if (!tube.frames.length) return "";
  const first = placeName(tube.boxes[0], size);
  const last = placeName(tube.boxes.at(-1), size);
  return first === last ? `at the ${first}` : `from the ${first} to the ${last}`;
}
