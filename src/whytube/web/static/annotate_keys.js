// Keys of the annotating page, and the dialog that lists them.

import { el, fill, find } from "./dom.js";
import { keysHelp } from "./keys.js";

const LISTED = [
  [["Space"], "play or pause"],
  [[",", "."], "one frame back or on; with Shift ten"],
  [["[", "]"], "key frame before or after"],
  [["←", "↑", "→", "↓"], "move the chosen box; with Alt resize it, with Shift by ten pixels"],
  [["n"], "new box"],
  [["k"], "key frame here, or none"],
  [["o"], "gone from here"],
  [["p"], "partly hidden"],
  [["a"], "take the model's draft"],
  [["Delete"], "remove the key frame; with Shift all of the word"],
  [["y", "x", "u"], "the video has the word, has it not, not known"],
  [["w", "s"], "word before or after"],
  [["/"], "find or add a word"],
  [["Ctrl", "Z"], "undo; with Shift redo"],
  [["+", "−", "0"], "zoom in, out, fit; the wheel too, and Space with a drag moves the picture"],
  [["v", "b"], "next or previous video"],
  [["Esc"], "let go"],
  [["?"], "this help"],
];
const PLAIN = {
  ",": "back", ".": "next", "<": "far-back", ">": "far-next", "[": "key-back", "]": "key-next", Home: "first", End: "last",
  n: "new-box", k: "key", o: "outside", p: "occluded", a: "accept", "+": "larger", "=": "larger", "-": "smaller", "−": "smaller", 0: "fit",
};
const MARKS = { y: "has", x: "has_not", u: "unknown" };
const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

export class Keyboard {
  constructor(page) {
    this.page = page;
    ({ dialog: this.dialog, box: this.box } = keysHelp());
    const rows = LISTED.map(([keys, text]) => el("div", {}, el("dt", {}, ...keys.flatMap((key) => [el("kbd", {}, key), " "])), el("dd", {}, text)));
    fill(find(".keys", this.dialog), ...rows);
    document.addEventListener("keydown", (event) => this.#down(event));
    document.addEventListener("keyup", (event) => this.#up(event));
  }

  #down(event) {
    if (event.defaultPrevented || document.querySelector("dialog[open]")) return;
    const { target } = event;
    const typing = target.closest?.("input:not([type=checkbox]):not([type=range]), select, textarea");
    if ((event.ctrlKey || event.metaKey) && !event.altKey) {
      const key = event.key.toLowerCase();
      if (typing || !["z", "y"].includes(key)) return;
      event.preventDefault();
      this.page.do(key === "y" || event.shiftKey ? "redo" : "undo");
      return;
    }
    if (typing || event.metaKey || event.ctrlKey || !this.box.checked) return;
    if (this.#handled(event, target)) event.preventDefault();
  }

  #handled(event, target) {
    const { key } = event;
    const { page } = this;
    if (key === " ") return this.#space(event, target);
    if (ARROWS[key]) return this.#arrow(event, target);
    if (event.altKey) return false;
    if (key === "?") return this.dialog.showModal() ?? true;
    if (key === "/") return find(".find input").focus() ?? true;
    if (key === "Escape") return page.escape() ?? true;
    if (key === "Delete" || key === "Backspace") return page.do(event.shiftKey ? "delete-track" : "delete-key") ?? true;
    if (MARKS[key]) return page.word ? (page.mark(page.word, MARKS[key]) ?? true) : false;
    if (key === "w" || key === "s") return page.words.step(key === "s" ? 1 : -1) ?? true;
    if (key === "v" || key === "b") return page.list.step(key === "v" ? 1 : -1) ?? true;
    if (!PLAIN[key] || ((key === "Home" || key === "End") && target.matches?.("input"))) return false;
    page.do(PLAIN[key]);
    return true;
  }

  /** Space plays; held down on the picture it lets a drag move it. */
  #space(event, target) {
    if (target.closest?.("button, a, summary, input")) return false;
    if (!event.repeat) this.pressed = event.timeStamp;
    this.page.stage.panning = true;
    return true;
  }

  #up(event) {
    if (event.key !== " " || !this.page.stage.panning) return;
    const { stage } = this.page;
    stage.panning = false;
    if (!stage.panned && event.timeStamp - this.pressed < 400) this.page.do("play");
    stage.panned = false;
  }

  #arrow(event, target) {
    if (target.matches?.("input")) return false;
    const step = event.shiftKey ? 10 : 1;
    const [dx, dy] = ARROWS[event.key].map((value) => value * step);
    if (this.page.nudge(dx, dy, { resize: event.altKey })) return true;
    if (dy !== 0 || event.altKey) return false;
    this.page.player.step(dx);
    return true;
  }
}
