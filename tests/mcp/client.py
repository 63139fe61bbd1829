"""One walk through `bugeye mcp` with the official Python SDK, of either generation; tells what it saw as one line of JSON.

usage: client.py MODE BUGEYE PLACE     MODE: v1 (the SDK before 2.0), or a mode of the SDK 2: auto, legacy, 2026-07-28
BUGEYE is the program, or the address of one that serves HTTP, whose token is in BUGEYE_MCP_TOKEN.
"""

import asyncio
import json
import os
import sys
from contextlib import asynccontextmanager

from mcp.client.stdio import StdioServerParameters


@asynccontextmanager
async def connected(mode, server):
    if mode == "v1":
        from mcp import ClientSession
        from mcp.client.stdio import stdio_client

        async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
            greeting = await session.initialize()
            yield session, greeting.protocolVersion, greeting.serverInfo.name
    else:
        from mcp import Client

        async with Client(server, mode=mode) as client:
            yield client, client.protocol_version, client.server_info and client.server_info.name


def server_at(bugeye):
    if not bugeye.startswith("http"):
        return StdioServerParameters(command=bugeye, args=["mcp"], env=dict(os.environ))
    from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client

    token = {"Authorization": "Bearer " + os.environ["BUGEYE_MCP_TOKEN"]}
    return streamable_http_client(bugeye, http_client=create_mcp_http_client(headers=token))


async def walk(mode, bugeye, place):
    server = server_at(bugeye)
    async with connected(mode, server) as (client, version, name):
        tools = (await client.list_tools()).tools

        async def call(tool, **arguments):
            dumped = (await client.call_tool(tool, arguments)).model_dump(by_alias=True)
            return {"text": "".join(part["text"] for part in dumped["content"]), "error": bool(dumped["isError"])}

        stop = await call("debug_run", command=["python3", "loop.py"], **{"break": [place]})
        session = stop["text"].split("[")[1].split()[0]
        answer = {
            "version": version,
            "server": name,
            "tools": [tool.name for tool in tools],
            "stop": stop,
            "next": await call("debug_continue", session=session),
            "eval": await call("debug_print", session=session, expressions=["total * 100 + i"]),
            "unknown": await call("debug_walk"),
            "end": await call("debug_sessions", session=session, action="stop"),
            "left": await call("debug_sessions"),
        }
    print(json.dumps(answer))


asyncio.run(walk(*sys.argv[1:]))
