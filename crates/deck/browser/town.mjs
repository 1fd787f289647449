// A town for the browser: real repositories, and a real daemon with its page; only the agents follow scripts.
import { spawn, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

const PROGRAM = process.env.GT_BINARY;
const POLL_MS = 100;
/** The longest wait for a condition. Only a test that fails waits so long; a busy machine must not end one. */
export const PATIENCE_MS = 120_000;

/** Waits until a condition holds. */
export async function until(what, condition, timeoutMs = PATIENCE_MS) {
  const end = Date.now() + timeoutMs;
  for (;;) {
    const found = await condition();
    if (found) return found;
    if (Date.now() > end) throw new Error(`this took too long: ${what}`);
    await new Promise((resume) => setTimeout(resume, POLL_MS));
  }
}

/** A port that is free now. */
export function freePort() {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.on("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}

/** The description of a bead whose agent does this. */
export function script(words, lines) {
  return `${words}\n\n\`\`\`gt-script\n${lines.join("\n")}\n\`\`\`\n`;
}

export class TestTown {
  /** Makes a town with the rigs that are named, each with a repository of its own. */
  constructor(rigs, name = "harbour") {
    this.directory = mkdtempSync(join(tmpdir(), "gt-deck-"));
    this.root = join(this.directory, name);
    const home = join(this.directory, "home");
    const bin = join(this.directory, "bin");
    mkdirSync(home);
    mkdirSync(bin);
    this.environment = {
      PATH: `${bin}:${process.env.PATH}`, HOME: home, LANG: "C.UTF-8", TZ: "UTC", USER: "ann", GT_ACTOR: "ann", TMUX_TMPDIR: this.directory,
      GIT_AUTHOR_NAME: "Ann", GIT_AUTHOR_EMAIL: "ann@localhost", GIT_COMMITTER_NAME: "Ann", GIT_COMMITTER_EMAIL: "ann@localhost",
      GIT_CONFIG_NOSYSTEM: "1",
    };
    for (const program of ["gt", "bd"]) spawnSync("ln", ["-s", PROGRAM, join(bin, program)]);
    this.run("gt", ["install", this.root], { cwd: this.directory });
    // The scripts run in terminals, as agents do that people watch.
    mkdirSync(join(this.root, ".gt", "runtimes"), { recursive: true });
    writeFileSync(join(this.root, ".gt", "runtimes", "scripted.toml"), `command = "sh -c 'exec gt scripted' {prompt}"\nprompt = "argument"\ninteractive = true\n`);
    this.gt("config", "set", "worker.runtime", "scripted");
    for (const [rig, files] of Object.entries(rigs)) this.addRig(rig, files);
  }

  addRig(rig, files) {
    const repository = join(this.directory, `${rig}.git`);
    const work = join(this.directory, `${rig}-work`);
    mkdirSync(work);
    const git = (...arguments_) => this.run("git", arguments_, { cwd: work });
    git("init", "--quiet", "--initial-branch=main");
    for (const [path, text] of Object.entries(files)) {
      mkdirSync(join(work, path, ".."), { recursive: true });
      writeFileSync(join(work, path), text);
    }
    git("add", ".");
    git("commit", "--quiet", "--message", "Begin");
    git("clone", "--quiet", "--bare", work, repository);
    this.gt("rig", "add", rig, repository, "--prefix", rig);
  }

  run(program, arguments_, options = {}) {
    const path = program === "git" ? "git" : join(this.directory, "bin", program);
    const done = spawnSync(path, arguments_, { cwd: this.root, env: this.environment, encoding: "utf8", ...options });
    if (done.status !== 0 && !options.mayFail) {
      throw new Error(`${program} ${arguments_.join(" ")} ended with ${done.status}: ${done.stderr}${done.stdout}`);
    }
    return done.stdout;
  }

  gt(...arguments_) {
    return this.run("gt", arguments_);
  }

  bd(...arguments_) {
    return this.run("bd", arguments_);
  }

  json(...arguments_) {
    return JSON.parse(this.gt(...arguments_, "--json"));
  }

  /** The runs of a bead, or of all. */
  runs(...bead) {
    const found = this.json("run", "list", ...bead);
    return Array.isArray(found) ? found : found.runs;
  }

  /** Makes a bead. */
  bead(id, title, description, ...more) {
    this.bd("create", title, "--id", id, "--description", description, ...more);
    return id;
  }

  /** Starts the daemon, and waits until the page that it serves answers. */
  async up() {
    this.gt("up");
    const link = await until("the daemon to serve the page", () => {
      const printed = this.run("gt", ["deck", "--no-open", "--json"], { mayFail: true });
      return printed && JSON.parse(printed).url;
    });
    this.address = new URL(link).origin;
    await until("the page to answer", async () => {
      try {
        return (await fetch(`${this.address}/health`)).status < 500;
      } catch {
        return false;
      }
    });
    this.daemon = this.json("daemon", "status").pid;
  }

  /** Kills the daemon at once, as a crash would. */
  async killDaemon() {
    const { daemon } = this;
    process.kill(daemon, "SIGKILL");
    await until("the daemon to end", () => {
      try {
        process.kill(daemon, 0);
        return false;
      } catch {
        return true;
      }
    });
  }

  /** Starts `gt serve`, and waits until it answers. */
  async serve() {
    const port = await freePort();
    this.server = spawn(join(this.directory, "bin", "gt"), ["serve", "--bind", `127.0.0.1:${port}`, "--log", "off"], {
      cwd: this.root, env: this.environment, stdio: ["ignore", "ignore", "inherit"],
    });
    this.address = `http://127.0.0.1:${port}`;
    await until("the server to answer", async () => {
      try {
        return (await fetch(`${this.address}/health`)).ok;
      } catch {
        return false;
      }
    });
  }

  /** Kills `gt serve` at once. */
  async killServer() {
    const ended = new Promise((resume) => this.server.once("exit", resume));
    this.server.kill("SIGKILL");
    await ended;
  }

  /** A link that logs a browser in, once. */
  loginLink(...more) {
    return this.json("deck", "--no-open", "--url", `${this.address}/deck/`, ...more).url;
  }

  /** Ends everything that was started, and removes the directory. */
  async end() {
    // A process that a failed test has stopped cannot end.
    if (this.daemon) try {
      process.kill(this.daemon, "SIGCONT");
    } catch {
      // It is gone.
    }
    if (this.server && this.server.exitCode === null && this.server.signalCode === null) await this.killServer();
    this.run("gt", ["down"], { mayFail: true });
    const live = JSON.parse(this.run("gt", ["run", "list", "--json"], { mayFail: true }) || "[]");
    const runs = (Array.isArray(live) ? live : live.runs ?? []).map((run) => run.id);
    if (runs.length > 0) this.run("gt", ["run", "cancel", ...runs], { mayFail: true });
    if (process.env.GT_DECK_KEEP) console.log(`kept: ${this.root}`);
    else rmSync(this.directory, { recursive: true, force: true, maxRetries: 5 });
  }
}

const SESSION = `use std::time::Duration;

/// How long a session lasts.
const SESSION_HOURS: u64 = 12;

pub struct Session {
    user: String,
    expires_in: Duration,
}

impl Session {
    pub fn new(user: &str) -> Self {
        Self { user: user.to_owned(), expires_in: Duration::from_secs(SESSION_HOURS * 3600) }
    }

    pub fn user(&self) -> &str {
        &self.user
    }
}
`;

const CHANGED_SESSION = `use std::time::{Duration, Instant};

/// How long a session lasts without a request.
const IDLE_MINUTES: u64 = 30;

pub struct Session {
    user: String,
    last_seen: Instant,
}

impl Session {
    pub fn new(user: &str) -> Self {
        Self { user: user.to_owned(), last_seen: Instant::now() }
    }

    pub fn user(&self) -> &str {
        &self.user
    }

    /// Notes a request.
    pub fn touch(&mut self) {
        self.last_seen = Instant::now();
    }

    pub fn is_expired(&self) -> bool {
        self.last_seen.elapsed() > Duration::from_secs(IDLE_MINUTES * 60)
    }
}
`;

const line = (text) => text.replaceAll("\\", "\\\\").replaceAll("\n", "\\n");

/** A town in the middle of a day: live runs, a question, a review, a failed check, work that waits, and work that landed. */
export async function townAtWork() {
  const town = new TestTown({
    api: { "README.md": "The part of the shop that people do not see.\n", "src/session.rs": SESSION, "src/cart.rs": "pub struct Cart;\n" },
    web: { "README.md": "The part of the shop that people see.\n", "src/menu.txt": "Home\nShop\n" },
  }, "harbour");
  for (const rig of ["api", "web"]) {
    town.gt("rig", "check", "add", rig, "whole", "! grep -rns BROKEN src", "--timeout", "1m");
    town.gt("config", "set", `rig.${rig}.max_polecats`, "4");
  }
  town.gt("config", "set", "scheduler.max_polecats", "8");
  town.gt("config", "set", "mq.repairs", "0");
  town.gt("config", "set", "budget.cost_per_day", "40");
  town.gt("config", "set", "budget.tokens_per_day", "4000000");
  const usage = (tokens, cost) => [`say tokens used: ${tokens}`, `say cost: $${cost}`];
  const lands = (title, path, tokens, cost) => script(title, ["say Reading the code", ...usage(tokens, cost), `edit ${path} ${title}`, `commit ${title}`, "done"]);
  const works = (words, tokens, cost) => script(words, [
    "say \u001b[1mPlan\u001b[0m", `say 1. read the code  2. write tests  3. change ${words.toLowerCase()}`, ...usage(tokens, cost),
    "say \u001b[36m$ cargo test\u001b[0m", "say running 42 tests", "say test session::expires ... \u001b[32mok\u001b[0m", "say test cart::adds_twice ... \u001b[31mFAILED\u001b[0m", "say \u001b[33mLooking at the failure\u001b[0m",
    "hang",
  ]);
  town.bead("api-schema", "Agree on the schema", lands("Agree on the schema", "src/schema.sql", 182000, "1.42"), "--priority", "1");
  town.bead("web-theme", "Choose colours for the shop", lands("Choose colours", "src/theme.css", 96000, "0.71"));
  town.bead("api-session", "Let sessions end after 30 idle minutes", script("Sessions live for twelve hours, also on shared machines. End them after 30 minutes without a request.", [
    "say Reading src/session.rs", ...usage(241000, "2.18"), `edit src/session.rs ${line(CHANGED_SESSION)}`, "append README.md Sessions end after 30 idle minutes.", "commit End sessions after 30 idle minutes", "done",
  ]), "--priority", "1");
  town.bd("update", "api-session", "--set-metadata", "review=required");
  town.bead("web-menu", "Show the cart in the menu", script("Add the cart to the menu.", ["say Reading", ...usage(88000, "0.64"), "append src/menu.txt BROKEN cart", "commit Show the cart", "done"]));
  town.bead("api-search", "Serve search results in pages", works("Search", 312000, "2.94"), "--priority", "1");
  town.bead("api-cart", "Keep the cart for a week", works("Cart", 127000, "1.06"));
  town.bead("web-search", "Show search results", works("Search", 64000, "0.48"));
  town.bead("web-orders", "List past orders", works("Orders", 205000, "1.77"));
  town.bead("web-checkout", "Check out in one page", works("Checkout", 1000, "0.01"), "--deps", "api-cart,web-search");
  town.bead("web-release", "Release the shop", works("Release", 1000, "0.01"), "--deps", "web-checkout,web-orders,api-search");
  town.bead("api-docs", "Describe the API for partners", works("Docs", 1000, "0.01"), "--priority", "3");
  town.bead("api-metrics", "Count requests by route", works("Metrics", 1000, "0.01"), "--priority", "4");
  const convoy = town.json("convoy", "create", "Open the shop", "api-schema", "web-theme", "api-session", "web-menu", "api-search", "api-cart", "web-search", "web-orders", "web-checkout", "web-release");
  town.convoy = convoy.id ?? convoy.convoy_id ?? convoy.convoy;
  await town.up();
  return town;
}

/** Waits until the town of `townAtWork` stands as its pictures show it. */
export async function untilItWorks(town) {
  await until("reviews, failures and live runs", () => {
    const codes = new Set(town.json("inbox").map((item) => item.code));
    return codes.has("review") && codes.has("check-failed");
  });
  await until("four live runs", () => town.runs().filter((run) => run.state === "running").length >= 4);
  town.gt("escalate", "api-cart", "The old cart rows have no owner. Delete them, or give them to the shop's own account?", "--severity", "high");
}
