// The output of the check that failed with a merge request.
import { html } from "../html.js";
import { useDocument } from "../store.js";
import { plain, shortCommit } from "../format.js";
import { Log } from "./basics.js";

/** Lines of the output that are shown; `gt mq log` prints all. */
const LINES_MAX = 200;

/** Shows nothing if no check has failed. @param {{ id: string }} props */
export function CheckLog({ id }) {
  const { data } = useDocument("/api/v1/merge-requests/{id}/log", { path: { id } }, { wants: () => false });
  if (!data) return null;
  const ended = data.exit_code === null || data.exit_code === undefined ? "was ended" : `ended with ${data.exit_code}`;
  return html`<section><h3>Check <code>${plain(data.check)}</code> ${ended} on <code>${shortCommit(data.commit)}</code></h3>
    <${Log} text=${data.output.split("\n").slice(-LINES_MAX).join("\n")} label=${`Output of ${plain(data.check)}`} /></section>`;
}
