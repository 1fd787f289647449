// The frame of the page: where a person is, how the town is, and which view is shown.
import "./theme.js";
import { html, render, signal, useEffect } from "./html.js";
import { session } from "./api.js";
import { connection, identify, listen, staleSince, useDocument } from "./store.js";
import { address, go, route } from "./router.js";
import { pendingKey, useKeys } from "./keys.js";
import { nextTheme, theme } from "./theme.js";
import { plain, plural, timeOfDay, told } from "./format.js";
import { pauseScheduler } from "./decisions.js";
import { Empty } from "./components/basics.js";
import { Mark, Warning } from "./components/marks.js";
import { ask, Decide } from "./components/decide.js";
import { Help, openHelp } from "./components/help.js";
import { openSearch, Search } from "./components/search.js";
import { Toasts } from "./components/toasts.js";
import { NeedsYou } from "./views/needs_you.js";

/** @typedef {(props: { town?: import("./types").Town }) => any} View */

/** The views in the order of the menu: address, name, second key after `g`. */
const VIEWS = /** @type {const} */ ([
  ["needs", "Needs you", "n"],
  ["board", "Board", "b"],
  ["runs", "Runs", "r"],
  ["queue", "Queue", "q"],
  ["review", "Review", "v"],
  ["graph", "Graph", "t"],
  ["money", "Money", "m"],
  ["wall", "Wall", "w"],
]);

/** The views that are read when they are first wanted, or when the page has nothing else to do. @type {Record<string, () => Promise<View>>} */
const SOURCES = {
  board: async () => (await import("./views/board.js")).Board,
  runs: async () => (await import("./views/runs.js")).Runs,
  queue: async () => (await import("./views/queue.js")).Queue,
  review: async () => (await import("./views/review.js")).Review,
  graph: async () => (await import("./views/graph.js")).Graph,
  money: async () => (await import("./views/money.js")).Money,
  wall: async () => (await import("./views/wall.js")).Wall,
  bead: async () => (await import("./views/bead.js")).Bead,
};
/** How long after the start the other views are read. */
const READ_AHEAD_MS = 1500;

const loaded = signal(/** @type {Record<string, View>} */ ({ needs: NeedsYou }));

/** @param {string} name */
async function load(name) {
  if (loaded.value[name] || !SOURCES[name]) return;
  try {
    const view = await SOURCES[name]();
    loaded.value = { ...loaded.value, [name]: view };
  } catch {
    // The server is away; the view is asked for again when it is shown.
    setTimeout(() => route.value.view === name && load(name), 1000);
  }
}

/** Events that change nothing in the head line. */
const QUIET = new Set(["run_used", "commented", "message_delivered", "label_added", "label_removed", "step_done"]);

/** @param {{ town: import("./types").Town | undefined }} props */
function Menu({ town }) {
  const { view } = route.value;
  const counts = { needs: town?.inbox, runs: town?.live };
  return html`<nav class="menu" aria-label="Views"><ul>
    ${VIEWS.map(([name, label, key]) => html`<li key=${name}>
      <a href=${address(name)} class=${view === name ? "here" : ""} aria-current=${view === name ? "page" : undefined} title=${`g ${key}`}>
        <${MenuIcon} name=${name} /><span class="menu-label">${label}</span>
        ${counts[name] ? html`<span class="count ${name === "needs" ? "loud" : ""}" aria-label=${`${counts[name]} entries`}>${counts[name]}</span>` : html`<kbd aria-hidden="true">${`g ${key}`}</kbd>`}
      </a></li>`)}
  </ul></nav>`;
}

const ICONS = {
  needs: "M8 1.5a4.5 4.5 0 0 0-4.5 4.5c0 4-1.5 5-1.5 5h12s-1.5-1-1.5-5A4.5 4.5 0 0 0 8 1.5zM6.5 13.5a1.6 1.6 0 0 0 3 0",
  board: "M2 2.5h3.2v11H2zM6.4 2.5h3.2v7H6.4zM10.8 2.5H14v9h-3.2z",
  runs: "M2 4h12M2 8h12M2 12h8M13 10.5v3l2-1.5z",
  queue: "M2 3h6M2 8h6M2 13h6M11 3v9m-2.2-2.2L11 12l2.2-2.2",
  review: "M3 1.5h7l3 3v10H3zM5.5 7h5M5.5 10h3",
  graph: "M3.5 5.5a2 2 0 1 0 0-4 2 2 0 0 0 0 4zm0 9a2 2 0 1 0 0-4 2 2 0 0 0 0 4zm9-4.500a2 2 0 1 0 0-4 2 2 0 0 0 0 4zM5.300 4.300l5.400 2.900M5.300 11.700l5.400-2.900",
  money: "M8 1.500v13M11.200 4.500C10.500 3.500 9.400 3.200 8 3.200c-1.900 0-3.200.9-3.200 2.300 0 3.300 6.600 1.600 6.600 5 0 1.500-1.500 2.400-3.400 2.400-1.600 0-2.800-.5-3.500-1.600",
  wall: "M1.500 2.500h5.500v4.500H1.500zM9 2.500h5.500v4.500H9zM1.500 9h5.500v4.500H1.500zM9 9h5.500v4.500H9z",
};

/** @param {{ name: string }} props */
function MenuIcon({ name }) {
  return html`<svg class="menu-icon" viewBox="0 0 16 16" width="16" height="16" aria-hidden="true"><path d=${ICONS[name]} fill="none" stroke="currentColor" stroke-width="1.4" stroke-linejoin="round" stroke-linecap="round" /></svg>`;
}

/** @param {{ town: import("./types").Town | undefined }} props */
function TownState({ town }) {
  if (connection.value === "stale") return html`<span class="town-state tone-red"><${Warning} /> Stale</span>`;
  if (connection.value !== "live" || !town) return html`<span class="town-state faint">Connecting …</span>`;
  if (town.problems.length > 0) return html`<span class="town-state tone-red" title=${town.problems.map((problem) => told(problem.text)).join("\n")}><${Warning} /> ${plural(town.problems.length, "problem")}</span>`;
  if (town.paused) return html`<span class="town-state tone-amber"><${Mark} state="paused" /> Paused</span>`;
  return html`<span class="town-state tone-green"><${Mark} state="working" /> Working</span>`;
}

/** @param {{ town: import("./types").Town | undefined }} props */
function Head({ town }) {
  const numbers = town && [
    ["agents", town.cap === null ? town.live : `${town.live}/${town.cap}`, address("runs")], ["ready", town.ready, address("board")], ["blocked", town.blocked, address("board")],
  ];
  return html`<header class="head">
    <a class="town-name" href=${address("needs")}><svg viewBox="0 0 32 32" width="22" height="22" aria-hidden="true"><rect width="32" height="32" rx="8" class="logo" /><path d="M8 11h16M8 16h10M8 21h13" stroke="#fff" stroke-width="3" stroke-linecap="round" /><circle cx="23.5" cy="16" r="2.5" fill="#ffd43b" /></svg>
      <strong>${plain(town?.name ?? "Flight deck")}</strong></a>
    <${TownState} town=${town} />
    <ul class="numbers">${(numbers ?? []).map(([name, value, target]) => html`<li key=${name}><a href=${target}><strong>${value}</strong> <span>${name}</span></a></li>`)}</ul>
    <button class="search-button" onClick=${openSearch}><span>Search</span><kbd aria-hidden="true">/</kbd></button>
    ${town && html`<button class="quiet wide-only" onClick=${() => ask(pauseScheduler(!town.paused))}>${town.paused ? "Resume" : "Pause"}</button>`}
    <button class="quiet" onClick=${nextTheme} title="Light, dark or as the system" aria-label=${`Theme: ${theme.value}`}>${theme.value === "system" ? "◐" : theme.value === "light" ? "☀" : "☾"}</button>
    <button class="quiet" onClick=${openHelp} aria-label="Keyboard help">?</button>
    <span class="actor wide-only" title="You decide under this name">${plain(session.value?.actor ?? "")}</span>
  </header>`;
}

function StaleBanner() {
  if (connection.value !== "stale") return null;
  const since = staleSince.value;
  return html`<div class="banner tone-red" role="alert"><${Warning} /> <strong>${since ? `Stale since ${timeOfDay(since)}` : "No answer"}</strong>
    <span>The server does not answer. What you see is old; it is read again as soon as the server is back.</span></div>`;
}

/** @param {{ town: import("./types").Town | undefined }} props */
function TownProblems({ town }) {
  if (!town || connection.value === "stale") return null;
  const problems = town.problems.slice(0, 3);
  return html`${problems.map((problem) => html`<div key=${problem.code} class="banner tone-amber" role="status"><${Warning} /> <span>${told(problem.text)}</span></div>`)}
    ${town.paused && html`<div class="banner tone-amber" role="status"><${Mark} state="paused" /> <span>Paused by ${plain(town.paused.by)} since ${timeOfDay(town.paused.since)}: no run starts.</span></div>`}`;
}

function LoggedOut() {
  return html`<main class="logged-out" id="main"><div class="panel">
    <h1>Log in</h1>
    <p>This browser is not logged in, or its login has ended or was revoked.</p>
    <p>Log in with <code>gt deck</code> in the town: it opens this page with a link that works once.</p>
    <button class="good" onClick=${() => location.reload()}>Try again</button></div></main>`;
}

function Deck() {
  const { data: town } = useDocument("/api/v1/town", {}, { wants: (event) => !QUIET.has(event.event_type), ages: true });
  useKeys("Everywhere", [
    { keys: "?", does: "Show all keys", run: openHelp },
    { keys: "/", does: "Search", run: openSearch },
    { keys: "T", does: "Change the theme", run: nextTheme },
    { keys: "P", does: "Pause or resume the town", run: () => town && ask(pauseScheduler(!town.paused)) },
    ...VIEWS.map(([name, label, key]) => ({ keys: `g ${key}`, does: `Go to ${label}`, run: () => go(address(name)) })),
  ]);
  const { view } = route.value;
  const found = VIEWS.find(([name]) => name === view);
  const label = found ? found[1] : view === "bead" ? "Bead" : "No such view";
  useEffect(() => {
    const count = town?.inbox ? `(${town.inbox}) ` : "";
    document.title = `${connection.value === "stale" ? "Stale · " : count}${label} · ${plain(town?.name ?? "gt")}`;
  }, [label, town?.inbox, town?.name, connection.value]);
  useEffect(() => void load(view), [view]);
  const isKnown = found || view === "bead";
  const Shown = loaded.value[view];
  return html`<a class="skip" href="#main" onClick=${(/** @type {Event} */ event) => {
    event.preventDefault();
    document.getElementById("main")?.focus();
  }}>Skip to the view</a>
    <a class="skip" href="#main" onClick=${(/** @type {Event} */ event) => {
      event.preventDefault();
      const decision = document.querySelector(".decisions button:not([disabled])");
      /** @type {HTMLElement | null} */ (decision ?? document.getElementById("main"))?.focus();
    }}>Skip to the first decision</a>
    <${Head} town=${town} />
    <${Menu} town=${town} />
    <main id="main" tabindex="-1" class="view view-${view} ${connection.value === "stale" ? "is-stale" : ""}" aria-label=${label}>
      <${StaleBanner} /><${TownProblems} town=${town} />
      ${!isKnown ? html`<${Empty} title="No such view"><p>The address names no view. <a href=${address("needs")}>Needs you</a> is the first one.</p><//>` : Shown ? html`<${Shown} key=${view} town=${town} />` : html`<div class="loading" role="status">Loading …</div>`}
    </main>
    <${Decide} /><${Help} /><${Search} />
    ${pendingKey.value && html`<div class="pending-key" role="status">${pendingKey.value} …</div>`}`;
}

function App() {
  const loggedOut = session.value === undefined || connection.value === "ended";
  return html`<div class="frame">${loggedOut ? html`<${LoggedOut} />` : html`<${Deck} />`}<${Toasts} /></div>`;
}

const root = /** @type {HTMLElement} */ (document.getElementById("deck"));
root.textContent = "";
render(html`<${App} />`, root);
void identify();
void listen();
setTimeout(() => Object.keys(SOURCES).forEach(load), READ_AHEAD_MS);
