// Keys for people who do not want to reach for the mouse, and the dialog that lists them.

import { find } from "./dom.js";
import { remember, remembered } from "./storage.js";

const SETTING = "whytube.keys";

/** The help dialog, its button, and in it the box that switches keys on and off, which the browser remembers. */
export function keysHelp() {
  const dialog = find("#help");
  const box = find("#use-keys");
  box.checked = remembered(SETTING) !== "off";
  box.addEventListener("change", () => remember(SETTING, box.checked ? "on" : "off"));
  find("[data-do=help]").addEventListener("click", () => dialog.showModal());
  return { dialog, box };
}

/** do: {toggle, step(n), first, last, select(rank), hide, ask}. Keys do nothing where a person types. */
export class Keys {
  constructor(actions) {
    this.actions = actions;
    ({ dialog: this.dialog, box: this.box } = keysHelp());
    document.addEventListener("keydown", (event) => this.#pressed(event));
  }

  #pressed(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || document.querySelector("dialog[open]")) return;
    const { target } = event;
    if (target.closest?.("input:not([type=radio]):not([type=range]), select, textarea")) return;
    if (!this.box.checked) return;
    const action = this.#action(event.key, target);
    if (!action) return;
    event.preventDefault();
    action();
  }

  #action(key, target) {
    const { actions } = this;
    const slides = target.matches?.("input");
    if (key === "?") return () => this.dialog.showModal();
    if (key === " ") return target.closest?.("button, a, summary, input") ? null : actions.toggle;
    if (key === "," || (key === "ArrowLeft" && !slides)) return () => actions.step(-1);
    if (key === "." || (key === "ArrowRight" && !slides)) return () => actions.step(1);
    if (key === "Home" && !slides) return actions.first;
    if (key === "End" && !slides) return actions.last;
    if (/^[1-5]$/.test(key)) return () => actions.select(Number(key) - 1);
    if (key === "m") return actions.hide;
    if (key === "h") return actions.heat;
    return key === "/" ? actions.search : null;
  }
}
