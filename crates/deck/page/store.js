// What the views show. A view wants a document; it is read once, and again only when an event names something in it.
import { batch, signal, useEffect, useMemo } from "./html.js";
import { Problem, read, readEvents, session, urlOf } from "./api.js";
import { alone, channel, isVisible } from "./sharing.js";
import { lastContact, noteContact, setServerTime } from "./clock.js";

/** @typedef {import("./types").TownEvent} TownEvent */

/** The server sends a comment every 5 seconds; a stream that is silent for longer is gone. */
const SILENCE_MAX_MS = 12_000;
/** The shortest pause between two reads of the same document, also after a read without an answer. */
const READ_GAP_MS = 80;
const LOST_GAP_MS = 2000;
/** Rows that are read one by one after events; if more are named at once, the list is read again. */
const ROWS_AT_ONCE_MAX = 24;
/** Documents that no view shows any more, kept to be shown at once when a person comes back. */
const IDLE_DOCUMENTS_MAX = 24;
/** Beads whose last events are kept, and how many of each. */
const RECENT_MAX = 2000;
const RECENT_EACH_MAX = 8;
/** How often a document is read that changes without an event, such as by a disk that is full. */
const AGING_MS = 60_000;
/** The longest pause before the stream of events is tried again. */
const RETRY_MAX_MS = 5000;

/** `connecting`, `live`, `stale` or `ended` (the login is over). */
export const connection = signal("connecting");
/** Since when nothing was heard, by the server's clock. */
export const staleSince = signal(/** @type {number | null} */ (null));
/** The number of the last event that was seen. */
export const lastEvent = signal(0);
/** The last events, newest first. */
export const feed = signal(/** @type {TownEvent[]} */ ([]));

/** The last events about a bead, by its id, the newest last. @type {Map<string, TownEvent[]>} */
const recent = new Map();
/** Events that decide nothing. */
const HARMLESS = new Set(["commented", "run_used", "message_delivered", "step_done", "label_added", "label_removed"]);
/** The actor of events that no person and no agent caused. */
const SYSTEM_ACTOR = "gt";
/** @type {Map<string, StoredDocument>} */
const documents = new Map();
/** Documents are read when the number of the last event is known: what happens after that is heard, and nothing is missed. */
let isStarted = false;

function start() {
  isStarted = true;
  for (const document of documents.values()) if (document.dirty) document.refresh();
}

/** The last event about a bead since the page was opened. @param {string | null | undefined} bead */
export function lastEventOf(bead) {
  return bead ? recent.get(bead)?.at(-1) : undefined;
}

/** Whether an event may end something that waits for a person. @param {TownEvent} event */
export const mayDecide = (event) => !HARMLESS.has(event.event_type);

/**
 * The event after this number that decided something about a bead: the last one of a person, else the last one.
 * @param {string | null | undefined} bead @param {number} after
 */
export function decidingEventOf(bead, after) {
  const events = (bead ? recent.get(bead) ?? [] : []).filter((event) => event.number > after && mayDecide(event));
  return events.findLast((event) => event.actor !== SYSTEM_ACTOR && !event.actor.includes("/")) ?? events.at(-1);
}

/** One document that views show. */
class StoredDocument {
  /** @param {import("./types").ReadPath} template @param {import("./types").Parameters} parameters */
  constructor(template, parameters) {
    this.template = template;
    this.parameters = parameters;
    this.data = signal(/** @type {any} */ (undefined));
    this.problem = signal(/** @type {Problem | null} */ (null));
    this.users = 0;
    this.dirty = true;
    this.reading = false;
    this.lastTook = 0;
    /** @type {(event: TownEvent) => boolean | string} */
    this.wants = () => true;
    /** @type {RowRules | undefined} */
    this.rows = undefined;
    /** @type {Set<string>} */
    this.dirtyRows = new Set();
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.timer = undefined;
  }

  /** Functions of a view that is gone would keep all of its elements; until another view shows this, every event counts. */
  forgetView() {
    this.wants = () => true;
    this.rows = undefined;
  }

  /** Reads it again soon; several calls before that are one read. */
  refresh(after = 0) {
    this.dirty = true;
    if (this.users === 0 || this.reading) return;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      this.timer = undefined;
      void this.update();
    }, after);
  }

  async update() {
    if (this.reading || this.users === 0 || !isStarted) return;
    this.reading = true;
    const began = performance.now();
    const whole = this.dirty || this.dirtyRows.size > ROWS_AT_ONCE_MAX || this.data.value === undefined;
    const keys = [...this.dirtyRows];
    this.dirty = false;
    this.dirtyRows.clear();
    try {
      if (whole) {
        this.data.value = await read(this.template, this.parameters);
      } else {
        await this.updateRows(keys);
      }
      this.problem.value = null;
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      this.problem.value = error;
      if (error.status === 0) this.dirty = true;
    } finally {
      this.reading = false;
      this.lastTook = performance.now() - began;
    }
    const isLost = this.problem.value?.status === 0;
    if (this.dirty || this.dirtyRows.size > 0) this.again(isLost ? LOST_GAP_MS : READ_GAP_MS);
  }

  /** @param {number} gap */
  again(gap) {
    if (this.timer !== undefined || this.reading) return;
    // A server that is slow is asked less often.
    this.timer = setTimeout(() => {
      this.timer = undefined;
      void this.update();
    }, Math.max(gap, 2 * this.lastTook));
  }

  /** @param {string[]} keys */
  async updateRows(keys) {
    const rules = /** @type {RowRules} */ (this.rows);
    const rows = await Promise.all(keys.map((key) => rules.read(key).catch((error) => {
      if (error instanceof Problem && error.status === 404) return null;
      throw error;
    })));
    const old = this.data.value;
    const named = new Map(keys.map((key, at) => [key, rows[at]]));
    const items = [];
    let total = old.total;
    for (const item of old.items) {
      const key = rules.key(item);
      if (!named.has(key)) {
        items.push(item);
        continue;
      }
      const row = named.get(key);
      named.delete(key);
      if (row && rules.belongs(row)) items.push(row);
      else total -= 1;
    }
    // The newest comes first. A row that is older than the first one is of another page and is counted there.
    const first = old.items[0];
    for (const row of named.values()) {
      if (row && rules.belongs(row) && !(first && rules.isOlder(row, first))) {
        items.unshift(row);
        total += 1;
      }
    }
    const most = Number(this.parameters.query?.limit ?? Infinity);
    this.data.value = { ...old, items: items.slice(0, most), total };
  }

  /** @param {TownEvent} event */
  hear(event) {
    const wanted = this.wants(event);
    if (wanted === false) return;
    if (typeof wanted === "string" && this.rows) this.dirtyRows.add(wanted);
    else this.dirty = true;
    if (this.users > 0 && !this.reading) {
      // The first event is shown at once, those that follow it together.
      if (this.timer === undefined) this.timer = setTimeout(() => {
        this.timer = undefined;
        void this.update();
      }, 15);
    }
  }
}

/**
 * How single rows of a list are read.
 * @typedef {{ key: (row: any) => string, read: (key: string) => Promise<any>, belongs: (row: any) => boolean, isOlder: (row: any, than: any) => boolean }} RowRules
 */

/** @param {import("./types").ReadPath} template @param {import("./types").Parameters} parameters */
function stored(template, parameters) {
  const key = String(urlOf(template, parameters.path, parameters.query));
  let found = documents.get(key);
  if (!found) {
    found = new StoredDocument(template, parameters);
    documents.set(key, found);
    forget();
  }
  return found;
}

function forget() {
  const idle = [...documents].filter(([, document]) => document.users === 0);
  for (const [key] of idle.slice(0, Math.max(0, idle.length - IDLE_DOCUMENTS_MAX))) documents.delete(key);
}

/**
 * A document for a component. `wants` says which events name something in it: `true` reads the document again, a string
 * the row of that key. With `ages` it is also read again when no event has named it for a while.
 * @template {import("./types").ReadPath} P
 * @param {P} template
 * @param {import("./types").Parameters} [parameters]
 * @param {{ wants?: (event: TownEvent) => boolean | string, rows?: RowRules, skip?: boolean, ages?: boolean }} [options]
 * @returns {{ data: import("./types").ReadAnswer<P> | undefined, problem: Problem | null, refresh: () => void }}
 */
export function useDocument(template, parameters = {}, { wants, rows, skip, ages } = {}) {
  const key = String(urlOf(template, parameters.path, parameters.query));
  const document = useMemo(() => (skip ? null : stored(template, parameters)), [key, skip]);
  const remember = () => {
    if (document && wants) document.wants = wants;
    if (document) document.rows = rows;
  };
  remember();
  useEffect(() => {
    if (!document) return undefined;
    document.users += 1;
    // The view before this one may have gone after this one was drawn.
    remember();
    if (document.dirty) document.refresh();
    const timer = ages ? setInterval(() => document.refresh(), AGING_MS) : undefined;
    return () => {
      clearInterval(timer);
      document.users -= 1;
      if (document.users === 0) document.forgetView();
      // Events are still heard, so that it is read again if it may have changed meanwhile.
      forget();
    };
  }, [document]);
  if (!document) return { data: undefined, problem: null, refresh: () => {} };
  return { data: document.data.value, problem: document.problem.value, refresh: () => document.refresh() };
}

/** Reads everything that is shown again. */
export function refreshAll() {
  for (const document of documents.values()) document.refresh();
}

/** @param {TownEvent[]} events */
function deliver(events) {
  batch(() => {
    for (const event of events) {
      if (event.issue_id) {
        const known = recent.get(event.issue_id) ?? [];
        recent.delete(event.issue_id);
        recent.set(event.issue_id, [...known.slice(1 - RECENT_EACH_MAX), event]);
        if (recent.size > RECENT_MAX) recent.delete(/** @type {string} */ (recent.keys().next().value));
      }
      for (const document of documents.values()) document.hear(event);
    }
    feed.value = [...events.reverse(), ...feed.value].slice(0, 50);
  });
}

let silenceTimer = /** @type {ReturnType<typeof setTimeout> | undefined} */ (undefined);

function setStale() {
  if (connection.value === "stale") return;
  connection.value = "stale";
  staleSince.value = lastContact.value;
}

function setLive() {
  if (connection.value === "live") return;
  const wasStale = connection.value === "stale";
  connection.value = "live";
  staleSince.value = null;
  // Whatever was asked for while the server was away has to be asked again.
  for (const document of documents.values()) {
    if (document.dirty || document.problem.value) document.refresh();
  }
  if (wasStale) void identify();
}

/** Asks who is logged in. */
export async function identify() {
  try {
    const found = await read("/api/v1/session");
    session.value = found;
    return true;
  } catch (error) {
    if (error instanceof Problem && error.status === 401) connection.value = "ended";
    return false;
  }
}

/** The stream of events, while this page reads it for all pages of the browser. @type {AbortController | undefined} */
let stream;
/** Ends the waiting of this page for its turn to read the stream. */
let turn = new AbortController();
/** The page that reads has not answered: it may be suspended, so this one does not wait for it. */
let isImpatient = false;
let wasSilent = false;
/** When the stream was last heard, by the monotonic clock. */
let heardAt = 0;

function heard() {
  heardAt = performance.now();
  wasSilent = false;
  clearTimeout(silenceTimer);
  silenceTimer = setTimeout(silent, SILENCE_MAX_MS);
}

function silent() {
  setStale();
  if (stream) {
    stream.abort();
    return;
  }
  // The page that reads may be in the background, where its timers are late; or it is suspended, and does not hear this.
  channel.postMessage({ kind: "silent" });
  if (wasSilent && isVisible.value) {
    isImpatient = true;
    turn.abort();
    return;
  }
  wasSilent = true;
  silenceTimer = setTimeout(silent, SILENCE_MAX_MS);
}

/** Hears what another page of this browser says. @param {any} said */
function hearPage({ kind, events = [], last = 0 }) {
  if (kind === "hello") {
    if (stream && connection.value === "live") channel.postMessage({ kind: "alive", last: lastEvent.value });
    return;
  }
  if (kind === "silent") {
    if (stream && performance.now() - heardAt > SILENCE_MAX_MS) stream.abort();
    return;
  }
  if (stream || !isStarted || connection.value === "ended") return;
  heard();
  noteContact();
  setLive();
  const fresh = events.filter((/** @type {TownEvent} */ event) => event.number > lastEvent.value);
  // Numbers have no gaps: an event that is missing was told while this page did not listen.
  const isMissing = last > lastEvent.value + fresh.length;
  lastEvent.value = Math.max(last, lastEvent.value);
  if (fresh.length > 0) deliver(fresh);
  if (isMissing) refreshAll();
}

/** Reads events until the stream ends, and tells them to the other pages. @param {() => void} onContact */
async function readStream(onContact) {
  const abort = new AbortController();
  stream = abort;
  /** @type {TownEvent[]} */
  let waiting = [];
  try {
    heard();
    /** @type {Record<string, string>} */
    const headers = { "last-event-id": String(lastEvent.value) };
    await readEvents(urlOf("/api/v1/events"), ({ id, kind, data }) => {
      if (kind === "truncated") {
        lastEvent.value = JSON.parse(data).last;
        channel.postMessage({ kind: "truncated", last: lastEvent.value });
        refreshAll();
        return;
      }
      lastEvent.value = Number(id);
      waiting.push(JSON.parse(data));
    }, { signal: abort.signal, headers }, () => {
      heard();
      onContact();
      setLive();
      channel.postMessage({ kind: "alive", events: waiting, last: lastEvent.value });
      if (waiting.length > 0) deliver(waiting);
      waiting = [];
    });
  } finally {
    stream = undefined;
  }
}

/** Listens to the events of the town for as long as the page is open. */
export async function listen() {
  let pause = 250;
  channel.onmessage = ({ data }) => hearPage(data);
  for (;;) {
    try {
      if (lastEvent.value === 0) {
        const town = await read("/api/v1/town");
        setServerTime(town.now);
        noteContact();
        lastEvent.value = town.last_event;
        start();
      }
      heard();
      channel.postMessage({ kind: "hello" });
      turn = new AbortController();
      const options = isImpatient ? { steal: true } : { signal: turn.signal };
      isImpatient = false;
      await alone("events", () => readStream(() => {
        pause = 250;
      }), options);
    } catch (error) {
      // Each document says why it cannot be read.
      if (error instanceof Problem && error.status !== 0) start();
      // Another page has taken its turn.
      stream?.abort();
      if (error instanceof Problem && error.status === 401) {
        connection.value = "ended";
        return;
      }
      // The next round tries again.
    }
    clearTimeout(silenceTimer);
    if (session.value === undefined) {
      connection.value = "ended";
      return;
    }
    setStale();
    await new Promise((resume) => setTimeout(resume, pause));
    pause = Math.min(pause * 2, RETRY_MAX_MS);
  }
}
