// Chromium, driven by playwright-core, and a few words for tests.
import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { extname, join } from "node:path";

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

/** With DECK_PAGE, a directory, the files of the page come from there: a change is tried without building the program. */
export async function servePageFrom(context) {
  const directory = process.env.DECK_PAGE;
  if (!directory) return;
  await context.route(/\/deck\//, async (route) => {
    const path = new URL(route.request().url()).pathname.split("/deck/")[1] || "index.html";
    const file = join(directory, path);
    if (path === "login" || !existsSync(file)) return route.fallback();
    return route.fulfill({ body: readFileSync(file), contentType: TYPES[extname(file)], headers: { "content-security-policy": "default-src 'self'" } });
  });
}

/** A page that is logged in. Everything that goes wrong in it is collected in `page.wrong`, every address in `page.asked`. */
export async function openPage(browser, town, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, timezoneId: "UTC", locale: "en-GB", reducedMotion: "reduce", ...options });
  await servePageFrom(context);
  const page = await context.newPage();
  watch(page);
  await page.goto(town.loginLink());
  await page.waitForSelector(".view");
  return page;
}

/** Collects errors and requests of a page. */
export function watch(page) {
  page.wrong = [];
  page.asked = [];
  page.setDefaultTimeout(15_000);
  page.on("pageerror", (error) => page.wrong.push(`error: ${error.stack ?? error.message}`));
  page.on("console", (message) => {
    // A request that fails while the server is away, and an answer that refuses, are part of the tests.
    if (message.type() === "error" && !/Failed to load resource|net::ERR/.test(message.text())) page.wrong.push(`console: ${message.text()}`);
  });
  page.on("request", (request) => page.asked.push(request.url()));
}

/** Goes to a view and waits for a selector. */
export async function show(page, hash, selector) {
  await page.evaluate((target) => {
    location.hash = target;
  }, hash);
  if (selector) await page.waitForSelector(selector);
}

/** Presses keys one after the other. */
export async function press(page, ...keys) {
  for (const key of keys) await page.keyboard.press(key);
}

export function assert(condition, words) {
  if (!condition) throw new Error(words);
}
