// Measures the page with 200 live runs and 100,000 beads: first answers, event to pixel, CPU of an idle server, growth of a page.
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { openBrowser, openPage, show } from "./harness.mjs";
import { TestTown } from "./town.mjs";

const BEADS = Number(process.env.DECK_BEADS ?? 100_000);
const RUNS = Number(process.env.DECK_RUNS ?? 200);
const SAMPLES = Number(process.env.DECK_SAMPLES ?? 200);
const CHURN_MINUTES = Number(process.env.DECK_MINUTES ?? 10);
const IDLE_SECONDS = Number(process.env.DECK_IDLE_SECONDS ?? 30);
const TICKS_PER_SECOND = 100;
/** How long the page is left alone before answers and the idle server are measured. */
const QUIET_MS = 5000;
/** The page works so long before its first look, so that the browser has compiled what runs often. */
const WARM_UP_MS = 60_000;
/** Collections of garbage before a look: some things are free only when others are gone. */
const COLLECTIONS = 4;
/** How often each answer and each query is timed. */
const ROUNDS = 10;
const WORK = "ephemeral = 0 AND pinned = 0 AND issue_type NOT IN ('convoy', 'epic', 'molecule', 'message', 'agent', 'rig')";
const LANE = (condition) => [`SELECT * FROM beads WHERE ${condition} AND ${WORK} ORDER BY priority, created_at DESC, id LIMIT 50`, `SELECT COUNT(*) FROM beads WHERE ${condition} AND ${WORK}`];
const LIVE = "state IN ('starting', 'running', 'blocked')";
const OPEN = "state NOT IN ('landed', 'cancelled', 'superseded')";
const READY = "status = 'open' AND open_blockers = 0";
const BLOCKED = "open_blockers > 0 AND status <> 'closed' AND status NOT IN ('in_progress', 'hooked', 'pinned')";
const LIVE_RUNS = `SELECT r.*, b.* FROM runs r JOIN beads b ON b.id = r.bead WHERE r.${LIVE} ORDER BY r.created_at DESC, r.bead, r.epoch LIMIT`;
const INBOX = ["SELECT * FROM messages WHERE kind = 'escalation' AND seen_at IS NULL", `SELECT * FROM merge_requests WHERE ${OPEN}`, "SELECT id FROM beads WHERE outcome = 'failed'", "SELECT * FROM parks", `SELECT * FROM runs WHERE ${LIVE}`];
/** The documents of the views, each with bare queries for the rows that it shows. */
const ANSWERS = {
  town: [...INBOX, LANE(READY)[1], LANE(BLOCKED)[1]],
  inbox: INBOX,
  "board?limit=50": [...LANE(READY), ...LANE(BLOCKED), ...LANE("status = 'closed'"), `${LIVE_RUNS} 50`, `SELECT COUNT(*) FROM runs WHERE ${LIVE}`, `SELECT * FROM merge_requests WHERE ${OPEN}`],
  "runs?limit=100": [`${LIVE_RUNS} 100`, `SELECT COUNT(*) FROM runs WHERE ${LIVE}`],
  "merge-requests?state=open": [`SELECT * FROM merge_requests WHERE ${OPEN}`],
  reviews: ["SELECT * FROM merge_requests WHERE state = 'review'"],
  convoys: ["SELECT * FROM beads WHERE issue_type = 'convoy' AND status = 'open' LIMIT 100"],
  "cost?by=bead": ["SELECT bead, SUM(input + output), SUM(cost) FROM spending GROUP BY bead"],
  burn: ["SELECT at / 3600000000000, SUM(input + output), SUM(cost) FROM spending GROUP BY 1"],
  "search?q=99999": ["SELECT id, title FROM beads WHERE lower(id) LIKE '%99999%' OR lower(title) LIKE '%99999%' ORDER BY priority, created_at DESC, id LIMIT 20"],
};
/** Prints how long queries take in the middle, in milliseconds, over an open connection. */
const BARE = `
import json, sqlite3, sys, time
db = sqlite3.connect("file:" + sys.argv[1] + "?mode=ro", uri=True)
for queries in json.loads(sys.argv[2]):
    times = []
    for _ in range(${ROUNDS}):
        start = time.perf_counter()
        for query in queries:
            db.execute(query).fetchall()
        times.append(1000 * (time.perf_counter() - start))
    print(sorted(times)[len(times) // 2])
`;

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

/** The times of the bare queries of all answers. */
function bareTimes() {
  const database = join(town.root, ".gt", "gt.db");
  const { status, stdout, stderr } = spawnSync("python3", ["-c", BARE, database, JSON.stringify(Object.values(ANSWERS))], { encoding: "utf8" });
  if (status !== 0) throw new Error(stderr);
  return stdout.trim().split("\n").map(Number);
}

/** The times of an answer in the page. */
function answerTimes(page, url) {
  return page.evaluate(async ({ address, rounds }) => {
    const taken = [];
    for (let at = 0; at < rounds; at += 1) {
      const start = performance.now();
      await (await fetch(address)).text();
      taken.push(performance.now() - start);
    }
    return taken;
  }, { address: url, rounds: ROUNDS });
}

/** The processor time of the server so far, in seconds. */
function serverSeconds() {
  const fields = readFileSync(`/proc/${town.server.pid}/stat`, "utf8").split(") ")[1].split(" ");
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
}

/**
 * What the page keeps after a collection of garbage, in bytes: the machine code that the browser makes of what runs often, and all
 * else. What belongs to the browser, such as its record of requests for developers, is left out.
 */
async function heapOf(page) {
  const session = await page.context().newCDPSession(page);
  const parts = [];
  session.on("HeapProfiler.addHeapSnapshotChunk", ({ chunk }) => parts.push(chunk));
  for (let round = 0; round < COLLECTIONS; round += 1) await session.send("HeapProfiler.collectGarbage");
  await session.send("HeapProfiler.takeHeapSnapshot", { reportProgress: false });
  await session.detach();
  const { snapshot, nodes, strings } = JSON.parse(parts.join(""));
  const { node_fields: fields, node_types: [types] } = snapshot.meta;
  const [type, name, size] = ["type", "name", "self_size"].map((field) => fields.indexOf(field));
  const found = { objects: 0, code: 0, elements: await page.evaluate(() => document.getElementsByTagName("*").length) };
  for (let at = 0; at < nodes.length; at += fields.length) {
    const kind = types[nodes[at + type]];
    if (kind === "native" && !strings[nodes[at + name]].startsWith("system")) continue;
    found[kind === "code" ? "code" : "objects"] += nodes[at + size];
  }
  return found;
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
  // The page reads its other views ahead; what is measured beside that is too slow.
  await new Promise((resume) => setTimeout(resume, QUIET_MS));
  await answerTimes(page, `${link}/health`);
  const empty = share((await answerTimes(page, `${link}/health`)).sort((one, other) => one - other), 0.5);
  const bare = bareTimes();
  for (const [at, path] of Object.keys(ANSWERS).entries()) {
    const times = await answerTimes(page, `${link}/api/v1/${path}`);
    summary(`answer of ${path}`, times);
    const middle = share(times.sort((one, other) => one - other), 0.5);
    console.log(`  bare queries ${bare[at].toFixed(2)} ms, an answer without any ${empty.toFixed(2)} ms: ratio ${(middle / (bare[at] + empty)).toFixed(2)}`);
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

  // What the last event led to is over.
  await new Promise((resume) => setTimeout(resume, QUIET_MS));
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
  // Each view, so that what is kept for all of them is there before the first look.
  const warm = Date.now() + WARM_UP_MS;
  for (let round = 0; round < 5 || Date.now() < warm; round += 1) await churn(round);
  await show(page, "#/runs", ".run-row a");
  const first = await heapOf(page);
  const end = Date.now() + CHURN_MINUTES * 60_000;
  events = 0;
  for (let round = 0; Date.now() < end; round += 1) await churn(round);
  await show(page, "#/runs", ".run-row a");
  const last = await heapOf(page);
  const megabytes = (bytes) => (bytes / 1e6).toFixed(2);
  const [small, after] = [first, last].map(({ objects, code }) => objects + code);
  console.log(`page after ${CHURN_MINUTES} minutes and ${events} events: ${megabytes(small)} MB to ${megabytes(after)} MB, ${((100 * after) / small - 100).toFixed(1)} %`);
  console.log(`  compiled code ${megabytes(first.code)} to ${megabytes(last.code)} MB, all else ${megabytes(first.objects)} to ${megabytes(last.objects)} MB, ${first.elements} to ${last.elements} elements`);
} finally {
  await browser.close();
  await town.end();
}
