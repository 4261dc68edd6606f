// Talks to the server: requests with plain errors, uploads that tell how far they are, and the token of a shared server.

/** What the server refused, in its own words. */
export class ApiError extends Error {
  constructor(status, detail, wait = null) {
    super(detail);
    this.status = status;
    this.wait = wait;
  }
}

const LOST = "The server does not answer. Is it still running?";
let askForToken = null;

/** Say what to do where the server wants a token: a function that resolves once a session is open. */
export function onTokenNeeded(ask) {
  askForToken = ask;
}

/** Send a request and read its JSON; null where there is no content. */
export async function request(method, path, body) {
  const headers = { Accept: "application/json" };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const sent = { method, headers, body: body === undefined ? undefined : JSON.stringify(body) };
  let answer;
  try {
    answer = await fetch(path, sent);
  } catch {
    throw new ApiError(0, LOST);
  }
  if (answer.status === 401 && askForToken && path !== "/api/session") {
    await askForToken();
    return request(method, path, body);
  }
  const text = await answer.text();
  if (!answer.ok) throw refusal(answer.status, text, answer.headers.get("Retry-After"));
  return text ? JSON.parse(text) : null;
}

/** Open a session with a token; the server sets a cookie that scripts cannot read. */
export async function openSession(token) {
  let answer;
  try {
    const headers = { "Content-Type": "application/json" };
    answer = await fetch("/api/session", { method: "POST", headers, body: JSON.stringify({ token }) });
  } catch {
    throw new ApiError(0, LOST);
  }
  if (!answer.ok) throw refusal(answer.status, await answer.text(), null);
}

/** Send a file. progress: called with the share that has left, in [0, 1]. signal: an AbortSignal that stops it. */
export function upload(file, { progress = () => {}, signal = null } = {}) {
  return new Promise((resolve, reject) => {
    const call = new XMLHttpRequest();
    const form = new FormData();
    form.append("file", file, file.name);
    call.open("POST", "/api/videos");
    call.upload.addEventListener("progress", (e) => e.lengthComputable && progress(e.loaded / e.total));
    call.upload.addEventListener("load", () => progress(1));
    call.addEventListener("error", () => reject(new ApiError(0, LOST)));
    call.addEventListener("abort", () => reject(new DOMException("stopped", "AbortError")));
    call.addEventListener("load", () => {
      if (call.status >= 200 && call.status < 300) resolve(JSON.parse(call.responseText));
      else reject(refusal(call.status, call.responseText, call.getResponseHeader("Retry-After")));
    });
    signal?.addEventListener("abort", () => call.abort());
    call.send(form);
  });
}

function refusal(status, text, wait) {
  let detail = "";
  try {
    const told = JSON.parse(text).detail;
    detail = Array.isArray(told) ? told.map((part) => part.msg ?? String(part)).join("; ") : String(told ?? "");
  } catch {
    detail = "";
  }
  const seconds = wait && Number.isFinite(Number(wait)) ? Number(wait) : null;
  if (status === 429 && seconds) detail = `${detail || "The server is busy."} Try again in ${seconds} s.`;
  return new ApiError(status, detail || `The server answered with ${status}.`, seconds);
}

export const api = {
  model: () => request("GET", "/api/model"),
  examples: () => request("GET", "/api/examples"),
  example: (name) => request("POST", `/api/examples/${encodeURIComponent(name)}`),
  folder: () => request("GET", "/api/folder"),
  folderVideo: (key) => request("POST", `/api/folder/${encodeURIComponent(key)}`),
  videos: (limit) => request("GET", `/api/videos?limit=${limit}`),
  video: (id) => request("GET", `/api/videos/${encodeURIComponent(id)}`),
  removeVideo: (id) => request("DELETE", `/api/videos/${encodeURIComponent(id)}`),
  result: (id) => request("GET", `/api/results/${encodeURIComponent(id)}`),
  job: (id) => request("GET", `/api/jobs/${encodeURIComponent(id)}`),
  postJob: (body) => request("POST", "/api/jobs", body),
  cancelJob: (id) => request("DELETE", `/api/jobs/${encodeURIComponent(id)}`),
  playUrl: (id) => `/api/videos/${encodeURIComponent(id)}/play`,
  resultUrl: (id, name) => `/api/results/${encodeURIComponent(id)}/${name}`,
};
