// Runs: agents at work, and those that have ended.
import { html, useState } from "../html.js";
import { read } from "../api.js";
import { useDocument } from "../store.js";
import { useKeys } from "../keys.js";
import { address, go, route, setQuery } from "../router.js";
import { cancelRun, nudge } from "../decisions.js";
import { agentName, dateTime, dollarText, plain, told, tokens } from "../format.js";
import { useSelection } from "../selection.js";
import { Age, BeadLink, Choice, Empty, Filter, Loading, Windowed } from "../components/basics.js";
import { allDecisionKeys, decisionKeys, DecisionButtons } from "../components/decide.js";
import { Facts, ViewHead } from "../components/layout.js";
import { Keys, RunState } from "../components/marks.js";
import { Terminal } from "../components/terminal.js";
import { Transcript } from "../components/transcript.js";

/** @typedef {import("../types").RunRow} RunRow */

const PAGE_SIZE = 100;
const PAGE_SIZE_MAX = 500;
const ROW_HEIGHT = 44;
const LIVE = new Set(["starting", "running", "blocked"]);

/** @param {RunRow} run */
export const isLive = (run) => LIVE.has(run.state);

/** @param {{ run: RunRow, at: number, isSelected: boolean }} props */
function RunLine({ run, at, isSelected }) {
  return html`<div role="row" aria-rowindex=${at + 2} class="row run-row ${isSelected ? "here" : ""}" onClick=${() => go(address("runs", run.id))}>
    <div role="cell"><${RunState} run=${run} /></div>
    <div role="cell" class="two-lines"><a href=${address("runs", run.id)} class="clip" dir="auto" onClick=${(/** @type {Event} */ event) => event.stopPropagation()}>${plain(run.title)}</a><span class="faint clip"><span class="id">${plain(run.id)}</span> · ${plain(run.rig)}</span></div>
    <div role="cell" class="two-lines"><span class="clip" title=${plain(run.agent)}>${agentName(run.agent)}</span><span class="faint clip">${plain(run.runtime)}${run.account ? ` · ${plain(run.account)}` : ""}${run.host ? ` · ${plain(run.host)}` : ""}</span></div>
    <div role="cell" class="clip">${run.step ? html`<span class="step">${run.step.done}/${run.step.total}</span> <span class="faint" dir="auto">${plain(run.step.title)}</span>` : html`<span class="faint">–</span>`}</div>
    <div role="cell" class="clip mono" dir="auto">${plain(run.last_tool ?? run.last_words ?? run.reason ?? "")}</div>
    <div role="cell" class="right">${tokens(run.tokens)}</div>
    <div role="cell" class="right">${dollarText(run.cost)}</div>
    <div role="cell" class="right"><${Age} since=${run.started_at} until=${run.ended_at} /></div></div>`;
}

const head = () => html`<div role="rowgroup" class="row-head"><div role="row" aria-rowindex="1" class="row run-row">
  ${["State", "Bead", "Agent", "Step", "Last tool call", "Tokens", "Cost", "Age"].map((name, at) => html`<div role="columnheader" class=${at > 4 ? "right" : ""}>${name}</div>`)}</div></div>`;

/** @param {{ town?: import("../types").Town }} props */
function RunList({ town }) {
  const { query } = route.value;
  const state = query.get("state") ?? "live";
  const rig = query.get("rig") ?? "";
  const bead = query.get("bead") ?? "";
  const cursor = query.get("cursor") ?? "";
  const [limit, setLimit] = useState(PAGE_SIZE);
  const { data, problem } = useDocument("/api/v1/runs", { query: { state, rig, bead, limit, cursor } }, {
    // A run enters the other lists in their midst, when it ends.
    wants: (event) => (event.run && state === "live" ? event.run : Boolean(event.run) || event.event_type === "updated" || event.event_type === "deleted"),
    rows: {
      key: (/** @type {RunRow} */ run) => run.id,
      read: (id) => read("/api/v1/runs/{id}", { path: { id } }),
      belongs: (/** @type {RunRow} */ run) => isLive(run) && (!rig || run.rig === rig) && (!bead || run.bead === bead),
      isOlder: (/** @type {RunRow} */ run, /** @type {RunRow} */ than) => run.started_at < than.started_at,
    },
  });
  const items = data?.items ?? [];
  const { at, item: selected, move } = useSelection(items, (run) => run.id);
  const decisions = selected && isLive(selected) ? [nudge(selected.id, selected.bead), cancelRun(selected.id, selected.bead)] : [];
  useKeys("Runs", [
    { keys: "j", does: "Next run", repeats: true, run: () => move(1) },
    { keys: "k", does: "Previous run", repeats: true, run: () => move(-1) },
    { keys: "ArrowDown", does: "Next run", repeats: true, run: () => move(1), hidden: true },
    { keys: "ArrowUp", does: "Previous run", repeats: true, run: () => move(-1), hidden: true },
    { keys: "Enter", does: "Open the transcript", run: () => selected && go(address("runs", selected.id)) },
    { keys: "t", does: "Open the terminal", run: () => selected && go(address("runs", selected.id, { from: "runs" }, "terminal")) },
    ...allDecisionKeys(decisions, "run", Boolean(selected), { taken: ["t"] }),
  ]);
  const more = () => {
    if (data && items.length < data.total && limit < PAGE_SIZE_MAX) setLimit(Math.min(PAGE_SIZE_MAX, 2 * limit));
  };
  const noun = state === "live" ? "live" : state === "ended" ? "ended" : "";
  return html`<${ViewHead} title="Runs" count=${data?.total}>
      <${Choice} label="State" value=${state} options=${[["live", "Live"], ["ended", "Ended"], ["all", "All"]]} onChange=${(/** @type {string} */ value) => setQuery({ state: value === "live" ? "" : value, cursor: "" })} />
      <${Filter} label="Rig" value=${rig} options=${town?.rigs ?? []} all="All rigs" onChange=${(/** @type {string} */ value) => setQuery({ rig: value, cursor: "" })} />
      ${bead && html`<button onClick=${() => setQuery({ bead: "" })}>Of ${plain(bead)} ×</button>`}<//>
    ${!data ? html`<${Loading} data=${data} problem=${problem} />`
      : items.length === 0 ? html`<${Empty} title=${`No ${noun} run`}><p>Schedule a bead with <code>gt sling</code>, and its agent appears here.</p><//>`
      : html`<${Windowed} role="table" items=${items} total=${data.total} rowHeight=${ROW_HEIGHT} label="Runs" selected=${at} onEnd=${more} head=${head()}
          row=${(/** @type {RunRow} */ run, /** @type {number} */ place) => html`<${RunLine} key=${run.id} run=${run} at=${place} isSelected=${place === at} />`} />
        ${data.next && limit >= PAGE_SIZE_MAX && html`<p class="pad"><a href=${address("runs", "", { ...Object.fromEntries(query), cursor: data.next })}>Older runs</a></p>`}`}`;
}

/** @param {{ id: string, part: string }} props */
function OneRun({ id, part }) {
  const { data: run, problem } = useDocument("/api/v1/runs/{id}", { path: { id } }, { wants: (event) => event.run === id });
  const live = Boolean(run && isLive(run));
  const decisions = run && live ? [nudge(id, run.bead), cancelRun(id, run.bead)] : [];
  const tab = part === "terminal" ? "terminal" : "transcript";
  const from = route.value.query.get("from") ?? "";
  /** Back to where the terminal was opened. */
  const leave = () => go(from === "wall" ? address("wall") : from === "runs" ? address("runs") : address("runs", id), true);
  useKeys("Run", [
    { keys: "t", does: "Terminal", run: () => go(address("runs", id, {}, "terminal"), true) },
    { keys: "Escape", does: "Back to the runs", run: () => go(address("runs")) },
    { keys: "b", does: "Open the bead", run: () => run && go(address("bead", run.bead)) },
    ...decisionKeys(decisions),
  ]);
  if (!run) return html`<${ViewHead} title=${plain(id)} /><${Loading} data=${run} problem=${problem} />`;
  return html`<${ViewHead} title="Run"><${DecisionButtons} decisions=${decisions} withKeys=${tab !== "terminal"} /><//>
    <div class="run-detail">
      <div class="detail-top"><${RunState} run=${run} /><span class="id">${plain(run.id)}</span></div>
      <h2 dir="auto">${plain(run.title)}</h2>
      <${Facts} facts=${[
        ["Bead", html`<${BeadLink} id=${run.bead} />`], ["Rig", plain(run.rig)], ["Agent", plain(run.agent)], ["Runtime", plain(run.runtime)],
        ["Account", plain(run.account)], ["Host", plain(run.host)],
        ["Step", run.step && `${run.step.done}/${run.step.total} ${plain(run.step.title)}`],
        ["Tokens", tokens(run.tokens)], ["Cost", dollarText(run.cost)], ["Started", dateTime(run.started_at)],
        ["Took", html`<${Age} since=${run.started_at} until=${run.ended_at} />`], ["Reason", told(run.reason)],
      ]} />
      <div class="tabs" role="tablist">
        <a role="tab" aria-selected=${tab === "transcript"} class=${tab === "transcript" ? "here" : ""} href=${address("runs", id)}>Transcript</a>
        <a role="tab" aria-selected=${tab === "terminal"} class=${tab === "terminal" ? "here" : ""} href=${address("runs", id, {}, "terminal")}>Terminal <${Keys} keys="t" /></a>
      </div>
      ${tab === "terminal" ? html`<${Terminal} key=${id} id=${id} live=${live} onLeave=${leave} />` : html`<${Transcript} key=${id} id=${id} live=${live} />`}
    </div>`;
}

/** @param {{ town?: import("../types").Town }} props */
export function Runs({ town }) {
  const { id, part } = route.value;
  return id ? html`<${OneRun} key=${id} id=${id} part=${part} />` : html`<${RunList} town=${town} />`;
}
