// The annotation of a video without a page: boxes between key frames, actions on a state, and the geometry of boxes.
// It mirrors whytube/web/annotation_state.py, so that what a person does is seen before the server has it.
// A box is [x1, y1, x2, y2] in pixels of the video's own frames; a track {annotator, attribute, track, origin, keys}.

export const SMALLEST = 2; // pixels of a box's side

/** The box of a track at a frame: {box, kind} with kind "key", "between" or "held", or null where there is none. */
export function boxAt(track, frame) {
  const { keys } = track;
  let place = keys.length - 1;
  while (place >= 0 && keys[place].frame > frame) place -= 1;
  if (place < 0 || keys[place].outside) return null;
  const before = keys[place];
  if (before.frame === frame) return { box: before.box, kind: "key", occluded: before.occluded };
  const after = keys[place + 1];
  if (!after) return { box: before.box, kind: "held", occluded: before.occluded };
  const share = (frame - before.frame) / (after.frame - before.frame);
  const box = before.box.map((value, i) => value + share * (after.box[i] - value));
  return { box, kind: "between", occluded: before.occluded };
}

/** The key of a track at a frame, or null. */
export const keyAt = (track, frame) => track.keys.find((key) => key.frame === frame) ?? null;

/** Where a track was last seen or will next be seen, to begin a new key from. */
export function nearestBox(track, frame) {
  const here = boxAt(track, frame);
  if (here) return here.box;
  const shown = track.keys.filter((key) => !key.outside);
  const distance = (key) => Math.abs(key.frame - frame);
  return shown.length ? shown.reduce((a, b) => (distance(b) < distance(a) ? b : a)).box : track.keys[0].box;
}

/** Runs {first, end, kind} of frames in which a track is seen, of `count`; kind "drawn" or "held". */
export function runs(track, count) {
  const found = [];
  track.keys.forEach((key, i) => {
    if (key.outside) return;
    const next = track.keys[i + 1];
    const end = Math.min(next ? next.frame : count, count);
    if (next) found.push({ first: key.frame, end, kind: "drawn" });
    else {
      found.push({ first: key.frame, end: Math.min(key.frame + 1, count), kind: "drawn" });
      if (key.frame + 1 < count) found.push({ first: key.frame + 1, end: count, kind: "held" });
    }
  });
  return found.filter(({ first, end }) => first < end);
}

const same = (one, other) => one.annotator === other.annotator && one.attribute === other.attribute;
const sameTrack = (one, other) => same(one, other) && one.track === other.track;

/** The track that an action is about, or undefined. */
export const trackOf = (state, annotator, { attribute, track = 1 }) =>
  state.tracks.find((each) => sameTrack(each, { annotator, attribute, track }));

/** The state after an action; undo and redo are the server's to work out and change nothing here. */
export function applied(state, annotator, action) {
  const { type, attribute, track = 1 } = action;
  const place = { annotator, attribute, track };
  const others = state.tracks.filter((each) => !sameTrack(each, place));
  const old = trackOf(state, annotator, action);
  const withKeys = (keys, origin) => {
    const sorted = [...keys].sort((a, b) => a.frame - b.frame);
    const tracks = keys.length ? [...others, { ...place, origin, keys: sorted }] : others;
    return { ...state, tracks };
  };
  switch (type) {
    case "set_key": {
      const { frame, box, outside = false, occluded = false } = action;
      const rest = (old?.keys ?? []).filter((key) => key.frame !== frame);
      return withKeys([...rest, { frame, box, outside, occluded }], old?.origin ?? "drawn");
    }
    case "delete_key":
      return old ? withKeys(old.keys.filter((key) => key.frame !== action.frame), old.origin) : state;
    case "set_track":
      return withKeys(action.keys.map((key) => ({ outside: false, occluded: false, ...key })), action.origin ?? "drawn");
    case "delete_track":
      return { ...state, tracks: others };
    case "mark": {
      const marks = state.marks.filter((each) => !same(each, place));
      const said = action.value === "unknown" ? [] : [{ annotator, attribute, value: action.value }];
      return { ...state, marks: [...marks, ...said] };
    }
    case "label":
      return { ...state, label: action.label === null ? null : { label: action.label, annotator } };
    case "batch":
      return action.actions.reduce((now, each) => applied(now, annotator, each), state);
    default:
      return state;
  }
}

/** What an annotator says of an attribute: "has", "has_not" or "unknown"; a box says "has" where nothing else is said. */
export function presence(state, annotator, attribute) {
  const mark = state.marks.find((each) => same(each, { annotator, attribute }));
  if (mark) return mark.value;
  const drawn = state.tracks.some((each) => same(each, { annotator, attribute }) && each.keys.some((key) => !key.outside));
  return drawn ? "has" : "unknown";
}

/** Whether an action would overwrite a key frame that was changed elsewhere since `base`. */
export function clashes(base, current, annotator, action) {
  if (!["set_key", "delete_key"].includes(action.type)) return false;
  const [before, now] = [base, current].map((state) => {
    const track = trackOf(state, annotator, action);
    return JSON.stringify(track ? keyAt(track, action.frame) : null);
  });
  return before !== now;
}

const clamp = (value, low, high) => Math.min(Math.max(value, low), Math.max(low, high));
const rounded = (box) => box.map((value) => Math.round(value * 100) / 100);

/** A box between two corners in any order, inside a picture and not too small. */
export function boxBetween([ax, ay], [bx, by], { width, height }) {
  const [left, right] = [Math.min(ax, bx), Math.max(ax, bx)].map((x) => clamp(x, 0, width));
  const [top, bottom] = [Math.min(ay, by), Math.max(ay, by)].map((y) => clamp(y, 0, height));
  const x1 = clamp(left, 0, width - SMALLEST);
  const y1 = clamp(top, 0, height - SMALLEST);
  return rounded([x1, y1, Math.max(right, x1 + SMALLEST), Math.max(bottom, y1 + SMALLEST)]);
}

/** A box moved as it is, as far as the picture goes. */
export function moved([x1, y1, x2, y2], dx, dy, { width, height }) {
  const x = clamp(dx, Math.min(0, -x1), Math.max(0, width - x2));
  const y = clamp(dy, Math.min(0, -y1), Math.max(0, height - y2));
  return rounded([x1 + x, y1 + y, x2 + x, y2 + y]);
}

/** A box with one of its sides or corners moved; handle: letters of n, e, s, w. */
export function resized([x1, y1, x2, y2], handle, dx, dy, { width, height }) {
  const box = [x1, y1, x2, y2];
  if (handle.includes("w")) box[0] = clamp(x1 + dx, Math.min(0, x1), x2 - SMALLEST);
  if (handle.includes("n")) box[1] = clamp(y1 + dy, Math.min(0, y1), y2 - SMALLEST);
  if (handle.includes("e")) box[2] = clamp(x2 + dx, x1 + SMALLEST, Math.max(width, x2));
  if (handle.includes("s")) box[3] = clamp(y2 + dy, y1 + SMALLEST, Math.max(height, y2));
  return rounded(box);
}

export const HANDLES = ["nw", "n", "ne", "e", "se", "s", "sw", "w"];

/** Where a handle of a box is. */
export function handlePoint([x1, y1, x2, y2], handle) {
  const x = handle.includes("w") ? x1 : handle.includes("e") ? x2 : (x1 + x2) / 2;
  const y = handle.includes("n") ? y1 : handle.includes("s") ? y2 : (y1 + y2) / 2;
  return [x, y];
}

/** What a point meets of a box: a handle within `reach`, "move" inside, or null. Corners come before sides. */
export function hit(box, [x, y], reach) {
  const corners = HANDLES.filter((handle) => handle.length === 2);
  const sides = HANDLES.filter((handle) => handle.length === 1);
  for (const handle of [...corners, ...sides]) {
    const [hx, hy] = handlePoint(box, handle);
    if (Math.abs(hx - x) <= reach && Math.abs(hy - y) <= reach) return handle;
  }
  const inside = x >= box[0] && x <= box[2] && y >= box[1] && y <= box[3];
  return inside ? "move" : null;
}

/** A view of a picture in a window: screen = picture * scale + offset. */
export function fitted({ width, height }, room) {
  const scale = Math.min(room.width / width, room.height / height);
  return { scale, x: (room.width - width * scale) / 2, y: (room.height - height * scale) / 2 };
}

/** A view brought nearer by a factor around a point of the screen, from the fitted view to 20 times it. */
export function zoomed(view, factor, [px, py], size, room) {
  const least = fitted(size, room).scale;
  const scale = clamp(view.scale * factor, least, 20 * least);
  const share = scale / view.scale;
  return held({ scale, x: px - (px - view.x) * share, y: py - (py - view.y) * share }, size, room);
}

/** A view in which the picture covers the window where it can, and stands in its middle where it cannot. */
export function held(view, { width, height }, room) {
  const along = (offset, length, space) => (length <= space ? (space - length) / 2 : clamp(offset, space - length, 0));
  const [x, y] = [along(view.x, width * view.scale, room.width), along(view.y, height * view.scale, room.height)];
  return { scale: view.scale, x, y };
}

