// Every action of the page: its key, its words, the command that does the same, and the request.
import { read, write } from "./api.js";
import { quoted } from "./format.js";

/**
 * @typedef {{ name: string, label: string, kind?: "line" | "area" | "priority", value?: string, required?: boolean }} Field
 * @typedef {Record<string, string>} Values
 * @typedef {{
 *   key: string, label: string, keeps?: boolean, question: string, done: string, tone?: string, bead?: string | null, scope?: string,
 *   fields?: Field[], prepare?: () => Promise<Field[]>,
 *   command: (values: Values) => string, run: (values: Values) => Promise<any>, waits?: (answer: any) => string | undefined,
 * }} Decision
 */

const words = (/** @type {string} */ name, /** @type {string} */ label, required = true) =>
  /** @type {Field} */ ({ name, label, kind: "area", required });
/** An option with its text, also if that looks like an option itself. */
const given = (/** @type {string} */ option, /** @type {string} */ text) => `${option}${text.startsWith("-") ? "=" : " "}${quoted(text)}`;

/** Why a bead that was just scheduled does not start at once, unless it only waits for its turn. @param {import("./types").ReadAnswer<"/api/v1/beads/{id}">} page */
const waitReason = (page) => page?.why?.reasons?.[0]?.text;

/** @param {string} id @param {string} bead @returns {Decision} */
export const approve = (id, bead) => ({
  key: "a", label: "Approve", question: `Approve ${id} and let it land?`, done: `${id} is approved`, tone: "good", bead, scope: "review",
  fields: [words("message", "A word to the record", false)],
  command: ({ message }) => `gt review approve ${id}${message ? ` ${given("-m", message)}` : ""}`,
  run: ({ message }) => write("/api/v1/reviews/{id}/approve", { path: { id }, body: message ? { message } : {} }),
});

/** @param {string} id @param {string} bead @returns {Decision} */
export const reject = (id, bead) => ({
  key: "d", label: "Reject", question: `Send ${id} back to a worker?`, done: `${id} is rejected`, tone: "bad", bead, scope: "review",
  fields: [words("message", "What has to change")],
  command: ({ message }) => `gt review reject ${id} ${given("-m", message || "<why>")}`,
  run: ({ message }) => write("/api/v1/reviews/{id}/reject", { path: { id }, body: { message } }),
});

/** @param {string} id @param {string} bead @param {string} file @param {number | null} line @returns {Decision} */
export const comment = (id, bead, file, line) => ({
  key: "c", label: "Comment", question: `Comment on ${file}${line ? ` line ${line}` : ""}`, done: `Your comment on ${file} is kept`, bead, scope: "review",
  fields: [words("message", "Your comment")],
  command: ({ message }) => `gt review comment ${id} --file ${quoted(file)}${line ? ` --line ${line}` : ""} ${given("-m", message || "<text>")}`,
  run: ({ message }) => write("/api/v1/reviews/{id}/comment", { path: { id }, body: line ? { file, line, message } : { file, message } }),
});

/** @param {string} id @param {string} bead @returns {Decision} */
export const retryRequest = (id, bead) => ({
  key: "t", label: "Retry now", question: `Try to land ${id} again now?`, done: `${id} is in line again`, bead,
  command: () => `gt mq retry ${id}`,
  run: () => write("/api/v1/merge-requests/{id}/retry", { path: { id } }),
});

/** @param {string} id @param {string} bead @returns {Decision} */
export const cancelRequest = (id, bead) => ({
  key: "x", label: "Cancel", question: `Give ${id} up? Its bead is open again, and its branch stays.`, done: `${id} is cancelled`, tone: "bad", bead,
  command: () => `gt mq cancel ${id}`,
  run: () => write("/api/v1/merge-requests/{id}/cancel", { path: { id } }),
});

/** @param {string} id @param {string} bead @returns {Decision} */
export const topRequest = (id, bead) => ({
  key: "u", label: "To the top", question: `Put ${id} before all others?`, done: `${id} goes before all others`, bead,
  command: () => `gt mq top ${id}`,
  run: () => write("/api/v1/merge-requests/{id}/top", { path: { id } }),
});

/** @param {string} id @param {string} bead @returns {Decision} */
export const closeRequest = (id, bead) => ({
  key: "c", label: "Close", question: `Close the bead of ${id}?`, done: `${id} is over`, bead,
  fields: [words("message", "Why")],
  command: ({ message }) => `gt mq close ${id} ${given("-m", message || "<why>")}`,
  run: ({ message }) => write("/api/v1/merge-requests/{id}/close", { path: { id }, body: { message } }),
});

/** @param {string} id @param {string | null} [bead] @returns {Decision} */
export const reply = (id, bead) => ({
  key: "r", label: "Reply", question: `Reply to ${id}`, done: `Your reply to ${id} is sent`, bead,
  fields: [words("text", "Your reply")],
  command: ({ text }) => `gt mail reply ${id} ${given("-m", text || "<text>")}`,
  run: ({ text }) => write("/api/v1/messages/{id}/reply", { path: { id }, body: { text } }),
});

/** @param {string} id @param {string | null} [bead] @returns {Decision} */
export const markRead = (id, bead) => ({
  key: "m", label: "Mark as read", question: `Take ${id} off the list?`, done: `${id} is read`, bead,
  command: () => `gt mail read ${id}`,
  run: () => write("/api/v1/messages/{id}/read", { path: { id } }),
});

/** @param {string} id @param {boolean} [now] ends a backoff or cooldown @returns {Decision} */
export const retryBead = (id, now = false) => ({
  key: "t", label: "Retry now", question: `Try ${id} again now?`, done: `${id} is scheduled again`, bead: id, waits: waitReason,
  command: () => `gt scheduler retry ${id}${now ? " --now" : ""}`,
  run: () => write("/api/v1/beads/{id}/retry", { path: { id }, body: { now } }),
});

/** @param {string} id @returns {Decision} */
export const sling = (id) => ({
  key: "s", label: "Sling", question: `Schedule ${id} to be worked on?`, done: `${id} is scheduled`, bead: id, waits: waitReason,
  command: () => `gt sling ${id}`,
  run: () => write("/api/v1/beads/{id}/sling", { path: { id } }),
});

/** @param {string} id @returns {Decision} */
export const unsling = (id) => ({
  key: "x", label: "Cancel", question: `Take ${id} out of the queue and end its run?`, done: `${id} is cancelled`, tone: "bad", bead: id,
  command: () => `gt unsling ${id}`,
  run: () => write("/api/v1/beads/{id}/cancel", { path: { id } }),
});

/** @param {string} id @returns {Decision} */
export const closeBead = (id) => ({
  key: "x", label: "Close", question: `Close ${id} without further work?`, done: `${id} is closed`, tone: "bad", bead: id,
  fields: [words("reason", "Why")],
  command: ({ reason }) => `bd close ${id} ${given("--reason", reason || "<why>")}`,
  run: ({ reason }) => write("/api/v1/beads/{id}/close", { path: { id }, body: { reason } }),
});

/** @param {string} id @returns {Decision} */
export const edit = (id) => {
  /** When the bead that is edited was last changed: a later change of another person is not overwritten. */
  let updatedAt = "";
  /** @type {Values} */
  let before = {};
  return {
    key: "e", label: "Edit bead", keeps: true, question: `Edit ${id}`, done: `${id} is changed`, bead: id,
    prepare: async () => {
      const page = await read("/api/v1/beads/{id}", { path: { id } });
      const bead = /** @type {import("./types").BeadRecord} */ (/** @type {unknown} */ (page.bead));
      updatedAt = bead.updated_at;
      before = { title: bead.title, priority: String(bead.priority ?? 2), description: bead.description ?? "" };
      return [
        { name: "title", label: "Title", kind: "line", value: before.title, required: true },
        { name: "priority", label: "Priority", kind: "priority", value: before.priority },
        { name: "description", label: "Description", kind: "area", value: before.description },
      ];
    },
    command: (values) => {
      const changed = Object.keys(before).filter((name) => values[name] !== undefined && values[name] !== before[name]);
      return `bd update ${id}${changed.map((name) => ` ${given(`--${name}`, values[name])}`).join("") || " --title <title>"}`;
    },
    run: ({ title, priority, description }) => write("/api/v1/beads/{id}", {
      path: { id }, method: "PATCH", body: { title, description, priority: Number(priority), if_updated_at: updatedAt },
    }),
  };
};

/** @param {string} id @param {string} bead @returns {Decision} */
export const nudge = (id, bead) => ({
  key: "r", label: "Nudge", question: `Type a line at the terminal of ${id}`, done: `${id} was told`, bead,
  fields: [words("text", "The line")],
  command: ({ text }) => `gt nudge ${quoted(id)} ${text?.startsWith("-") ? "-- " : ""}${quoted(text || "<text>")}`,
  run: ({ text }) => write("/api/v1/runs/{id}/nudge", { path: { id }, body: { text } }),
});

/** @param {string} id @param {string} bead @returns {Decision} */
export const cancelRun = (id, bead) => ({
  key: "x", label: "Cancel run", question: `End ${id}? What its worker wrote is kept.`, done: `${id} is cancelled`, tone: "bad", bead,
  command: () => `gt run cancel ${quoted(id)}`,
  run: () => write("/api/v1/runs/{id}/cancel", { path: { id } }),
});

/** @param {string} rig @param {string} branch @param {boolean} pause @returns {Decision} */
export const pauseQueue = (rig, branch, pause) => ({
  key: pause ? "p" : "t", label: pause ? "Pause" : "Resume", bead: null,
  question: pause ? `Let nothing land on ${branch} of ${rig} until you resume it?` : `Let work land on ${branch} of ${rig} again?`,
  done: `The queue of ${rig} to ${branch} ${pause ? "is paused" : "goes on"}`,
  command: () => `gt mq ${pause ? "pause" : "resume"} ${rig} --branch ${quoted(branch)}`,
  run: () => write(pause ? "/api/v1/queues/{rig}/pause" : "/api/v1/queues/{rig}/resume", { path: { rig }, body: { branch } }),
});

/** @param {boolean} pause @returns {Decision} */
export const pauseScheduler = (pause) => ({
  key: "P", label: pause ? "Pause the town" : "Resume the town", bead: null,
  question: pause ? "Start no more runs until you resume? Live runs go on." : "Start runs again?",
  done: pause ? "The scheduler is paused" : "The scheduler goes on",
  command: () => `gt scheduler ${pause ? "pause" : "resume"}`,
  run: () => write(pause ? "/api/v1/scheduler/pause" : "/api/v1/scheduler/resume"),
});

/** @param {string} id The setting of the budget. @returns {Decision} */
export const raiseBudget = (id) => {
  let seen = "";
  return {
    key: "e", label: "Change the limit", question: `Change the limit of ${id}`, done: `${id} is changed`, bead: null,
    prepare: async () => {
      const { items } = await read("/api/v1/budgets");
      seen = items.find((budget) => budget.name === id)?.limit ?? "";
      return [{ name: "limit", label: "Limit", kind: "line", value: seen, required: true }];
    },
    command: ({ limit }) => `gt config set ${id} ${quoted(limit || "<n>")}`,
    run: ({ limit }) => write("/api/v1/budgets/{id}", { path: { id }, method: "PATCH", body: { limit, if_limit: seen } }),
  };
};

/** @param {string} kind `runtime` or `account` @param {string} name @returns {Decision} */
export const resumeParked = (kind, name) => ({
  key: "t", label: "Resume", question: `Let runs start with the ${kind} ${name} again?`, done: `Runs start with the ${kind} ${name} again`, bead: null,
  command: () => `gt deacon resume ${kind} ${quoted(name)}`,
  run: () => write("/api/v1/parked/resume", { body: { kind, name } }),
});

/**
 * The decisions that answer a row of the inbox. The row names the commands that work; each that the page can do is a decision.
 * @param {import("./types").InboxItem} item
 * @returns {Decision[]}
 */
export function decisionsOf(item) {
  const { code, object, id } = item;
  const bead = item.bead ?? "";
  /** @type {Decision[]} */
  const decisions = [];
  const names = (/** @type {string} */ command) => item.commands.some((one) => one.startsWith(command));
  if (object === "merge-request") {
    if (code === "review") decisions.push(approve(id, bead), reject(id, bead));
    else decisions.push(retryRequest(id, bead));
    if (names("gt mq close ")) decisions.push(closeRequest(id, bead));
    decisions.push(cancelRequest(id, bead));
  }
  if (object === "message") {
    if (names("gt mail reply ")) decisions.push(reply(id, bead));
    if (bead && names("gt scheduler retry ")) decisions.push(retryBead(bead));
    if (bead && names("bd close ")) decisions.push(closeBead(bead));
    decisions.push(markRead(id, bead));
  }
  if (object === "bead") {
    if (names("gt scheduler retry ")) decisions.push(retryBead(id));
    else if (names("gt sling ")) decisions.push({ ...sling(id), key: "t", label: "Sling again" });
    decisions.push(closeBead(id));
  }
  if (object === "run") {
    if (names("gt nudge ")) decisions.push(nudge(id, bead));
    if (names("gt run cancel ")) decisions.push(cancelRun(id, bead));
  }
  if (object === "queue" && code === "queue-paused") {
    const at = id.indexOf("/");
    decisions.push(pauseQueue(id.slice(0, at), id.slice(at + 1), false));
  } else if (object === "queue" || object === "rig") {
    const first = item.commands.find((command) => command.startsWith("gt mq retry "))?.split(" ")[3];
    if (first) decisions.push(retryRequest(first, ""));
  }
  if (object === "runtime" || object === "account") decisions.push(resumeParked(object, id));
  if (object === "budget") decisions.push(raiseBudget(id.split("/")[0]));
  else if (bead) decisions.push(edit(bead));
  return decisions;
}
