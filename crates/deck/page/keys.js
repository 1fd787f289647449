// The keyboard. Views add their keys while they are shown; `?` lists what there is.
import { signal, useLayoutEffect, useRef } from "./html.js";

/** @typedef {{ keys: string, does: string, run: () => void, hidden?: boolean, repeats?: boolean }} Binding */
/** @typedef {{ title: string, bindings: Binding[], modal: boolean }} Layer */

/** How long the first key of two waits for the second. */
const SEQUENCE_MS = 1500;
const SETTING = "gt-deck-keys";

/** @type {{ current: Layer }[]} */
const layers = [];
let prefix = "";
let prefixTimer = /** @type {ReturnType<typeof setTimeout> | undefined} */ (undefined);

/** The first key of two that was pressed. */
export const pendingKey = signal("");
/** Whether single keys do something; a person who talks to the machine may not want that. */
export const singleKeys = signal(localStorage.getItem(SETTING) !== "off");

/** @param {boolean} on */
export function setSingleKeys(on) {
  singleKeys.value = on;
  localStorage.setItem(SETTING, on ? "on" : "off");
}

/**
 * Has these keys work while the component is shown. A modal layer hides all other keys. A key that is held down runs its binding
 * once, unless the binding repeats: only movement may.
 * @param {string} title @param {Binding[]} bindings @param {{ modal?: boolean }} [options]
 */
export function useKeys(title, bindings, { modal = false } = {}) {
  const layer = useRef(/** @type {Layer} */ ({ title, bindings, modal }));
  layer.current = { title, bindings, modal };
  // With the frame, not after it: the next key of a fast typist comes before the paint.
  useLayoutEffect(() => {
    layers.push(layer);
    return () => {
      layers.splice(layers.indexOf(layer), 1);
    };
  }, []);
}

/** All keys that work now, by layer, the innermost first. */
export function activeLayers() {
  return layers.map((layer) => layer.current).reverse();
}

/** @param {EventTarget | null} target */
function isTyping(target) {
  return target instanceof HTMLElement && target.matches("input, textarea, select, [contenteditable], [data-typing]");
}

function setPrefix(/** @type {string} */ key) {
  prefix = key;
  pendingKey.value = key;
  clearTimeout(prefixTimer);
  if (key) prefixTimer = setTimeout(() => setPrefix(""), SEQUENCE_MS);
}

/** The layers whose keys work now, the innermost first: the last modal one alone, else all. */
function workingLayers() {
  const now = layers.map((layer) => layer.current).reverse();
  const modal = now.find((layer) => layer.modal);
  return modal ? [modal] : now;
}

// A browser clicks a button again and again while Enter is held down: the button of a question would confirm it.
addEventListener("keydown", (event) => {
  const presses = event.key === "Enter" || event.key === " ";
  if (event.repeat && presses && event.target instanceof HTMLElement && event.target.closest("a, button, summary")) event.preventDefault();
}, { capture: true });

addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  const { key, target } = event;
  if (isTyping(target) && key !== "Escape") return;
  if (target instanceof HTMLElement && target.dataset.typing !== undefined) return;
  if (isTyping(target) && target instanceof HTMLElement && !target.closest("dialog")) {
    // The keys of the view work again.
    target.blur();
    return;
  }
  const presses = key === "Enter" || key === " ";
  if (presses && target instanceof HTMLElement && target.closest("a, button, summary, [role=option]")) return;
  if (!singleKeys.value && key.length === 1) return;
  const pressed = prefix ? `${prefix} ${key}` : key;
  for (const { bindings } of workingLayers()) {
    const found = bindings.find((binding) => binding.keys === pressed);
    if (found) {
      event.preventDefault();
      if (event.repeat && !found.repeats) return;
      setPrefix("");
      found.run();
      return;
    }
    if (!prefix && bindings.some((binding) => binding.keys.startsWith(`${key} `))) {
      event.preventDefault();
      setPrefix(key);
      return;
    }
  }
  if (!event.repeat) setPrefix("");
});
