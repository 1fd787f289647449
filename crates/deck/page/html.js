// The one place that joins Preact, its signals and the templates. Everything that is interpolated becomes a text node or a
// property; nothing on this page is ever parsed as HTML.
import { h, render, Fragment } from "./vendor/preact.js";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "./vendor/hooks.js";
import { signal, computed, effect, batch, useSignal, useComputed } from "./vendor/signals.js";
import htm from "./vendor/htm.js";

/**
 * A template without values would be made once and used again. Each element knows the one around it, so such an element would keep
 * the view that it was in for as long as the page is open: all elements are made anew.
 * @this {number[]} @param {[any, any, ...any[]]} parts
 */
function element(...parts) {
  this[0] = 3;
  return h(...parts);
}

export const html = htm.bind(element);
export {
  h, render, Fragment, useEffect, useLayoutEffect, useMemo, useRef, useState,
  signal, computed, effect, batch, useSignal, useComputed,
};
