// Colours by what masking did: `Explanation.heat` and `Canvas.draw_heat` of the package, on a coarse grid.

import { fall } from "./evidence.js";

const MUCH = 0.25; // a fall of p(A) - p(B) that has the strongest colour
const SIDE = 128; // longer side of the grid
const ALPHA = 0.65;
const HOT = [230, 60, 20];
const COLD = [40, 90, 230];

/** Height and width of the grid for pictures of `size` [height, width]. */
export function gridSize([height, width]) {
  const shrink = Math.min(1, SIDE / Math.max(height, width));
  return [Math.max(1, round(height * shrink)), Math.max(1, round(width * shrink))];
}

/** Round to the nearest, halves to even, as Python does. */
function round(value) {
  const floor = Math.floor(value);
  if (value - floor !== 0.5) return Math.round(value);
  return floor % 2 ? floor + 1 : floor;
}

/** Mean fall of the tubes that cover each cell at the sampled frame nearest to `frame`: Float32Array, row by row. */
export function heatAt(explanation, frame) {
  const [rows, columns] = gridSize(explanation.size);
  const total = new Float32Array(rows * columns);
  const covered = new Uint8Array(rows * columns);
  const nearest = explanation.frames.reduce((a, b) => (Math.abs(b - frame) < Math.abs(a - frame) ? b : a));
  const [scaleY, scaleX] = [rows / explanation.size[0], columns / explanation.size[1]];
  for (const reason of explanation.reasons) {
    const place = reason.tube.frames.indexOf(nearest);
    const strength = fall(reason);
    if (place < 0 || strength === null) continue;
    const [x1, y1, x2, y2] = reason.tube.boxes[place];
    for (let row = 0; row < rows; row += 1) {
      if (row + 0.5 < y1 * scaleY || row + 0.5 >= y2 * scaleY) continue;
      for (let column = 0; column < columns; column += 1) {
        if (column + 0.5 < x1 * scaleX || column + 0.5 >= x2 * scaleX) continue;
        total[row * columns + column] += strength;
        covered[row * columns + column] += 1;
      }
    }
  }
  return total.map((value, i) => value / Math.max(1, covered[i]));
}

/** Tint a canvas: red where masking takes the decision from A, blue where it helps A. */
export function drawHeat(context, explanation, frame) {
  const [rows, columns] = gridSize(explanation.size);
  const picture = new ImageData(columns, rows);
  heatAt(explanation, frame).forEach((value, i) => {
    const strength = Math.min(1, Math.abs(value) / MUCH) * ALPHA * 255;
    picture.data.set([...(value < 0 ? COLD : HOT), Math.round(strength)], 4 * i);
  });
  const grid = new OffscreenCanvas(columns, rows);
  grid.getContext("2d").putImageData(picture, 0, 0);
  context.imageSmoothingEnabled = true;
  context.drawImage(grid, 0, 0, context.canvas.width, context.canvas.height);
}
