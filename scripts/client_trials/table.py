"""Writes the table of docs/reference/clients.md from the results in a directory."""

import json
import pathlib
import sys

CLIENTS = {
    "beads-mcp": "all its tools, over MCP",
    "beads-ui": "all requests of its page, over its WebSocket",
    "bv": "its reports for programs, over the export",
}

print("# Programs around beads\n")
print("Written by `scripts/clients`, which installs each program unchanged and runs its calls against our `bd`.\n")
print("| program | version | calls | tried | worked |\n|---|---|---|---|---|")
failures = []
for name, calls in CLIENTS.items():
    path = pathlib.Path(sys.argv[1]) / f"{name}.json"
    found = json.loads(path.read_text()) if path.exists() and path.read_text().strip() else {"version": None}
    if found["version"] is None:
        print(f"| {name} | not installed | {calls} | 0 | 0 |")
        failures.append(f"- {name} could not be installed: {found.get('why', 'its trial did not finish')}")
        continue
    results = found["results"]
    worked = [result for result in results if result["worked"]]
    print(f"| {name} | {found['version']} | {calls} | {len(results)} | {len(worked)} |")
    for result in results:
        if not result["worked"]:
            said = " ".join(str(result.get("error")).split())[:160]
            failures.append(f"- {name} `{result['call']}`: {said}")
print("\n## Calls that did not work\n")
print("\n".join(failures) if failures else "None.")
