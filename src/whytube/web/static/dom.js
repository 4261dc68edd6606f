// Builds elements. Text only ever becomes text nodes: class names, words and file names come from strangers.

const SVG = "http://www.w3.org/2000/svg";

/** Make an element. `on` maps events to listeners, `style` custom properties to values; null and false are left out. */
export function el(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "on") {
      for (const [event, listener] of Object.entries(value)) made.addEventListener(event, listener);
    } else if (name === "style") {
      for (const [property, content] of Object.entries(value)) made.style.setProperty(property, content);
    } else if (value === true) {
      made.setAttribute(name, "");
    } else if (value !== null && value !== undefined && value !== false) {
      made.setAttribute(name, value);
    }
  }
  made.append(...children.filter((child) => child !== null && child !== undefined && child !== ""));
  return made;
}

export const find = (selector, within = document) => within.querySelector(selector);

/** Put other children into an element. */
export function fill(parent, ...children) {
  parent.replaceChildren(...children.filter((child) => child !== null && child !== undefined));
}

const PATHS = {
  play: "M7 4.5v15l12.5-7.5z",
  pause: "M6.5 4.5h4v15h-4zM13.5 4.5h4v15h-4z",
  back: "M18 5v14L8 12zM5 5h2.4v14H5z",
  next: "M6 5v14l10-7zM16.6 5H19v14h-2.4z",
  undo: "M10 5v4.2c6 .3 9.5 3.3 10 9.8-2.2-3.6-5.3-5-10-5V18l-7.5-6.5z",
  redo: "M14 5v4.2c-6 .3-9.5 3.3-10 9.8 2.2-3.6 5.3-5 10-5V18l7.5-6.5z",
  plus: "M10.8 4.5h2.4v6.3h6.3v2.4h-6.3v6.3h-2.4v-6.3H4.5v-2.4h6.3z",
  minus: "M4.5 10.8h15v2.4h-15z",
  left: "M15.5 4.5 17 6l-6 6 6 6-1.5 1.5L8 12z",
  right: "M8.5 4.5 7 6l6 6-6 6 1.5 1.5L16 12z",
  first: "M13 6l6 6-6 6-6-6zM3.5 5h2.2v14H3.5z",
  last: "M11 6l6 6-6 6-6-6zM18.3 5h2.2v14h-2.2z",
  close: "M6 7.4 7.4 6l4.6 4.6L16.6 6 18 7.4 13.4 12l4.6 4.6-1.4 1.4-4.6-4.6L7.4 18 6 16.6l4.6-4.6z",
};

/** A decorative picture on a button, whose name is told by its label. */
export function icon(name) {
  const picture = document.createElementNS(SVG, "svg");
  const path = document.createElementNS(SVG, "path");
  path.setAttribute("d", PATHS[name]);
  picture.setAttribute("viewBox", "0 0 24 24");
  picture.setAttribute("aria-hidden", "true");
  picture.setAttribute("class", "icon");
  picture.append(path);
  return picture;
}

/** Tell screen readers what happened, without moving the focus. */
export function announce(text) {
  find("#live").textContent = text;
}

/** Show a plain message of what went wrong, with an optional button; null takes it away. */
export function complain(message, { retry = null } = {}) {
  const bar = find("#problem");
  bar.hidden = message === null;
  if (message === null) return fill(bar);
  const again = retry && el("button", { type: "button", on: { click: () => (complain(null), retry()) } }, "Try again");
  const away = { type: "button", class: "quiet square", "aria-label": "Close the message", on: { click: () => complain(null) } };
  fill(bar, el("p", {}, message), again, el("button", away, icon("close")));
  return undefined;
}
