// The list of keys.
import { html, signal } from "../html.js";
import { write } from "../api.js";
import { activeLayers, setSingleKeys, singleKeys, useKeys } from "../keys.js";
import { useDialog } from "./basics.js";
import { Keys } from "./marks.js";

const shown = signal(/** @type {import("../keys.js").Layer[] | null} */ (null));

export function openHelp() {
  shown.value = activeLayers().filter((layer) => !layer.modal);
}

async function logOut() {
  await write("/api/v1/session", { method: "DELETE" });
  location.reload();
}

/** @param {{ layers: import("../keys.js").Layer[] }} props */
function Open({ layers }) {
  const dialog = useDialog();
  const close = () => {
    shown.value = null;
  };
  useKeys("Help", [{ keys: "?", does: "Close", run: close }, { keys: "Escape", does: "Close", run: close }], { modal: true });
  return html`<dialog ref=${dialog} class="help" aria-labelledby="help-title" onClose=${close} onCancel=${close}>
    <h2 id="help-title">Keys</h2>
    <div class="help-columns">${layers.map((layer) => html`<section key=${layer.title}><h3>${layer.title}</h3><dl>
      ${layer.bindings.filter((binding) => !binding.hidden).map((binding) => html`<div key=${binding.keys}><dt><${Keys} keys=${binding.keys} /><span class="hidden-text">${binding.keys}</span></dt><dd>${binding.does}</dd></div>`)}
    </dl></section>`)}</div>
    <label class="switch"><input type="checkbox" checked=${singleKeys.value} onChange=${(/** @type {any} */ event) => setSingleKeys(event.currentTarget.checked)} /> Single keys do something on this page</label>
    <div class="buttons"><button class="quiet" onClick=${logOut}>Log out</button><button onClick=${close}>Close <${Keys} keys="Esc" /></button></div></dialog>`;
}

export function Help() {
  return shown.value && html`<${Open} layers=${shown.value} />`;
}
