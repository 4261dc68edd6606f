// What the browser remembers from one visit to the next; where storage is forbidden, until the page is left.

export function remembered(name) {
  try {
    return window.localStorage.getItem(name);
  } catch {
    return null;
  }
}

export function remember(name, value) {
  try {
    window.localStorage.setItem(name, value);
  } catch {
    // forbidden
  }
}
