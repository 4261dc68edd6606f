// The page where one annotates: which video and word, what is drawn, and everything that follows from an action.

import { api, request } from "./api.js";
import { Agreeing, Files } from "./annotate_files.js";
import { Keyboard } from "./annotate_keys.js";
import { VideoList } from "./annotate_list.js";
import { boxAt, keyAt, moved, nearestBox, presence, resized, trackOf } from "./annotate_model.js";
import { Stage } from "./annotate_stage.js";
import { Sync } from "./annotate_sync.js";
import { Teaching } from "./annotate_teach.js";
import { Times } from "./annotate_times.js";
import { Words } from "./annotate_words.js";
import { announce, complain, el, fill, find, icon } from "./dom.js";
import { seconds } from "./evidence.js";
import { isStop, runJob } from "./jobs.js";
import { Player } from "./player.js";
import { remember, remembered } from "./storage.js";
import { beginSession } from "./token.js";

const NAME = "whytube.annotator";
const NUDGE = 400; // milliseconds after the last key press until a moved box is saved
const SAID = { saved: "Saved", saving: "Saving", waiting: "Not saved: the server does not answer", refused: "Refused" };

class Annotate {
  constructor() {
    this.overview = { videos: [], words: [], classes: [], suggestions: [], undrafted: 0 };
    this.video = null;
    this.state = null;
    this.sync = null;
    this.drafts = new Map(); // word -> draft, of this video
    this.dismissed = new Set();
    this.colours = new Map();
    this.word = null;
    this.track = 1;
    this.moving = null; // the chosen box while it is moved, {box, frame}
    this.annotator = this.#name();
    this.board = find("#board");
    this.player = new Player(find("video", this.board), find("canvas", this.board), {
      moved: (frame) => this.#framed(frame),
      changed: () => this.#playing(),
    });
    this.player.video.removeAttribute("loop");
    this.stage = new Stage(this.board, this.player, {
      boxes: (frame) => this.boxes(frame),
      drawn: (box) => this.draw(box),
      changed: (box, final) => this.#changed(box, final),
      chose: (id) => this.#picked(id),
      busy: () => this.player.pause(),
    });
    this.times = new Times(find("#times"), { sought: (frame) => this.seek(frame), chose: (word, track) => this.choose(word, track) });
    this.words = new Words(find("#words"), {
      chose: (word) => this.choose(word),
      marked: (word, value) => this.mark(word, value),
      added: (word) => this.addWord(word),
    });
    this.list = new VideoList(find("#videos"), {
      opened: (id, word) => this.open(id, word),
      changed: () => this.refresh(),
    });
    this.files = new Files(find("#files"), this);
    this.agreeing = new Agreeing(find("#agreeing"));
    this.teaching = new Teaching(find("#teaching"), this);
    this.keyboard = new Keyboard(this);
    this.#controls();
    window.addEventListener("popstate", () => this.route());
    window.addEventListener("beforeunload", (event) => {
      if (this.sync && !this.sync.settled) event.preventDefault();
    });
  }

  #name() {
    return remembered(NAME)?.trim() || "me";
  }

  #controls() {
    const icons = { back: "back", next: "next", "key-back": "first", "key-next": "last", undo: "undo", redo: "redo", smaller: "minus", larger: "plus", "video-back": "left", "video-next": "right" };
    for (const [name, picture] of Object.entries(icons)) fill(find(`[data-do=${name}]`), icon(picture));
    for (const button of document.querySelectorAll("#picture [data-do], #chosen [data-do]")) {
      button.addEventListener("click", () => this.do(button.dataset.do));
    }
    find("[data-do=teach]").addEventListener("click", () => this.teaching.open());
    find("[data-do=files]").addEventListener("click", () => this.files.open());
    find("[data-do=agreement]").addEventListener("click", () => this.agreeing.open());
    const who = find("#annotator");
    who.value = this.annotator;
    who.addEventListener("change", () => this.#rename(who));
    find("#label").addEventListener("change", (event) => this.act({ type: "label", label: event.target.value || null }));
    find("#track").addEventListener("change", (event) => this.choose(this.word, Number(event.target.value)));
    for (const box of ["#show-drafts", "#show-others"]) find(box).addEventListener("change", () => this.show());
    for (const field of document.querySelectorAll(".numbers input")) field.addEventListener("change", () => this.#typed());
    this.board.addEventListener("look", () => this.#zoomed());
    this.#playing();
  }

  #rename(field) {
    const name = field.value.trim();
    if (!name) {
      field.value = this.annotator;
      return;
    }
    this.annotator = name;
    remember(NAME, name);
    if (this.video) this.open(this.video.id, this.word, { write: false });
  }

  /** Everything that a button or a key can do, by its name. */
  do(name) {
    const doing = {
      play: () => this.player.toggle(),
      back: () => this.player.step(-1),
      next: () => this.player.step(1),
      "far-back": () => this.player.step(-10),
      "far-next": () => this.player.step(10),
      first: () => this.seek(0),
      last: () => this.seek(Infinity),
      "key-back": () => this.#toKey(-1),
      "key-next": () => this.#toKey(1),
      undo: () => this.act({ type: "undo" }),
      redo: () => this.act({ type: "redo" }),
      larger: () => this.stage.zoomBy(1.4),
      smaller: () => this.stage.zoomBy(1 / 1.4),
      fit: () => this.stage.zoomOut(),
      key: () => this.#toggleKey(),
      outside: () => this.#flag("outside"),
      occluded: () => this.#flag("occluded"),
      "new-box": () => this.#newBox(),
      "delete-key": () => this.#deleteKey(),
      "delete-track": () => this.chosenTrack && this.act({ type: "delete_track", ...this.place }),
      accept: () => this.accept(),
      dismiss: () => this.#dismiss(),
      "video-back": () => this.list.step(-1),
      "video-next": () => this.list.step(1),
    };
    this.#commit();
    if (this.video || ["larger", "smaller", "fit"].includes(name)) doing[name]?.();
  }

  async route() {
    complain(null);
    const wanted = new URLSearchParams(window.location.search);
    try {
      await this.refresh();
      const id = wanted.get("video") ?? this.overview.videos[0]?.video.id;
      if (id) await this.open(id, wanted.get("word"), { write: false });
    } catch (error) {
      complain(error.message, { retry: () => this.route() });
    }
  }

  /** Read the lists again: after an upload, an import, or when boxes were drawn. */
  async refresh() {
    this.overview = await request("GET", "/api/annotations");
    this.list.set(this.overview, this.video?.id ?? null);
    this.show();
  }

  /** Show a video, and choose a word of it. */
  async open(id, word = null, { write = true } = {}) {
    this.sync?.close();
    const row = this.overview.videos.find(({ video }) => video.id === id);
    const video = row?.video ?? (await api.video(id));
    Object.assign(this, { video, state: null, drafts: new Map(), track: 1, moving: null, word });
    this.dismissed.clear();
    this.colours.clear();
    if (write) window.history.pushState(null, "", `/annotate?video=${encodeURIComponent(id)}`);
    document.title = `${video.name} – annotate – whytube`;
    find("#video-name").textContent = video.name;
    find("#video-name").title = video.name;
    this.stage.show(video);
    this.times.setVideo(video);
    this.player.load(api.playUrl(id), video);
    this.list.current(id);
    const sync = new Sync(id, this.annotator, {
      changed: (state) => this.#received(sync, state),
      saving: (status, text) => this.#saving(status, text),
      clashed: () => announce("This key frame was changed in another tab too. Yours was kept; undo brings the other back."),
    });
    this.sync = sync;
    try {
      await sync.open();
      await this.#loadDrafts(id);
    } catch (error) {
      if (this.sync === sync) complain(error.message, { retry: () => this.open(id, word, { write: false }) });
    }
  }

  async #loadDrafts(id) {
    let told = await request("GET", `/api/annotations/${encodeURIComponent(id)}/drafts`);
    if (told.predicted === null && this.overview.words.some(({ known }) => known)) {
      try {
        await runJob({ kind: "draft", videos: [id] });
        told = await request("GET", `/api/annotations/${encodeURIComponent(id)}/drafts`);
      } catch (error) {
        if (!isStop(error)) return; // drafts are a help, not a need
      }
    }
    if (this.video?.id !== id) return;
    this.predicted = told.predicted;
    for (const { attribute, likely } of told.drafts) if (likely) this.#colour(attribute);
    this.drafts = new Map(told.drafts.map((draft) => [draft.attribute, draft]));
    this.word ??= this.words.first(this);
    this.show();
  }

  #received(sync, state) {
    if (this.sync !== sync) return;
    const count = this.state?.tracks.length ?? null;
    this.state = state;
    for (const { annotator, attribute } of state.tracks) if (annotator === this.annotator) this.#colour(attribute);
    if (this.moving && !this.chosenTrack) this.moving = null;
    this.show();
    if (count !== null && count !== state.tracks.length) this.#recount();
  }

  #recount() {
    clearTimeout(this.counting);
    this.counting = setTimeout(() => this.sync?.settled && this.refresh().catch(() => {}), 700);
  }

  #saving(status, text) {
    const line = find("#saved");
    line.hidden = false;
    line.dataset.state = status;
    find(".text", line).textContent = SAID[status];
    if (status === "refused") complain(text);
  }

  /** Do something to the annotation. */
  act(action) {
    this.moving = null;
    this.sync?.act(action);
  }

  mark(word, value) {
    this.act({ type: "mark", attribute: word, value });
    announce(`${word}: ${{ has: "the video has it", has_not: "the video does not have it", unknown: "not known" }[value]}`);
  }

  async addWord(word) {
    try {
      await request("POST", "/api/words", { word, annotator: this.annotator });
      await this.refresh();
      this.choose(word);
    } catch (error) {
      complain(error.message);
    }
  }

  choose(word, track = null) {
    this.#commit();
    this.word = word;
    const numbers = this.#numbers();
    this.track = track ?? numbers[0] ?? 1;
    this.moving = null;
    this.show();
    if (word) announce(`Chosen: ${word}`);
  }

  #picked(id) {
    const [word, track] = JSON.parse(id);
    this.choose(word, track);
  }

  seek(frame) {
    this.#commit();
    this.player.pause();
    this.player.seek(Math.min(frame, (this.video?.frames ?? 1) - 1));
  }

  get frame() {
    return this.player.frame;
  }

  get place() {
    return { attribute: this.word, track: this.track };
  }

  get chosenTrack() {
    return this.state && this.word ? trackOf(this.state, this.annotator, this.place) : undefined;
  }

  /** The model's draft of the chosen word, where nobody has drawn it or refused the draft. */
  get chosenDraft() {
    const usable = this.word && !this.chosenTrack && find("#show-drafts").checked && !this.dismissed.has(this.word);
    return (usable && this.drafts.get(this.word)) || null;
  }

  #numbers() {
    const own = this.state?.tracks.filter((each) => each.annotator === this.annotator && each.attribute === this.word) ?? [];
    return own.map(({ track }) => track).sort((a, b) => a - b);
  }

  /** The chosen box at a frame, as it is drawn, proposed, or being moved: {box, kind}, or null. */
  chosenBox(frame = this.frame) {
    if (frame === this.moving?.frame) return { box: this.moving.box, kind: "key" };
    const track = this.chosenTrack;
    if (track) return boxAt(track, frame);
    const draft = this.chosenDraft;
    const found = draft ? boxAt(draft, frame) : null;
    return found && { ...found, kind: "draft" };
  }

  boxes(frame) {
    if (!this.state) return [];
    const shown = [];
    const chosen = this.chosenBox(frame);
    if (chosen) {
      const label = chosen.kind === "draft" ? `${this.word} (draft)` : this.word;
      const dashed = chosen.kind === "draft" || chosen.kind === "held";
      shown.push({ id: JSON.stringify([this.word, this.track]), box: chosen.box, rank: this.rank(this.word), label, chosen: true, mine: true, dashed });
    }
    for (const track of this.state.tracks) {
      const mine = track.annotator === this.annotator;
      if (mine && track.attribute === this.word && track.track === this.track) continue;
      if (!mine && !find("#show-others").checked) continue;
      const found = boxAt(track, frame);
      if (!found) continue;
      const id = JSON.stringify(mine ? [track.attribute, track.track] : [track.attribute, track.track, track.annotator]);
      const label = mine ? track.attribute : `${track.attribute} · ${track.annotator}`;
      this.#colour(track.attribute);
      shown.push({ id, box: found.box, rank: this.rank(track.attribute), label, mine, dim: !mine, dashed: found.kind === "held" });
    }
    return shown;
  }

  /** Place of a word's colour. Words get one when they are drawn or chosen, so that a video's first six differ. */
  rank(word) {
    return this.colours.get(word) ?? 0;
  }

  #colour(word) {
    if (word && !this.colours.has(word)) this.colours.set(word, this.colours.size);
  }

  /** A box was drawn: a key frame of the chosen word. */
  draw(box) {
    if (!this.word) {
      this.#hint("Choose a word first, then draw where it is.");
      return;
    }
    this.#set(box, this.frame);
  }

  #set(box, frame, flags = {}) {
    this.act({ type: "set_key", ...this.place, frame, box, ...flags });
    const [x1, y1, x2, y2] = box.map(Math.round);
    announce(`${this.word}: box at frame ${frame + 1}, ${x1}, ${y1} to ${x2}, ${y2}`);
  }

  /** The chosen box is being moved; final: true when it stays, null when it goes back. */
  #changed(box, final) {
    this.moving = final === null ? null : { box, frame: this.frame };
    if (final) this.#keep(this.moving);
    this.show();
  }

  /** Save a moved box; a draft that was moved is taken first, and both are one action. */
  #keep({ box, frame }) {
    const draft = this.chosenDraft;
    const occluded = keyAt(this.chosenTrack ?? { keys: [] }, frame)?.occluded ?? false;
    const key = { type: "set_key", ...this.place, frame, box, occluded };
    if (draft) this.act({ type: "batch", actions: [this.#taken(draft), key] });
    else this.act(key);
  }

  #taken(draft) {
    return { type: "set_track", ...this.place, keys: draft.keys, origin: "draft" };
  }

  accept() {
    const draft = this.chosenDraft;
    if (!draft) return;
    this.act(this.#taken(draft));
    announce(`The draft of ${this.word} was taken, with ${draft.keys.length} key frames`);
  }

  #dismiss() {
    this.dismissed.add(this.word);
    this.show();
  }

  /** Move or resize the chosen box with the keyboard; it is saved shortly after the last press. */
  nudge(dx, dy, { resize = false } = {}) {
    const frame = this.player.goal;
    const found = this.chosenBox(frame);
    if (!found || !this.video) return false;
    this.player.pause();
    this.moving = { box: resize ? resized(found.box, "se", dx, dy, this.video) : moved(found.box, dx, dy, this.video), frame };
    clearTimeout(this.nudging);
    this.nudging = setTimeout(() => this.#commit(), NUDGE);
    this.show();
    return true;
  }

  /** Save a box that was moved with keys, now. */
  #commit() {
    if (!this.nudging) return;
    clearTimeout(this.nudging);
    this.nudging = null;
    if (this.moving && !this.stage.gesture) this.#keep(this.moving);
  }

  escape() {
    if (this.stage.stop()) return;
    this.moving = null;
    this.word = null;
    this.show();
  }

  #toggleKey() {
    const track = this.chosenTrack;
    if (this.chosenDraft) return this.accept();
    if (!track) return this.#newBox();
    const frame = this.player.goal;
    return keyAt(track, frame) ? this.#deleteKey() : this.#set(nearestBox(track, frame), frame);
  }

  #newBox() {
    if (!this.word) return this.#hint("Choose a word first.");
    const { width, height } = this.video;
    const track = this.chosenTrack;
    const frame = this.player.goal;
    if (track && !boxAt(track, frame)) return this.#set(nearestBox(track, frame), frame);
    if (track) this.track = Math.max(...this.#numbers()) + 1; // another one of the same word
    return this.#set([0.35 * width, 0.35 * height, 0.65 * width, 0.65 * height].map(Math.round), frame);
  }

  /** Gone, or partly hidden, from this frame on; again takes it back. */
  #flag(name) {
    const track = this.chosenTrack;
    if (!track) return this.#hint("Draw a box first.");
    const frame = this.player.goal;
    const key = keyAt(track, frame);
    return this.#set(key?.box ?? nearestBox(track, frame), frame, { outside: false, occluded: false, [name]: !key?.[name] });
  }

  #deleteKey() {
    const track = this.chosenTrack;
    const frame = this.player.goal;
    if (track && keyAt(track, frame)) this.act({ type: "delete_key", ...this.place, frame });
    else this.#hint("There is no key frame of this word here.");
  }

  #toKey(way) {
    const frames = (this.chosenTrack ? [this.chosenTrack] : (this.state?.tracks ?? [])).flatMap(({ keys }) => keys.map(({ frame }) => frame));
    const next = frames.filter((frame) => (frame - this.player.goal) * way > 0).sort((a, b) => (a - b) * way)[0];
    this.seek(next ?? (way > 0 ? this.video.frames - 1 : 0));
  }

  #typed() {
    const field = (name) => Number(find(`.numbers [name=${name}]`).value);
    const [x, y, width, height] = ["x", "y", "width", "height"].map(field);
    if ([x, y, width, height].every(Number.isFinite) && width > 0 && height > 0 && this.word) this.#keep({ box: [x, y, x + width, y + height], frame: this.player.goal });
  }

  #hint(text) {
    const hint = find(".hint", this.board);
    hint.textContent = text;
    hint.hidden = false;
    announce(text);
    clearTimeout(this.hinting);
    this.hinting = setTimeout(() => (hint.hidden = true), 3000);
  }

  #playing() {
    const button = find("#picture [data-do=play]");
    fill(button, icon(this.player?.playing ? "pause" : "play"));
    button.setAttribute("aria-label", this.player?.playing ? "Pause" : "Play");
  }

  #zoomed() {
    const percent = Math.round(100 * this.stage.zoom);
    const button = find("[data-do=fit]");
    button.textContent = `${percent} %`;
    button.setAttribute("aria-label", `Fit the picture: zoom ${percent} %`);
  }

  #framed(frame) {
    if (this.moving && frame !== this.moving.frame) {
      this.#commit();
      this.moving = null;
    }
    this.times.setFrame(frame);
    const { frames, fps } = this.video ?? { frames: 1, fps: 1 };
    find(".readout").textContent = `frame ${frame + 1} of ${frames} · ${seconds(frame / fps)}`;
    this.#chosen();
  }

  /** Show everything again that depends on the state. */
  show() {
    if (!this.state) return;
    this.#colour(this.word);
    this.stage.rank = this.rank(this.word);
    this.stage.redraw();
    this.words.set(this);
    this.times.set(this);
    this.#label();
    this.#chosen();
    find("[data-do=undo]").disabled = !(this.state.undo[this.annotator] > 0) && this.sync.settled;
    find("[data-do=redo]").disabled = !(this.state.redo[this.annotator] > 0) && this.sync.settled;
  }

  #label() {
    const said = this.state.label?.label ?? "";
    const names = [...this.overview.classes];
    if (said && !names.includes(said)) names.push(said);
    const model = this.predicted ? `${this.predicted} (model)` : "as the model says";
    fill(find("#label"), el("option", { value: "" }, model), ...names.map((name) => el("option", { value: name }, name)));
    find("#label").value = said;
  }

  /** The card of the chosen word: where it is at this frame, and what can be done. */
  #chosen() {
    const card = find("#chosen");
    card.hidden = !this.word || !this.state;
    if (card.hidden) return;
    const [track, draft, found] = [this.chosenTrack, this.chosenDraft, this.chosenBox()];
    const key = track ? keyAt(track, this.frame) : null;
    find("#chosen-name").textContent = this.word;
    find(".state", card).textContent = this.#told(track, draft, found, key);
    find(".draft", card).hidden = !draft;
    if (draft) {
      const sure = draft.fit === null ? "it cannot say how sure it is" : `${Math.round(100 * draft.fit)} % sure`;
      find(".draft p", card).textContent = `The model's draft, ${sure}. Drag it where it belongs, or take it as it is.`;
    }
    const pressed = { key: Boolean(key && !key.outside), outside: Boolean(key?.outside), occluded: Boolean(key?.occluded) };
    for (const [name, on] of Object.entries(pressed)) find(`[data-do=${name}]`, card).setAttribute("aria-pressed", String(on));
    for (const name of ["outside", "occluded", "delete-track"]) find(`[data-do=${name}]`, card).disabled = !track;
    find("[data-do=delete-key]", card).disabled = !key;
    const numbers = [...new Set([...this.#numbers(), this.track])].sort((a, b) => a - b);
    find(".which", card).hidden = numbers.length < 2;
    fill(find("#track"), ...numbers.map((n) => el("option", { value: n, selected: n === this.track }, `number ${n}`)));
    const corners = found?.box ?? ["", "", "", ""];
    const values = { x: corners[0], y: corners[1], width: corners[2] - corners[0], height: corners[3] - corners[1] };
    for (const [name, value] of Object.entries(values)) {
      const field = find(`.numbers [name=${name}]`);
      field.disabled = !found;
      if (document.activeElement !== field) field.value = found ? Math.round(100 * value) / 100 : "";
    }
    this.board.setAttribute("aria-label", `Picture, frame ${this.frame + 1}. ${find(".state", card).textContent}`);
  }

  #told(track, draft, found, key) {
    if (presence(this.state, this.annotator, this.word) === "has_not" && !track) return "Marked: the video does not have it.";
    if (!track) return draft ? "Not drawn yet." : "Not drawn yet. Drag a box around it in the picture.";
    if (key?.outside) return "Gone from this frame on.";
    if (!found) return "Not in this frame.";
    const where = { key: "Key frame here", between: "Between two key frames", held: "Held from the last key frame: move it, or say that it is gone" };
    return `${where[found.kind]}${found.occluded ? ", partly hidden" : ""}.`;
  }
}

await beginSession();
const page = new Annotate();
window.annotate = page; // for the console, and for tests
await page.route();
