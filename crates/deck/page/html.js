// The one place that joins Preact, its signals and the templates. Everything that is interpolated becomes a text node or a
// property; nothing on this page is ever parsed as HTML.
import { h, render, Fragment } from "./vendor/preact.js";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "./vendor/hooks.js";
import { signal, computed, effect, batch, useSignal, useComputed } from "./vendor/signals.js";
import htm from "./vendor/htm.js";

export const html = htm.bind(h);
export {
  h, render, Fragment, useEffect, useLayoutEffect, useMemo, useRef, useState,
  signal, computed, effect, batch, useSignal, useComputed,
};
