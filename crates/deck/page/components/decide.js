// The question before an action: what will happen, the command that does the same, and what became of it meanwhile.
import { html, signal, useLayoutEffect, useState } from "../html.js";
import { may, Problem, session } from "../api.js";
import { useKeys } from "../keys.js";
import { decidingEventOf, feed, lastEventOf } from "../store.js";
import { plain, timeOfDay, told, words } from "../format.js";
import { Command, useDialog } from "./basics.js";
import { Keys } from "./marks.js";
import { announce } from "./toasts.js";

/** @typedef {import("../decisions.js").Decision} Decision */

const open = signal(/** @type {{ decision: Decision, event: number, after?: () => void } | null} */ (null));

/** Asks a person to confirm. @param {Decision} decision @param {() => void} [after] runs when it is done */
export function ask(decision, after) {
  if (!isAllowed(decision)) {
    announce(`${decision.label}: ${refusal(decision)}`, "gt deck", "bad");
    return;
  }
  open.value = { decision, after, event: lastEventOf(decision.bead)?.number ?? 0 };
}

/** What an event says, in words. @param {import("../types").TownEvent} event */
export function sentence(event) {
  const payload = /** @type {any} */ (event.payload) ?? {};
  const what = event.event_type === "reviewed" ? `${payload.decision ?? "reviewed"}`
    : event.event_type === "mr_changed" || event.event_type === "mr_opened" ? `merge request ${payload.state ?? "changed"}`
      : words(event.event_type).toLowerCase();
  return `${plain(what)} by ${plain(event.actor)} at ${timeOfDay(event.created_at)}`;
}

/** @param {Decision} decision */
const scopeOf = (decision) => decision.scope ?? "operate";
/** Whether this login may do it. @param {Decision} decision */
const isAllowed = (decision) => may(scopeOf(decision));
/** @param {Decision} decision */
const refusal = (decision) => session.value === null ? "the server has not said yet who you are; press it again" : `this login may not do that, it lacks the scope ${scopeOf(decision)}; gt deck makes a login that may`;

/** @param {{ decision: Decision, event: number, after?: () => void }} props */
function Question({ decision, event, after }) {
  const dialog = useDialog();
  const [fields, setFields] = useState(decision.prepare ? null : decision.fields ?? []);
  const [values, setValues] = useState(/** @type {Record<string, string>} */ ({}));
  const [problem, setProblem] = useState("");
  const [busy, setBusy] = useState(false);
  void feed.value;
  const meanwhile = decidingEventOf(decision.bead, event);
  const close = () => {
    open.value = null;
  };
  useLayoutEffect(() => {
    if (!decision.prepare) return;
    decision.prepare().then((prepared) => {
      setValues(Object.fromEntries(prepared.map((field) => [field.name, field.value ?? ""])));
      setFields(prepared);
    }, (error) => setProblem(error.message));
  }, []);
  useLayoutEffect(() => {
    // A field that must be filled is next; else the button, so that the second key is Enter.
    const required = fields?.find((field) => field.required);
    const name = required ? `[name=${required.name}]` : ".confirm";
    /** @type {HTMLElement | null | undefined} */ (dialog.current?.querySelector(name))?.focus();
  }, [fields]);
  const missing = fields?.find((field) => field.required && !(values[field.name] ?? "").trim());
  const confirm = async () => {
    if (busy || !fields) return;
    if (missing) {
      setProblem(`${missing.label} is needed`);
      return;
    }
    setBusy(true);
    setProblem("");
    try {
      const answer = await decision.run(values);
      const waits = decision.waits?.(answer);
      announce(`${decision.done}${waits ? `. It waits: ${told(waits)}` : ""}`, decision.command(values));
      close();
      // After an edit there is still something to decide.
      if (!decision.keeps) after?.();
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      const last = lastEventOf(decision.bead);
      const told = error.status === 409 && last ? `${error.message} (${sentence(last)})` : error.message;
      setProblem(told);
      announce(`Not done: ${told}`, "", "bad");
      setBusy(false);
    }
  };
  useKeys("Decision", [
    { keys: "Enter", does: decision.label, run: confirm },
    { keys: decision.key, does: decision.label, run: confirm },
    { keys: "Escape", does: "Do nothing", run: close },
  ], { modal: true });
  /** @param {KeyboardEvent} press */
  const onKeyDown = (press) => {
    const isLine = press.target instanceof HTMLInputElement;
    if (press.key === "Enter" && (isLine || press.ctrlKey || press.metaKey)) {
      press.preventDefault();
      if (!press.repeat) void confirm();
    }
  };
  const set = (/** @type {string} */ name) => (/** @type {any} */ input) => setValues({ ...values, [name]: input.currentTarget.value });
  return html`<dialog ref=${dialog} class="decide" aria-labelledby="decide-title" onCancel=${close} onClose=${close} onKeyDown=${onKeyDown}>
    <h2 id="decide-title">${plain(decision.question)}</h2>
    ${meanwhile && html`<p class="meanwhile" role="alert"><strong>Meanwhile:</strong> ${sentence(meanwhile)}. This may be decided already.</p>`}
    ${fields === null && !problem && html`<p class="faint">Loading …</p>`}
    ${(fields ?? []).map((field) => html`<label key=${field.name} class="field"><span>${field.label}${field.required ? "" : html` <em>optional</em>`}</span>
      ${field.kind === "priority" ? html`<select name=${field.name} value=${values[field.name]} onChange=${set(field.name)}>
          ${["0", "1", "2", "3", "4"].map((level) => html`<option value=${level}>${`P${level}${level === "0" ? " – first" : level === "4" ? " – last" : ""}`}</option>`)}</select>`
        : field.kind === "line" ? html`<input name=${field.name} value=${values[field.name] ?? ""} onInput=${set(field.name)} />`
        : html`<textarea name=${field.name} rows="4" value=${values[field.name] ?? ""} onInput=${set(field.name)}></textarea>`}</label>`)}
    ${problem && html`<p class="problem" role="alert">${plain(problem)}</p>`}
    <p class="same">The same on the command line</p>
    <${Command} text=${decision.command(values)} />
    <div class="buttons">
      <button onClick=${close}>Do nothing <${Keys} keys="Esc" /></button>
      <button class="confirm ${decision.tone ?? ""}" disabled=${busy || fields === null} onClick=${confirm}>${decision.label} <${Keys} keys=${missing || (fields ?? []).some((field) => field.required) ? "Ctrl Enter" : "Enter"} /></button>
    </div></dialog>`;
}

export function Decide() {
  const now = open.value;
  return now && html`<${Question} key=${now.decision.question} ...${now} />`;
}

/** The buttons of decisions. @param {{ decisions: Decision[], after?: () => void, withKeys?: boolean }} props */
export function DecisionButtons({ decisions, after, withKeys = true }) {
  const refused = session.value !== null && decisions.find((decision) => !isAllowed(decision));
  return html`<div class="decisions" role="group" aria-label="Decisions">${decisions.map((decision) => html`
    <button key=${decision.label} class=${decision.tone ?? ""} disabled=${!isAllowed(decision)} title=${isAllowed(decision) ? undefined : refusal(decision)} onClick=${() => ask(decision, after)}>${decision.label} ${withKeys && html`<${Keys} keys=${decision.key} />`}</button>`)}
    ${refused && html`<p class="faint">You may look, not decide. <code>gt deck</code> makes a login that may.</p>`}</div>`;
}

/** The keys of decisions. @param {Decision[]} decisions @param {() => void} [after] */
export function decisionKeys(decisions, after) {
  return decisions.map((decision) => ({ keys: decision.key, does: decision.label, run: () => ask(decision, after) }));
}

/** The keys with which decisions are made anywhere. */
const DECISION_KEYS = ["a", "d", "r", "t", "x", "e", "m", "c", "u", "s"];

/**
 * The keys of decisions, and a word about those that mean nothing here.
 * @param {Decision[]} decisions @param {string} noun such as `card` @param {boolean} isSelected @param {{ after?: () => void, taken?: string[] }} [options] `taken` are keys with another meaning
 */
export function allDecisionKeys(decisions, noun, isSelected, { after, taken = [] } = {}) {
  const known = new Set([...taken, ...decisions.map((decision) => decision.key)]);
  const has = decisions.length === 0 ? `this ${noun} has no decision` : `this ${noun} has ${decisions.map((decision) => `${decision.key} (${decision.label})`).join(", ")}`;
  return [...decisionKeys(decisions, after), ...DECISION_KEYS.filter((key) => !known.has(key)).map((key) => ({
    keys: key, does: "", hidden: true, run: () => announce(isSelected ? `${key} does nothing here: ${has}` : `Nothing is selected; j and k choose a ${noun}`, "", "bad"),
  }))];
}
