"""A scripted agent: it is told that a program's result is wrong and what must hold, and finds where it stops holding.

It knows the server by its tools alone, decides from the replies, and tells what it found, the calls and the tokens
(bytes / 4 of what a model would read) as one line of JSON.

usage: agent.py BUGEYE TASK PLACE COMMAND...     in the program's folder; TASK: c, python, go
"""

import asyncio
import json
import os
import re
import sys
import time

from mcp import Client
from mcp.client.stdio import StdioServerParameters

MOST_CALLS = 6


class Task:
    """What a report of a wrong result says: what to look at, and what must hold at every pass."""

    def __init__(self, index, names, broken, culprit, both, why):
        self.index, self.names, self.broken = index, names, broken
        # The variable that is wrong then, how two conditions are joined, and a question that tells the reason.
        self.culprit, self.both, self.why = culprit, both, why


TASKS = {
    # "The total is 1036; it should be 36."
    "c": Task("i", ["i", "score", "total"], lambda at: int(at["score"]) + int(at["total"]) > 36, "score", "&&",
              ["count", "table->limit"]),
    # "The balance is too high: some refund is not taken off."
    "python": Task("number", ["number", "kind", "before", "balance"],
                   lambda at: "refund" in at["kind"].lower() and int(at["balance"]) > int(at["before"]),
                   "kind", "and", ["kind == 'refund'", "rows[number]"]),
    # "There is more left than there was."
    "go": Task("i", ["i", "order", "before", "stock"], lambda at: int(at["stock"]) > int(at["before"]), "stock", "&&",
               ["order > before"]),
}


class Counted:
    """A client that counts what its calls cost whoever reads the replies."""

    def __init__(self, client):
        self.client, self.trail, self.began = client, [], time.monotonic()

    async def call(self, tool, **arguments):
        result = (await self.client.call_tool(tool, arguments)).model_dump(by_alias=True)
        text = "".join(part["text"] for part in result["content"])
        data = result.get("structuredContent")
        size = len(text.encode()) + (len(json.dumps(data).encode()) if data else 0)
        self.trail.append((tool, size // 4))
        if result["isError"]:
            raise SystemExit(f"{tool} {arguments}: {text}")
        return text

    async def report(self, **found):
        tools = await self.client.list_tools()
        listed = json.dumps([tool.model_dump(by_alias=True, exclude_none=True) for tool in tools.tools], ensure_ascii=False,
                            separators=(",", ":"))
        return {
            **found,
            "calls": len(self.trail),
            "tokens": sum(tokens for _, tokens in self.trail),
            "list_tokens": len(listed.encode()) // 4,
            "trail": self.trail,
        }


def values(text, names):
    """The values by name in a line that has them all, or None."""
    pattern = r"\s+".join(rf"{re.escape(name)}=(.*?)" for name in names) + r"(?:\s{2,}|$)"
    match = re.search(r"(?:^|\s)" + pattern, text)
    return dict(zip(names, match.groups())) if match else None


def passes(trace, names):
    """The hits that a trace shows, and the gaps: pairs of the hits around those that it leaves out."""
    shown, gaps, hole = [], [], False
    for line in trace.splitlines():
        if re.match(r"\s+… \d+ more", line):
            hole = True
        elif re.match(r"\s+\d+ ", line) and (at := values(line, names)):
            if hole:
                gaps.append((shown[-1], at))
            shown.append(at)
            hole = False
    return shown, gaps


async def find(server, task, place, command):
    """The first pass at which it is broken: traced, narrowed down where hits were left out, and looked at."""
    index, question = task.index, f"{place}: {', '.join(task.names)}"
    shown, gaps = passes(await server.call("debug_trace", at=[question], command=command), task.names)
    broken = [at for at in shown if task.broken(at)]
    while not broken and gaps and len(server.trail) < MOST_CALLS - 4:
        low, high = max(gaps, key=lambda gap: int(gap[1][index]) - int(gap[0][index]))
        between = f"{index} > {low[index]} {task.both} {index} < {high[index]}"
        trace = await server.call("debug_trace", at=[question], command=command, when=between)
        shown, gaps = passes(trace, task.names)
        broken = [at for at in shown if task.broken(at)]
    if not broken:
        return {"found": None}
    first = broken[0]
    await server.call("debug_break", at=[place], **{"if": f"{index} == {first[index]}"})
    stop = await server.call("debug_run", command=command)
    session = re.search(r"\[(\S+) via", stop)[1]
    assert re.search(rf"\b{index}={first[index]}\b", stop), f"not that pass: {stop}"
    why = await server.call("debug_print", session=session, expressions=task.why)
    await server.call("debug_sessions", session=session, action="stop")
    return {"found": {index: first[index]}, "variable": task.culprit, "value": first[task.culprit], "why": why.splitlines()}


async def main(bugeye, task, place, *command):
    server = StdioServerParameters(command=bugeye, args=["mcp"], env=dict(os.environ))
    async with Client(server) as client:
        counted = Counted(client)
        found = await find(counted, TASKS[task], place, list(command))
        found["seconds"] = round(time.monotonic() - counted.began, 2)
        print(json.dumps(await counted.report(**found)))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
