// What an agent did and said, as it happens.
import { html, useEffect, useRef, useState } from "../html.js";
import { Problem, readLines, urlOf } from "../api.js";
import { plain, timeOfDay, tokens, words } from "../format.js";
import { follow, isVisible } from "../sharing.js";
import { Empty } from "./basics.js";

/** @typedef {import("../types").TranscriptEvent} TranscriptEvent */

/** Entries that are kept in the page; older ones are dropped, and the page says so. */
const ENTRIES_MAX = 1000;
/** Characters of one entry that are shown. */
const TEXT_MAX = 6000;
/** How long a transcript that has broken off waits before it is read again. */
const RETRY_MS = 1000;

/** @param {{ entry: TranscriptEvent }} props */
function Entry({ entry }) {
  const text = plain(entry.text ?? "");
  const shown = text.length > TEXT_MAX ? `${text.slice(0, TEXT_MAX)}\n… ${text.length - TEXT_MAX} more characters; gt run log shows them` : text;
  const isOutput = entry.kind === "tool_result" || entry.kind === "thinking" || entry.kind === "prompt";
  const head = entry.kind === "tool_call" ? plain(entry.tool) : entry.kind === "text" ? "" : words(entry.kind);
  const usage = entry.usage && `${tokens(entry.usage.input + entry.usage.output)} tokens ${plain(entry.usage.model)}`;
  return html`<li class="entry entry-${entry.kind} ${entry.is_error ? "entry-wrong" : ""}">
    <time class="faint">${entry.at ? timeOfDay(entry.at) : ""}</time>
    <div class="entry-body">
      ${head && html`<span class="entry-head">${entry.is_error ? "✕ " : ""}${head}</span>`}
      ${entry.about && html`<code class="entry-about">${plain(entry.about)}</code>`}
      ${usage}
      ${(entry.old_text || entry.new_text) && html`<pre class="entry-change">${entry.old_text && html`<del>${plain(entry.old_text).slice(0, TEXT_MAX)}</del>`}${entry.old_text && entry.new_text ? "\n" : ""}${entry.new_text && html`<ins>${plain(entry.new_text).slice(0, TEXT_MAX)}</ins>`}</pre>`}
      ${shown && (isOutput ? html`<pre>${shown}</pre>` : html`<p dir="auto">${shown}</p>`)}
    </div></li>`;
}

/** @param {{ id: string, live: boolean }} props */
export function Transcript({ id, live }) {
  const [entries, setEntries] = useState(/** @type {{ number: number, entry: TranscriptEvent }[]} */ ([]));
  const [state, setState] = useState("loading");
  const box = useRef(/** @type {HTMLElement | null} */ (null));
  const follows = useRef(true);
  const isSeen = isVisible.value || !live;
  useEffect(() => {
    const abort = new AbortController();
    if (!isSeen) return undefined;
    /** Reads it from its start to its end, or until it breaks off. */
    const readAll = async () => {
      let count = 0;
      /** @type {{ number: number, entry: TranscriptEvent }[]} */
      let fresh = [];
      let isFirst = true;
      await readLines(urlOf("/api/v1/runs/{id}/transcript", { id }, { follow: live }), (line) => {
        if (!line) return;
        fresh.push({ number: count, entry: JSON.parse(line) });
        count += 1;
      }, { signal: abort.signal }, () => {
        setState("reading");
        const added = fresh;
        const before = isFirst;
        if (added.length === 0) return;
        fresh = [];
        isFirst = false;
        // What was read before it broke off is shown until then.
        setEntries((old) => [...(before ? [] : old), ...added].slice(-ENTRIES_MAX));
      });
    };
    const keepUp = async () => {
      while (!abort.signal.aborted) {
        try {
          await (live ? follow(readAll, abort.signal) : readAll());
          setState("ended");
          if (!live) return;
        } catch (error) {
          if (abort.signal.aborted) return;
          if (error instanceof Problem) setState(error.message);
          if (error instanceof Problem && error.status !== 0) return;
        }
        await new Promise((resume) => setTimeout(resume, RETRY_MS));
      }
    };
    void keepUp();
    return () => abort.abort();
  }, [id, live, isSeen]);
  useEffect(() => {
    if (box.current && follows.current) box.current.scrollTop = box.current.scrollHeight;
  }, [entries]);
  const onScroll = () => {
    const element = box.current;
    if (element) follows.current = element.scrollHeight - element.scrollTop - element.clientHeight < 40;
  };
  const dropped = entries[0]?.number ?? 0;
  return html`<div class="transcript" ref=${box} onScroll=${onScroll} tabindex="0" role="log" aria-label="Transcript" aria-live=${live ? "polite" : "off"}>
    ${dropped > 0 && html`<p class="faint pad">${dropped} older entries are not shown; <code>gt run log</code> has them.</p>`}
    ${entries.length === 0 && html`<${Empty} title=${state === "loading" ? "Loading …" : state === "reading" || state === "ended" ? "The agent has said nothing yet" : plain(state)} />`}
    <ol>${entries.map(({ number, entry }) => html`<${Entry} key=${number} entry=${entry} />`)}</ol>
    ${live && entries.length > 0 && html`<p class="live-end"><span class="pulse" aria-hidden="true"></span>live</p>`}</div>`;
}
