// The merge queue: requests in line, what is being tested, flaky checks, and what landed.
import { html } from "../html.js";
import { useDocument } from "../store.js";
import { useKeys } from "../keys.js";
import { address, go, route, setQuery } from "../router.js";
import { cancelRequest, pauseQueue, retryRequest, topRequest } from "../decisions.js";
import { dateTime, plain, plural, shortCommit, told } from "../format.js";
import { useSelection } from "../selection.js";
import { Age, BeadLink, Empty, Filter, Loading } from "../components/basics.js";
import { CheckLog } from "../components/check_log.js";
import { allDecisionKeys, ask, DecisionButtons } from "../components/decide.js";
import { ViewHead } from "../components/layout.js";
import { State, Warning } from "../components/marks.js";

/** @typedef {import("../types").MergeRequest} MergeRequest */

const ABOUT_QUEUE = new Set(["mr_opened", "mr_changed", "mq_changed", "landed", "reviewed", "work_accepted", "updated"]);
const UNDER_TEST = new Set(["building", "checking", "landing"]);

/** The order of the list: what is tested, then those in line, then the rest. @param {MergeRequest[]} requests */
function inOrder(requests) {
  const place = (/** @type {MergeRequest} */ request) => (UNDER_TEST.has(request.state) ? 0 : request.position ?? 1e6);
  return [...requests].sort((one, other) => place(one) - place(other) || one.created_at.localeCompare(other.created_at));
}

/** @param {MergeRequest} request */
function decisionsOf(request) {
  const { id, bead, state } = request;
  const decisions = [topRequest(id, bead), cancelRequest(id, bead)];
  if (["conflict", "failed", "held"].includes(state)) decisions.unshift(retryRequest(id, bead));
  return decisions;
}

/** @param {{ town?: import("../types").Town }} props */
export function Queue({ town }) {
  const { id, query } = route.value;
  const rig = query.get("rig") ?? "";
  const wants = (/** @type {import("../types").TownEvent} */ event) => ABOUT_QUEUE.has(event.event_type);
  const requests = useDocument("/api/v1/merge-requests", { query: { state: "open", rig, limit: 500 } }, { wants });
  const queues = useDocument("/api/v1/queues", {}, { wants });
  const flaky = useDocument("/api/v1/flaky-checks", {}, { wants: (event) => event.event_type === "mr_changed" || event.event_type === "landed" });
  const landings = useDocument("/api/v1/landings", { query: { limit: 20 } }, { wants: (event) => event.event_type === "landed" });
  const items = inOrder(requests.data ?? []);
  const open = id ? items.find((request) => request.id === id) : undefined;
  const { at, item, move } = useSelection(items, (request) => request.id);
  const selected = open ?? item;
  const toggle = (/** @type {string} */ request) => go(address("queue", id === request ? "" : request, Object.fromEntries(query)), true);
  const shownQueues = (queues.data ?? []).filter((queue) => !rig || queue.rig === rig);
  useKeys("Queue", [
    { keys: "j", does: "Next request", repeats: true, run: () => move(1) },
    { keys: "k", does: "Previous request", repeats: true, run: () => move(-1) },
    { keys: "Enter", does: "Show its check and actions", run: () => selected && toggle(selected.id) },
    { keys: "v", does: "Open its review", run: () => selected && go(address("review", selected.id)) },
    { keys: "p", does: "Pause or resume the first queue shown", run: () => {
      const queue = shownQueues[0];
      if (queue) ask(pauseQueue(queue.rig, queue.target, !queue.paused));
    } },
    ...allDecisionKeys(selected ? decisionsOf(selected) : [], "request", Boolean(selected)),
  ]);
  if (!requests.data) return html`<${ViewHead} title="Queue" /><${Loading} data=${requests.data} problem=${requests.problem} />`;
  const tested = items.filter((request) => UNDER_TEST.has(request.state));
  return html`<${ViewHead} title="Queue" count=${items.length}>
      <${Filter} label="Rig" value=${rig} options=${town?.rigs ?? []} all="All rigs" onChange=${(/** @type {string} */ value) => setQuery({ rig: value })} /><//>
    <div class="columns queue-columns"><div class="column-main">
      <div class="queues">${shownQueues.map((queue) => html`<div key=${`${queue.rig}/${queue.target}`} class="queue-box">
        <span class="queue-name"><strong>${plain(queue.rig)}</strong><span class="faint"> → ${plain(queue.target)}</span></span>
        ${queue.red_check ? html`<span class="state tone-red"><${Warning} /> ${plain(queue.red_check)} fails on the branch</span>` : queue.paused ? html`<${State} state="paused" text=${`Paused by ${plain(queue.paused_by)}`} />` : html`<${State} state="landed" text="Open" />`}
        <button class="small" onClick=${() => ask(pauseQueue(queue.rig, queue.target, !queue.paused))}>${queue.paused ? "Resume" : "Pause"}</button></div>`)}</div>
      ${tested.length > 0 && html`<section class="panel batch" aria-label="Being tested"><h2>Being tested now</h2><p>${tested.map((request) => html`<a key=${request.id} class="id" href=${address("review", request.id)}>${plain(request.id)}</a> `)}<span class="faint">${plural(tested.length, "request")} on the way to ${[...new Set(tested.map((request) => plain(request.target)))].join(", ")}</span></p></section>`}
      <section aria-label="Merge requests" class="panel flush"><h2 class="pad-x">In line</h2>
        ${items.length === 0 ? html`<${Empty} title="Nothing waits to land" />` : html`<div class="scroll-x"><table class="requests"><thead><tr><th class="right">#</th><th>Request</th><th>State</th><th>Where it stands</th><th class="right">Since</th></tr></thead><tbody>
        ${items.map((request, index) => html`<tr key=${request.id} class=${index === at || request === open ? "here" : ""} onClick=${() => toggle(request.id)}>
          <td class="right faint">${request.position ?? (UNDER_TEST.has(request.state) ? "▶" : "–")}</td>
          <td class="two-lines"><a href=${address("review", request.id)} dir="auto" onClick=${(/** @type {Event} */ event) => event.stopPropagation()}>${plain(request.title)}</a><span class="faint"><span class="id">${plain(request.id)}</span> · ${plain(request.rig)} → ${plain(request.target)}${request.top ? " · top" : ""}${request.tries > 1 ? ` · try ${request.tries}` : ""}</span></td>
          <td><${State} state=${request.state} /></td>
          <td class="reason" dir="auto">${told(request.reason)}</td>
          <td class="right"><${Age} since=${request.changed_at} /></td></tr>
          ${request === open && html`<tr key=${`${request.id}-open`} class="opened"><td></td><td colspan="4"><${DecisionButtons} decisions=${decisionsOf(request)} /><p class="faint">Next: ${told(request.next)}</p>${request.state === "failed" && html`<${CheckLog} id=${request.id} />`}</td></tr>`}`)}
        </tbody></table></div>`}</section></div>
    <div class="column-side">
      <section class="panel" aria-label="Landed"><h2>Landed</h2>${(landings.data?.items ?? []).length === 0 ? html`<p class="faint">Nothing has landed yet.</p>` : html`<ol class="receipts">${(landings.data?.items ?? []).map((landing) => html`
        <li key=${landing.request}><${State} state="landed" text=${plain(landing.title)} /><p class="faint"><${BeadLink} id=${landing.bead} /> as <code>${shortCommit(landing.commit)}</code> on ${plain(landing.target)} · <time title=${dateTime(landing.at)}><${Age} since=${landing.at} /></time> ago</p></li>`)}</ol>`}</section>
      <section class="panel" aria-label="Flaky checks"><h2>Flaky checks</h2>${(flaky.data?.items ?? []).length === 0 ? html`<p class="faint">No check passes and fails on the same commit.</p>` : html`<table><thead><tr><th>Check</th><th>Rig</th><th class="right">Flaky</th></tr></thead><tbody>
        ${(flaky.data?.items ?? []).map((check) => html`<tr key=${`${check.rig}/${check.check}`}><td><code>${plain(check.check)}</code></td><td>${plain(check.rig)}</td><td class="right">${check.flips}</td></tr>`)}</tbody></table>`}</section>
    </div></div>`;
}
