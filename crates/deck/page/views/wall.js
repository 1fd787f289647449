// The wall: all live screens as small text, drawn by the server.
import { html, useState } from "../html.js";
import { urlOf } from "../api.js";
import { useDocument } from "../store.js";
import { useKeys } from "../keys.js";
import { address, go, route, setQuery } from "../router.js";
import { agentName, plain, tokens } from "../format.js";
import { Age, Empty, Filter, Loading } from "../components/basics.js";
import { ViewHead } from "../components/layout.js";
import { RunState } from "../components/marks.js";
import { useSelection } from "../selection.js";
import { ScreenText, useFrames } from "../components/terminal.js";

/** Screens on one page of the wall. */
const TILES = 24;
/** Where the pages begin that were shown, for the way back. @type {string[]} */
const cursors = [""];

/** @param {{ run: import("../types").RunRow, frame: any, isSelected: boolean }} props */
function Tile({ run, frame, isSelected }) {
  return html`<li class="tile ${isSelected ? "here" : ""}"><a href=${address("runs", run.id, { from: "wall" }, "terminal")}>
    <div class="tile-screen" aria-hidden="true">${frame ? html`<${ScreenText} screen=${frame} />` : html`<pre class="screen"><div class="screen-line">${plain(run.last_words ?? run.last_tool ?? "")}</div></pre>`}</div>
    <div class="tile-foot"><span class="tile-title clip" dir="auto">${plain(run.title)}</span>
      <span class="tile-facts"><${RunState} run=${run} text=${agentName(run.agent)} /><span class="push faint">${tokens(run.tokens)}</span><${Age} since=${run.started_at} /></span></div></a></li>`;
}

/** @param {{ town?: import("../types").Town }} props */
export function Wall({ town }) {
  const { query } = route.value;
  const rig = query.get("rig") ?? "";
  const page = Math.max(0, Number(query.get("page") ?? 0) || 0);
  const cursor = query.get("cursor") ?? "";
  cursors[page] = cursor;
  const { data, problem } = useDocument("/api/v1/runs", { query: { state: "live", rig, limit: TILES, cursor } }, { wants: (event) => Boolean(event.run) && event.event_type !== "run_used" });
  const [frames, setFrames] = useState(/** @type {Record<string, any>} */ ({}));
  const runs = data?.items ?? [];
  const pages = Math.max(page + 1, Math.ceil((data?.total ?? 0) / TILES));
  const { at, item: selected, move } = useSelection(runs, (run) => run.id, { first: true });
  const ids = runs.map((run) => run.id).join(",");
  useFrames(() => (ids ? urlOf("/api/v1/wall", {}, { runs: ids }) : null), (frame) => {
    setFrames((old) => ({ ...old, [frame.run]: frame }));
  }, () => {}, [ids]);
  const next = () => data?.next && setQuery({ page: page + 1, cursor: data.next });
  const previous = () => page > 0 && setQuery({ page: page - 1 || "", cursor: cursors[page - 1] });
  useKeys("Wall", [
    { keys: "j", does: "Next screen", repeats: true, run: () => move(1) },
    { keys: "k", does: "Previous screen", repeats: true, run: () => move(-1) },
    { keys: "l", does: "Next screen", repeats: true, run: () => move(1) },
    { keys: "h", does: "Previous screen", repeats: true, run: () => move(-1) },
    { keys: "Enter", does: "Open the terminal", run: () => selected && go(address("runs", selected.id, { from: "wall" }, "terminal")) },
    { keys: "]", does: "Next page", run: next },
    { keys: "[", does: "Previous page", run: previous },
  ]);
  return html`<${ViewHead} title="Wall" count=${data?.total}>
      ${pages > 1 && html`<span class="faint">Page ${page + 1} of ${pages}</span><button onClick=${previous} disabled=${page === 0}>Previous</button><button onClick=${next} disabled=${!data?.next}>Next</button>`}
      <${Filter} label="Rig" value=${rig} options=${town?.rigs ?? []} all="All rigs" onChange=${(/** @type {string} */ value) => setQuery({ rig: value, page: "", cursor: "" })} /><//>
    ${!data ? html`<${Loading} data=${data} problem=${problem} />` : runs.length === 0 ? html`<${Empty} title="No live screen"><p>Screens of live runs appear here.</p><//>`
      : html`<ul class="wall">${runs.map((run, index) => html`<${Tile} key=${run.id} run=${run} frame=${frames[run.id]} isSelected=${index === at} />`)}</ul>`}`;
}
