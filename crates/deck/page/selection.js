// The row of a list that keys act on. It is known by its key, not by its place: when a list changes, no other row takes its place.
import { useEffect, useRef, useState } from "./html.js";

/**
 * While the chosen row is gone nothing is selected, until a person moves or the row comes back.
 * @template T
 * @param {T[]} items @param {(item: T) => string} keyOf @param {{ first?: boolean }} [options] `first` chooses the first row of a list that is shown anew
 */
export function useSelection(items, keyOf, { first = false } = {}) {
  const [chosen, setChosen] = useState(/** @type {string | null} */ (null));
  const place = useRef(0);
  const at = chosen === null ? -1 : items.findIndex((item) => keyOf(item) === chosen);
  if (at >= 0) place.current = at;
  useEffect(() => {
    if (first && chosen === null && items.length > 0) setChosen(keyOf(items[0]));
  }, [first, chosen, items.length]);
  const move = (/** @type {number} */ by) => {
    if (items.length > 0) setChosen(keyOf(items[nextPlace(at, by, chosen === null ? 0 : place.current, items.length)]));
  };
  return { at, item: at >= 0 ? items[at] : undefined, move };
}

/** The place after a move. The row that took the place of one that is gone is the next one. @param {number} at @param {number} by @param {number} before @param {number} length */
export function nextPlace(at, by, before, length) {
  const next = at >= 0 ? at + by : by > 0 ? before : before - 1;
  return Math.max(0, Math.min(length - 1, next));
}
