// The screen of a run, drawn by the server as styled text, and its keyboard.
import { html, useEffect, useLayoutEffect, useRef, useState } from "../html.js";
import { may, Problem, readEvents, urlOf, write } from "../api.js";
import { plain } from "../format.js";
import { useKeys } from "../keys.js";
import { follow, isVisible } from "../sharing.js";
import { Empty } from "./basics.js";
import { announce } from "./toasts.js";

/** @typedef {import("../types").Screen} Screen */

const RETRY_MS = 1000;

/** Follows a stream of screens while the component is there and the page is visible; without an address there is none. @param {() => URL | null} url @param {(frame: any) => void} onFrame @param {(problem: string) => void} onProblem @param {any[]} dependencies */
export function useFrames(url, onFrame, onProblem, dependencies) {
  const visible = isVisible.value;
  useEffect(() => {
    const abort = new AbortController();
    const source = url();
    if (!source || !visible) return undefined;
    const keepUp = async () => {
      while (!abort.signal.aborted) {
        try {
          await follow(() => readEvents(source, ({ data }) => onFrame(JSON.parse(data)), { signal: abort.signal }), abort.signal);
        } catch (error) {
          if (abort.signal.aborted) return;
          if (error instanceof Problem && error.status !== 0) {
            onProblem(error.message);
            return;
          }
        }
        await new Promise((resume) => setTimeout(resume, RETRY_MS));
      }
    };
    void keepUp();
    return () => abort.abort();
  }, [...dependencies, visible]);
}

/** A screen as lines of styled text. The server filters it; classes are words it chose. @param {{ screen: Screen }} props */
export function ScreenText({ screen }) {
  return html`<pre class="screen">${screen.rows.map((row, line) => html`<div key=${line} class="screen-line">${row.map((span, at) => html`
    <span key=${at} class=${styleClasses(span.s)}>${plain(span.t)}</span>`)}${row.length === 0 ? " " : ""}</div>`)}</pre>`;
}

/** @param {string | undefined} style */
function styleClasses(style) {
  return (style ?? "").split(" ").filter((name) => /^[a-z0-9-]+$/i.test(name)).map((name) => `s-${name}`).join(" ");
}

/** The names of keys that are no text. */
const NAMED = {
  Enter: "enter", Backspace: "backspace", Tab: "tab", Escape: "escape", ArrowUp: "up", ArrowDown: "down", ArrowLeft: "left", ArrowRight: "right",
  Home: "home", End: "end", PageUp: "pageup", PageDown: "pagedown", Delete: "delete",
};

/**
 * It has the keyboard from the moment it is shown, and no key of the page works beside it: the words that a person types to an
 * agent must decide nothing.
 * @param {{ id: string, live: boolean, onLeave: () => void }} props
 */
export function Terminal({ id, live, onLeave }) {
  const [screen, setScreen] = useState(/** @type {Screen | null} */ (null));
  const [problem, setProblem] = useState("");
  const [typing, setTyping] = useState(false);
  const queue = useRef(Promise.resolve());
  const box = useRef(/** @type {HTMLElement | null} */ (null));
  const mayType = live && may("type");
  useFrames(() => urlOf("/api/v1/runs/{id}/screen", { id }), setScreen, setProblem, [id]);
  const send = (/** @type {object} */ body) => {
    // One after the other, so that letters keep their order.
    queue.current = queue.current.then(() => write("/api/v1/runs/{id}/keys", { path: { id }, body })).catch((error) => {
      announce(`Not typed: ${error.message}`, "", "bad");
    });
  };
  /** @param {KeyboardEvent} event */
  const onKeyDown = (event) => {
    if (!mayType || event.metaKey || event.altKey || event.isComposing) return;
    // The way out that no program in the terminal needs.
    if (event.key === "Escape" && event.shiftKey) {
      event.preventDefault();
      onLeave();
      return;
    }
    if (event.key === "Tab" && event.shiftKey) return;
    if (event.ctrlKey && /^[a-z]$/i.test(event.key)) send({ key: `ctrl-${event.key.toLowerCase()}` });
    else if (event.ctrlKey) return;
    else if (event.key.length === 1) send({ text: event.key });
    else if (NAMED[event.key]) send({ key: NAMED[event.key] });
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  useKeys("Terminal", [
    { keys: "Escape", does: "Leave the terminal", run: onLeave },
    { keys: "Enter", does: "Type in the terminal", run: () => box.current?.focus() },
  ], { modal: true });
  useLayoutEffect(() => box.current?.focus({ preventScroll: true }), [id]);
  if (problem) return html`<${Empty} title=${plain(problem)} />`;
  return html`<div class="terminal-box ${typing ? "typing" : ""}">
    <div class="terminal" ref=${box} tabindex="0" data-typing=${mayType ? "" : undefined} role="application" aria-label=${`Terminal of ${plain(id)}`}
      onKeyDown=${onKeyDown} onFocus=${() => setTyping(true)} onBlur=${() => setTyping(false)}
      onPaste=${(/** @type {ClipboardEvent} */ event) => {
        const text = event.clipboardData?.getData("text");
        if (mayType && text) send({ text });
      }}>${screen ? html`<${ScreenText} screen=${screen} />` : html`<${Empty} title="Waiting for the screen …" />`}</div>
    <p class="faint">${!mayType ? (live ? "You may look, not type." : "The run has ended; this is its last screen.") : typing ? "What you type goes to the agent. Shift+Esc leaves the terminal." : "Click into the screen, or press Enter, to type. Esc leaves the terminal."} The same on the command line: <code>gt attach ${plain(id)}</code></p></div>`;
}
