// Review: the files of a change, its checks, comments on lines, and the decision.
import { html, useEffect, useMemo, useState } from "../html.js";
import { useDocument } from "../store.js";
import { useKeys } from "../keys.js";
import { address, go, route, setQuery } from "../router.js";
import { approve, cancelRequest, comment, reject, retryRequest } from "../decisions.js";
import { parseDiff, sideBySide } from "../diff.js";
import { dateTime, dollarText, plain, plural, shortCommit, told, tokens } from "../format.js";
import { useSelection } from "../selection.js";
import { Age, BeadLink, Choice, Empty, Loading } from "../components/basics.js";
import { ask, decisionKeys, DecisionButtons } from "../components/decide.js";
import { Facts, Split, ViewHead } from "../components/layout.js";
import { Keys, State } from "../components/marks.js";

/** @typedef {import("../types").MergeRequest} MergeRequest */
/** @typedef {import("../types").ReviewNote} ReviewNote */
/** @typedef {import("../diff.js").DiffLine} DiffLine */
/** @typedef {import("../diff.js").DiffFile} DiffFile */

/** Lines of a file that are shown at first, and more of them at a time. */
const LINES_AT_ONCE = 800;
const ABOUT_REVIEWS = new Set(["mr_opened", "mr_changed", "reviewed", "landed", "updated"]);

/** @param {{ note: ReviewNote, isSelected: boolean }} props */
function Note({ note, isSelected }) {
  return html`<div class="note ${isSelected ? "here" : ""}" id=${`note-${note.number}`}><p class="faint"><strong>${plain(note.actor)}</strong> ${plain(note.decision)} <time title=${dateTime(note.created_at)}><${Age} since=${note.created_at} /> ago</time></p>
    <p dir="auto" class="note-text">${plain(note.body ?? "")}</p></div>`;
}

/** The number of a line, which is also the button for a comment. @param {{ line: number | null, onComment?: (line: number) => void }} props */
function LineNumber({ line, onComment }) {
  if (line === null) return html`<td class="number"></td>`;
  if (!onComment) return html`<td class="number">${line}</td>`;
  return html`<td class="number"><button tabindex="-1" onClick=${() => onComment(line)} aria-label=${`Comment on line ${line}`}>${line}</button></td>`;
}

const SIGNS = { add: "+", remove: "−", same: " ", hunk: "", note: "" };
const SPOKEN = { add: "added", remove: "removed" };

/** @param {{ line: DiffLine }} props */
function Code({ line }) {
  return html`<td class="sign" aria-label=${SPOKEN[line.kind]}>${SIGNS[line.kind]}</td><td class="code"><span>${plain(line.text)}</span></td>`;
}

/** @param {{ file: DiffFile, split: boolean, notes: ReviewNote[], noteAt: number | null, onComment?: (line: number) => void }} props */
function FileDiff({ file, split, notes, noteAt, onComment }) {
  const [count, setCount] = useState(LINES_AT_ONCE);
  const byLine = (/** @type {number | null} */ line) => (line === null ? [] : notes.filter((note) => note.line === line));
  const shown = file.lines.slice(0, count);
  const noteRow = (/** @type {number | null} */ line, /** @type {number} */ width) => byLine(line).map((note) => html`
    <tr key=${`note-${note.number}`} class="note-row"><td colspan=${width}><${Note} note=${note} isSelected=${note.number === noteAt} /></td></tr>`);
  const unified = () => shown.map((line, at) => line.kind === "hunk" ? html`<tr key=${at} class="line-hunk"><td class="number"></td><td class="number"></td><td></td><td class="code">${plain(line.text)}</td></tr>`
    : html`<tr key=${at} class="line-${line.kind}"><${LineNumber} line=${line.old} /><${LineNumber} line=${line.new} onComment=${onComment} /><${Code} line=${line} /></tr>${noteRow(line.new, 4)}`);
  const beside = () => sideBySide(shown).map(({ left, right }, at) => left?.kind === "hunk" ? html`<tr key=${at} class="line-hunk"><td class="number"></td><td></td><td class="code" colspan="4">${plain(left.text)}</td></tr>`
    : html`<tr key=${at} class="line-pair">
      ${left ? html`<${LineNumber} line=${left.old} /><td class="sign side-${left.kind}">${SIGNS[left.kind]}</td><td class="code side-${left.kind}"><span>${plain(left.text)}</span></td>` : html`<td class="number"></td><td></td><td class="code nothing"></td>`}
      ${right ? html`<${LineNumber} line=${right.new} onComment=${onComment} /><td class="sign side-${right.kind}">${SIGNS[right.kind]}</td><td class="code side-${right.kind}"><span>${plain(right.text)}</span></td>` : html`<td class="number"></td><td></td><td class="code nothing"></td>`}</tr>${right ? noteRow(right.new, 6) : null}`);
  return html`<div class="file-diff"><table class="diff ${split ? "diff-split" : ""}" aria-label=${`Change of ${plain(file.path)}`}>
      ${split && html`<colgroup><col class="number" /><col class="sign" /><col /><col class="number" /><col class="sign" /><col /></colgroup>`}<tbody>${split ? beside() : unified()}</tbody></table>
    ${file.lines.length > count && html`<button onClick=${() => setCount(count + LINES_AT_ONCE)}>Show ${Math.min(LINES_AT_ONCE, file.lines.length - count)} more of ${file.lines.length} lines</button>`}
    ${file.lines.length === 0 && html`<p class="faint pad">No line differs${file.note ? `: ${plain(file.note)}` : ""}.</p>`}</div>`;
}

/** @param {{ id: string }} props */
function OneReview({ id }) {
  const { query } = route.value;
  const split = query.get("diff") === "split";
  const wants = (/** @type {import("../types").TownEvent} */ event) => ABOUT_REVIEWS.has(event.event_type) && id.startsWith(`${event.issue_id}@`);
  const { data: story, problem } = useDocument("/api/v1/merge-requests/{id}", { path: { id } }, { wants });
  const diff = useDocument("/api/v1/merge-requests/{id}/diff", { path: { id } }, { wants: (event) => event.event_type === "work_accepted" && id.startsWith(`${event.issue_id}@`) });
  const files = useMemo(() => parseDiff(diff.data?.diff ?? ""), [diff.data?.diff]);
  const asked = query.get("file");
  const at = Math.max(0, files.findIndex((file) => file.path === asked));
  const file = files[at];
  const notes = story?.reviews ?? [];
  const onLines = notes.filter((note) => note.file);
  const noteAt = query.get("note") ? Number(query.get("note")) : null;
  const waits = story?.state === "review";
  const bead = story?.bead ?? "";
  const decisions = !story ? [] : waits ? [approve(id, bead), reject(id, bead), cancelRequest(id, bead)]
    : ["conflict", "failed", "held"].includes(story.state) ? [retryRequest(id, bead), cancelRequest(id, bead)] : [];
  const show = (/** @type {number} */ index) => files[index] && setQuery({ file: files[index].path, note: "" });
  const showNote = (/** @type {number} */ by) => {
    if (onLines.length === 0) return;
    const now = onLines.findIndex((note) => note.number === noteAt);
    const next = onLines[Math.max(0, Math.min(onLines.length - 1, now < 0 ? 0 : now + by))];
    setQuery({ file: next.file ?? "", note: next.number });
  };
  useEffect(() => {
    if (noteAt !== null) document.getElementById(`note-${noteAt}`)?.scrollIntoView({ block: "center" });
  }, [noteAt, file?.path]);
  const onComment = waits && file ? (/** @type {number} */ line) => ask(comment(id, bead, file.path, line)) : undefined;
  useKeys("Review", [
    { keys: "]", does: "Next file", run: () => show(at + 1) },
    { keys: "[", does: "Previous file", run: () => show(at - 1) },
    { keys: "n", does: "Next comment", run: () => showNote(1) },
    { keys: "p", does: "Previous comment", run: () => showNote(-1) },
    { keys: "s", does: "Side by side or unified", run: () => setQuery({ diff: split ? "" : "split" }) },
    { keys: "c", does: "Comment on the file", run: () => waits && file && ask(comment(id, bead, file.path, null)) },
    { keys: "Escape", does: "Back to the reviews", run: () => go(address("review")) },
    ...decisionKeys(decisions),
  ]);
  if (!story) return html`<${Loading} data=${story} problem=${problem} />`;
  const checks = story.candidate?.checks ?? [];
  const general = notes.filter((note) => !note.file && (note.body || note.decision !== "commented"));
  return html`<div class="review">
    <div class="review-head"><div class="detail-top"><${State} state=${story.state} /><span class="id">${plain(story.id)}</span><span class="faint">${plain(story.rig)} → ${plain(story.target)}</span></div>
      <h2 dir="auto">${plain(story.title)}</h2><p class="lead" dir="auto">${told(story.reason)}</p>
      <${DecisionButtons} decisions=${decisions} /></div>
    <div class="review-facts"><${Facts} facts=${[
      ["Bead", html`<${BeadLink} id=${story.bead} />`], ["Run", story.run && html`<a class="id" href=${address("runs", story.run)}>${plain(story.run)}</a>`],
      ["Change", diff.data && html`${plural(diff.data.files, "file")} <span class="plus">+${diff.data.insertions}</span> <span class="minus">−${diff.data.deletions}</span>`],
      ["Commit", html`<code>${shortCommit(story.accepted)}</code>`], ["Tokens", story.tokens && tokens(story.tokens)], ["Cost", story.cost && dollarText(story.cost)],
    ]} />
      <section class="checks" aria-label="Checks"><h3>Checks</h3>${checks.length === 0 ? html`<p class="faint">${(story.rig_checks ?? []).length === 0 ? "The rig has none." : waits ? "They have passed:" : "The rig has these:"}</p>
        <ul class="plain-list">${(story.rig_checks ?? []).map((name) => html`<li key=${name}><${State} state=${waits ? "landed" : "waiting"} text=${plain(name)} /></li>`)}</ul>` : html`<ul class="plain-list">${checks.map((check) => html`<li key=${check.name}><${State} state="landed" text=${plain(check.name)} />${check.cached ? html`<span class="faint"> known from before</span>` : ""}</li>`)}</ul>`}</section>
      ${general.length > 0 && html`<section aria-label="Decisions so far"><h3>Said so far</h3>${general.map((note) => html`<${Note} key=${note.number} note=${note} isSelected=${note.number === noteAt} />`)}</section>`}</div>
    ${!diff.data ? html`<${Loading} data=${diff.data} problem=${diff.problem} />` : html`<div class="review-files">
      <nav class="file-list" aria-label="Files"><h3>Files <${Keys} keys="[ ]" /></h3><ul>${files.map((one, index) => html`<li key=${one.path}><a class=${index === at ? "here" : ""} aria-current=${index === at ? "true" : undefined} href=${address("review", id, { ...Object.fromEntries(query), file: one.path, note: "" })}>
        <span class="clip" title=${plain(one.path)}><bdi>${plain(one.path)}</bdi></span><span class="plus">+${one.added}</span><span class="minus">−${one.removed}</span>${onLines.some((note) => note.file === one.path) ? html`<span class="tag" aria-label="has comments">${onLines.filter((note) => note.file === one.path).length}</span>` : ""}</a></li>`)}</ul></nav>
      <div class="file-box">${file && html`<div class="file-head"><strong class="mono clip">${plain(file.path)}</strong>${file.note && html`<span class="tag">${plain(file.note)}</span>`}<span class="push"></span>
        <${Choice} label="How the change is shown" value=${split ? "split" : "unified"} options=${[["unified", "Unified"], ["split", "Side by side"]]} onChange=${(/** @type {string} */ value) => setQuery({ diff: value === "split" ? "split" : "" })} />
        ${waits && html`<button class="small" onClick=${() => ask(comment(id, bead, file.path, null))}>Comment <${Keys} keys="c" /></button>`}</div>
        <${FileDiff} key=${file.path} file=${file} split=${split} notes=${onLines.filter((note) => note.file === file.path)} noteAt=${noteAt} onComment=${onComment} />`}
        ${files.length === 0 && html`<${Empty} title="No file differs" />`}
        ${diff.data.truncated && html`<p class="pad faint">The change is too long; <code>gt review diff ${id}</code> shows all of it.</p>`}</div></div>`}</div>`;
}

export function Review() {
  const { id } = route.value;
  const { data, problem } = useDocument("/api/v1/reviews", {}, { wants: (event) => ABOUT_REVIEWS.has(event.event_type) });
  const items = data ?? [];
  const { at, item, move } = useSelection(items, (request) => request.id, { first: true });
  useKeys("Reviews", [
    { keys: "j", does: "Next review", repeats: true, run: () => (id ? go(address("review", items[Math.min(items.length - 1, items.findIndex((one) => one.id === id) + 1)]?.id ?? id)) : move(1)) },
    { keys: "k", does: "Previous review", repeats: true, run: () => (id ? go(address("review", items[Math.max(0, items.findIndex((one) => one.id === id) - 1)]?.id ?? id)) : move(-1)) },
    { keys: "Enter", does: "Open the review", run: () => !id && item && go(address("review", item.id)) },
  ]);
  if (!data) return html`<${ViewHead} title="Review" /><${Loading} data=${data} problem=${problem} />`;
  const list = items.length === 0 ? html`<${Empty} title="No review waits"><p>Finished work appears here when its rig or convoy asks for a person's review.</p><//>`
    : html`<ul class="cards">${items.map((request, index) => html`<li key=${request.id} class="card ${request.id === id || (!id && index === at) ? "here" : ""}"><a href=${address("review", request.id)}>
      <span class="card-top"><${State} state="review" text=${plain(request.rig)} /><span class="id">${plain(request.id)}</span><span class="push"><${Age} since=${request.changed_at} /></span></span>
      <span class="card-title" dir="auto">${plain(request.title)}</span></a></li>`)}</ul>`;
  return html`<${ViewHead} title="Review" count=${items.length} />
    <${Split} label="Reviews" isOpen=${Boolean(id)} back=${address("review")} list=${list}
      detail=${id ? html`<${OneReview} key=${id} id=${id} />` : html`<${Empty} title=${items.length ? "Choose a review" : "All reviewed"} />`} />`;
}
