// What an action did, said where a person and a screen reader notice it.
import { html, signal } from "../html.js";
import { plain } from "../format.js";

/** @typedef {{ number: number, text: string, command: string, tone: string }} Toast */

const SHOWN_MS = 8000;
const toasts = signal(/** @type {Toast[]} */ ([]));
let count = 0;

/** @param {string} text @param {string} [command] the command that does the same @param {string} [tone] */
export function announce(text, command = "", tone = "good") {
  count += 1;
  const toast = { number: count, text, command, tone };
  toasts.value = [...toasts.value.slice(-3), toast];
  setTimeout(() => dismiss(toast.number), tone === "bad" ? 2 * SHOWN_MS : SHOWN_MS);
}

/** @param {number} number */
function dismiss(number) {
  toasts.value = toasts.value.filter((toast) => toast.number !== number);
}

export function Toasts() {
  return html`<div class="toasts" role="status" aria-live="polite">${toasts.value.map((toast) => html`
    <div key=${toast.number} class="toast ${toast.tone}">
      <div><p>${plain(toast.text)}</p>${toast.command && html`<code>${plain(toast.command)}</code>`}</div>
      <button class="quiet small" aria-label="Dismiss" onClick=${() => dismiss(toast.number)}>×</button>
    </div>`)}</div>`;
}
