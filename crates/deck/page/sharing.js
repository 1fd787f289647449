// What the pages of one browser share. A browser has six connections to a server: streams without an end would use them up, and
// then no page could read or decide anything.
import { BASE } from "./api.js";
import { signal } from "./html.js";

/** Screens and transcripts that are followed at once; the events need one connection more, and two are left for all else. */
const STREAMS_MAX = 3;
/** Towns below one host have a path each. */
const SCOPE = `gt-deck ${BASE.pathname}`;

/** Whether a person can see this page: screens and transcripts are followed by pages that are looked at. */
export const isVisible = signal(!document.hidden);
document.addEventListener("visibilitychange", () => {
  isVisible.value = !document.hidden;
});

/** What one page says to the others. */
export const channel = new BroadcastChannel(SCOPE);

/**
 * Does this while no other page does. Only pages of a secure origin, such as this machine, can wait for each other.
 * @param {string} name @param {() => Promise<void>} work @param {LockOptions} options a signal that ends the waiting, or that the page does not wait
 * @returns {Promise<void>}
 */
export async function alone(name, work, options) {
  return navigator.locks ? navigator.locks.request(`${SCOPE} ${name}`, options, work) : work();
}

/** Follows a stream as soon as there is a connection for it. @param {() => Promise<void>} work @param {AbortSignal} signal */
export async function follow(work, signal) {
  if (!navigator.locks) return work();
  for (let place = 0; place < STREAMS_MAX; place += 1) {
    const isDone = await navigator.locks.request(`${SCOPE} stream ${place}`, { ifAvailable: true }, async (lock) => {
      if (lock) await work();
      return lock !== null;
    });
    if (isDone) return undefined;
  }
  return alone(`stream ${Math.floor(Math.random() * STREAMS_MAX)}`, work, { signal });
}
