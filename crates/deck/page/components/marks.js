// States as shapes with a word, so that no colour carries a meaning alone.
import { html } from "../html.js";
import { words } from "../format.js";
import { Age } from "./basics.js";

/** The shape and the tone of each state. */
const STATES = {
  ready: ["ring", "grey"], open: ["ring", "grey"], scheduled: ["ring", "grey"], queued: ["ring", "grey"], waiting: ["ring", "grey"],
  running: ["half", "blue"], starting: ["half", "blue"], live: ["half", "blue"], in_progress: ["half", "blue"], hooked: ["half", "blue"], building: ["half", "amber"], dispatched: ["half", "blue"], working: ["half", "green"],
  checking: ["half", "amber"], landing: ["arrow", "amber"], repairing: ["half", "amber"],
  blocked: ["bar", "grey"], deferred: ["bar", "grey"], unscheduled: ["ring", "grey"], backoff: ["pause", "amber"], paused: ["pause", "amber"], held: ["pause", "amber"], parked: ["pause", "amber"], stopped: ["pause", "amber"],
  review: ["diamond", "violet"], question: ["diamond", "violet"], "help-wanted": ["diamond", "violet"],
  queue: ["arrow", "blue"],
  silent: ["warn", "amber"],
  landed: ["check", "green"], closed: ["check", "green"], done: ["check", "green"], completed: ["check", "green"],
  failed: ["cross", "red"], lost: ["cross", "red"], conflict: ["cross", "red"], over_limit: ["cross", "red"],
  cancelled: ["dash", "grey"], superseded: ["dash", "grey"],
};

/** An element kept here would keep the view that showed it last. */
const SHAPES = {
  ring: () => html`<circle cx="7" cy="7" r="4.5" fill="none" stroke="currentColor" stroke-width="2" />`,
  half: () => html`<circle cx="7" cy="7" r="5" fill="none" stroke="currentColor" stroke-width="1.6" /><path d="M7 3.6a3.4 3.4 0 0 1 0 6.8z" fill="currentColor" />`,
  check: () => html`<circle cx="7" cy="7" r="6" fill="currentColor" /><path class="cut" d="M4.4 7.2l1.8 1.8 3.4-3.8" fill="none" stroke-width="1.6" />`,
  cross: () => html`<path d="M3.5 3.5l7 7m0-7l-7 7" stroke="currentColor" stroke-width="2.2" stroke-linecap="round" />`,
  diamond: () => html`<path d="M7 1.2L12.8 7 7 12.8 1.2 7z" fill="currentColor" />`,
  pause: () => html`<path d="M4.5 3v8m5-8v8" stroke="currentColor" stroke-width="2.4" stroke-linecap="round" />`,
  bar: () => html`<circle cx="7" cy="7" r="5" fill="none" stroke="currentColor" stroke-width="1.8" /><path d="M3.6 10.4l6.8-6.8" stroke="currentColor" stroke-width="1.8" />`,
  arrow: () => html`<path d="M3 2.2l8.4 4.8L3 11.8z" fill="currentColor" />`,
  dash: () => html`<path d="M3 7h8" stroke="currentColor" stroke-width="2.2" stroke-linecap="round" />`,
  warn: () => html`<path d="M7 1.4l6 11H1z" fill="currentColor" /><path class="cut" d="M7 5.4v3.4m0 1.6v.4" fill="none" stroke-width="1.5" />`,
};

/** @param {string} state */
export function toneOf(state) {
  return (STATES[state] ?? ["ring", "grey"])[1];
}

/** @param {string} state */
export function shapeOf(state) {
  return SHAPES[(STATES[state] ?? ["ring", "grey"])[0]]();
}

/** The shape of a state, without a word; the text beside it says it. @param {{ state: string }} props */
export function Mark({ state }) {
  return html`<svg class="mark tone-${toneOf(state)}" viewBox="0 0 14 14" width="14" height="14" aria-hidden="true">${shapeOf(state)}</svg>`;
}

/** A state as shape and word. @param {{ state: string, text?: any }} props */
export function State({ state, text }) {
  return html`<span class="state tone-${toneOf(state)}"><${Mark} state=${state} /><span>${text ?? words(state)}</span></span>`;
}

/** The state of a run; one that prints nothing is silent, however it runs. @param {{ run: { state: string, silent_since?: string | null }, text?: string }} props */
export function RunState({ run, text }) {
  if (!run.silent_since) return html`<${State} state=${run.state} text=${text} />`;
  return html`<${State} state="silent" text=${html`${text && `${text} `}silent for <${Age} since=${run.silent_since} />`} />`;
}

/** A warning as shape. */
export function Warning() {
  return html`<svg class="mark" viewBox="0 0 14 14" width="14" height="14" aria-hidden="true">${SHAPES.warn()}</svg>`;
}

/** The tone of each kind of inbox row. */
const KINDS = {
  "help-wanted": "violet", review: "violet", budget: "amber", parked: "amber", "queue-paused": "amber", stalled: "amber",
  "put-off": "amber", escalated: "amber", unmerged: "violet", "pull-request-changed": "amber", "over-limit": "amber",
};

/** The kind of an inbox row as a word in a frame. @param {{ code: string }} props */
export function Kind({ code }) {
  return html`<span class="kind tone-${KINDS[code] ?? "red"}">${code === "help-wanted" ? "Question" : words(code)}</span>`;
}

/** A key on the keyboard. @param {{ keys: string }} props */
export function Keys({ keys }) {
  return html`<span class="keys" aria-hidden="true">${keys.split(" ").map((key) => html`<kbd>${key === "Enter" ? "↵" : key}</kbd>`)}</span>`;
}
