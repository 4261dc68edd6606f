// Keeps a tab and the server in step: actions are seen at once, sent one after the other, and never given up.

import { ApiError, request } from "./api.js";
import { applied, clashes } from "./annotate_model.js";

const AGAIN = 1500; // milliseconds until the server is asked again after it did not answer

const token = () => {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
};

/**
 * The annotation of one video.
 *
 * changed(state): another state is to be shown: the server's with what it does not have yet.
 * saving(status, text): "saved", "saving" or "waiting" (the server does not answer), and "refused" with its words.
 * clashed(action): the same key frame was changed in another tab; this one was kept, the other is in the log.
 */
export class Sync {
  constructor(video, annotator, { changed, saving, clashed }) {
    Object.assign(this, { video, annotator, changed, saving, clashed });
    this.base = null; // as the server has it
    this.queue = []; // what it does not have yet: {action, id}
    this.sending = false;
    this.closed = false;
    this.path = `/api/annotations/${encodeURIComponent(video)}`;
  }

  async open() {
    this.base = await request("GET", this.path);
    if (this.closed) return;
    this.watching = () => this.#listen();
    document.addEventListener("visibilitychange", this.watching);
    this.#listen();
    this.#show();
    this.saving("saved");
  }

  close() {
    this.closed = true;
    this.events?.close();
    document.removeEventListener("visibilitychange", this.watching);
  }

  /** Hear of other tabs while this one is seen: browsers keep few connections open to one server. */
  #listen() {
    this.events?.close();
    if (document.hidden || this.closed) return;
    this.events = new EventSource(`${this.path}/events`); // begins with the version of now
    this.events.addEventListener("annotation", (event) => this.#heard(JSON.parse(event.data).version));
  }

  /** What is seen: the server's state with what it does not have yet. */
  get state() {
    return this.queue.reduce((state, { action }) => applied(state, this.annotator, action), this.base);
  }

  get settled() {
    return this.queue.length === 0;
  }

  /** Do something: it is seen at once and saved as soon as the server answers. */
  act(action) {
    if (!this.base) return;
    this.queue.push({ action, id: token() });
    this.#show();
    this.#send();
  }

  #show() {
    if (!this.closed) this.changed(this.state);
  }

  async #heard(version) {
    if (this.sending || this.queue.length || version <= this.base.version) return;
    try {
      const now = await request("GET", this.path);
      if (this.sending || this.queue.length || now.version < this.base.version) return;
      this.base = now;
      this.#show();
    } catch {
      // The next event, or the next action, brings it.
    }
  }

  async #send() {
    if (this.sending) return;
    this.sending = true;
    this.saving("saving");
    while (this.queue.length) {
      const { action, id } = this.queue[0];
      try {
        this.base = await this.#post(action, id);
        this.queue.shift();
        this.#show();
      } catch (error) {
        const passing = !(error instanceof ApiError) || error.status === 0 || error.status === 429 || error.status >= 500;
        if (passing) {
          this.saving("waiting", error.message);
          await new Promise((resolve) => setTimeout(resolve, AGAIN));
        } else {
          this.queue.shift();
          this.#show();
          this.saving("refused", error.message);
        }
      }
    }
    this.sending = false;
    if (this.base) this.saving("saved");
  }

  /** Send one action, again on top of what came in between; sending it twice does it once. */
  async #post(action, id) {
    for (;;) {
      const body = { version: this.base.version, annotator: this.annotator, request: id, action };
      const answer = await fetch(`${this.path}/actions`, {
        method: "POST",
        headers: { "Content-Type": "application/json", Accept: "application/json" },
        body: JSON.stringify(body),
      }).catch(() => null);
      if (!answer) throw new ApiError(0, "The server does not answer. What you did is kept here and sent again.");
      if (answer.ok) return answer.json();
      if (answer.status === 401) {
        await request("GET", this.path); // asks for the token
        continue;
      }
      const told = await answer.json().catch(() => ({}));
      if (answer.status !== 409 || !told.state) {
        const detail = Array.isArray(told.detail) ? told.detail.map((part) => part.msg).join("; ") : told.detail;
        throw new ApiError(answer.status, detail || `The server answered with ${answer.status}.`);
      }
      if (clashes(this.base, told.state, this.annotator, action)) this.clashed(action);
      this.base = told.state;
    }
  }
}
