"""Calls every tool of beads-mcp against bd. Prints a JSON object: version, and for each call its name and whether it worked."""

import asyncio
import importlib.metadata
import json
import os
import sys

from fastmcp import Client
from fastmcp.client.transports import StdioTransport

program, bd, workspace = sys.argv[1:4]
results = []


async def call(client, tool, arguments=None):
    name = tool if not arguments or "action" not in arguments else f"{tool} {arguments['action']}"
    try:
        answer = await client.call_tool(tool, arguments or {})
        results.append({"call": name, "worked": True})
        return answer.data
    except Exception as error:  # every kind of failure is a result
        results.append({"call": name, "worked": False, "error": str(error)[:300]})
        return None


def id_of(made):
    made = made if isinstance(made, dict) else getattr(made, "__dict__", {}) or {}
    return str(made.get("id", "no-id"))


async def main():
    environment = {**os.environ, "BEADS_PATH": bd, "BEADS_WORKING_DIR": workspace}
    transport = StdioTransport(command=program, args=[], env=environment, cwd=workspace)
    async with Client(transport) as client:
        tools = {tool.name for tool in await client.list_tools()}
        await call(client, "context", {"action": "set", "workspace_root": workspace})
        await call(client, "context", {"action": "show"})
        await call(client, "context", {"action": "init", "prefix": "app"})
        await call(client, "discover_tools")
        await call(client, "get_tool_info", {"tool_name": "create"})
        one = await call(client, "create", {"title": "One", "description": "first", "priority": 1})
        two = await call(client, "create", {"title": "Two", "issue_type": "bug", "labels": ["ui"]})
        first, second = id_of(one), id_of(two)
        await call(client, "dep", {"issue_id": second, "depends_on_id": first})
        await call(client, "blocked")
        await call(client, "ready", {"limit": 5})
        await call(client, "list", {"status": "open"})
        await call(client, "show", {"issue_id": first})
        await call(client, "claim", {"issue_id": first})
        await call(client, "update", {"issue_id": first, "priority": 0, "notes": "seen"})
        await call(client, "comment", {"issue_id": first, "text": "a comment"})
        await call(client, "comments", {"issue_id": first})
        await call(client, "note", {"issue_id": first, "text": "a note"})
        await call(client, "close", {"issue_id": first, "reason": "done"})
        await call(client, "reopen", {"issue_ids": [first], "reason": "again"})
        await call(client, "stats")
        for action in ["validate", "repair", "schema", "debug", "migration", "pollution"]:
            await call(client, "admin", {"action": action})
        tried = {result["call"].split(" ")[0] for result in results}
        for tool in sorted(tools - tried):
            results.append({"call": tool, "worked": False, "error": "no call is written for it"})


asyncio.run(main())
print(json.dumps({"version": importlib.metadata.version("beads-mcp"), "results": results}))
