// Reads the text of `git diff`. Whatever cannot be understood is shown as it is.

/**
 * @typedef {{ kind: "same" | "add" | "remove" | "hunk" | "note", old: number | null, new: number | null, text: string }} DiffLine
 * @typedef {{ path: string, old: string, lines: DiffLine[], added: number, removed: number, note: string }} DiffFile
 */

/** A name as git quotes it. @param {string} name */
function unquoted(name) {
  if (!name.startsWith('"')) return name;
  try {
    const bytes = name.slice(1, -1).replace(/\\([0-7]{3})/g, (_, digits) => String.fromCharCode(parseInt(digits, 8))).replace(/\\(["\\])/g, "$1");
    return decodeURIComponent(escape(bytes));
  } catch {
    return name;
  }
}

/** @param {string} line @param {string} side */
function pathAfter(line, side) {
  const name = unquoted(line.slice(4).replace(/\t$/, ""));
  return name === "/dev/null" ? "" : name.replace(new RegExp(`^${side}/`), "");
}

/** @param {string} text @returns {DiffFile[]} */
export function parseDiff(text) {
  /** @type {DiffFile[]} */
  const files = [];
  /** @type {DiffFile | null} */
  let file = null;
  let oldLine = 0;
  let newLine = 0;
  let inHunk = false;
  for (const line of text.split("\n")) {
    if (line.startsWith("diff --git ")) {
      const named = /^diff --git a\/(.*) b\/(.*)$/.exec(line);
      file = { path: named?.[2] ?? line.slice(11), old: "", lines: [], added: 0, removed: 0, note: "" };
      files.push(file);
      inHunk = false;
    } else if (!file) {
      continue;
    } else if (line.startsWith("@@")) {
      const place = /^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@/.exec(line);
      oldLine = Number(place?.[1] ?? 0);
      newLine = Number(place?.[2] ?? 0);
      inHunk = true;
      file.lines.push({ kind: "hunk", old: null, new: null, text: line });
    } else if (!inHunk) {
      if (line.startsWith("--- ")) file.old = pathAfter(line, "a");
      else if (line.startsWith("+++ ")) file.path = pathAfter(line, "b") || file.old || file.path;
      else if (line.startsWith("rename to ")) file.path = unquoted(line.slice(10));
      else if (line.startsWith("new file")) file.note = "new file";
      else if (line.startsWith("deleted file")) file.note = "deleted";
      else if (line.startsWith("rename from ")) file.note = `renamed from ${unquoted(line.slice(12))}`;
      else if (line.startsWith("Binary files")) file.lines.push({ kind: "note", old: null, new: null, text: line });
    } else if (line.startsWith("+")) {
      file.lines.push({ kind: "add", old: null, new: newLine, text: line.slice(1) });
      newLine += 1;
      file.added += 1;
    } else if (line.startsWith("-")) {
      file.lines.push({ kind: "remove", old: oldLine, new: null, text: line.slice(1) });
      oldLine += 1;
      file.removed += 1;
    } else if (line.startsWith("\\")) {
      file.lines.push({ kind: "note", old: null, new: null, text: line.slice(2) });
    } else if (line.startsWith(" ")) {
      file.lines.push({ kind: "same", old: oldLine, new: newLine, text: line.slice(1) });
      oldLine += 1;
      newLine += 1;
    }
  }
  return files;
}

/** Lines side by side: removed ones beside those that replace them. @param {DiffLine[]} lines @returns {{ left: DiffLine | null, right: DiffLine | null }[]} */
export function sideBySide(lines) {
  /** @type {{ left: DiffLine | null, right: DiffLine | null }[]} */
  const rows = [];
  /** @type {DiffLine[]} */
  let removed = [];
  /** @type {DiffLine[]} */
  let added = [];
  const flush = () => {
    for (let at = 0; at < Math.max(removed.length, added.length); at += 1) {
      rows.push({ left: removed[at] ?? null, right: added[at] ?? null });
    }
    removed = [];
    added = [];
  };
  for (const line of lines) {
    if (line.kind === "remove") removed.push(line);
    else if (line.kind === "add") added.push(line);
    else {
      flush();
      rows.push({ left: line, right: line });
    }
  }
  flush();
  return rows;
}
