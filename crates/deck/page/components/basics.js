// Small parts that several views share.
import { html, useComputed, useEffect, useLayoutEffect, useRef, useState } from "../html.js";
import { seconds } from "../clock.js";
import { dateTime, duration, plain } from "../format.js";
import { address } from "../router.js";
import { announce } from "./toasts.js";

/** How long ago something was; only its text changes as time passes. @param {{ since: string | null | undefined, until?: string | null, isShort?: boolean }} props */
export function Age({ since, until, isShort }) {
  const times = useRef({ since, until });
  times.current = { since, until };
  const from = since ? Date.parse(since) : NaN;
  const text = useComputed(() => {
    const now = seconds.value * 1000;
    const { since: start, until: end } = times.current;
    const age = start ? duration((end ? Date.parse(end) : now) - Date.parse(start)) : "–";
    return isShort ? age.split(" ")[0] : age;
  });
  if (Number.isNaN(from)) return html`<span class="faint">–</span>`;
  return html`<time key=${`${since}/${until}`} class="age" datetime=${since} title=${dateTime(since)}>${text}</time>`;
}

/** Shows a dialog while the component is there; the focus goes back to where it was. */
export function useDialog() {
  const dialog = useRef(/** @type {HTMLDialogElement | null} */ (null));
  useLayoutEffect(() => {
    const before = document.activeElement;
    dialog.current?.showModal();
    return () => {
      if (before instanceof HTMLElement && before !== document.body) queueMicrotask(() => before.isConnected && before.focus({ preventScroll: true }));
    };
  }, []);
  return dialog;
}

/** Text of others: never markup. @param {{ text: unknown, class?: string }} props */
export function Text({ text, class: name }) {
  return html`<span class=${name} dir="auto">${plain(text)}</span>`;
}

/** A shell command that can be copied. @param {{ text: string }} props */
export function Command({ text }) {
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      announce("Copied", text);
    } catch {
      announce("The browser does not let the page copy", text);
    }
  };
  return html`<div class="command"><code>${plain(text)}</code><button class="quiet small" onClick=${copy} aria-label=${`Copy ${plain(text)}`}>Copy</button></div>`;
}

/** The words for a list without entries. @param {{ title: string, children?: any }} props */
export function Empty({ title, children }) {
  return html`<div class="empty"><p class="empty-title">${title}</p>${children}</div>`;
}

/** What a view shows before its data is there, or if it cannot be. @param {{ data: unknown, problem: Error | null, children?: any }} props */
export function Loading({ problem }) {
  if (problem) return html`<div class="problem" role="alert"><strong>This cannot be shown:</strong> ${plain(problem.message)}</div>`;
  return html`<div class="loading" role="status">Loading …</div>`;
}

/** The id of a bead as a link. @param {{ id: string | null | undefined }} props */
export function BeadLink({ id }) {
  if (!id) return null;
  return html`<a class="id" href=${address("bead", id)}>${plain(id)}</a>`;
}

/** A choice among a few. @param {{ label: string, value: string, options: [string, string][], onChange: (value: string) => void }} props */
export function Choice({ label, value, options, onChange }) {
  return html`<div class="choice" role="group" aria-label=${label}>${options.map(([name, text]) => html`
    <button key=${name} class=${name === value ? "chosen" : ""} aria-pressed=${name === value} onClick=${() => onChange(name)}>${text}</button>`)}</div>`;
}

/** A filter by name. @param {{ label: string, value: string, options: string[], all: string, onChange: (value: string) => void }} props */
export function Filter({ label, value, options, all, onChange }) {
  const known = value && !options.includes(value) ? [value, ...options] : options;
  return html`<label class="filter"><span>${label}</span>
    <select value=${value} onChange=${(/** @type {any} */ event) => onChange(event.currentTarget.value)}>
      <option value="">${all}</option>
      ${known.map((name) => html`<option key=${name} value=${name}>${plain(name)}</option>`)}
    </select></label>`;
}

/** A bar that shows a share of a limit, or of the largest. @param {{ share: number, held?: number, label: string, isLimit?: boolean }} props */
export function Meter({ share, held = 0, label, isLimit = true }) {
  const tone = !isLimit ? "blue" : share + held >= 1 ? "red" : share + held >= 0.8 ? "amber" : "blue";
  const percent = (/** @type {number} */ part) => `${(100 * Math.max(0, Math.min(1, part))).toFixed(1)}%`;
  return html`<div class="meter tone-${tone}" role="img" aria-label=${label}>
    <svg width="100%" height="6" aria-hidden="true"><rect width="100%" height="6" rx="3" class="meter-rest" />
      <rect width=${percent(share + held)} height="6" rx="3" class="meter-held" /><rect width=${percent(share)} height="6" rx="3" class="meter-used" /></svg></div>`;
}

/**
 * A list of which only the visible rows are in the page.
 * @param {{ items: any[], rowHeight: number, row: (item: any, at: number) => any, label: string, selected?: number, onEnd?: () => void, role?: string, head?: any, total?: number }} props
 */
export function Windowed({ items, rowHeight, row, label, selected = -1, onEnd, role = "list", head, total }) {
  const box = useRef(/** @type {HTMLElement | null} */ (null));
  const [view, setView] = useState({ top: 0, height: 800 });
  useEffect(() => {
    const element = box.current;
    if (!element) return undefined;
    const measure = () => {
      const top = Math.floor(element.scrollTop / rowHeight) * rowHeight;
      setView((old) => (old.top === top && old.height === element.clientHeight ? old : { top, height: element.clientHeight }));
    };
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    element.addEventListener("scroll", measure, { passive: true });
    measure();
    return () => {
      observer.disconnect();
      element.removeEventListener("scroll", measure);
    };
  }, [rowHeight]);
  const first = Math.max(0, Math.min(Math.floor(view.top / rowHeight) - 8, items.length - 1));
  const last = Math.min(items.length, Math.ceil((view.top + view.height) / rowHeight) + 8);
  useEffect(() => {
    if (onEnd && items.length > 0 && last >= items.length) onEnd();
  }, [last, items.length]);
  useEffect(() => {
    const element = box.current;
    if (!element || selected < 0) return;
    const top = selected * rowHeight;
    if (top < element.scrollTop) element.scrollTop = top;
    else if (top + 2 * rowHeight > element.scrollTop + element.clientHeight) element.scrollTop = top + 2 * rowHeight - element.clientHeight;
  }, [selected]);
  return html`<div class="windowed" ref=${box} role=${role} aria-label=${label} aria-rowcount=${role === "table" ? (total ?? items.length) + 1 : undefined} tabindex="0">
    ${head}
    <div role=${role === "table" ? "rowgroup" : "presentation"} style=${{ paddingTop: `${first * rowHeight}px`, paddingBottom: `${(items.length - last) * rowHeight}px` }}>
      ${items.slice(Math.max(0, first), last).map((item, at) => row(item, first + at))}
    </div></div>`;
}

/** A picture of lines of text that scrolls with its end. @param {{ text: string, label: string }} props */
export function Log({ text, label }) {
  const box = useRef(/** @type {HTMLElement | null} */ (null));
  useEffect(() => {
    if (box.current) box.current.scrollTop = box.current.scrollHeight;
  }, [text]);
  return html`<pre class="log" ref=${box} tabindex="0" aria-label=${label}>${plain(text)}</pre>`;
}
