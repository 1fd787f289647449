// Search for beads, runs, convoys and merge requests.
import { html, signal, useEffect, useLayoutEffect, useRef, useState } from "../html.js";
import { Problem, read } from "../api.js";
import { useKeys } from "../keys.js";
import { address, go } from "../router.js";
import { plain, words } from "../format.js";
import { useDialog } from "./basics.js";
import { Mark } from "./marks.js";

const shown = signal(false);
const TYPING_PAUSE_MS = 120;

export function openSearch() {
  shown.value = true;
}

/** Where a result leads. @param {string} kind @param {string} id */
function target(kind, id) {
  if (kind === "run") return address("runs", id);
  if (kind === "convoy") return address("graph", id);
  if (kind === "merge-request") return address("review", id);
  return address("bead", id);
}

function Open() {
  const dialog = useDialog();
  const [text, setText] = useState("");
  const [found, setFound] = useState(/** @type {import("../types").SearchResult[] | null} */ (null));
  const [problem, setProblem] = useState("");
  const [at, setAt] = useState(0);
  /** The text that `found` answers, and whether Enter was pressed before that. */
  const answered = useRef("");
  const isChosen = useRef(false);
  const close = () => {
    shown.value = false;
  };
  useLayoutEffect(() => {
    dialog.current?.querySelector("input")?.focus();
  }, []);
  useKeys("Search", [{ keys: "Escape", does: "Close", run: close }], { modal: true });
  useEffect(() => {
    if (!text.trim()) {
      setFound(null);
      return undefined;
    }
    const abort = new AbortController();
    const timer = setTimeout(async () => {
      try {
        const { items } = await read("/api/v1/search", { query: { q: text.trim(), limit: 20 } }, abort.signal);
        answered.current = text.trim();
        if (isChosen.current && items.length > 0) {
          open(items[0]);
          return;
        }
        setFound(items);
        setProblem("");
        setAt(0);
      } catch (error) {
        if (error instanceof Problem) setProblem(error.message);
      }
    }, TYPING_PAUSE_MS);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [text]);
  /** @param {import("../types").SearchResult} result */
  const open = (result) => {
    close();
    go(target(result.kind, result.id));
  };
  /** @param {number} index */
  const choose = (index) => {
    const result = found?.[index];
    if (result) open(result);
  };
  /** @param {KeyboardEvent} event */
  const onKeyDown = (event) => {
    const count = found?.length ?? 0;
    if (event.key === "ArrowDown") setAt(Math.min(at + 1, count - 1));
    else if (event.key === "ArrowUp") setAt(Math.max(at - 1, 0));
    else if (event.key === "Enter" && answered.current === text.trim()) choose(at);
    else if (event.key === "Enter") isChosen.current = true;
    else return;
    event.preventDefault();
  };
  return html`<dialog ref=${dialog} class="search" aria-label="Search" onClose=${close} onCancel=${close}>
    <input type="search" role="combobox" aria-expanded=${Boolean(found?.length)} aria-controls="search-results" aria-activedescendant=${found?.length ? `search-${at}` : undefined}
      aria-label="Search beads, runs, convoys and merge requests" placeholder="Bead, run, convoy or merge request" value=${text}
      onInput=${(/** @type {any} */ event) => {
        isChosen.current = false;
        setText(event.currentTarget.value);
      }} onKeyDown=${onKeyDown} />
    <ul id="search-results" role="listbox" aria-label="Results">${(found ?? []).map((result, index) => html`
      <li key=${`${result.kind}${result.id}`} id=${`search-${index}`} role="option" aria-selected=${index === at} class=${index === at ? "here" : ""} onClick=${() => choose(index)}>
        <${Mark} state=${result.state ?? "open"} /><span class="faint">${words(result.kind)}</span><span class="id">${plain(result.id)}</span><span class="clip" dir="auto">${plain(result.title)}</span></li>`)}</ul>
    ${problem && html`<p class="problem" role="alert">${plain(problem)}</p>`}
    ${found?.length === 0 && html`<p class="faint pad">Nothing is found.</p>`}</dialog>`;
}

export function Search() {
  return shown.value && html`<${Open} />`;
}
