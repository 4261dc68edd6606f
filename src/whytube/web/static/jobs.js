// Runs a job on the server and follows it by server-sent events until it is over.

import { ApiError, api } from "./api.js";

const OVER = ["done", "failed", "cancelled"];
const PATIENCE = 1000; // milliseconds between looks, where events do not come through

/**
 * Start a job and resolve with it once it is done; reject with what went wrong.
 *
 * job: called with every state. answer: called with every explanation so far.
 * signal: an AbortSignal; aborting cancels the job on the server and rejects with an AbortError.
 */
export async function runJob(body, { job = () => {}, answer = () => {}, signal = null } = {}) {
  const first = await api.postJob(body);
  if (signal?.aborted) {
    if (!OVER.includes(first.status)) await api.cancelJob(first.id);
    throw stopped();
  }
  job(first);
  const last = OVER.includes(first.status) ? first : await followed(first, { job, answer, signal });
  if (last.status === "cancelled") throw stopped();
  if (last.status === "failed") throw new ApiError(500, last.error || "The work failed, and the server did not say why.");
  return last;
}

function followed(first, { job, answer, signal }) {
  return new Promise((resolve, reject) => {
    const events = new EventSource(`/api/jobs/${encodeURIComponent(first.id)}/events`);
    let polling = null;
    const end = (settle, value) => {
      events.close();
      clearTimeout(polling);
      settle(value);
    };
    const take = (state) => {
      job(state);
      if (OVER.includes(state.status)) end(resolve, state);
    };
    const look = async () => {
      try {
        take(await api.job(first.id));
        polling = setTimeout(look, PATIENCE);
      } catch (error) {
        end(reject, error);
      }
    };
    events.addEventListener("job", (event) => take(JSON.parse(event.data)));
    events.addEventListener("answer", (event) => answer(JSON.parse(event.data)));
    events.addEventListener("error", () => {
      // A browser opens the stream again by itself, unless the server refused it.
      if (events.readyState === EventSource.CLOSED && polling === null) look();
    });
    signal?.addEventListener("abort", () => {
      end(reject, stopped());
      api.cancelJob(first.id).catch(() => {});
    });
  });
}

const stopped = () => new DOMException("stopped", "AbortError");
export const isStop = (error) => error?.name === "AbortError";

/** How far a job is, in words: its place in the queue, or what the server says it does. */
export function progressText(state) {
  if (state.status === "queued") {
    return state.position > 1 ? `Waiting: ${state.position - 1} before this one` : "Waiting: the next in line";
  }
  const { done, total, text } = state.progress ?? {};
  if (state.kind === "explain" && done > 0) return `${done} of ${total} regions tried`;
  return text || "Working";
}

/** How far a job is, in [0, 1]; null where that is not known. */
export function progressShare(state) {
  const { done, total } = state.progress ?? {};
  return state.status === "running" && total > 0 ? Math.min(1, done / total) : null;
}
