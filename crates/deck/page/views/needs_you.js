// Needs you: everything that waits for a person, in the order of `gt inbox`.
import { html, useEffect, useRef, useState } from "../html.js";
import { session } from "../api.js";
import { serverNow } from "../clock.js";
import { decidingEventOf, feed, lastEvent, useDocument } from "../store.js";
import { useKeys } from "../keys.js";
import { address, go, route, setQuery } from "../router.js";
import { decisionsOf } from "../decisions.js";
import { dateTime, plain, plural, told } from "../format.js";
import { nextPlace } from "../selection.js";
import { Age, BeadLink, Command, Empty, Filter, Loading, Log } from "../components/basics.js";
import { CheckLog } from "../components/check_log.js";
import { allDecisionKeys, DecisionButtons, sentence } from "../components/decide.js";
import { Facts, Split, ViewHead } from "../components/layout.js";
import { Keys, Kind } from "../components/marks.js";

/** @typedef {import("../types").InboxItem} InboxItem */

/** Events after which the inbox is the same. */
const UNRELATED = new Set(["run_used", "commented", "label_added", "label_removed", "step_done", "message_delivered"]);
/** Kinds of cards whose requests the queue tries again by itself, and how long a try takes at most. */
const RETRIED = new Set(["origin-refused", "check-error", "commit-elsewhere", "work-missing", "queue-error", "hosting-tool", "checkout-in-the-way", "target-gone", "origin-away"]);
const AWAY_MAX_MS = 20_000;
/** Files of a change that a card lists. */
const FILES_MAX = 8;

/** The address of a card. @param {string} key */
const cardAddress = (key) => address("needs", key, Object.fromEntries(route.value.query));

/** @param {{ item: InboxItem, isSelected: boolean }} props */
function Card({ item, isSelected }) {
  return html`<li class="card ${isSelected ? "here" : ""}"><a href=${cardAddress(item.key)} aria-current=${isSelected ? "true" : undefined}>
    <span class="card-top"><${Kind} code=${item.code} /><span class="id">${plain(item.id)}</span><span class="push"><${Age} since=${item.since} /></span></span>
    <span class="card-title" dir="auto">${told(item.title || item.subject || item.what)}</span>
    <span class="card-what" dir="auto">${told(item.body ?? item.what)}</span></a></li>`;
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

/** @param {{ item: InboxItem, decisions: import("../decisions.js").Decision[], after: () => void }} props */
function CardDetail({ item, decisions, after }) {
  return html`<article class="detail" aria-labelledby="card-title">
    <div class="detail-top"><${Kind} code=${item.code} /><span class="id">${plain(item.id)}</span>
      ${item.severity && html`<span class="tag">${plain(item.severity)}</span>`}</div>
    <h2 id="card-title" dir="auto">${told(item.title || item.subject || item.what)}</h2>
    ${!item.body && html`<p class="lead" dir="auto">${told(item.what)}</p>`}
    <${DecisionButtons} decisions=${decisions} after=${after} />
    ${item.body && html`<section><h3>${plain(item.from)} asks</h3><blockquote dir="auto">${plain(item.body)}</blockquote></section>`}
    ${item.change && html`<section><h3>Change</h3><p><a href=${address("review", item.id)}>${plural(item.change.files, "file")}</a>
      <span class="plus"> +${item.change.insertions}</span><span class="minus"> −${item.change.deletions}</span> <${Keys} keys="Enter" /> opens the review</p>
      ${item.object === "merge-request" && html`<${ChangedFiles} id=${item.id} />`}</section>`}
    ${item.code === "check-failed" && item.object === "merge-request" && html`<${CheckLog} id=${item.id} />`}
    ${item.detail && !item.what.endsWith(item.detail) && html`<section><h3>${item.check ? html`Check <code>${plain(item.check)}</code> fails` : item.code === "stalled" ? "Last lines" : "Last words"}</h3><${Log} text=${item.detail} label="Last lines" /></section>`}
    <${Facts} facts=${[
      ["Next", told(item.remedy)],
      ["Bead", item.bead && html`<${BeadLink} id=${item.bead} />`],
      ["Rig", plain(item.rig)],
      ["Waits", item.since && html`<${Age} since=${item.since} />`],
      ["Holds up", item.blocks?.length ? item.blocks.slice(0, 12).map((bead) => html`<${BeadLink} key=${bead} id=${bead} /> `) : ""],
      ["Processes", item.processes?.length ? item.processes.join(", ") : ""],
    ]} />
    <section><h3>On the command line</h3>${item.commands.map((command) => html`<${Command} key=${command} text=${command} />`)}</section>
  </article>`;
}

/** What became of a request, a run or a bead whose card is gone. @param {{ id: string }} props */
function Outcome({ id }) {
  const isRequest = id.includes("@");
  const isRun = !isRequest && id.includes("#");
  const isBead = !isRequest && !isRun && /^[a-z][\w.]*-/.test(id) && !id.startsWith("msg-");
  const request = useDocument("/api/v1/merge-requests/{id}", { path: { id } }, { skip: !isRequest }).data;
  const run = useDocument("/api/v1/runs/{id}", { path: { id } }, { skip: !isRun }).data;
  const bead = useDocument("/api/v1/beads/{id}", { path: { id } }, { skip: !isBead }).data;
  if (request) {
    const last = request.reviews.findLast((review) => review.decision !== "commented");
    return html`<p>${last ? `It was ${plain(last.decision)} by ${plain(last.actor)} at ${dateTime(last.created_at)}. ` : ""}It is ${plain(request.state)} now. <a href=${address("review", id)}>Open the review</a></p>`;
  }
  if (run) return html`<p>The run is ${plain(run.state)}${run.ended_at ? ` since ${dateTime(run.ended_at)}` : ""}. <a href=${address("runs", id)}>Open the run</a></p>`;
  if (bead) return html`<p>The bead is ${plain(bead.bead.status)}. <a href=${address("bead", id)}>Open the bead</a></p>`;
  return null;
}

/** The place of a card that is not there, or not any more. @param {{ cardKey: string, said: string, id: string }} props */
function GoneCard({ cardKey, said, id }) {
  return html`<article class="detail"><h2>${plain(id || cardKey)} needs you no more</h2>
    <p class="lead">${said || "It was decided, or is gone."}</p>${id && html`<${Outcome} id=${id} />`}
    <p class="faint">Nothing is selected. <${Keys} keys="j" /> and <${Keys} keys="k" /> choose a card.</p></article>`;
}

/**
 * The inbox, with cards that are away for a moment. A request that is tried again by itself needs no person while it is tried: its
 * card would go and come back, with a new age.
 * @param {InboxItem[] | undefined} data
 */
function useSteadyCards(data) {
  const known = useRef(/** @type {Map<string, { item: InboxItem, since: string | null | undefined, left: number | null, event: number }>} */ (new Map()));
  const [, wake] = useState(0);
  const now = serverNow();
  const there = new Set((data ?? []).map((item) => item.key));
  const items = (data ?? []).map((item) => {
    const before = known.current.get(item.key);
    const since = before?.since && item.since && before.since < item.since && RETRIED.has(item.code) ? before.since : item.since;
    known.current.set(item.key, { item, since, left: null, event: lastEvent.value });
    return since === item.since ? item : { ...item, since };
  });
  const places = new Map([...known.current.keys()].map((key, at) => [key, at]));
  let isWaiting = false;
  if (data) for (const [key, card] of known.current) {
    if (there.has(key)) continue;
    card.left ??= now;
    const isDecided = decidingEventOf(card.item.bead, card.event)?.actor === session.value?.actor;
    if (RETRIED.has(card.item.code) && !isDecided && now - card.left < AWAY_MAX_MS) {
      items.push({ ...card.item, since: card.since });
      isWaiting = true;
    } else if (now - card.left > AWAY_MAX_MS) {
      known.current.delete(key);
    }
  }
  if (isWaiting) items.sort((one, other) => (places.get(one.key) ?? 0) - (places.get(other.key) ?? 0));
  useEffect(() => {
    if (!isWaiting) return undefined;
    const timer = setTimeout(() => wake((count) => count + 1), AWAY_MAX_MS);
    return () => clearTimeout(timer);
  }, [isWaiting]);
  return items;
}

/** @param {{ town?: import("../types").Town }} props */
export function NeedsYou({ town }) {
  const { id: key, query } = route.value;
  const rig = query.get("rig") ?? "";
  const { data, problem } = useDocument("/api/v1/inbox", { query: { rig } }, { wants: (event) => !UNRELATED.has(event.event_type), ages: true });
  const items = useSteadyCards(data);
  // Without a card in the address, the first card that was there is selected; it stays so when others come before it.
  const [first, setFirst] = useState(/** @type {string | null} */ (null));
  const chosen = key || (first ?? "");
  const at = items.findIndex((item) => item.key === chosen);
  const item = at >= 0 ? items[at] : null;
  const place = useRef(0);
  const shown = useRef(/** @type {{ item: InboxItem, event: number } | null} */ (null));
  const [gone, setGone] = useState(/** @type {{ key: string, text: string, isExplained: boolean } | null} */ (null));
  const [decided, setDecided] = useState("");
  if (at >= 0) place.current = at;
  useEffect(() => {
    if (!key && first === null && items.length > 0) setFirst(items[0].key);
  }, [key, first, items.length]);
  useEffect(() => {
    if (item) {
      if (shown.current?.item.key !== item.key) shown.current = { item, event: lastEvent.value };
      // The words about a card that is gone stay until a person chooses another one, or it is back.
      if (gone) setGone(null);
      return;
    }
    const last = shown.current;
    if (!data || !last || last.item.key !== chosen || (gone?.key === chosen && gone.isExplained)) return;
    // The list may be read before its event is heard.
    const event = decidingEventOf(last.item.bead, last.event);
    const by = event ? sentence(event) : "";
    const text = decided === chosen ? `You have decided ${last.item.id}` : `${last.item.id} needs you no more${by ? `: ${by}` : ""}`;
    setGone({ key: chosen, text, isExplained: decided === chosen || by !== "" });
  }, [item?.key, data, chosen, feed.value]);
  const decisions = item ? decisionsOf(item) : [];
  const after = () => item && setDecided(item.key);
  const move = (/** @type {number} */ by) => {
    if (items.length === 0) return;
    go(cardAddress(items[nextPlace(at, by, place.current, items.length)].key), true);
    setGone(null);
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
    { keys: "Escape", does: "Back to the list", run: () => {
      setFirst(chosen);
      go(address("needs", "", Object.fromEntries(query)), true);
    }, hidden: true },
    ...allDecisionKeys(decisions, "card", Boolean(item), { after }),
  ]);
  if (!data) return html`<${ViewHead} title="Needs you" /><${Loading} data=${data} problem=${problem} />`;
  const list = items.length === 0 ? html`<${Empty} title="Nothing needs you"><p>Agents go on by themselves. Questions, reviews and failures appear here as they happen.</p><//>`
    : html`<ul class="cards">${items.map((one) => html`<${Card} key=${one.key} item=${one} isSelected=${one.key === item?.key} />`)}</ul>`;
  const idOfGone = shown.current?.item.key === chosen ? shown.current.item.id : chosen.slice(chosen.indexOf(":") + 1);
  return html`<${ViewHead} title="Needs you" count=${items.length}>
      <${Filter} label="Rig" value=${rig} options=${(town?.rigs ?? [])} all="All rigs" onChange=${(/** @type {string} */ value) => setQuery({ rig: value })} /><//>
    <div class="gone" role="status">${gone && html`<p>${gone.text}</p>`}</div>
    <${Split} label="What needs you" isOpen=${Boolean(key)} back=${address("needs", "", Object.fromEntries(query))} list=${list}
      detail=${item ? html`<${CardDetail} key=${item.key} item=${item} decisions=${decisions} after=${after} />`
        : chosen ? html`<${GoneCard} key=${chosen} cardKey=${chosen} said=${gone?.text ?? ""} id=${idOfGone} />` : html`<${Empty} title="All clear" />`} />`;
}
