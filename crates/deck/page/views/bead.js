// One bead: what it is, why it is where it is, its runs and merge requests.
import { html } from "../html.js";
import { useDocument } from "../store.js";
import { useKeys } from "../keys.js";
import { address, route } from "../router.js";
import { cancelRequest, cancelRun, closeBead, edit, nudge, retryBead, retryRequest, sling, unsling } from "../decisions.js";
import { dateTime, dollarText, plain, told, tokens } from "../format.js";
import { Age, BeadLink, Empty, Loading } from "../components/basics.js";
import { allDecisionKeys, DecisionButtons } from "../components/decide.js";
import { Facts, ViewHead } from "../components/layout.js";
import { RunState, State } from "../components/marks.js";
import { isLive } from "./runs.js";

/** The states of merge requests that are over. */
const OVER = new Set(["landed", "cancelled", "superseded"]);
/** Those that can be tried again. */
const FAILED = new Set(["conflict", "failed", "held"]);

export function Bead() {
  const { id } = route.value;
  const { data, problem } = useDocument("/api/v1/beads/{id}", { path: { id } }, { wants: (event) => event.issue_id === id || event.event_type === "closed" });
  const bead = /** @type {import("../types").BeadRecord | undefined} */ (data?.bead);
  const isOpen = bead && bead.status !== "closed";
  const live = data?.runs.find(isLive);
  const context = data?.why?.context;
  const isScheduled = Boolean(context && !context.closed_at);
  const request = data?.requests.find((one) => !OVER.has(one.state));
  const starts = (data?.runs.length ?? 0) > 0 ? [retryBead(id), sling(id)] : [sling(id)];
  const decisions = !data ? [] : !isOpen ? [edit(id)]
    : live ? [nudge(live.id, id), cancelRun(live.id, id), edit(id)]
      : [...(isScheduled ? [retryBead(id, true), unsling(id)] : request ? [...(FAILED.has(request.state) ? [retryRequest(request.id, id)] : []), cancelRequest(request.id, id)] : starts), { ...closeBead(id), key: "c" }, edit(id)];
  useKeys("Bead", [...allDecisionKeys(decisions, "bead", true), { keys: "Escape", does: "Back", run: () => history.back() }]);
  if (!data || !bead) return html`<${ViewHead} title=${plain(id)} /><${Loading} data=${data} problem=${problem} />`;
  const { why, runs, requests } = data;
  const isBlocked = why?.reasons.some((reason) => reason.code === "blocked");
  const state = !isOpen ? bead.status : request?.state ?? (isBlocked ? "blocked" : why?.state ?? bead.status);
  return html`<${ViewHead} title="Bead"><${DecisionButtons} decisions=${decisions} /><//>
    <article class="detail wide">
      <div class="detail-top">${live ? html`<${RunState} run=${live} />` : html`<${State} state=${state} />`}<span class="id">${plain(bead.id)}</span><span class="tag">P${bead.priority}</span><span class="tag">${plain(bead.issue_type)}</span></div>
      <h2 dir="auto">${plain(bead.title)}</h2>
      ${why && why.reasons.length > 0 && html`<section><h3>${live ? "Where it stands" : "Why it waits"}</h3><ul class="reasons">${why.reasons.map((reason) => html`
        <li key=${reason.code}><p dir="auto">${told(reason.text)}</p><p class="faint" dir="auto">${told(reason.remedy)}</p></li>`)}</ul></section>`}
      ${bead.description && html`<section><h3>Description</h3><pre class="prose" dir="auto">${plain(bead.description)}</pre></section>`}
      <${Facts} facts=${[
        ["Rig", plain(why?.context?.rig)],
        ["Convoys", why?.convoys?.length ? why.convoys.map((convoy) => html`<a key=${convoy.id} href=${address("graph", convoy.id)}>${plain(convoy.title)}</a> `) : ""],
        ["Assignee", plain(bead.assignee)],
        ["Created", dateTime(bead.created_at)],
        ["Queue", why?.line && `${why.line.position} of ${why.line.of}`],
        ["Landed as", plain(why?.landed_commit)],
      ]} />
      <section><h3>Runs</h3>${runs.length === 0 ? html`<${Empty} title="It has no run yet" />` : html`<div class="scroll-x"><table><thead><tr><th>Run</th><th>State</th><th>Agent</th><th class="right">Tokens</th><th class="right">Cost</th><th class="right">Took</th></tr></thead><tbody>
        ${runs.map((run) => html`<tr key=${run.id}><td><a class="id" href=${address("runs", run.id)}>${plain(run.id)}</a></td><td><${RunState} run=${run} /></td><td>${plain(run.agent)}</td><td class="right">${tokens(run.tokens)}</td><td class="right">${dollarText(run.cost)}</td><td class="right"><${Age} since=${run.started_at} until=${run.ended_at} /></td></tr>`)}
      </tbody></table></div>`}</section>
      ${requests.length > 0 && html`<section><h3>Merge requests</h3><ul class="plain-list">${requests.map((request) => html`
        <li key=${request.id}><a class="id" href=${address("review", request.id)}>${plain(request.id)}</a> <${State} state=${request.state} /> <span class="faint" dir="auto">${told(request.reason)}</span></li>`)}</ul></section>`}
      ${why?.causes && why.causes.length > 0 && html`<section><h3>At the root</h3><ul class="plain-list">${why.causes.map((cause) => html`<li key=${cause.id}><${BeadLink} id=${cause.id} /> <span dir="auto">${plain(cause.title)}</span> <span class="faint">${plain(cause.remedy)}</span></li>`)}</ul></section>`}
    </article>`;
}
