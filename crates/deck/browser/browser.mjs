// Tests of the page in Chromium, with a town at work. Each case says what it proves; the first that fails ends the run.
import { readFileSync, writeFileSync } from "node:fs";
import { createServer, request as forward } from "node:http";
import { join } from "node:path";
import { assert, axeSource, openBrowser, openPage, press, says, show, watch } from "./harness.mjs";
import { freePort, script, townAtWork, until, untilItWorks } from "./town.mjs";

/** The most bytes of the first load, compressed as they are sent. */
const FIRST_LOAD_BYTES_MAX = 60_000;
const VIEWS = { needs: ["g", "n"], board: ["g", "b"], runs: ["g", "r"], queue: ["g", "q"], review: ["g", "v"], graph: ["g", "t"], money: ["g", "m"], wall: ["g", "w"] };
/** What each view shows when its data is there. */
const SIGNS = {
  needs: ".card", board: ".board-card", runs: ".run-row a", queue: ".requests .two-lines", review: ".card", graph: ".node, .convoys li", money: ".figure", wall: ".tile",
};
const HOSTILE_TITLE = "<img src=x onerror=\"window.hacked=1\"><script>window.hacked=2</script> \u202Etxet\u202C {{7*7}} ' --";
const HOSTILE_LOG = "</pre><script>window.hacked=3</script><iframe srcdoc='<script>parent.hacked=4</script>'>";

const town = await townAtWork();
town.bead("web-evil", HOSTILE_TITLE, script("<svg onload=window.hacked=5>", [`say ${HOSTILE_LOG}`, "say \u001b]0;owned\u0007\u001b[2J\u001b]8;;javascript:alert(1)\u0007link\u001b]8;;\u0007", "hang"]));
town.bead("api-typist", "Ask for a line", script("Ask", ["say Which port?", "read answer.txt", "hang"]));
town.gt("config", "set", "scheduler.max_polecats", "10");
town.gt("config", "set", "rig.api.max_polecats", "6");
town.gt("config", "set", "rig.web.max_polecats", "6");
town.gt("sling", "web-evil");
town.gt("sling", "api-typist");

const browser = await openBrowser();
const pages = [];
let failed = false;

async function opened(options) {
  const page = await openPage(browser, town, options);
  pages.push(page);
  return page;
}

/** Another tab of the same browser. */
async function beside(page, address) {
  const tab = await page.context().newPage();
  watch(tab);
  pages.push(tab);
  await tab.goto(`${town.address}/deck/${address}`);
  await tab.locator(".view h1").waitFor();
  return tab;
}

const text = (page, selector) => page.locator(selector).first().innerText();
const waits = (page, words, options) => page.getByText(words, options).first().waitFor();

/** Chooses a card, and waits until keys decide it. */
async function choose(page, words) {
  const card = page.locator(".card").filter({ hasText: words });
  await card.locator("a").click();
  await page.locator(".card.here").filter({ hasText: words }).waitFor();
  return card;
}

/** Replies to a question. */
async function answer(page, question, words) {
  const card = await choose(page, question);
  await press(page, "r");
  await page.locator("dialog textarea").fill(words);
  assert((await text(page, "dialog .command")).includes("gt mail reply"), "the command is shown");
  await press(page, "Control+Enter");
  await says(page, "is sent");
  await card.waitFor({ state: "detached" });
}

/** Presses a key, and confirms what it asks. */
async function decide(page, key, done) {
  await press(page, key);
  await page.waitForSelector("dialog");
  await press(page, "Enter");
  await says(page, done);
  await page.locator("dialog").waitFor({ state: "detached" });
}

/** Waits until the queue shows that this has landed. */
async function landed(page, ...titles) {
  await show(page, "#/queue");
  for (const title of titles) await page.locator(".receipts li").filter({ hasText: title }).waitFor();
}

/** The files that a browser needs for the first view: the page, and everything that its modules import at once. */
function firstFiles() {
  const found = new Set(["index.html", "icon.svg", "deck.css"]);
  const visit = (path) => {
    if (found.has(path)) return;
    found.add(path);
    const source = readFileSync(join("crates/deck/page", path), "utf8");
    for (const [, name] of source.matchAll(/(?:^import\s*|\bfrom\s*)"(\.[^"]+)"/gm)) visit(join(path, "..", name));
  };
  visit("app.js");
  return [...found];
}

const CASES = {
  async "the first load is small and asks no other host"() {
    const context = await browser.newContext();
    const page = await context.newPage();
    watch(page);
    pages.push(page);
    const sizes = new Map();
    page.on("requestfinished", async (request) => {
      const { responseBodySize } = await request.sizes().catch(() => ({ responseBodySize: 0 }));
      sizes.set(new URL(request.url()).pathname.replace("/deck/", "") || "index.html", responseBodySize);
    });
    await page.goto(town.loginLink());
    await page.waitForSelector(".card");
    const files = firstFiles();
    await until("all files of the first load", () => files.every((file) => sizes.has(file)));
    const bytes = files.reduce((sum, file) => sum + sizes.get(file), 0);
    console.log(`  ${files.length} files, ${bytes} bytes`);
    assert(bytes > 10_000 && bytes < FIRST_LOAD_BYTES_MAX, `the first load has ${bytes} bytes`);
    await context.close();
  },

  async "every view is reached by its keys and by its address"(page) {
    for (const [view, keys] of Object.entries(VIEWS)) {
      await press(page, ...keys);
      await page.waitForSelector(`.view-${view} ${SIGNS[view]}`);
      assert(new URL(page.url()).hash.startsWith(`#/${view}`), `the address of ${view} is ${page.url()}`);
      assert((await page.title()).length > 5, "the title names the view");
    }
    const link = page.url().replace(/#.*/, "#/board?rig=api");
    await page.goto(link);
    await page.waitForSelector(".board-card");
    assert(!(await text(page, ".board")).includes("web-release"), "the filter of the address counts");
    await show(page, "#/nothing");
    await waits(page, "No such view");
  },

  async "the key after the one that opens a dialog belongs to the dialog"(page) {
    await show(page, "#/board", ".board-card");
    for (const [key, dialog] of [["/", "dialog.search"], ["?", "dialog.help"]]) {
      // Within one task, as keys arrive that were pressed before the page was drawn.
      const focused = await page.evaluate(async ([pressed, wanted]) => {
        document.body.dispatchEvent(new KeyboardEvent("keydown", { key: pressed, bubbles: true }));
        await new Promise((resolve) => queueMicrotask(() => queueMicrotask(resolve)));
        return Boolean(document.activeElement?.closest(wanted));
      }, [key, dialog]);
      assert(focused, `${dialog} has the keyboard`);
      await press(page, "Escape");
      await page.locator(dialog).waitFor({ state: "detached" });
    }
  },

  async "help lists the keys, and search finds a bead"(page) {
    await show(page, "#/board", ".board-card");
    await press(page, "?");
    await waits(page, "Lane to the right");
    await press(page, "Escape");
    await press(page, "/");
    await page.keyboard.type("release");
    await page.locator("[role=option][aria-selected=true]").filter({ hasText: "web-release" }).waitFor();
    await press(page, "Enter");
    await page.waitForSelector(".view-bead");
    await waits(page, "Why it waits");
    await show(page, "#/board", ".board-card");
    await press(page, "/");
    await page.keyboard.type("agree on");
    await page.locator("[role=option][aria-selected=true]").filter({ hasText: "api-schema" }).waitFor();
    await press(page, "Escape");
    await page.locator("dialog").waitFor({ state: "detached" });
    // Enter before the answer chooses the first result of the words that were typed, not of those before them.
    await show(page, "#/board", ".board-card");
    await press(page, "/");
    await page.keyboard.type("metrics");
    await press(page, "Enter");
    await page.locator(".view-bead h2").filter({ hasText: "Count requests by route" }).waitFor();
    await press(page, "T");
    assert(await page.evaluate(() => document.documentElement.dataset.theme) === "light", "the theme changes");
    await press(page, "T", "T");
  },

  async "titles and logs with markup stay text"(page) {
    for (const address of ["#/board", "#/runs", "#/bead/web-evil", `#/runs/${encodeURIComponent("web-evil#1")}`, `#/runs/${encodeURIComponent("web-evil#1")}/terminal`, "#/wall"]) {
      await show(page, address);
      await waits(page, /onerror="window.hacked=1"|window.hacked=3/);
    }
    await show(page, `#/runs/${encodeURIComponent("web-evil#1")}`);
    await waits(page, "</pre><script>window.hacked=3");
    assert(await page.evaluate(() => window.hacked) === undefined, "a title was run as a program");
    assert(await page.locator("main img, main iframe, main script").count() === 0, "a title has become markup");
  },

  async "a question is answered with two keys and words"(page) {
    await show(page, "#/needs", ".card");
    await answer(page, "old cart rows", "Give them to the shop");
  },

  async "a bead is edited from its card"(page) {
    await show(page, "#/needs/check-failed%3Aweb-menu%401", ".detail");
    await press(page, "e");
    await page.locator("dialog [name=title]").fill("Show the basket in the menu");
    const command = await text(page, "dialog .command code");
    assert(command === "bd update web-menu --title 'Show the basket in the menu'", `the command changes what was edited: ${command}`);
    await press(page, "Enter");
    await says(page, "is changed");
    await waits(page, "Show the basket in the menu");
  },

  async "a bead offers what can be done with it, and says where it stands"(page) {
    const offered = { "web-release": ["Blocked", "Retry now", "Cancel"], "api-docs": ["Sling"], "web-menu": ["Failed", "Retry now", "Cancel"], "api-session": ["Review", "Cancel"], "api-schema": ["Closed"] };
    for (const [bead, words] of Object.entries(offered)) {
      await show(page, `#/bead/${bead}`);
      await page.locator(".detail-top .id").filter({ hasText: bead }).waitFor();
      const said = `${await text(page, ".detail-top")} ${await text(page, ".decisions")}`;
      for (const word of ["Blocked", "Failed", "Review", "Closed", "Sling", "Retry now", "Cancel"]) {
        assert(said.includes(word) === words.includes(word), `${bead} ${words.includes(word) ? "lacks" : "has"} ${word}: ${said}`);
      }
    }
    await show(page, `#/graph/${town.convoy}`, ".node");
    await page.locator(".node").filter({ hasText: "api-session · review" }).waitFor();
    await show(page, "#/needs/review%3Aapi-session%401", ".detail");
    await press(page, "d");
    await page.locator("dialog textarea").fill("--not yet");
    assert((await text(page, "dialog .command code")) === "gt review reject api-session@1 -m='--not yet'", "a text that looks like an option stays a text");
    await press(page, "Escape");
    await page.locator("dialog").waitFor({ state: "detached" });
  },

  async "a key that is held down decides nothing"(page) {
    await show(page, "#/needs/review%3Aapi-session%401", ".detail");
    await page.keyboard.down("a");
    await page.waitForSelector("dialog");
    for (let times = 0; times < 3; times += 1) await page.keyboard.down("a");
    await page.keyboard.up("a");
    await page.keyboard.down("Escape");
    await page.keyboard.up("Escape");
    // A button that Enter presses opens a dialog whose button has the focus.
    await page.locator(".decisions button").filter({ hasText: "Approve" }).focus();
    for (let times = 0; times < 3; times += 1) await page.keyboard.down("Enter");
    await page.keyboard.up("Enter");
    await page.waitForSelector("dialog");
    await press(page, "Escape");
    await page.locator("dialog").waitFor({ state: "detached" });
    assert(town.json("inbox").some((item) => item.key === "review:api-session@1"), "a held key has approved the work");
  },

  async "a card that vanishes leaves nothing selected"(page) {
    town.gt("escalate", "api-search", "May I drop the old index?");
    town.gt("escalate", "api-search", "May I add a new one?");
    await show(page, "#/needs");
    const card = await choose(page, "drop the old index");
    const key = decodeURIComponent(new URL(page.url()).hash.split("/")[2]);
    town.run("gt", ["--actor", "bob", "mail", "read", key.split(":")[1]]);
    await card.waitFor({ state: "detached" });
    await page.locator(".gone p").filter({ hasText: /needs you no more: .* by bob/ }).waitFor();
    assert(await page.locator(".card.here").count() === 0, "no other card is selected");
    await press(page, "r");
    await says(page, "Nothing is selected");
    assert(await page.locator("dialog").count() === 0, "no other card is decided");
    await press(page, "j");
    await page.locator(".card.here").waitFor();
    // A key without a meaning says so.
    await choose(page, "add a new one");
    await press(page, "d");
    await says(page, "d does nothing here");
    town.gt("mail", "read", decodeURIComponent(new URL(page.url()).hash.split("/")[2]).split(":")[1]);
    await page.locator(".card").filter({ hasText: "add a new one" }).waitFor({ state: "detached" });
  },

  async "a card that comes first does not take the selection"(page) {
    await show(page, "#/board", ".board-card");
    await show(page, "#/needs", ".card.here");
    const before = await text(page, ".card.here .card-top .id");
    town.gt("escalate", "api-search", "Stop everything?", "--severity", "critical");
    const card = page.locator(".card").filter({ hasText: "Stop everything?" });
    await card.waitFor();
    assert(await text(page, ".card.here .card-top .id") === before, "the same card is selected");
    await choose(page, "Stop everything?");
    await page.locator(".decisions button").filter({ hasText: "Mark as read" }).waitFor();
    await press(page, "m");
    await page.waitForSelector("dialog");
    await press(page, "m");
    await card.waitFor({ state: "detached" });
  },

  async "the later of two tabs is told what happened"(page) {
    const other = await opened();
    await show(page, "#/needs/check-failed%3Aweb-menu%401", ".detail");
    await show(other, "#/needs/check-failed%3Aweb-menu%401", ".detail");
    await press(page, "t");
    await page.waitForSelector("dialog");
    await press(other, "x");
    await other.waitForSelector("dialog");
    await press(other, "Enter");
    await says(other, "is cancelled");
    await page.locator(".meanwhile").waitFor();
    await page.locator("dialog .confirm").click();
    await page.locator("dialog .problem").waitFor();
    await press(page, "Escape");
    await page.locator("dialog").waitFor({ state: "detached" });
    await page.locator(".gone p").filter({ hasText: "needs you no more" }).waitFor();
    await other.context().close();
  },

  async "many tabs of one browser read, follow and decide beside each other"() {
    const first = await opened();
    const tabs = [first];
    const addresses = [...Array(4).fill("#/wall"), ...Array(4).fill(`#/runs/${encodeURIComponent("api-typist#1")}`), ...Array(4).fill("#/board")];
    for (const address of addresses) {
      tabs.push(await beside(first, address));
    }
    const last = tabs.at(-1);
    await last.locator(".board-card").first().waitFor();
    // The page that reads the events for all goes away, and another one reads them.
    await show(first, "#/board", ".board-card");
    for (const title of ["Seen in every tab", "Seen in every other tab"]) {
      town.bead(`api-${title.length}`, title, "");
      for (const tab of tabs.slice(-4)) await waits(tab, title);
      await tabs.shift().close();
    }
    await press(last, "P");
    await last.waitForSelector("dialog");
    await press(last, "Escape");
    await last.context().close();
  },

  async "a tab that holds the stream of events and is suspended does not keep the others stale"() {
    const first = await opened();
    const suspended = await first.context().newPage();
    await suspended.goto(`${town.address}/health`);
    // It waits for its turn, gets it when the first tab goes away, and does nothing then.
    await suspended.evaluate(() => void navigator.locks.request("gt-deck / events", () => new Promise(() => {})));
    await first.reload();
    await first.locator(".banner").filter({ hasText: /No answer|Stale since/ }).waitFor();
    await first.locator(".town-state").filter({ hasText: "Working" }).waitFor();
    town.bead("api-awake", "Seen after the other tab slept", "");
    await show(first, "#/board", ".board-card");
    await waits(first, "Seen after the other tab slept");
    await first.context().close();
  },

  async "a review has files, comments and both forms of a change"(page) {
    await show(page, "#/review/api-session%401", ".diff");
    await press(page, "]");
    await waits(page, "IDLE_MINUTES");
    assert(page.url().includes("file=src"), "the file is in the address");
    await page.getByRole("button", { name: "Comment on line 4" }).click();
    await page.locator("dialog textarea").fill("Why 30?");
    await press(page, "Control+Enter");
    await says(page, "is kept");
    await page.locator(".note").filter({ hasText: "Why 30?" }).waitFor();
    await press(page, "[");
    await press(page, "n");
    await page.locator(".note.here").filter({ hasText: "Why 30?" }).waitFor();
    await press(page, "s");
    await page.waitForSelector(".diff-split");
    await press(page, "s");
  },

  async "an approval lands the work"(page) {
    await show(page, "#/needs/review%3Aapi-session%401", ".detail");
    await decide(page, "a", "is approved");
    await landed(page, "Let sessions end");
    const change = town.run("git", ["--git-dir", join(town.directory, "api.git"), "show", "main:src/session.rs"]);
    assert(change.includes("IDLE_MINUTES"), "the work is on the branch of the origin");
  },

  async "the address of a decided card says what became of it"(page) {
    await show(page, "#/needs/review%3Aapi-session%401");
    await page.locator(".split-detail").filter({ hasText: /approved by ann at \d{4}-\d\d-\d\d/ }).waitFor();
    await press(page, "Escape");
  },

  async "an agent that ends without a word is retried from its card"(page) {
    town.bead("api-mute", "Say nothing", script("Nothing", ["say I am done"]));
    town.gt("sling", "api-mute");
    await show(page, "#/needs");
    await choose(page, "Say nothing");
    await page.locator(".decisions button").filter({ hasText: "Retry now" }).waitFor();
    assert(await page.locator(".decisions button").filter({ hasText: "Reply" }).count() === 0, "no worker is there for a reply");
    await press(page, "t");
    await page.waitForSelector("dialog");
    await press(page, "t");
    await says(page, "is scheduled again");
    await until("another run", () => town.runs("api-mute").length >= 2);
    await until("its second question", () => town.json("inbox").some((item) => item.bead === "api-mute"));
    town.bd("close", "api-mute", "--reason", "enough");
  },

  async "a title without a space leaves every view readable"(page) {
    town.bead("api-long", "x".repeat(400), script("Long", ["edit src/long.txt long", "commit Long", "done"]));
    town.bd("update", "api-long", "--set-metadata", "review=required");
    town.gt("sling", "api-long");
    await page.setViewportSize({ width: 1100, height: 800 });
    await show(page, "#/queue");
    await page.locator(".requests tr").filter({ hasText: "xxxxxxxx" }).waitFor();
    for (const address of ["#/queue", "#/board", "#/needs", "#/bead/api-long", "#/review", "#/review/api-long%401"]) {
      await show(page, address);
      await waits(page, /x{20}/);
      const wide = await page.evaluate(() => [...document.querySelectorAll("main, main > *, .scroll-x")].filter((one) => one.scrollWidth > one.clientWidth + 1).map((one) => one.className));
      assert(wide.length === 0, `${address} is too wide: ${wide}`);
    }
    await page.setViewportSize({ width: 1440, height: 900 });
    await show(page, "#/review/api-long%401", ".diff");
    await page.locator(".checks").filter({ hasText: "whole" }).waitFor();
    town.gt("mq", "cancel", "api-long@1");
  },

  async "a login that may only look decides nothing"() {
    town.gt("escalate", "web-search", "May I look at the logs?");
    const page = await opened({ link: town.loginLink("--scopes", "view") });
    await page.waitForSelector(".card");
    await page.locator(".card a").first().click();
    await page.locator(".decisions button").first().waitFor();
    assert(await page.locator(".decisions button:not([disabled])").count() === 0, "every decision is disabled");
    await waits(page, "You may look, not decide");
    await press(page, "e");
    await says(page, "gt deck");
    assert(await page.locator("dialog").count() === 0, "no question is asked");
    await page.context().close();
  },

  async "a dialog and a filter give the focus back"(page) {
    town.gt("escalate", "web-search", "Which page comes first?");
    await show(page, "#/board?rig=api", ".board-card");
    await page.locator(".filter select").first().focus();
    await press(page, "Escape");
    assert(await page.evaluate(() => document.activeElement === document.body), "the filter is left");
    await page.locator(".search-button").focus();
    await press(page, "/");
    await page.waitForSelector("dialog.search");
    await press(page, "Escape");
    await page.locator("dialog.search").waitFor({ state: "detached" });
    await page.waitForFunction(() => document.activeElement?.classList.contains("search-button"));
    // The card that was selected last is decided by now; a page that is loaded anew selects the first one.
    await show(page, "#/needs", ".card");
    await page.reload();
    await page.waitForSelector(".decisions button");
    await press(page, "Tab", "Tab", "Enter");
    assert(await page.evaluate(() => Boolean(document.activeElement?.closest(".decisions"))), "the first decision is two Tabs away");
    await page.evaluate(() => document.activeElement?.blur());
    await show(page, `#/graph/${town.convoy}?at=abc`, ".slider");
    assert(!(await text(page, ".slider output")).includes("NaN"), "a moment that is no number is now");
  },

  async "a day of work is decided on the page alone"(page) {
    const start = join(town.directory, "start");
    const sides = ["left", "right"];
    // An agent reads its mail until the answer is there.
    const ask = join(town.directory, "bin", "ask-for-colour");
    writeFileSync(ask, "#!/bin/sh\ngt escalate 'Which colour?'\nuntil gt mail inbox --mark >src/colour.txt && grep -q Green src/colour.txt; do sleep 0.2; done\n", { mode: 0o755 });
    town.bead("api-colour", "Choose a colour", script("Choose", [`run ${ask}`, "commit Choose a colour", "done"]));
    town.bd("update", "api-colour", "--set-metadata", "review=required");
    for (const side of sides) town.bead(`api-${side}`, `Write on the ${side}`, script("Write", [`wait-for ${start}`, `edit src/clash.txt ${side}`, "commit Write", "done"]));
    town.bead("api-late", "Work after the money is spent", script("Late", ["edit src/late.txt late", "commit Late", "done"]));
    for (const bead of ["api-left", "api-right"]) {
      await show(page, `#/bead/${bead}`, ".decisions button");
      await decide(page, "s", "is scheduled");
    }
    // Both have begun from the same commit before either goes on.
    await until("both sides", () => {
      const running = town.runs().filter((run) => run.state === "running").map((run) => run.bead);
      return sides.every((side) => running.includes(`api-${side}`));
    });
    writeFileSync(start, "");

    // Of two that change the same line, the one that comes second.
    await show(page, "#/needs");
    const conflict = page.locator(".card").filter({ hasText: /Write on the (left|right)/ });
    const side = /Write on the (left|right)/.exec(await conflict.innerText())[1];
    await choose(page, `Write on the ${side}`);
    await page.locator(".detail").filter({ hasText: "src/clash.txt" }).waitFor();
    await decide(page, "x", "is cancelled");
    await conflict.waitFor({ state: "detached" });
    await show(page, `#/bead/api-${side}`, ".decisions button");
    await press(page, "e");
    await page.locator("dialog textarea").fill(script("Write beside it", ["edit src/beside.txt right", "commit Write beside it", "done"]));
    await press(page, "Control+Enter");
    await says(page, "is changed");
    await page.locator("dialog").waitFor({ state: "detached" });
    await decide(page, "s", "is scheduled");

    // A question holds its agent up, and a review the landing.
    await show(page, "#/bead/api-colour", ".decisions button");
    await decide(page, "s", "is scheduled");
    await show(page, "#/needs");
    await answer(page, "Which colour?", "Green");
    await choose(page, "api-colour@1");
    await page.locator(".decisions button").filter({ hasText: "Approve" }).waitFor();
    await decide(page, "a", "is approved");
    await landed(page, "Write on the left", "Write on the right", "Choose a colour");
    const colour = town.run("git", ["--git-dir", join(town.directory, "api.git"), "show", "main:src/colour.txt"]);
    assert(colour.includes("Green"), `the worker has read the answer: ${colour}`);

    // The money of the day is spent.
    town.gt("config", "set", "budget.cost_per_day", "0.01");
    await show(page, "#/bead/api-late", ".decisions button");
    await decide(page, "s", "is scheduled");
    await show(page, "#/needs");
    const budget = await choose(page, "budget.cost_per_day");
    await press(page, "e");
    await page.locator("dialog input").fill("90");
    assert((await text(page, "dialog .command")).includes("gt config set budget.cost_per_day 90"), "the command is shown");
    await press(page, "Control+Enter");
    await says(page, "is changed");
    await budget.waitFor({ state: "detached" });
    await landed(page, "Work after the money");
  },

  async "the transcript is live, and the terminal takes what is typed"(page) {
    await show(page, "#/runs", ".run-row a");
    await press(page, "j", "Enter");
    await page.waitForSelector(".transcript");
    await show(page, `#/runs/${encodeURIComponent("api-typist#1")}`);
    await waits(page, "Which port?");
    // The terminal has the keyboard at once: nothing that is typed there is a key of the page.
    await press(page, "t");
    await page.locator(".terminal").waitFor();
    await page.keyboard.type("x080");
    await press(page, "Enter");
    await page.locator(".terminal").filter({ hasText: "received 4 bytes" }).waitFor();
    assert(await page.locator("dialog").count() === 0, "typing in the terminal asks nothing");
    // Also while the terminal does not have the focus.
    await page.evaluate(() => document.activeElement?.blur());
    await press(page, "x", "r", "t", "P");
    assert(await page.locator("dialog").count() === 0, "keys beside the terminal decide nothing");
    await press(page, "Escape");
    await page.waitForSelector(".transcript");
    assert(town.json("run", "show", "api-typist").state !== "cancelled", "the run goes on");
  },

  async "a run is nudged and cancelled"(page) {
    await show(page, `#/runs/${encodeURIComponent("web-orders#1")}`, ".decisions button");
    await press(page, "r");
    await page.locator("dialog textarea").fill("Look at the second page too");
    await press(page, "Control+Enter");
    await says(page, "was told");
    await page.locator("dialog").waitFor({ state: "detached" });
    await press(page, "x");
    await page.waitForSelector("dialog");
    await press(page, "x");
    await says(page, "is cancelled");
    await page.locator(".run-detail .state").filter({ hasText: "Cancelled" }).waitFor();
  },

  async "the queue is paused and resumed"(page) {
    await show(page, "#/queue?rig=api", ".queue-box");
    for (const word of ["Paused by", "Open"]) {
      await press(page, "p");
      await page.waitForSelector("dialog");
      await press(page, "Enter");
      await page.locator("dialog").waitFor({ state: "detached" });
      await page.locator(".queue-box").filter({ hasText: word }).waitFor();
    }
  },

  async "the graph shows any moment, as a drawing and as a table"(page) {
    await show(page, `#/graph/${town.convoy}`, ".node");
    assert(await page.locator(".node").count() === 10, "every bead is a node");
    await page.waitForSelector(".slider");
    await press(page, "<", "<", "<", "<", "<");
    await page.waitForFunction(() => location.hash.includes("at="));
    await page.locator(".slider output").filter({ hasText: "Event" }).waitFor();
    await press(page, "0");
    await page.locator(".slider output").filter({ hasText: "Now" }).waitFor();
    await press(page, "s");
    await page.waitForSelector(".timeline .span-running");
    await press(page, "s");
    await page.getByText("As a table").click();
    await page.getByRole("cell", { name: "web-release", exact: true }).waitFor();
  },

  async "money has budgets and breakdowns"(page) {
    await show(page, "#/money", ".budget");
    await waits(page, "budget.cost_per_day");
    for (const by of ["convoy", "account", "model", "bead"]) {
      await press(page, "y");
      await page.waitForFunction((name) => location.hash.includes(`by=${name}`), by);
      await page.locator("section[aria-label=Breakdown] tbody tr, section[aria-label=Breakdown] .empty").first().waitFor();
    }
  },

  async "the wall shows screens, and a tile opens a terminal"(page) {
    await show(page, "#/wall", ".tile");
    await page.locator(".tile").filter({ hasText: "Which port?" }).waitFor();
    await press(page, "j", "k", "l", "h", "Enter");
    await page.waitForFunction(() => document.activeElement?.classList.contains("terminal"));
    await press(page, "Shift+Escape");
    await page.waitForSelector(".tile");
    // Screens are drawn for a page that is looked at, and for no other.
    const setHidden = (hidden) => page.evaluate((value) => {
      Object.defineProperty(document, "hidden", { value, configurable: true });
      document.dispatchEvent(new Event("visibilitychange"));
    }, hidden);
    const stopped = page.waitForEvent("requestfailed", (request) => request.url().includes("/wall?"));
    await setHidden(true);
    await stopped;
    const again = page.waitForRequest(/\/wall\?/);
    await setHidden(false);
    await again;
    // A wall without screens asks for none.
    const refused = [];
    page.on("response", (response) => response.status() === 400 && refused.push(response.url()));
    await show(page, "#/wall?page=9&cursor=17.api-none%231", ".empty");
    assert(refused.length === 0, `refused: ${refused}`);
  },

  async "the wall reads the runs of its page"(page) {
    const asked = [];
    // Pages of two runs.
    await page.route(/\/api\/v1\/runs\?/, (route) => {
      const url = new URL(route.request().url());
      asked.push(Number(url.searchParams.get("limit")));
      url.searchParams.set("limit", "2");
      return route.continue({ url: url.href });
    });
    await show(page, "#/wall?rig=api", ".tile");
    const first = await page.$$eval(".tile a", (tiles) => tiles.map((tile) => tile.getAttribute("href")));
    assert(first.length === 2 && asked.every((limit) => limit <= 24), `${first.length} tiles, and ${asked} runs were asked for`);
    const tile = (at) => page.locator(`.tile a[href="${first[at]}"]`);
    await press(page, "]");
    for (const at of [0, 1]) await tile(at).waitFor({ state: "detached" });
    await waits(page, /Page 2 of \d/);
    await page.locator(".tile").first().waitFor();
    await press(page, "[");
    for (const at of [0, 1]) await tile(at).waitFor();
    await page.unroute(/\/api\/v1\/runs\?/);
  },

  async "the town is paused and resumed by a key"(page) {
    await show(page, "#/board", ".board-card");
    for (const word of ["Paused", "Working"]) {
      await press(page, "P");
      await page.waitForSelector("dialog");
      assert(await page.locator("dialog textarea").count() === 0, "nothing is asked that is not kept");
      await press(page, "P");
      await page.locator("dialog").waitFor({ state: "detached" });
      await page.locator(".town-state").filter({ hasText: word }).waitFor();
    }
  },

  async "a view that is gone is not kept"(page) {
    const views = { "#/board": ".board", "#/runs": ".windowed", "#/queue": ".queue-columns", "#/wall": ".wall", [`#/graph/${town.convoy}`]: ".drawing" };
    for (const [address, element] of Object.entries(views)) {
      await show(page, address, element);
      await page.evaluate((selector) => {
        globalThis.shown = new WeakRef(document.querySelector(selector));
      }, element);
      await show(page, "#/money", ".figure");
      await until(`${address} to be collected`, async () => {
        await page.requestGC();
        return page.evaluate(() => globalThis.shown.deref() === undefined);
      }, 20_000);
    }
  },

  async "an event of the command line is on the page at once"(page) {
    await show(page, "#/board", ".board-card");
    town.bead("api-fresh", "Just made", "");
    await waits(page, "Just made");
  },

  async "no view has a serious finding of axe, in light and dark"(page) {
    const found = [];
    for (const scheme of ["light", "dark"]) {
      await page.emulateMedia({ colorScheme: scheme });
      for (const address of ["#/needs", "#/board", "#/runs", `#/runs/${encodeURIComponent("api-search#1")}`, "#/queue", "#/review/api-session%401", `#/graph/${town.convoy}`, "#/money", "#/wall", "#/bead/web-release"]) {
        await show(page, address);
        const view = address.slice(2).split("/")[0];
        await page.waitForSelector(`.view-${view} h1`);
        await page.waitForFunction(() => !document.querySelector(".loading"));
        if (!await page.evaluate(() => "axe" in window)) await page.evaluate(readFileSync(axeSource, "utf8"));
        const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
        const serious = violations.filter((violation) => ["serious", "critical"].includes(violation.impact));
        for (const one of serious) found.push(`${address} in ${scheme}: ${one.id}: ${one.nodes.slice(0, 2).map((node) => `${node.target} ${node.any[0]?.message ?? ""}`).join("; ")}`);
      }
    }
    assert(found.length === 0, found.join("\n"));
  },

  async "needs-you and review are usable on a phone"() {
    const phone = await opened({ viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true });
    town.gt("escalate", "api-search", "How many results has a page?");
    const card = phone.locator(".card").filter({ hasText: "How many results" });
    await card.locator("a").tap();
    await phone.locator(".decisions button").first().waitFor();
    const question = new URL(phone.url()).hash;
    for (const address of [question, "#/review/api-session%401"]) {
      await show(phone, address, ".split-detail h2");
      const width = await phone.evaluate(() => document.documentElement.scrollWidth);
      assert(width <= 390, `${address} is ${width} pixels wide`);
    }
    const inList = { "#/runs": ".run-row a", "#/board": ".board-card", "#/queue": ".requests .two-lines" };
    for (const [address, sign] of Object.entries(inList)) {
      await show(phone, address, sign);
      const sideways = await phone.$$eval(".board, .windowed, .scroll-x", (boxes) => boxes.filter((box) => box.scrollWidth > box.clientWidth + 1).map((box) => `${box.className} ${box.scrollWidth}`));
      assert(sideways.length === 0, `${address} is read sideways: ${sideways}`);
    }
    await show(phone, question, ".decisions button");
    await phone.locator(".decisions button").filter({ hasText: "Mark as read" }).tap();
    await phone.locator("dialog .confirm").tap();
    await says(phone, "is read");
    await phone.context().close();
  },

  async "a proxy may serve the page below a path"() {
    const port = await freePort();
    const prefix = "/a/town";
    const proxy = createServer((incoming, answer) => {
      if (!incoming.url.startsWith(`${prefix}/`)) {
        answer.writeHead(404).end();
        return;
      }
      const passed = forward(`${town.address}${incoming.url.slice(prefix.length)}`, { method: incoming.method, headers: incoming.headers }, (from) => {
        answer.writeHead(from.statusCode, from.headers);
        from.pipe(answer);
      });
      passed.on("error", () => answer.destroy());
      answer.on("close", () => passed.destroy());
      incoming.pipe(passed);
    });
    await new Promise((resume) => proxy.listen(port, "127.0.0.1", resume));
    const page = await opened({ link: town.json("deck", "--no-open", "--url", `http://127.0.0.1:${port}${prefix}/deck/`).url });
    await show(page, "#/board", ".board-card");
    town.bead("api-proxied", "Made behind a proxy", "");
    await waits(page, "Made behind a proxy");
    await page.context().close();
    proxy.close();
    proxy.closeAllConnections();
  },

  async "an answer that breaks off is asked for again"(page) {
    town.gt("escalate", "web-search", "Is this the last question?");
    await show(page, "#/needs", ".card");
    let broken = 0;
    await page.route(/\/api\/v1\/board/, async (route) => {
      broken += 1;
      await (broken === 1 ? route.fulfill({ contentType: "application/json", body: '{"lanes":[' }) : route.fallback());
    });
    await show(page, "#/board?rig=web", ".board-card");
    assert(broken >= 2, "the board was asked for again");
    await page.unroute(/\/api\/v1\/board/);
  },

  async "a daemon that is killed makes the page stale, and it recovers"(page) {
    // The clock of this browser is three days off; the banner tells the server's time all the same.
    const wrong = await opened({ script: setClockWrong });
    const reader = await opened();
    await show(reader, `#/runs/${encodeURIComponent("api-typist#1")}`, ".entry");
    await show(wrong, "#/board", ".board-card");
    await show(page, "#/board", ".board-card");
    // A second tab hears the events from the first one, or reads them for it.
    const tab = await beside(page, "#/board");
    await tab.waitForSelector(".board-card");
    const before = Date.now();
    await town.killDaemon();
    for (const one of [page, tab, wrong]) {
      const banner = await one.locator(".banner").filter({ hasText: /Stale since \d\d:\d\d:\d\d/ }).innerText();
      const [hours, minutes, seconds] = /(\d\d):(\d\d):(\d\d)/.exec(banner).slice(1).map(Number);
      const day = new Date(before);
      const told = Date.UTC(day.getUTCFullYear(), day.getUTCMonth(), day.getUTCDate(), hours, minutes, seconds);
      const off = Math.abs(told - before) % 86_400_000;
      assert(Math.min(off, 86_400_000 - off) < 60_000, `the banner says ${banner}`);
      assert((await text(one, ".town-state")).includes("Stale"), "the page does not look healthy");
    }
    town.bead("api-away", "Made while the server was away", "");
    const followed = reader.waitForResponse((response) => response.url().includes("/transcript") && response.ok());
    await town.up();
    await followed;
    await reader.locator(".entry").filter({ hasText: "Which port?" }).waitFor();
    await reader.context().close();
    for (const one of [page, tab, wrong]) {
      await one.locator(".banner").filter({ hasText: "Stale" }).waitFor({ state: "detached" });
      await waits(one, "Made while the server was away");
    }
    await wrong.context().close();
    await tab.close();
  },

  async "a server that hangs makes the page stale, and an action ends"(page) {
    await show(page, "#/board", ".board-card");
    await press(page, "P");
    await page.waitForSelector("dialog");
    process.kill(town.daemon, "SIGSTOP");
    await press(page, "P");
    await page.locator(".banner").filter({ hasText: "Stale since" }).waitFor();
    await page.locator("dialog .problem").filter({ hasText: "does not answer" }).waitFor();
    process.kill(town.daemon, "SIGCONT");
    await page.locator(".banner").filter({ hasText: "Stale" }).waitFor({ state: "detached" });
    await press(page, "Escape");
    await page.locator("dialog").waitFor({ state: "detached" });
    town.gt("scheduler", "resume");
  },

  async "a session that is revoked ends under the open page"() {
    const page = await opened();
    const sessions = town.json("token", "list").filter((token) => /deck|session/.test(JSON.stringify(token)));
    assert(sessions.length > 0, "the session is listed");
    for (const session of sessions) town.run("gt", ["token", "revoke", String(session.id ?? session.name)], { mayFail: true });
    await page.locator(".logged-out").waitFor();
    await waits(page, "gt deck");
  },
};

/** Lets the clock of a page go three days fast. It runs in the page. */
function setClockWrong() {
  const Real = Date;
  const shift = 3 * 86_400_000;
  globalThis.Date = class extends Real {
    constructor(...parts) {
      super(...(parts.length === 0 ? [Real.now() + shift] : parts));
    }
    static now() {
      return Real.now() + shift;
    }
  };
}

const wanted = process.env.DECK_CASE;
const began = Date.now();
try {
  await untilItWorks(town);
  const page = await opened();
  for (const [name, run] of Object.entries(CASES)) {
    if (wanted && !name.includes(wanted)) continue;
    const start = Date.now();
    try {
      await run(page);
      console.log(`ok   ${name} (${Date.now() - start} ms)`);
    } catch (error) {
      failed = true;
      console.log(`FAIL ${name}: ${error.message}`);
      const last = pages.filter((one) => !one.isClosed()).at(-1);
      await last?.screenshot({ path: join(process.env.DECK_PACKAGES, "..", "failed.png") }).catch(() => {});
      if (!process.env.DECK_ALL) break;
      await press(page, "Escape").catch(() => {});
    }
  }
  const wrong = pages.flatMap((one) => one.wrong);
  if (wrong.length > 0) {
    failed = true;
    console.log(`FAIL errors in the page:\n${wrong.join("\n")}`);
  }
  const foreign = pages.flatMap((one) => one.asked).filter((url) => !/^(http:\/\/127\.0\.0\.1:\d+\/|data:|about:|blob:)/.test(url));
  if (foreign.length > 0) {
    failed = true;
    console.log(`FAIL requests to other hosts: ${foreign.join(" ")}`);
  }
} finally {
  await browser.close();
  await town.end();
}
console.log(`${failed ? "failed" : "passed"} in ${((Date.now() - began) / 1000).toFixed(1)} s`);
process.exit(failed ? 1 : 0);
