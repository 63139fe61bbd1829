// One walk through `bugeye mcp` with the official TypeScript SDK, of either generation; tells what it saw as one line of JSON.
//
// usage: client.mjs FOLDER MODE BUGEYE PLACE     FOLDER: where the packages are; MODE: v1 (the SDK before 2.0), or a
// mode of version 2: auto, legacy, 2026-07-28 (no other will do)

import { createRequire } from "node:module";

const [folder, mode, bugeye, place] = process.argv.slice(2);
const require = createRequire(`${folder}/package.json`);
const who = { name: "a-test", version: "1" };
const server = { command: bugeye, args: ["mcp"], env: process.env };

function made() {
  if (mode === "v1") {
    const { Client } = require("@modelcontextprotocol/sdk/client/index.js");
    const { StdioClientTransport } = require("@modelcontextprotocol/sdk/client/stdio.js");
    return [new Client(who), new StdioClientTransport(server)];
  }
  const { Client } = require("@modelcontextprotocol/client");
  const { StdioClientTransport } = require("@modelcontextprotocol/client/stdio");
  const chosen = mode.startsWith("2") ? { pin: mode } : mode;
  return [new Client(who, { versionNegotiation: { mode: chosen } }), new StdioClientTransport(server)];
}

const [client, transport] = made();
let version;
if (mode === "v1") transport.setProtocolVersion = (agreed) => (version = agreed);
await client.connect(transport);
version ??= client.getNegotiatedProtocolVersion();

const { tools } = await client.listTools();

async function call(name, args = {}) {
  const { content, isError } = await client.callTool({ name, arguments: args });
  return { text: content.map((part) => part.text).join(""), error: Boolean(isError) };
}

const stop = await call("debug_run", { command: ["python3", "loop.py"], break: [place] });
const session = stop.text.split("[")[1].split(" ")[0];
const answer = {
  version,
  server: client.getServerVersion()?.name,
  tools: tools.map((tool) => tool.name),
  stop,
  next: await call("debug_continue", { session }),
  eval: await call("debug_print", { session, expressions: ["total * 100 + i"] }),
  unknown: await call("debug_walk"),
  end: await call("debug_sessions", { session, action: "stop" }),
  left: await call("debug_sessions"),
};
await client.close();
console.log(JSON.stringify(answer));
