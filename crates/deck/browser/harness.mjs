// Chromium, driven by playwright-core, and a few words for tests.
import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { extname, join } from "node:path";
import { PATIENCE_MS } from "./town.mjs";

const require = createRequire(join(process.env.DECK_PACKAGES, "packages.js"));
const { chromium } = require("playwright-core");

export const axeSource = require.resolve("axe-core/axe.min.js");
export const CHROMIUM = process.env.CHROMIUM ?? "/usr/bin/chromium";

export function openBrowser() {
  return chromium.launch({
    executablePath: CHROMIUM,
    // As root, as in a container, Chromium has no sandbox of its own; it opens pages of this machine only.
    args: [...(process.getuid() === 0 ? ["--no-sandbox"] : []), "--disable-dev-shm-usage", "--disable-gpu", "--font-render-hinting=none"],
  });
}

const TYPES = { ".html": "text/html; charset=utf-8", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml" };

/**
 * With DECK_PAGE, a directory, the files of the page come from there: a change is tried without building the program.
 * With DECK_DELAY, in milliseconds, each request waits for a random time up to that: tests that do not wait for what they need fail.
 */
async function prepare(context) {
  // Toasts go after a while: a test reads what they have said.
  await context.addInitScript(() => {
    globalThis.said = [];
    new MutationObserver((changes) => {
      for (const { addedNodes } of changes) for (const node of addedNodes) {
        if (!(node instanceof Element)) continue;
        for (const toast of node.matches(".toast") ? [node] : node.querySelectorAll(".toast")) globalThis.said.push(toast.textContent);
      }
    }).observe(document, { subtree: true, childList: true });
  });
  const delay = Number(process.env.DECK_DELAY ?? 0);
  if (delay > 0) await context.route(/\/api\/v1\//, async (route) => {
    await new Promise((resume) => setTimeout(resume, Math.random() * delay));
    await route.continue().catch(() => {});
  });
  const directory = process.env.DECK_PAGE;
  if (!directory) return;
  await context.route(/\/deck\//, async (route) => {
    const path = new URL(route.request().url()).pathname.split("/deck/")[1] || "index.html";
    const file = join(directory, path);
    if (path === "login" || !existsSync(file)) return route.fallback();
    return route.fulfill({ body: readFileSync(file), contentType: TYPES[extname(file)], headers: { "content-security-policy": "default-src 'self'" } });
  });
}

/**
 * A page that is logged in, by a link that may be given; `script` runs before those of the page. Everything that goes wrong in it is
 * collected in `page.wrong`, every address in `page.asked`.
 */
export async function openPage(browser, town, { link = town.loginLink(), script, ...options } = {}) {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, timezoneId: "UTC", locale: "en-GB", reducedMotion: "reduce", ...options });
  await prepare(context);
  if (script) await context.addInitScript(script);
  const page = await context.newPage();
  watch(page);
  await page.goto(link);
  // The page knows who is logged in, and so what that person may decide.
  await page.locator(".actor:not(:empty)").waitFor({ state: "attached" });
  return page;
}

/** Collects errors and requests of a page. */
export function watch(page) {
  page.wrong = [];
  page.asked = [];
  page.setDefaultTimeout(PATIENCE_MS);
  page.on("pageerror", (error) => page.wrong.push(`error: ${error.stack ?? error.message}`));
  page.on("console", (message) => {
    // A request that fails while the server is away, and an answer that refuses, are part of the tests.
    if (message.type() === "error" && !/Failed to load resource|net::ERR/.test(message.text())) page.wrong.push(`console: ${message.text()}`);
  });
  page.on("request", (request) => page.asked.push(request.url()));
}

/** Goes to a view, and waits until the page shows it and has this selector. */
export async function show(page, hash, selector) {
  await page.evaluate(async (target) => {
    const before = location.href;
    const changed = new Promise((resolve) => addEventListener("hashchange", resolve, { once: true }));
    location.hash = target;
    if (location.href === before) return;
    await changed;
    // The page has heard it before, and is drawn at the end of that task.
    await new Promise((resolve) => setTimeout(resolve));
  }, hash);
  // A handle of an element would keep it, and the view around it, for as long as the page is open.
  if (selector) await page.locator(selector).first().waitFor();
}

/** Waits until the page says this, and forgets what it said up to then. */
export async function says(page, words) {
  await page.waitForFunction((wanted) => {
    const at = globalThis.said.findIndex((text) => text.includes(wanted));
    if (at >= 0) globalThis.said.splice(0, at + 1);
    return at >= 0;
  }, words);
}

/** Presses keys one after the other. */
export async function press(page, ...keys) {
  for (const key of keys) await page.keyboard.press(key);
}

export function assert(condition, words) {
  if (!condition) throw new Error(words);
}
