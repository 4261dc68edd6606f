// Paints tubes on the canvas over a video: outlines inside the edges of their boxes, and labels beside them.

import { reasonColour, reasonInk } from "./colours.js";

const LINE = 3; // CSS pixels
const DIM = 0.3;

/**
 * Paint boxes of one frame.
 *
 * boxes: [{box, rank, label, strong, dim, dashed}], the best reason first; boxes in pixels of frames of `size`
 * {width, height}. Boxes in the same place are nested, the best reason's innermost.
 */
export function paintBoxes(context, boxes, size) {
  const density = window.devicePixelRatio || 1;
  const scale = [context.canvas.width / size.width, context.canvas.height / size.height];
  const line = LINE * density;
  const scaled = boxes.map((each) => ({ ...each, box: each.box.map((value, i) => value * scale[i % 2]) }));
  const labels = [];
  for (const each of scaled) labels.push(labelOf(context, each, density, labels));
  for (const dim of [true, false]) { // what stands out lies over what does not
    const painted = [...scaled.entries()].filter(([, each]) => Boolean(each.dim) === dim);
    for (const [i, each] of [...painted].reverse()) {
      const inner = scaled.slice(0, i).filter(({ box }) => box.every((v, j) => Math.abs(v - each.box[j]) < 2 * line));
      const out = inner.length * (line + density);
      const [x1, y1, x2, y2] = each.box;
      paintOutline(context, [x1 - out, y1 - out, x2 + out, y2 + out], each, each.strong ? 1.5 * line : line);
    }
    for (const [i, each] of painted) paintLabel(context, each, labels[i], density);
  }
}

function paintOutline(context, [x1, y1, x2, y2], { rank, dim, dashed }, line) {
  context.save();
  context.globalAlpha = dim ? DIM : 1;
  if (dashed) context.setLineDash([3 * line, 2 * line]);
  const rim = (inset, width, colour) => {
    context.beginPath();
    const [w, h] = [x2 - x1 - 2 * inset, y2 - y1 - 2 * inset];
    context.roundRect(x1 + inset, y1 + inset, Math.max(0, w), Math.max(0, h), Math.max(0, 2 * line - inset));
    context.lineWidth = width;
    context.strokeStyle = colour;
    context.stroke();
  };
  rim(line / 2, line + 2, "rgb(0 0 0 / .55)");
  rim(line / 2, line, reasonColour(rank));
  context.restore();
}

/** Where a label goes, above its box, below it, or inside: {text, place: [x1, y1, x2, y2]}, without text if there is none. */
function labelOf(context, { box, label }, density, others) {
  if (!label) return { text: "", place: [0, 0, 0, 0] };
  context.font = labelFont(density);
  const text = shortened(context, label, context.canvas.width - 16 * density);
  const [width, height] = [context.measureText(text).width + 14 * density, 22 * density];
  const taken = others.map(({ place }) => place);
  const [x, y] = labelPlace(box, [width, height], context.canvas, taken, 3 * density);
  return { text, place: [x, y, x + width, y + height] };
}

function labelFont(density) {
  return `600 ${13 * density}px system-ui, sans-serif`;
}

function paintLabel(context, { rank, dim }, { text, place: [x, y, x2, y2] }, density) {
  if (!text) return;
  context.save();
  context.globalAlpha = dim ? DIM : 1;
  context.font = labelFont(density);
  context.fillStyle = "rgb(0 0 0 / .45)";
  context.beginPath();
  context.roundRect(x - density, y - density, x2 - x + 2 * density, y2 - y + 2 * density, 6 * density);
  context.fill();
  context.fillStyle = reasonColour(rank);
  context.beginPath();
  context.roundRect(x, y, x2 - x, y2 - y, 5 * density);
  context.fill();
  context.fillStyle = reasonInk(rank);
  context.textBaseline = "middle";
  context.fillText(text, x + 7 * density, (y + y2) / 2 + 0.5 * density);
  context.restore();
}

function shortened(context, text, room) {
  if (context.measureText(text).width <= room) return text;
  let length = text.length;
  while (length > 1 && context.measureText(`${text.slice(0, length)}…`).width > room) length -= 1;
  return `${text.slice(0, length)}…`;
}

function labelPlace([x1, y1, , y2], [width, height], canvas, taken, gap) {
  const x = Math.min(Math.max(x1, 0), Math.max(canvas.width - width, 0));
  const rows = [y1 - height - gap, y2 + gap, y1 + 2 * gap, y2 - height - 2 * gap];
  const tops = [0, -1, 1, -2, 2].flatMap((step) => rows.map((row) => row + step * (height + gap)));
  const inside = tops.filter((top) => top >= 0 && top <= canvas.height - height);
  const free = (top) => taken.every(([a, b, c, d]) => x + width <= a || c <= x || top + height <= b || d <= top);
  return [x, inside.find(free) ?? inside[0] ?? 0];
}
