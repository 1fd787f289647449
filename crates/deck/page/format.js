// Numbers, times and money as text.

/** A duration such as `1m 20s`. @param {number} ms */
export function duration(ms) {
  const total = Math.max(0, Math.floor(ms / 1000));
  const days = Math.floor(total / 86400);
  const hours = Math.floor(total / 3600) % 24;
  const minutes = Math.floor(total / 60) % 60;
  if (days > 0) return `${days}d ${hours}h`;
  if (hours > 0) return `${hours}h ${minutes}m`;
  if (minutes > 0) return `${minutes}m ${total % 60}s`;
  return `${total}s`;
}

const two = (/** @type {number} */ number) => String(number).padStart(2, "0");

/** The time of day such as `14:03:12`. @param {number | string | null | undefined} time */
export function timeOfDay(time) {
  if (time === null || time === undefined) return "";
  const date = new Date(time);
  return `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
}

/** Date and time to the second. @param {number | string | null | undefined} time */
export function dateTime(time) {
  if (time === null || time === undefined) return "";
  const date = new Date(time);
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ${timeOfDay(time)}`;
}

/** @param {number | null | undefined} count */
export function tokens(count) {
  if (count === null || count === undefined) return "–";
  if (count < 1000) return String(count);
  if (count < 1e6) return `${(count / 1000).toFixed(count < 10000 ? 1 : 0)}k`;
  return `${(count / 1e6).toFixed(count < 1e7 ? 1 : 0)}M`;
}

/** Dollars from a number of dollars. @param {number | null | undefined} amount */
export function dollars(amount) {
  if (amount === null || amount === undefined || Number.isNaN(amount)) return "–";
  return amount !== 0 && Math.abs(amount) < 0.01 ? `$${amount.toFixed(4)}` : `$${amount.toFixed(2)}`;
}

/** Dollars from text such as `0.25`. @param {string | null | undefined} amount */
export function dollarText(amount) {
  return amount === null || amount === undefined || amount === "" ? "–" : dollars(Number(amount));
}

/** @param {number} count @param {string} noun */
export function plural(count, noun) {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}

/** A code such as `check-failed` in words. @param {string} code */
export function words(code) {
  const text = code.replace(/[-_]/g, " ");
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** The last part of an agent's address, such as `toast` of `web/polecats/toast`. @param {string | null | undefined} agent */
export function agentName(agent) {
  return plain((agent ?? "").split("/").at(-1));
}

/** The first digits of a commit. @param {string | null | undefined} commit */
export function shortCommit(commit) {
  return (commit ?? "").slice(0, 10);
}

/** An argument of a shell command, quoted if it has to be. @param {string} text */
export function quoted(text) {
  return /^[A-Za-z0-9_@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}

/**
 * Text from outside as text. Colours and titles of terminals are left out; other control characters, which could hide or reorder
 * words, are shown as `�`.
 * @param {unknown} text
 */
export function plain(text) {
  return String(text ?? "").replace(/\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\))/g, "").replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, "\ufffd");
}

/** A sentence of the server as text, with its times as local date and time. @param {unknown} text */
export function told(text) {
  return plain(text).replace(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)/g, (time) => dateTime(time));
}
