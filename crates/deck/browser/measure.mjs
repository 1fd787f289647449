// Measures the page with 200 live runs and 100,000 beads: first answers, event to pixel, CPU of an idle server, growth of a page.
import { readFileSync } from "node:fs";
import { openBrowser, openPage, show } from "./harness.mjs";
import { TestTown } from "./town.mjs";

const BEADS = Number(process.env.DECK_BEADS ?? 100_000);
const RUNS = Number(process.env.DECK_RUNS ?? 200);
const SAMPLES = Number(process.env.DECK_SAMPLES ?? 200);
const CHURN_MINUTES = Number(process.env.DECK_MINUTES ?? 10);
const IDLE_SECONDS = Number(process.env.DECK_IDLE_SECONDS ?? 30);
const TICKS_PER_SECOND = 100;

const town = new TestTown({}, "harbour");
const browser = await openBrowser();

async function post(path, body, method = "POST") {
  const answer = await fetch(`${town.address}${path}`, { method, headers: { "content-type": "application/json" }, body: JSON.stringify(body) });
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`);
  return answer.status === 204 ? null : answer.json();
}

const share = (sorted, part) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))];

function summary(name, samples) {
  const sorted = [...samples].sort((one, other) => one - other);
  console.log(`${name}: p50 ${share(sorted, 0.5).toFixed(0)} ms, p95 ${share(sorted, 0.95).toFixed(0)} ms, most ${sorted.at(-1).toFixed(0)} ms (${sorted.length})`);
}

/** The processor time of the server so far, in seconds. */
function serverSeconds() {
  const fields = readFileSync(`/proc/${town.server.pid}/stat`, "utf8").split(") ")[1].split(" ");
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
}

/** What the page keeps after a collection of garbage. */
async function heapOf(page) {
  const session = await page.context().newCDPSession(page);
  await session.send("HeapProfiler.collectGarbage");
  const { usedSize } = await session.send("Runtime.getHeapUsage");
  const nodes = await page.evaluate(() => document.getElementsByTagName("*").length);
  await session.detach();
  return { usedSize, nodes };
}

/** Changes the state of one run and waits until its row shows it. */
async function toPixel(page, { id, agent }, status) {
  const word = status === "blocked" ? "Blocked" : "Running";
  const seen = page.evaluate(({ agent, word }) => new Promise((resolve) => {
    const look = () => {
      for (const row of document.querySelectorAll(".run-row")) {
        if (row.textContent.includes(agent) && row.textContent.includes(word)) {
          // The next frame has it.
          requestAnimationFrame(() => resolve(Date.now()));
          return true;
        }
      }
      return false;
    };
    if (look()) return;
    const observer = new MutationObserver(() => look() && observer.disconnect());
    observer.observe(document.body, { subtree: true, childList: true, characterData: true });
  }), { agent, word });
  await post(`/work/${id}`, { status }, "PATCH");
  // The event is in the log at the latest when the request is answered.
  const written = Date.now();
  return Math.max(0, await seen - written);
}

try {
  await town.serve();
  const began = Date.now();
  const project = await post("/projects", { name: "Harbour" });
  for (let at = 0; at < BEADS; at += 1000) {
    const items = Array.from({ length: Math.min(1000, BEADS - at) }, (_, index) => ({
      type: "chore", description: `Bead number ${at + index} of the harbour`, priority: 1 + (index % 5), project_id: project.id,
    }));
    await post("/work", items);
  }
  const taken = [];
  for (let at = 0; at < RUNS; at += 1) {
    const agent = `agent-${String(at).padStart(4, "0")}`;
    const next = await post("/work/next", { agent, lease_s: 3600 });
    taken.push({ id: next.item.id, agent });
  }
  console.log(`${BEADS} beads and ${RUNS} live runs, made in ${((Date.now() - began) / 1000).toFixed(0)} s`);

  const page = await openPage(browser, town);
  const link = page.url().replace(/\/deck\/.*/, "");
  for (const path of ["town", "inbox", "board?limit=50", "runs?limit=100", "merge-requests?state=open", "reviews", "convoys", "cost?by=bead", "burn", "search?q=99999"]) {
    const times = await page.evaluate(async (url) => {
      const taken = [];
      for (let at = 0; at < 10; at += 1) {
        const start = performance.now();
        await (await fetch(url)).text();
        taken.push(performance.now() - start);
      }
      return taken;
    }, `${link}/api/v1/${path}`);
    summary(`answer of ${path}`, times);
  }

  await show(page, "#/runs", ".run-row a");
  // The first rows of the list are in the page.
  const visible = await page.$$eval(".run-row", (rows) => rows.map((row) => row.textContent).join("\n"));
  const shown = taken.filter(({ agent }) => visible.includes(agent));
  if (shown.length === 0) throw new Error(`no run is visible: ${visible.slice(0, 200)}`);
  const latencies = [];
  for (let at = 0; at < SAMPLES; at += 1) {
    latencies.push(await toPixel(page, shown[at % shown.length], Math.floor(at / shown.length) % 2 === 0 ? "blocked" : "in_progress"));
  }
  summary("event to pixel", latencies);

  const before = serverSeconds();
  await new Promise((resume) => setTimeout(resume, IDLE_SECONDS * 1000));
  console.log(`server with one open page and no events: ${((100 * (serverSeconds() - before)) / IDLE_SECONDS).toFixed(3)} % of a core`);

  let events = 0;
  const churn = async (round) => {
    for (const { id } of taken.slice(0, 40)) {
      await post(`/work/${id}`, { status: "blocked" }, "PATCH");
      await post(`/work/${id}`, { status: "in_progress" }, "PATCH");
      events += 2;
    }
    await show(page, ["#/board", "#/needs", "#/queue", "#/money", "#/runs"][round % 5], ".view h1");
  };
  // Each view once, so that what is kept for all of them is there before the first look.
  for (let round = 0; round < 5; round += 1) await churn(round);
  await show(page, "#/runs", ".run-row a");
  const first = await heapOf(page);
  const end = Date.now() + CHURN_MINUTES * 60_000;
  events = 0;
  for (let round = 0; Date.now() < end; round += 1) await churn(round);
  await show(page, "#/runs", ".run-row a");
  const last = await heapOf(page);
  console.log(`page after ${CHURN_MINUTES} minutes and ${events} events: heap ${(first.usedSize / 1e6).toFixed(2)} MB to ${(last.usedSize / 1e6).toFixed(2)} MB, ${first.nodes} to ${last.nodes} elements`);
} finally {
  await browser.close();
  await town.end();
}
