// Needs you: everything that waits for a person, in the order of `gt inbox`.
import { html, useEffect, useRef, useState } from "../html.js";
import { lastEventOf, useDocument } from "../store.js";
import { useKeys } from "../keys.js";
import { address, go, route, setQuery } from "../router.js";
import { decisionsOf } from "../decisions.js";
import { plain, plural } from "../format.js";
import { Age, BeadLink, Command, Empty, Filter, Loading, Log } from "../components/basics.js";
import { CheckLog } from "../components/check_log.js";
import { decisionKeys, DecisionButtons, sentence } from "../components/decide.js";
import { Facts, Split, ViewHead } from "../components/layout.js";
import { Keys, Kind } from "../components/marks.js";

/** @typedef {import("../types").InboxItem} InboxItem */

/** Events after which the inbox is the same. */
const UNRELATED = new Set(["run_used", "commented", "label_added", "label_removed", "step_done", "message_delivered"]);
/** Files of a change that a card lists. */
const FILES_MAX = 8;

/** The address of a card. @param {string} key */
const cardAddress = (key) => address("needs", key, Object.fromEntries(route.value.query));

/** @param {{ item: InboxItem, isSelected: boolean }} props */
function Card({ item, isSelected }) {
  return html`<li class="card ${isSelected ? "here" : ""}"><a href=${cardAddress(item.key)} aria-current=${isSelected ? "true" : undefined}>
    <span class="card-top"><${Kind} code=${item.code} /><span class="id">${plain(item.id)}</span><span class="push"><${Age} since=${item.since} /></span></span>
    <span class="card-title" dir="auto">${plain(item.title || item.subject || item.what)}</span>
    <span class="card-what" dir="auto">${plain(item.body ?? item.what)}</span></a></li>`;
}

/** The change of a review: its files. @param {{ id: string }} props */
function ChangedFiles({ id }) {
  const { data } = useDocument("/api/v1/merge-requests/{id}/diff", { path: { id } }, { wants: () => false });
  if (!data) return null;
  const more = data.paths.length - FILES_MAX;
  return html`<ul class="files-of-change">${data.paths.slice(0, FILES_MAX).map((path) => html`
    <li key=${path}><a href=${address("review", id, { file: path })}>${plain(path)}</a></li>`)}
    ${more > 0 && html`<li class="faint">and ${plural(more, "more file")}</li>`}</ul>`;
}

/** @param {{ item: InboxItem, decisions: import("../decisions.js").Decision[] }} props */
function CardDetail({ item, decisions }) {
  return html`<article class="detail" aria-labelledby="card-title">
    <div class="detail-top"><${Kind} code=${item.code} /><span class="id">${plain(item.id)}</span>
      ${item.severity && html`<span class="tag">${plain(item.severity)}</span>`}</div>
    <h2 id="card-title" dir="auto">${plain(item.title || item.subject || item.what)}</h2>
    ${!item.body && html`<p class="lead" dir="auto">${plain(item.what)}</p>`}
    <${DecisionButtons} decisions=${decisions} />
    ${item.body && html`<section><h3>${plain(item.from)} asks</h3><blockquote dir="auto">${plain(item.body)}</blockquote></section>`}
    ${item.change && html`<section><h3>Change</h3><p><a href=${address("review", item.id)}>${plural(item.change.files, "file")}</a>
      <span class="plus"> +${item.change.insertions}</span><span class="minus"> −${item.change.deletions}</span> <${Keys} keys="Enter" /> opens the review</p>
      ${item.object === "merge-request" && html`<${ChangedFiles} id=${item.id} />`}</section>`}
    ${item.code === "check-failed" && item.object === "merge-request" && html`<${CheckLog} id=${item.id} />`}
    ${item.detail && !item.what.endsWith(item.detail) && html`<section><h3>${item.check ? html`Check <code>${plain(item.check)}</code> fails` : item.code === "stalled" ? "Last lines" : "Last words"}</h3><${Log} text=${item.detail} label="Last lines" /></section>`}
    <${Facts} facts=${[
      ["Next", plain(item.remedy)],
      ["Bead", item.bead && html`<${BeadLink} id=${item.bead} />`],
      ["Rig", plain(item.rig)],
      ["Waits", item.since && html`<${Age} since=${item.since} />`],
      ["Holds up", item.blocks?.length ? item.blocks.slice(0, 12).map((bead) => html`<${BeadLink} key=${bead} id=${bead} /> `) : ""],
      ["Processes", item.processes?.length ? item.processes.join(", ") : ""],
    ]} />
    <section><h3>On the command line</h3>${item.commands.map((command) => html`<${Command} key=${command} text=${command} />`)}</section>
  </article>`;
}

/** @param {{ town?: import("../types").Town }} props */
export function NeedsYou({ town }) {
  const { id: key, query } = route.value;
  const rig = query.get("rig") ?? "";
  const { data, problem } = useDocument("/api/v1/inbox", { query: { rig } }, { wants: (event) => !UNRELATED.has(event.event_type) });
  const items = data ?? [];
  const at = items.findIndex((item) => item.key === key);
  const [gone, setGone] = useState("");
  const shown = useRef(/** @type {InboxItem | null} */ (null));
  const decided = useRef(new Set());
  const item = at >= 0 ? items[at] : key ? null : items[0] ?? null;
  useEffect(() => {
    if (item) {
      shown.current = item;
      // The words about a card that is gone stay until a person chooses another one.
      if (key) setGone("");
      return;
    }
    const last = shown.current;
    if (!data || !last || !key) return;
    // The card that was looked at is answered; go on with the next one, and say so if it was not decided here.
    if (!decided.current.has(last.key)) {
      const event = lastEventOf(last.bead);
      setGone(`${last.id} needs you no more${event ? `: ${sentence(event)}` : ""}`);
    }
    shown.current = null;
    go(address("needs", "", Object.fromEntries(query)), true);
  }, [item?.key, data]);
  const decisions = item ? decisionsOf(item) : [];
  const after = () => item && decided.current.add(item.key);
  const move = (/** @type {number} */ by) => {
    if (items.length === 0) return;
    const next = Math.max(0, Math.min(items.length - 1, (at < 0 ? 0 : at) + (at < 0 && by > 0 && key ? 0 : by)));
    go(cardAddress(items[next].key), true);
    setGone("");
  };
  useKeys("Needs you", [
    { keys: "j", does: "Next card", repeats: true, run: () => move(1) },
    { keys: "k", does: "Previous card", repeats: true, run: () => move(-1) },
    { keys: "ArrowDown", does: "Next card", repeats: true, run: () => move(1), hidden: true },
    { keys: "ArrowUp", does: "Previous card", repeats: true, run: () => move(-1), hidden: true },
    { keys: "Enter", does: "Open what the card is about", run: () => {
      if (item?.object === "merge-request") go(address("review", item.id));
      else if (item?.object === "run") go(address("runs", item.id));
      else if (item?.bead) go(address("bead", item.bead));
    } },
    { keys: "Escape", does: "Back to the list", run: () => go(address("needs", "", Object.fromEntries(query)), true), hidden: true },
    ...decisionKeys(decisions, after),
  ]);
  if (!data) return html`<${ViewHead} title="Needs you" /><${Loading} data=${data} problem=${problem} />`;
  const list = items.length === 0 ? html`<${Empty} title="Nothing needs you"><p>Agents go on by themselves. Questions, reviews and failures appear here as they happen.</p><//>`
    : html`<ul class="cards">${items.map((one) => html`<${Card} key=${one.key} item=${one} isSelected=${one.key === item?.key} />`)}</ul>`;
  return html`<${ViewHead} title="Needs you" count=${items.length}>
      <${Filter} label="Rig" value=${rig} options=${(town?.rigs ?? [])} all="All rigs" onChange=${(/** @type {string} */ value) => setQuery({ rig: value })} /><//>
    <div class="gone" role="status">${gone && html`<p>${gone}</p>`}</div>
    <${Split} label="What needs you" isOpen=${at >= 0} back=${address("needs", "", Object.fromEntries(query))} list=${list}
      detail=${item ? html`<${CardDetail} key=${item.key} item=${item} decisions=${decisions} />` : html`<${Empty} title="All clear" />`} />`;
}
