// Requests to the server the page came from. The address is relative to the page, so that a proxy may add a prefix.
import { signal } from "./html.js";
import { noteContact, setServerTime } from "./clock.js";

export const BASE = new URL("..", document.baseURI);

/** How long a request waits for its answer. An action may have to wait for processes to end. */
const READ_TIMEOUT_MS = 10_000;
const WRITE_TIMEOUT_MS = 15_000;

/** Who is logged in; `null` before the server has said it, `undefined` if this browser is not logged in. */
export const session = signal(/** @type {import("./types").Session | null | undefined} */ (null));

/** Whether this login may do what needs a scope. @param {string} scope */
export function may(scope) {
  return (session.value?.scopes ?? []).some((one) => one === scope || one === "admin");
}

/** An answer that is no success. */
export class Problem extends Error {
  /** @param {number} status @param {string} code @param {string} detail */
  constructor(status, code, detail) {
    super(detail);
    this.status = status;
    this.code = code;
  }
}

/**
 * The address of a path such as `/api/v1/runs/{id}`.
 * @param {string} template @param {Record<string, string>} [path] @param {Record<string, string | number | boolean | null | undefined>} [query]
 */
export function urlOf(template, path = {}, query = {}) {
  const filled = template.replace(/^\//, "").replace(/\{(\w+)\}/g, (_, name) => encodeURIComponent(path[name]));
  const url = new URL(filled, BASE);
  for (const [name, value] of Object.entries(query)) {
    if (value !== null && value !== undefined && value !== "") url.searchParams.set(name, String(value));
  }
  return url;
}

/** Asks, and waits for the head of the answer. @param {URL} url @param {RequestInit} options */
export async function request(url, options = {}) {
  const late = new AbortController();
  const isWrite = (options.method ?? "GET") !== "GET";
  const timer = setTimeout(() => late.abort(), isWrite ? WRITE_TIMEOUT_MS : READ_TIMEOUT_MS);
  const signal = options.signal ? AbortSignal.any([options.signal, late.signal]) : late.signal;
  let answer;
  try {
    answer = await fetch(url, { credentials: "same-origin", ...options, signal });
  } catch (error) {
    if (options.signal?.aborted) throw error;
    const unknown = isWrite && late.signal.aborted ? "; look whether it was done before you do it again" : "";
    throw new Problem(0, "unreachable", `the server does not answer${unknown}`);
  } finally {
    clearTimeout(timer);
  }
  noteContact();
  setServerTime(answer.headers.get("date"));
  if (answer.ok) return answer;
  if (answer.status === 401) session.value = undefined;
  let document = null;
  try {
    document = await answer.json();
  } catch {
    // A proxy answers with a page of its own.
  }
  throw new Problem(answer.status, document?.code ?? "", document?.detail ?? `the server answered ${answer.status}`);
}

/**
 * Reads a document.
 * @template {import("./types").ReadPath} P
 * @param {P} template
 * @param {import("./types").Parameters} [parameters]
 * @param {AbortSignal} [abort]
 * @returns {Promise<import("./types").ReadAnswer<P>>}
 */
export async function read(template, parameters = {}, abort) {
  const answer = await request(urlOf(template, parameters.path, parameters.query), { signal: abort });
  try {
    return await answer.json();
  } catch (error) {
    if (abort?.aborted) throw error;
    throw new Problem(0, "unreachable", "the answer of the server broke off");
  }
}

/**
 * Changes something.
 * @template {import("./types").WritePath} P
 * @param {P} template
 * @param {{ path?: Record<string, string>, body?: object, method?: string }} [parameters]
 */
export async function write(template, { path, body = {}, method = "POST" } = {}) {
  const headers = { "content-type": "application/json", "x-gt-csrf": session.value?.csrf ?? "" };
  const answer = await request(urlOf(template, path), { method, headers, body: JSON.stringify(body) });
  try {
    const text = await answer.text();
    return text ? JSON.parse(text) : null;
  } catch {
    // The head of the answer said that it is done.
    return null;
  }
}

/**
 * Reads a stream line by line until it ends.
 * @param {URL} url @param {(line: string) => void} onLine @param {RequestInit} options @param {() => void} [onChunk] after each piece
 */
export async function readLines(url, onLine, options = {}, onChunk = () => {}) {
  const answer = await request(url, options);
  const reader = /** @type {ReadableStream<Uint8Array>} */ (answer.body).getReader();
  const decoder = new TextDecoder();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    noteContact();
    rest += decoder.decode(value, { stream: true });
    const lines = rest.split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) onLine(line);
    onChunk();
  }
}

/**
 * Reads server-sent events until the stream ends. A comment of the server is contact, too.
 * @param {URL} url @param {(event: { id: string, kind: string, data: string }) => void} onEvent
 * @param {RequestInit} options @param {() => void} [onChunk]
 */
export function readEvents(url, onEvent, options = {}, onChunk) {
  let current = { id: "", kind: "message", data: "" };
  const onLine = (/** @type {string} */ line) => {
    if (line === "") {
      if (current.data) onEvent(current);
      current = { id: "", kind: "message", data: "" };
      return;
    }
    const colon = line.indexOf(":");
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "id") current.id = value;
    if (field === "event") current.kind = value;
    if (field === "data") current.data += (current.data ? "\n" : "") + value;
  };
  return readLines(url, onLine, options, onChunk);
}
