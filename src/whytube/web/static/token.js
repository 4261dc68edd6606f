// A server that others can reach wants a token: from the address (#token=...), or typed in.

import { onTokenNeeded, openSession } from "./api.js";
import { find } from "./dom.js";

let asking = null;

/** Ask a person for the token, once for all requests that wait for it. */
function ask() {
  asking ??= new Promise((resolve) => {
    const dialog = find("#token");
    const wrong = find(".wrong", dialog);
    const submit = async (event) => {
      event.preventDefault();
      try {
        await openSession(find("input", dialog).value.trim());
      } catch (error) {
        wrong.textContent = error.message;
        return;
      }
      find("form", dialog).removeEventListener("submit", submit);
      dialog.close();
      asking = null;
      resolve();
    };
    wrong.textContent = "";
    find("form", dialog).addEventListener("submit", submit);
    dialog.addEventListener("cancel", (event) => event.preventDefault());
    dialog.showModal();
  });
  return asking;
}

/** Open a session with the token of the address, which is then taken out of it and of the history. */
export async function beginSession() {
  onTokenNeeded(ask);
  const token = new URLSearchParams(window.location.hash.slice(1)).get("token");
  if (!token) return;
  window.history.replaceState(null, "", window.location.pathname + window.location.search);
  try {
    await openSession(token);
  } catch {
    // A wrong token is told by the first request, which then asks for the right one.
  }
}
