// Light, dark, or as the system has it.
import { signal } from "./html.js";

const SETTING = "gt-deck-theme";
const ORDER = ["system", "light", "dark"];

export const theme = signal(localStorage.getItem(SETTING) ?? "system");

function apply() {
  document.documentElement.dataset.theme = theme.value;
}

/** Goes on to the next theme. */
export function nextTheme() {
  theme.value = ORDER[(ORDER.indexOf(theme.value) + 1) % ORDER.length];
  localStorage.setItem(SETTING, theme.value);
  apply();
}

apply();
