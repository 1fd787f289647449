// The board: beads from blocked to landed.
import { html, useState } from "../html.js";
import { useDocument } from "../store.js";
import { useKeys } from "../keys.js";
import { address, go, route, setQuery } from "../router.js";
import { serverNow } from "../clock.js";
import { agentName, duration, plain, told, words } from "../format.js";
import { Age, Filter, Loading, Windowed } from "../components/basics.js";
import { ViewHead } from "../components/layout.js";
import { Mark } from "../components/marks.js";

/** @typedef {import("../types").BoardCard} BoardCard */

/** Cards of each lane that are read at first, and how many more each time its end is seen. */
const LANE_SIZE = 50;
const LANE_SIZE_MAX = 500;
const CARD_HEIGHT = 106;
const UNRELATED = new Set(["run_used", "commented", "message_sent", "message_delivered", "message_seen", "token_changed"]);

/** @param {BoardCard} card */
function below(card) {
  if (card.run?.silent_since) return `${agentName(card.run.agent)} · silent for ${duration(serverNow() - Date.parse(card.run.silent_since))}`;
  if (card.run) return `${agentName(card.run.agent)} · ${words(card.run.state).toLowerCase()}`;
  if (card.request?.position) return `${card.request.state}, position ${card.request.position}`;
  if (card.request) return card.request.state;
  return card.reason?.text ?? "";
}

/** The states of merge requests that go no further by themselves. */
const STOPPED = new Set(["conflict", "failed", "held"]);

/** The state that the mark of a card shows: that of its lane, unless something is wrong. @param {BoardCard} card @param {string} lane */
function markOf(card, lane) {
  if (card.run?.silent_since) return "silent";
  return card.request && STOPPED.has(card.request.state) ? card.request.state : lane;
}

/** @param {{ card: BoardCard, lane: string, isSelected: boolean }} props */
function BoardItem({ card, lane, isSelected }) {
  const target = card.request && lane === "review" ? address("review", card.request.id) : address("bead", card.bead);
  return html`<div role="listitem" class="board-card ${isSelected ? "here" : ""} ${card.ends && lane === "blocked" ? "has-end" : ""}"><a href=${target}>
    <span class="card-top"><${Mark} state=${markOf(card, lane)} /><span class="id" title=${plain(card.bead)}>${plain(card.bead)}</span><span class="push"><${Age} since=${card.since} isShort=${true} /></span></span>
    <span class="board-title" dir="auto">${plain(card.title)}</span>
    <span class="board-below"><span class="clip" dir="auto" title=${told(card.ends ?? card.reason?.text ?? "")}>${told(below(card))}</span><span class="priority" title="Priority">P${card.priority}</span></span>
    ${lane === "blocked" && card.ends && html`<span class="board-ends clip" dir="auto">${told(card.ends)}</span>`}</a></div>`;
}

/** @param {{ town?: import("../types").Town }} props */
export function Board({ town }) {
  const { query } = route.value;
  const rig = query.get("rig") ?? "";
  const convoy = query.get("convoy") ?? "";
  const [limit, setLimit] = useState(LANE_SIZE);
  const [chosen, setChosen] = useState({ lane: 0, bead: "" });
  const { data, problem } = useDocument("/api/v1/board", { query: { rig, convoy, limit } }, { wants: (event) => !UNRELATED.has(event.event_type) });
  const convoys = useDocument("/api/v1/convoys", { query: { state: "open", limit: 100 } }, { wants: (event) => event.event_type === "created" || event.event_type === "convoy_landed" });
  const lanes = data?.lanes ?? [];
  // A card is known by its bead: the lane may get others before it.
  const at = { lane: chosen.lane, card: lanes[chosen.lane]?.items.findIndex((card) => card.bead === chosen.bead) ?? -1 };
  const move = (/** @type {number} */ across, /** @type {number} */ down) => {
    if (lanes.length === 0) return;
    const lane = Math.max(0, Math.min(lanes.length - 1, at.lane + across));
    const card = Math.max(0, Math.min(lanes[lane].items.length - 1, Math.max(-1, at.card) + down));
    setChosen({ lane, bead: lanes[lane].items[card]?.bead ?? "" });
  };
  const selected = lanes[at.lane]?.items[at.card];
  useKeys("Board", [
    { keys: "j", does: "Next card", repeats: true, run: () => move(0, 1) },
    { keys: "k", does: "Previous card", repeats: true, run: () => move(0, -1) },
    { keys: "l", does: "Lane to the right", repeats: true, run: () => move(1, 0) },
    { keys: "h", does: "Lane to the left", repeats: true, run: () => move(-1, 0) },
    { keys: "Enter", does: "Open the bead", run: () => selected && go(address("bead", selected.bead)) },
  ]);
  if (!data) return html`<${ViewHead} title="Board" /><${Loading} data=${data} problem=${problem} />`;
  const more = (/** @type {import("../types").BoardLane} */ lane) => () => {
    if (lane.items.length < lane.total && limit < LANE_SIZE_MAX) setLimit(Math.min(LANE_SIZE_MAX, limit * 2));
  };
  return html`<${ViewHead} title="Board">
      <${Filter} label="Rig" value=${rig} options=${town?.rigs ?? []} all="All rigs" onChange=${(/** @type {string} */ value) => setQuery({ rig: value })} />
      <label class="filter"><span>Convoy</span><select value=${convoy} onChange=${(/** @type {any} */ event) => setQuery({ convoy: event.currentTarget.value })}>
        <option value="">All work</option>${(convoys.data?.items ?? []).map((one) => html`<option key=${one.id} value=${one.id}>${plain(one.title)}</option>`)}</select></label><//>
    <div class="board">${lanes.map((lane, index) => html`<section key=${lane.lane} class="lane" aria-label=${words(lane.lane)}>
      <h2><${Mark} state=${lane.lane} />${words(lane.lane)}<span class="count">${lane.total}</span></h2>
      <${Windowed} items=${lane.items} rowHeight=${CARD_HEIGHT} label=${words(lane.lane)} selected=${index === at.lane ? at.card : -1} onEnd=${more(lane)}
        row=${(/** @type {BoardCard} */ card, /** @type {number} */ place) => html`<${BoardItem} key=${card.bead} card=${card} lane=${lane.lane} isSelected=${index === at.lane && place === at.card} />`} />
      ${lane.items.length < lane.total && limit >= LANE_SIZE_MAX && html`<p class="faint pad">The first ${lane.items.length} of ${lane.total}; search finds the rest.</p>`}
    </section>`)}</div>`;
}
