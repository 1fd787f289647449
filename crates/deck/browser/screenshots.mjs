// Makes the pictures of the guide: each view of a town at work, in light and dark.
import { mkdirSync, readdirSync, rmSync, statSync } from "node:fs";
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { openBrowser, openPage, press, show } from "./harness.mjs";
import { townAtWork, untilItWorks } from "./town.mjs";

const DIRECTORY = "docs/images/deck";
/** How long a view settles after its data is there: frames of screens, ages. */
const SETTLE_MS = 700;

const town = await townAtWork();
const browser = await openBrowser();
const views = [
  ["needs-you", "#/needs/review%3Aapi-session%401", ".files-of-change a"],
  ["board", "#/board", ".board-card"],
  ["runs", "#/runs", ".run-row a"],
  ["transcript", `#/runs/${encodeURIComponent("api-search#1")}`, ".entry"],
  ["terminal", `#/runs/${encodeURIComponent("api-search#1")}/terminal`, ".terminal"],
  ["queue", "#/queue/web-menu%401", ".opened .log"],
  ["review", "#/review/api-session%401?file=src%2Fsession.rs", ".line-add"],
  ["review-side-by-side", "#/review/api-session%401?file=src%2Fsession.rs&diff=split", ".diff-split"],
  ["graph", `#/graph/${town.convoy}`, ".node"],
  ["timeline", `#/graph/${town.convoy}?show=timeline`, ".timeline"],
  ["money", "#/money", ".chart"],
  ["wall", "#/wall", ".tile .screen-line"],
];

async function picture(page, name, scheme) {
  await page.waitForTimeout(SETTLE_MS);
  await page.screenshot({ path: join(DIRECTORY, `${name}-${scheme}.png`) });
}

try {
  await untilItWorks(town);
  rmSync(DIRECTORY, { recursive: true, force: true });
  mkdirSync(DIRECTORY, { recursive: true });
  for (const scheme of ["light", "dark"]) {
    const page = await openPage(browser, town, { colorScheme: scheme, viewport: { width: 1280, height: 800 } });
    for (const [name, address, sign] of views) {
      await show(page, address, sign);
      await picture(page, name, scheme);
    }
    await show(page, "#/needs/review%3Aapi-session%401", ".files-of-change a");
    await press(page, "a");
    await page.waitForSelector("dialog");
    await picture(page, "decide", scheme);
    await press(page, "Escape");
    await page.locator("dialog").waitFor({ state: "detached" });
    await press(page, "?");
    await page.waitForSelector("dialog");
    await picture(page, "keys", scheme);
    if (page.wrong.length > 0) throw new Error(page.wrong.join("\n"));
    await page.context().close();
    const phone = await openPage(browser, town, { colorScheme: scheme, viewport: { width: 390, height: 844 } });
    await show(phone, "#/needs/review%3Aapi-session%401", ".files-of-change a");
    await picture(phone, "phone", scheme);
    await phone.context().close();
  }
} finally {
  await browser.close();
  await town.end();
}
const files = readdirSync(DIRECTORY).map((file) => join(DIRECTORY, file));
// Fewer colours; without the program the pictures are only larger.
spawnSync("pngquant", ["--force", "--skip-if-larger", "--strip", "--speed", "1", "--quality", "60-95", "--ext", ".png", ...files]);
const bytes = files.reduce((sum, file) => sum + statSync(file).size, 0);
console.log(`${files.length} pictures, ${bytes} bytes`);
