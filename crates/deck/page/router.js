// Every view and filter is an address. The address is the part after `#`, so that the page works below any path.
import { signal } from "./html.js";

/** @typedef {{ view: string, id: string, part: string, query: URLSearchParams }} Route */

/** The name of the view that is shown first. */
const FIRST_VIEW = "needs";

/** @returns {Route} */
function parse() {
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?", 2);
  const [view = "", id = "", part = ""] = path.split("/").map((piece) => {
    try {
      return decodeURIComponent(piece);
    } catch {
      return piece;
    }
  });
  return { view: view || FIRST_VIEW, id, part, query: new URLSearchParams(query) };
}

export const route = signal(parse());
addEventListener("hashchange", () => {
  route.value = parse();
});

/**
 * The address of a view.
 * @param {string} view @param {string} [id] @param {Record<string, string | number | null | undefined>} [query] @param {string} [part]
 */
export function address(view, id = "", query = {}, part = "") {
  const pieces = [view, id, part].map(encodeURIComponent);
  while (pieces.at(-1) === "") pieces.pop();
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== null && value !== undefined && value !== "") search.set(name, String(value));
  }
  const text = search.toString();
  return `#/${pieces.join("/")}${text ? `?${text}` : ""}`;
}

/** Goes to an address. @param {string} target @param {boolean} [replace] without a new entry in the history */
export function go(target, replace = false) {
  if (target === location.hash) return;
  if (replace) {
    history.replaceState(null, "", target);
    route.value = parse();
  } else {
    location.hash = target;
    // The event comes later; the next key may come before it.
    route.value = parse();
  }
}

/** Changes filters of the current view. @param {Record<string, string | number | null | undefined>} changes @param {boolean} [replace] */
export function setQuery(changes, replace = true) {
  const { view, id, part, query } = route.value;
  go(address(view, id, { ...Object.fromEntries(query), ...changes }, part), replace);
}
