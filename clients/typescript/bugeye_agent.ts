// An agent's side of Bugeye: ask before you act, tell what happened, and a debugger can hold, change or stop you.
//
// One file without dependencies, for Node 18 and later: copy it. Its types can be stripped as they are. Without a debugger
// every call returns at once and changes nothing, so an agent can always make them. docs/agent-bridge.md in Bugeye's
// repository is the contract.
//
//     const bug = await connect({ agent: "my-agent", version: "1.0" });
//     const answer = await bug.gate("before_tool", { name: "bash", value: { command: "ls" }, span: "call_1" });
//     if (answer.verdict === "deny") …

import { randomUUID } from "node:crypto";
import * as fs from "node:fs";
import * as net from "node:net";
import { join } from "node:path";

export const VERSION = 1;
export const MAX_LINE = 16 * 1024 * 1024;

export type Point = "before_prompt" | "before_model" | "before_tool" | "after_tool" | "before_stop";
export type Powers = { hold?: boolean; edit?: boolean; deny?: boolean; synthesize?: boolean; abort?: boolean; inject?: boolean };
export type Message = { role: "user" | "assistant"; text: string };
export type Conversation = { model?: string; messages?: unknown[]; system?: string; tools?: unknown[] };
export const ALL_POWERS: Powers = { hold: true, edit: true, deny: true, synthesize: true, abort: true, inject: true };

/** What a gate is about. */
export type Ask = {
  value?: unknown;
  name?: string;
  span?: string;
  thread?: string;
  powers?: Powers;
  input?: unknown;
  ok?: boolean;
  ms?: number;
  conversation?: Conversation;
  aside?: boolean;
  key?: string;
};

/** What is to become of it: `value` of edit and synthesize, `reason` of deny and abort. */
export type Answer = {
  verdict: "proceed" | "edit" | "deny" | "synthesize" | "abort";
  value?: unknown;
  reason: string;
  inject: Message[];
};

/** A way for lines: those that come go to `take`, and `lost` is called when there will be none any more. */
type Transport = { send(data: Buffer): void; close(): Promise<void> };
type Take = (line: string) => void;

async function bySocket(path: string, take: Take, lost: () => void): Promise<Transport> {
  const socket = net.connect(path).setEncoding("utf8");
  await new Promise((done, failed) => socket.once("connect", done).once("error", failed));
  let half = "";
  socket.on("data", (piece) => {
    const lines = (half + piece).split("\n");
    half = lines.pop() ?? "";
    lines.forEach(take);
  });
  socket.on("error", () => {}).once("close", lost).unref();
  return {
    send: (data) => void socket.write(data),
    close: () => new Promise((done) => (socket.destroyed ? done() : socket.ref().once("close", () => done()).end())),
  };
}

/** What the debugger says of itself in the folder, if its process lives. */
function alive(folder: string): string | null {
  try {
    const text = fs.readFileSync(join(folder, "debugger.json"), "utf8");
    const { pid, start } = JSON.parse(text);
    if (start === null) return process.kill(pid, 0) ? text : null; // where there is no /proc
    const stat = fs.readFileSync(`/proc/${Number(pid)}/stat`, "utf8");
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return Number(fields[19]) === start && !"ZX".includes(fields[0] ?? "Z") ? text : null;
  } catch {
    return null;
  }
}

/** By two files in a folder: we append to events.jsonl, and are answered in commands.jsonl. */
function byFiles(folder: string, take: Take, lost: () => void): Transport {
  const debuggerThere = alive(folder);
  if (debuggerThere === null) throw new Error("no debugger is there");
  const events = fs.openSync(join(folder, "events.jsonl"), "a");
  const commands = fs.openSync(join(folder, "commands.jsonl"), "r");
  let at = fs.fstatSync(commands).size; // what is there was said to others
  let looked = Date.now();
  const look = (): void => {
    const piece = Buffer.alloc(Math.max(fs.fstatSync(commands).size - at, 0));
    const whole = piece.subarray(0, fs.readSync(commands, piece, 0, piece.length, at)).lastIndexOf("\n") + 1;
    at += whole;
    if (whole > 0) piece.toString("utf8", 0, whole).split("\n").forEach(take);
    if (Date.now() - looked < 200) return;
    looked = Date.now();
    if (alive(folder) !== debuggerThere) clearInterval(timer), lost();
  };
  const timer = setInterval(look, 5).unref();
  const send = (data: Buffer): void => {
    for (let done = 0; done < data.length; ) done += fs.writeSync(events, data, done);
  };
  send(Buffer.from("\n")); // who wrote before us may have ended in the middle of a line
  return { send, close: async () => clearInterval(timer) };
}

/** The way to the debugger. Several questions may wait at once. */
export class Debugger {
  #transport: Transport | null = null;
  #failClosed: boolean;
  #waiting = new Map<string, (answer: Answer | null) => void>();

  constructor(failClosed = false) {
    this.#failClosed = failClosed;
  }

  /** Whether a debugger is there. */
  get attached(): boolean {
    return this.#transport !== null;
  }

  /** Asks whether to go on, and waits for the answer, however long that takes. */
  async gate(point: Point, ask: Ask = {}): Promise<Answer> {
    const id = randomUUID();
    const awake = setInterval(() => {}, 1 << 30); // while somebody waits the process must not end
    const answer = await new Promise<Answer | null>((answered) => {
      this.#waiting.set(id, answered);
      if (!this.#send({ type: "gate", id, point, powers: ALL_POWERS, ...ask })) answered(null);
    });
    this.#waiting.delete(id);
    clearInterval(awake);
    if (answer !== null) return answer;
    if (!this.#failClosed || !["before_tool", "before_prompt"].includes(point)) return { verdict: "proceed", reason: "", inject: [] };
    return { verdict: "deny", reason: "the debugger is gone, and BUGEYE_AGENT_FAIL is closed", inject: [] };
  }

  /** Tells what has happened: `model.response`, `agent.spawn`, … */
  event(event: string, data: unknown = null, more: { thread?: string; span?: string } = {}): void {
    this.#send({ type: "event", event, data, ...more });
  }

  /** Says the last of it, and leaves. Whoever still waits goes on. */
  async close(): Promise<void> {
    const transport = this.#transport;
    this.#transport = null;
    for (const answered of this.#waiting.values()) answered(null);
    await transport?.close();
  }

  /** @internal */
  async open(way: (take: Take, lost: () => void) => Transport | Promise<Transport>, about: object): Promise<this> {
    try {
      this.#transport = await way((text) => this.#take(text), () => void this.close());
      this.#send({ v: VERSION, type: "hello", tap: "sdk", ...about });
    } catch {
      // Nobody is there.
    }
    return this;
  }

  #send(line: { type: string; point?: Point; [field: string]: unknown }): boolean {
    if (this.#transport === null) return false;
    try {
      const data = Buffer.from(JSON.stringify({ ...line, pid: process.pid }) + "\n");
      if (data.length > MAX_LINE) {
        const message = `a ${line.point ?? line.type} of ${data.length} bytes was not told`;
        this.#send({ type: "event", event: "log", data: { message } });
        return false;
      }
      this.#transport.send(data);
      return true;
    } catch {
      void this.close();
      return false;
    }
  }

  #take(text: string): void {
    try {
      const line = JSON.parse(text);
      if (!["answer", "error"].includes(line.type)) return;
      this.#waiting.get(line.id)?.({ verdict: "proceed", reason: "", inject: [], ...line });
    } catch {
      // What is not understood is passed over.
    }
  }
}

/** Finds the debugger that started this agent, by a socket or by files; without one, everything proceeds. */
export async function connect(about: { agent: string; version?: string; model?: string }): Promise<Debugger> {
  const { BUGEYE_AGENT_SOCKET: path, BUGEYE_AGENT_TOKEN: token, BUGEYE_AGENT_DIR: folder, BUGEYE_AGENT_FAIL: fail } = process.env;
  const hello = { ...about, cwd: process.cwd() };
  if (path && token) return new Debugger(fail === "closed").open((take, lost) => bySocket(path, take, lost), { ...hello, token });
  if (folder) return new Debugger(fail === "closed").open((take, lost) => byFiles(folder, take, lost), hello);
  return new Debugger();
}
