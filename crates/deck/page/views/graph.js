// The graph and the timeline of a convoy, now or at any moment that the event log still has.
import { html, useEffect, useState } from "../html.js";
import { serverNow } from "../clock.js";
import { useDocument } from "../store.js";
import { useKeys } from "../keys.js";
import { address, go, route, setQuery } from "../router.js";
import { dateTime, duration, plain, timeOfDay, words } from "../format.js";
import { BeadLink, Choice, Empty, Loading } from "../components/basics.js";
import { ViewHead } from "../components/layout.js";
import { shapeOf, State, toneOf } from "../components/marks.js";

/** @typedef {import("../types").ConvoyGraph} ConvoyGraph */
/** @typedef {import("../types").ConvoyTimeline} ConvoyTimeline */

const NODE = { width: 214, height: 46, gapX: 56, gapY: 16 };
/** Nodes of a drawing; a larger convoy is shown as a table. */
const NODES_MAX = 600;
const SPAN_HEIGHT = 24;
const NAMES_WIDTH = 190;
const CHART_WIDTH = 900;
/** How long the slider rests before the past is asked for. */
const SLIDER_PAUSE_MS = 150;

const SPAN_KINDS = ["waiting", "blocked", "deferred", "backoff", "paused", "held", "running", "checking", "review", "landing"];
const SPAN_WORDS = { waiting: "Waiting for capacity" };

const x = (/** @type {number} */ layer) => 12 + layer * (NODE.width + NODE.gapX);
const y = (/** @type {number} */ row) => 12 + row * (NODE.height + NODE.gapY);

/** Where a bead stands: a review says more than that it waits. @param {ConvoyGraph["nodes"][number]} node */
const stateOf = (node) => (node.state === "waiting" && node.merge_state ? node.merge_state : node.state);

/** @param {{ graph: ConvoyGraph, selected: string }} props */
function Drawing({ graph, selected }) {
  const byId = new Map(graph.nodes.map((node) => [node.id, node]));
  const width = x(graph.layers) - NODE.gapX + 12;
  const height = y(graph.rows) - NODE.gapY + 12;
  const line = (/** @type {ConvoyGraph["edges"][number]} */ edge) => {
    const from = byId.get(edge.from);
    const to = byId.get(edge.to);
    if (!from || !to) return "";
    const points = [[x(from.layer) + NODE.width, y(from.row) + NODE.height / 2]];
    (edge.via ?? []).forEach((row, at) => {
      const left = x(from.layer + 1 + at);
      points.push([left, y(row) + NODE.height / 2], [left + NODE.width, y(row) + NODE.height / 2]);
    });
    points.push([x(to.layer) - 5, y(to.row) + NODE.height / 2]);
    return points.map(([px, py], at) => {
      if (at === 0) return `M${px} ${py}`;
      const [ox, oy] = points[at - 1];
      const middle = (ox + px) / 2;
      return oy === py ? `L${px} ${py}` : `C${middle} ${oy} ${middle} ${py} ${px} ${py}`;
    }).join("");
  };
  return html`<div class="drawing" tabindex="0" role="region" aria-label="Drawing of the convoy; the table below has the same"><svg width=${width} height=${height} viewBox=${`0 0 ${width} ${height}`} aria-hidden="true">
    <defs><marker id="tip" viewBox="0 0 8 8" refX="6" refY="4" markerWidth="9" markerHeight="9" markerUnits="userSpaceOnUse" orient="auto"><path d="M0 0L8 4L0 8z" class="tip" /></marker></defs>
    ${graph.edges.map((edge) => html`<path key=${`${edge.from} ${edge.to}`} class="edge ${byId.get(edge.from)?.critical && byId.get(edge.to)?.critical ? "critical" : ""}" d=${line(edge)} marker-end="url(#tip)" />`)}
    ${graph.nodes.map((node) => html`<a key=${node.id} href=${address("bead", node.id)} tabindex="-1"><g class="node tone-${toneOf(stateOf(node))} ${node.critical ? "critical" : ""} ${node.id === selected ? "here" : ""}" transform=${`translate(${x(node.layer)} ${y(node.row)})`}>
      <title>${plain(`${node.id}: ${node.title} (${words(stateOf(node))})`)}</title>
      <rect width=${NODE.width} height=${NODE.height} rx="7" />
      <svg x="10" y="9" width="13" height="13" viewBox="0 0 14 14" class="mark">${shapeOf(stateOf(node))}</svg>
      <text x="29" y="20" class="node-title">${clipped(node.title, 25)}</text><text x="29" y="36" class="node-id">${clipped(node.id, 22 - stateOf(node).length)} · ${words(stateOf(node)).toLowerCase()}</text></g></a>`)}
  </svg></div>`;
}

/** The text, cut to a width; letters of East Asia and pictures are twice as wide. @param {string} text @param {number} width */
function clipped(text, width) {
  const letters = [...plain(text)];
  let used = 0;
  const widths = letters.map((letter) => (used += letter >= "\u1100" ? 2 : 1));
  return used > width ? `${letters.slice(0, widths.filter((end) => end < width).length).join("")}…` : letters.join("");
}

/** The graph as a table, for people who do not see the drawing. @param {{ graph: ConvoyGraph, isOpen: boolean }} props */
function GraphTable({ graph, isOpen }) {
  const before = new Map(graph.nodes.map((node) => [node.id, /** @type {string[]} */ ([])]));
  for (const edge of graph.edges) before.get(edge.to)?.push(edge.from);
  return html`<details class="panel" open=${isOpen}><summary>As a table</summary><div class="scroll-x"><table><thead><tr><th class="right">Wave</th><th>Bead</th><th>Title</th><th>State</th><th>Waits for</th><th>Critical path</th></tr></thead><tbody>
    ${[...graph.nodes].sort((one, other) => one.layer - other.layer || one.row - other.row).slice(0, 2000).map((node) => html`<tr key=${node.id}><td class="right">${node.layer + 1}</td><td><${BeadLink} id=${node.id} /></td><td dir="auto">${plain(node.title)}</td><td><${State} state=${stateOf(node)} /></td>
      <td>${(before.get(node.id) ?? []).map((id) => html`<${BeadLink} key=${id} id=${id} /> `)}</td><td>${node.critical ? "yes" : ""}</td></tr>`)}</tbody></table></div></details>`;
}

/** @param {{ timeline: ConvoyTimeline, at: number | null }} props */
function Timeline({ timeline, at }) {
  const times = timeline.rows.flatMap((row) => row.spans.flatMap((span) => [Date.parse(span.from), span.to ? Date.parse(span.to) : serverNow()]));
  if (times.length === 0) return html`<${Empty} title="Nothing has happened yet" />`;
  const first = Math.min(...times);
  const last = Math.max(...times, first + 1000);
  const left = (/** @type {number} */ time) => NAMES_WIDTH + ((time - first) / (last - first)) * (CHART_WIDTH - NAMES_WIDTH - 10);
  const height = timeline.rows.length * SPAN_HEIGHT + 24;
  const ticks = [0, 0.25, 0.5, 0.75, 1].map((share) => first + share * (last - first));
  const used = SPAN_KINDS.filter((kind) => timeline.rows.some((row) => row.spans.some((span) => span.kind === kind)));
  return html`<ul class="legend">${used.map((kind) => html`<li key=${kind}><svg width="18" height="12" aria-hidden="true"><rect class="span span-${kind}" width="18" height="12" rx="2" /></svg>${SPAN_WORDS[kind] ?? words(kind)}</li>`)}</ul>
    <div class="drawing" tabindex="0" role="region" aria-label="Timeline"><svg class="timeline" width=${CHART_WIDTH} height=${height} viewBox=${`0 0 ${CHART_WIDTH} ${height}`} role="img" aria-label="Runs and waits over time">
      ${ticks.map((time, index) => html`<g key=${index}><line class="tick" x1=${left(time)} x2=${left(time)} y1="0" y2=${height - 18} /><text class="tick-text" x=${left(time)} y=${height - 4} text-anchor=${index === 0 ? "start" : index === 4 ? "end" : "middle"}>${last - first > 86400000 ? dateTime(time).slice(5, 16) : timeOfDay(time)}</text></g>`)}
      ${timeline.rows.map((row, index) => html`<g key=${row.bead} transform=${`translate(0 ${index * SPAN_HEIGHT})`}><text class="span-name" x="0" y="16">${clipped(row.title, 27)}</text>
        ${row.spans.map((span, place) => {
          const from = Date.parse(span.from);
          const to = span.to ? Date.parse(span.to) : serverNow();
          return html`<rect key=${place} class="span span-${span.kind}" x=${left(from).toFixed(1)} y="4" height="15" rx="2" width=${Math.max(2, left(to) - left(from)).toFixed(1)}><title>${plain(`${row.title}: ${SPAN_WORDS[span.kind] ?? words(span.kind)} for ${duration(to - from)} from ${timeOfDay(from)}${span.run ? ` (${span.run})` : ""}`)}</title></rect>`;
        })}</g>`)}
      ${at !== null && at >= first && at <= last && html`<line class="moment" x1=${left(at)} x2=${left(at)} y1="0" y2=${height - 18} />`}
    </svg></div>
    <details class="panel"><summary>As a table</summary><div class="scroll-x"><table><thead><tr><th>Bead</th><th>What</th><th>From</th><th>To</th><th class="right">Took</th></tr></thead><tbody>
      ${timeline.rows.flatMap((row) => row.spans.map((span, place) => html`<tr key=${`${row.bead}${place}`}><td><${BeadLink} id=${row.bead} /></td><td>${SPAN_WORDS[span.kind] ?? words(span.kind)}</td><td>${dateTime(span.from)}</td><td>${span.to ? dateTime(span.to) : "now"}</td><td class="right">${duration((span.to ? Date.parse(span.to) : serverNow()) - Date.parse(span.from))}</td></tr>`)).slice(0, 1000)}</tbody></table></div></details>`;
}

/** @param {{ id: string }} props */
function OneConvoy({ id }) {
  const { query } = route.value;
  const asked = query.get("at") ?? "";
  const at = /^\d+$/.test(asked) ? asked : "";
  const show = query.get("show") ?? "graph";
  // The past does not change.
  const wants = () => !at;
  const graph = useDocument("/api/v1/convoys/{id}/graph", { path: { id }, query: { at } }, { wants });
  const status = useDocument("/api/v1/convoys/{id}", { path: { id }, query: { at } }, { wants });
  const timeline = useDocument("/api/v1/convoys/{id}/timeline", { path: { id } });
  const [slid, setSlid] = useState(/** @type {number | null} */ (null));
  const first = timeline.data?.first.number ?? 0;
  const last = timeline.data?.last.number ?? 0;
  const place = slid ?? (at ? Number(at) : last);
  useEffect(() => {
    if (slid === null) return undefined;
    const timer = setTimeout(() => {
      setQuery({ at: slid >= last ? "" : slid });
      setSlid(null);
    }, SLIDER_PAUSE_MS);
    return () => clearTimeout(timer);
  }, [slid]);
  const slide = (/** @type {number} */ by) => setSlid(Math.max(first, Math.min(last, place + by)));
  useKeys("Graph", [
    { keys: "s", does: "Graph or timeline", run: () => setQuery({ show: show === "graph" ? "timeline" : "" }) },
    { keys: "ArrowLeft", does: "One event earlier", repeats: true, run: () => slide(-1) },
    { keys: "ArrowRight", does: "One event later", repeats: true, run: () => slide(1) },
    { keys: "<", does: "A tenth earlier", repeats: true, run: () => slide(-Math.ceil((last - first) / 10)) },
    { keys: ">", does: "A tenth later", repeats: true, run: () => slide(Math.ceil((last - first) / 10)) },
    { keys: "0", does: "Now", run: () => setQuery({ at: "" }) },
    { keys: "Escape", does: "Back to the convoys", run: () => go(address("graph")) },
  ]);
  const notKept = [graph, status].find((one) => one.problem && (one.problem.code === "not-kept" || one.problem.status === 410));
  const convoy = status.data;
  const moment = at && convoy?.as_of ? Date.parse(convoy.as_of.at) : null;
  return html`<div class="convoy"><div class="convoy-head">
      <h2 dir="auto">${plain(convoy?.title ?? graph.data?.title ?? id)}</h2>
      ${convoy && html`<p class="lead"><${State} state=${convoy.paused ? "paused" : convoy.status === "closed" ? "closed" : "running"} text=${words(convoy.status)} /> ${convoy.completed} of ${convoy.total} done${convoy.failed ? `, ${convoy.failed} failed` : ""}${convoy.remaining_seconds && !convoy.left_out ? `, about ${duration(1000 * convoy.remaining_seconds)} left` : ""}</p>`}
      <${Choice} label="What is shown" value=${show} options=${[["graph", "Graph"], ["timeline", "Timeline"]]} onChange=${(/** @type {string} */ value) => setQuery({ show: value === "graph" ? "" : value })} /></div>
    ${timeline.data && html`<div class="slider"><label><span>Moment</span><input type="range" min=${first} max=${last} value=${place} aria-valuetext=${at ? `event ${place}` : "now"}
        onInput=${(/** @type {any} */ event) => setSlid(Number(event.currentTarget.value))} /></label>
      <output>${at || slid !== null ? html`Event ${place} of ${last}${moment ? html` <span class="faint">${dateTime(moment)}</span>` : ""}` : "Now"}</output>
      ${at && html`<button class="small" onClick=${() => setQuery({ at: "" })}>Now</button>`}
      <code class="faint wide-only">gt convoy status ${plain(id)}${at ? ` --at ${plain(at)}` : ""}</code></div>`}
    ${notKept ? html`<${Empty} title="Not kept"><p>The event log does not go back to this moment. <code>events.keep</code> says for how long it does.</p><//>`
      : show === "timeline" ? (timeline.data ? html`<${Timeline} timeline=${timeline.data} at=${moment} />` : html`<${Loading} data=${timeline.data} problem=${timeline.problem} />`)
      : graph.data ? html`${graph.data.nodes.length <= NODES_MAX ? html`<${Drawing} graph=${graph.data} selected="" />` : html`<p class="faint pad">${graph.data.nodes.length} beads are too many for a drawing.</p>`}<${GraphTable} graph=${graph.data} isOpen=${graph.data.nodes.length > NODES_MAX} />`
      : html`<${Loading} data=${graph.data} problem=${graph.problem} />`}</div>`;
}

export function Graph() {
  const { id, query } = route.value;
  const state = query.get("state") ?? "open";
  const { data, problem } = useDocument("/api/v1/convoys", { query: { state, limit: 100 } }, { wants: (event) => ["created", "closed", "convoy_landed", "updated"].includes(event.event_type) });
  const items = data?.items ?? [];
  const [at, setAt] = useState(0);
  const chosen = id || (items.length === 1 ? items[0].id : "");
  useKeys("Convoys", [
    { keys: "j", does: "Next convoy", repeats: true, run: () => (chosen ? go(address("graph", items[Math.min(items.length - 1, items.findIndex((one) => one.id === chosen) + 1)]?.id ?? chosen)) : setAt(Math.min(items.length - 1, at + 1))) },
    { keys: "k", does: "Previous convoy", repeats: true, run: () => (chosen ? go(address("graph", items[Math.max(0, items.findIndex((one) => one.id === chosen) - 1)]?.id ?? chosen)) : setAt(Math.max(0, at - 1))) },
    { keys: "Enter", does: "Open the convoy", run: () => !chosen && items[at] && go(address("graph", items[at].id)) },
  ]);
  return html`<${ViewHead} title="Graph and timeline"><${Choice} label="Convoys" value=${state} options=${[["open", "Open"], ["closed", "Landed"], ["all", "All"]]} onChange=${(/** @type {string} */ value) => go(address("graph", "", { state: value === "open" ? "" : value }))} />
      ${items.length > 0 && html`<label class="filter"><span>Convoy</span><select value=${chosen} onChange=${(/** @type {any} */ event) => go(address("graph", event.currentTarget.value, { state: state === "open" ? "" : state }))}><option value="">Choose …</option>${items.map((one) => html`<option key=${one.id} value=${one.id}>${plain(one.title)}</option>`)}</select></label>`}<//>
    ${chosen ? html`<${OneConvoy} key=${chosen} id=${chosen} />` : !data ? html`<${Loading} data=${data} problem=${problem} />` : items.length === 0 ? html`<${Empty} title="No convoy"><p>A convoy is a set of beads that is followed as one. <code>gt convoy create</code> makes one.</p><//>`
      : html`<ul class="convoys">${items.map((one, index) => html`<li key=${one.id} class="panel ${index === at ? "here" : ""}"><a href=${address("graph", one.id, { state: state === "open" ? "" : state })}><strong dir="auto">${plain(one.title)}</strong><span class="faint">${plain(one.id)} · ${one.completed} of ${one.total} done${one.failed ? ` · ${one.failed} failed` : ""}</span></a></li>`)}</ul>`}`;
}
