// Time as the server tells it. The clock of the browser may be wrong, so only its monotonic clock is used.
import { signal } from "./html.js";

let serverTime = Date.now();
let readAt = performance.now();
let known = false;

/** Whole seconds of the server's clock; components that show ages depend on it. */
export const seconds = signal(Math.floor(serverTime / 1000));
/** When the server was last heard, by its own clock. */
export const lastContact = signal(/** @type {number | null} */ (null));

/** Takes the server's time from an answer. @param {string | null | undefined} time */
export function setServerTime(time) {
  const parsed = time ? Date.parse(time) : NaN;
  if (Number.isNaN(parsed)) return;
  // The header Date has whole seconds only: it corrects the clock when it is off by more than that.
  if (!known || Math.abs(serverNow() - parsed) > 2000) {
    serverTime = parsed;
    readAt = performance.now();
    known = true;
    tick();
  }
}

/** The server's time now, in milliseconds. */
export function serverNow() {
  return serverTime + (performance.now() - readAt);
}

/** Notes that bytes of the server have arrived. */
export function noteContact() {
  lastContact.value = serverNow();
}

function tick() {
  seconds.value = Math.floor(serverNow() / 1000);
}

setInterval(() => {
  if (!document.hidden) tick();
}, 1000);
document.addEventListener("visibilitychange", tick);
