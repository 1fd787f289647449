// Money: what is spent, against budgets and the windows of providers.
import { html } from "../html.js";
import { useDocument } from "../store.js";
import { useKeys } from "../keys.js";
import { address, route, setQuery } from "../router.js";
import { dateTime, dollars, dollarText, plain, timeOfDay, tokens, words } from "../format.js";
import { Choice, Empty, Loading, Meter } from "../components/basics.js";
import { ViewHead } from "../components/layout.js";
import { State } from "../components/marks.js";

const BY = /** @type {[string, string][]} */ ([["bead", "Bead"], ["convoy", "Convoy"], ["account", "Account"], ["model", "Model"]]);
const SINCE = /** @type {[string, string][]} */ ([["1d", "Day"], ["7d", "Week"], ["30d", "Month"], ["all", "All"]]);
const CHART = { width: 720, height: 150, left: 46, bottom: 20, top: 10 };
const LINES_MAX = 200;

const ABOUT_MONEY = new Set(["run_used", "run_done", "run_failed", "run_lost", "run_cancelled", "setting_changed", "limited", "parked", "unparked", "account_changed", "landed"]);

/** A number that is easy to read, not below this one. @param {number} most */
function ceiling(most) {
  if (most <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(most));
  return [1, 2, 2.5, 5, 10].map((step) => step * power).find((step) => step >= most) ?? most;
}

/** @param {{ hours: import("../types").BurnHour[] }} props */
function BurnChart({ hours }) {
  const unpriced = hours.every((hour) => Number(hour.cost) === 0);
  const amounts = hours.map((hour) => (unpriced ? hour.tokens : Number(hour.cost)));
  const show = (/** @type {number} */ amount) => (unpriced ? tokens(amount) : dollars(amount));
  const top = ceiling(Math.max(...amounts, 0));
  const inner = CHART.height - CHART.bottom - CHART.top;
  const step = (CHART.width - CHART.left) / Math.max(1, hours.length);
  return html`<svg class="chart" viewBox=${`0 0 ${CHART.width} ${CHART.height}`} role="img" aria-label=${`${unpriced ? "Tokens" : "Dollars"} in each hour, at most ${show(Math.max(...amounts, 0))}`}>
    ${[0, 0.5, 1].map((share) => html`<g key=${share}><line class="tick" x1=${CHART.left} x2=${CHART.width} y1=${CHART.top + inner * (1 - share)} y2=${CHART.top + inner * (1 - share)} /><text class="tick-text" x=${CHART.left - 6} y=${CHART.top + inner * (1 - share) + 4} text-anchor="end">${show(top * share)}</text></g>`)}
    ${hours.map((hour, at) => {
      const height = (inner * amounts[at]) / top;
      return html`<g key=${hour.from}><rect class="bar" x=${CHART.left + at * step + step * 0.14} width=${step * 0.72} y=${CHART.top + inner - height} height=${height} rx="2"><title>${`${dateTime(hour.from)}: ${dollarText(hour.cost)}, ${tokens(hour.tokens)} tokens`}</title></rect>
        ${at % Math.ceil(hours.length / 8) === 0 && html`<text class="tick-text" x=${CHART.left + at * step + step / 2} y=${CHART.height - 4} text-anchor="middle">${timeOfDay(hour.from).slice(0, 5)}</text>`}</g>`;
    })}</svg>`;
}

/** @param {string} unit @param {string} amount */
function amountOf(unit, amount) {
  return unit === "dollars" ? dollarText(amount) : `${tokens(Number(amount))} ${unit}`;
}

export function Money() {
  const { query } = route.value;
  const by = query.get("by") ?? "bead";
  const since = query.get("since") ?? "7d";
  const wants = (/** @type {import("../types").TownEvent} */ event) => ABOUT_MONEY.has(event.event_type);
  const cost = useDocument("/api/v1/cost", { query: { by, since: since === "all" ? "" : since } }, { wants });
  const burn = useDocument("/api/v1/burn", { query: { hours: 24 } }, { wants });
  const budgets = useDocument("/api/v1/budgets", {}, { wants });
  const accounts = useDocument("/api/v1/accounts", {}, { wants });
  const next = (/** @type {[string, string][]} */ options, /** @type {string} */ value) => options[(options.findIndex(([name]) => name === value) + 1) % options.length][0];
  useKeys("Money", [
    { keys: "y", does: "Next breakdown", run: () => setQuery({ by: next(BY, by) }) },
    { keys: "s", does: "Next span of time", run: () => setQuery({ since: next(SINCE, since) }) },
  ]);
  const total = cost.data?.total;
  const hours = burn.data?.hours ?? [];
  const now = hours.at(-1);
  const day = hours.reduce((sum, hour) => sum + Number(hour.cost), 0);
  const tiles = [
    ["Last hour", now ? dollarText(now.cost) : "–", now ? `${tokens(now.tokens)} tokens` : ""],
    ["Last 24 hours", dollars(day), `${tokens(hours.reduce((sum, hour) => sum + hour.tokens, 0))} tokens`],
    ["In the span below", total ? dollarText(total.cost) : "–", total ? `${total.runs} runs` : ""],
    ["Each done bead", total?.cost_per_done_bead ? dollarText(total.cost_per_done_bead) : "–", total ? `${total.done_beads} done${cost.data?.done_without_usage ? `, ${cost.data.done_without_usage} without usage` : ""}` : ""],
  ];
  const lines = [...(cost.data?.lines ?? [])].sort((one, other) => Number(other.cost) - Number(one.cost) || other.tokens - one.tokens).slice(0, LINES_MAX);
  const most = Math.max(...lines.map((line) => Number(line.cost)), 0.000001);
  const nameOf = (/** @type {string} */ name) => (by === "bead" && name ? html`<a class="id" href=${address("bead", name)}>${plain(name)}</a>` : by === "convoy" && name ? html`<a href=${address("graph", name)}>${plain(name)}</a>` : name ? plain(name) : html`<span class="faint">none</span>`);
  return html`<${ViewHead} title="Money" />
    <div class="tiles">${tiles.map(([name, value, below]) => html`<div key=${name} class="panel figure"><span class="faint">${name}</span><strong>${value}</strong><span class="faint">${below}</span></div>`)}</div>
    <div class="columns"><div class="column-main">
      <section class="panel" aria-label="Burn"><h2>Each hour</h2>${burn.data ? html`<${BurnChart} hours=${hours} />` : html`<${Loading} data=${burn.data} problem=${burn.problem} />`}</section>
      <section class="panel" aria-label="Breakdown"><div class="panel-head"><h2>Spent</h2><${Choice} label="By" value=${by} options=${BY} onChange=${(/** @type {string} */ value) => setQuery({ by: value })} /><${Choice} label="Since" value=${since} options=${SINCE} onChange=${(/** @type {string} */ value) => setQuery({ since: value })} /></div>
        ${!cost.data ? html`<${Loading} data=${cost.data} problem=${cost.problem} />` : lines.length === 0 ? html`<${Empty} title="Nothing was spent" />` : html`<div class="scroll-x"><table><thead><tr><th>${words(by)}</th><th class="right">Runs</th><th class="right">Done</th><th class="right">Tokens</th><th class="right">Cost</th><th>Share</th></tr></thead><tbody>
        ${lines.map((line) => html`<tr key=${line.name}><td>${nameOf(line.name)}</td><td class="right">${line.runs}</td><td class="right">${line.done_beads}</td><td class="right">${tokens(line.tokens)}</td><td class="right">${dollarText(line.cost)}${line.unpriced > 0 ? html`<span class="faint" title=${`${tokens(line.unpriced)} tokens have no price`}> +?</span>` : ""}</td><td class="share"><${Meter} isLimit=${false} share=${Number(line.cost) / most} label=${`${((100 * Number(line.cost)) / most).toFixed(0)} percent of the largest`} /></td></tr>`)}</tbody></table></div>
        ${cost.data.lines.length > LINES_MAX && html`<p class="faint">The first ${LINES_MAX} of ${cost.data.lines.length}; <code>gt cost --by ${by}</code> shows all.</p>`}`}
        ${(cost.data?.unpriced ?? []).length > 0 && html`<p class="faint">Without a price: ${(cost.data?.unpriced ?? []).map((model) => `${plain(model.model) || "unnamed model"} (${tokens(model.tokens)} tokens)`).join(", ")}</p>`}</section>
    </div><div class="column-side">
      <section class="panel" aria-label="Budgets"><h2>Budgets</h2>${(budgets.data?.items ?? []).length === 0 ? html`<p class="faint">No budget is set. <code>gt config set budget.cost_per_day 20</code> sets one.</p>` : (budgets.data?.items ?? []).map((budget) => html`
        <div key=${`${budget.name}/${budget.scope}`} class="budget"><div class="budget-head"><span><code>${plain(budget.name)}</code>${budget.scope !== "town" ? html` <span class="faint">${plain(budget.scope)}</span>` : ""}</span><span>${budget.unit === "dollars" ? dollarText(budget.spent) : tokens(Number(budget.spent))} of ${amountOf(budget.unit, budget.limit)}</span></div>
          <${Meter} share=${Number(budget.spent) / Number(budget.limit)} held=${Number(budget.held) / Number(budget.limit)} label=${`${amountOf(budget.unit, budget.spent)} of ${amountOf(budget.unit, budget.limit)} spent`} />
          <p class="faint">${Number(budget.held) > 0 ? `${amountOf(budget.unit, budget.held)} held by live runs. ` : ""}${budget.is_spent ? html`<${State} state="failed" text="Used up" /> ` : ""}${budget.resets_at ? html`Free again at <span class="age">${dateTime(budget.resets_at)}</span>` : ""}</p></div>`)}</section>
      <section class="panel" aria-label="Accounts"><h2>Accounts</h2>${(accounts.data?.items ?? []).length === 0 ? html`<p class="faint">No account is in use.</p>` : (accounts.data?.items ?? []).map((account) => html`
        <div key=${account.name} class="budget"><div class="budget-head"><strong>${plain(account.name)}</strong>${account.state === "parked" ? html`<${State} state="parked" text=${account.parked_until ? `Parked until ${timeOfDay(account.parked_until)}` : "Parked"} />` : html`<${State} state="landed" text="Open" />`}</div>
          <p class="faint">${account.runs}${account.cap ? ` of ${account.cap}` : ""} live runs${account.reason ? ` · ${plain(account.reason)}` : ""}</p>
          ${account.windows.map((window) => html`<div key=${window.name}><div class="budget-head"><span>${plain(window.name)}</span><span>${window.used_percent ?? "?"} %</span></div><${Meter} share=${(window.used_percent ?? 0) / 100} label=${`${window.used_percent ?? 0} percent used`} />${window.resets_at && html`<p class="faint">begins anew at ${dateTime(window.resets_at)}</p>`}</div>`)}</div>`)}</section>
    </div></div>`;
}
