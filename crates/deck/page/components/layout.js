// A list beside what is selected in it. On a phone only one of the two is shown.
import { html } from "../html.js";
import { go } from "../router.js";

/** @param {{ list: any, detail: any, isOpen: boolean, back: string, label: string }} props */
export function Split({ list, detail, isOpen, back, label }) {
  return html`<div class="split ${isOpen ? "open" : ""}">
    <section class="split-list" aria-label=${label}>${list}</section>
    <section class="split-detail" aria-label="Details">
      <button class="back phone-only" onClick=${() => go(back)}>← Back</button>${detail}</section></div>`;
}

/** The head of a view: its name, filters, and what belongs to the right. @param {{ title: string, count?: any, children?: any }} props */
export function ViewHead({ title, count, children }) {
  return html`<div class="view-head"><h1>${title}${count !== undefined && html`<span class="count">${count}</span>`}</h1><div class="tools">${children}</div></div>`;
}

/** Facts as names and values; those without a value are left out. @param {{ facts: [string, any][] }} props */
export function Facts({ facts }) {
  return html`<dl class="facts">${facts.filter(([, value]) => value !== null && value !== undefined && value !== "" && value !== false).map(([name, value]) => html`
    <div key=${name} class=${name === "Next" ? "fact-wide" : ""}><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>`;
}
