// An agent's side of Bugeye: ask before you act, tell what happened, and a debugger can hold, change or stop you.
//
// One file without dependencies, for Node 18 and later: copy it. Its types can be stripped as they are. Without a debugger
// every call returns at once and changes nothing, so an agent can always make them. docs/agent-bridge.md in Bugeye's
// repository is the contract.
//
//     const bug = await connect({ agent: "my-agent", version: "1.0" });
//     const answer = await bug.gate("before_tool", { name: "bash", value: { command: "ls" }, span: "call_1" });
//     if (answer.verdict === "deny") …

import { randomBytes } from "node:crypto";
import * as fs from "node:fs";
import * as net from "node:net";
import { join } from "node:path";
import { StringDecoder } from "node:string_decoder";

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

type Line = Record<string, unknown>;

/** A way for lines. `take` gets each that comes, `lost` is called once when there will be none any more. */
interface Transport {
  send(line: Line): void;
  /** While somebody waits the process must not end. */
  hold(waits: boolean): void;
  close(): Promise<void>;
}

async function bySocket(path: string, token: string, take: (text: string) => void, lost: () => void): Promise<Transport> {
  const socket = net.connect(path);
  await new Promise<void>((done, failed) => {
    const late = setTimeout(() => failed(new Error("the debugger does not answer")), 5000);
    socket.once("connect", () => (clearTimeout(late), done()));
    socket.once("error", (error) => (clearTimeout(late), failed(error)));
  }).catch((error) => (socket.destroy(), Promise.reject(error)));
  split(socket, take);
  socket.on("error", () => {});
  socket.once("close", lost);
  socket.unref();
  return {
    send: (line) => void socket.write(JSON.stringify(line.type === "hello" ? { ...line, token } : line) + "\n"),
    hold: (waits) => void (waits ? socket.ref() : socket.unref()),
    close: () => new Promise((done) => socket.destroyed ? done() : socket.ref().once("close", () => done()).end()),
  };
}

function split(socket: net.Socket, take: (text: string) => void): void {
  const decoder = new StringDecoder("utf8");
  let half = "";
  socket.on("data", (piece) => {
    const lines = (half + decoder.write(piece as Buffer)).split("\n");
    half = lines.pop() ?? "";
    lines.forEach(take);
  });
}

/** The debugger's process and when it began, if it lives. */
function here(folder: string): string | null {
  try {
    const { pid, start } = JSON.parse(fs.readFileSync(join(folder, "debugger.json"), "utf8"));
    if (!fs.existsSync("/proc/self/stat")) return process.kill(pid, 0) ? `${pid} ${start}` : null;
    const stat = fs.readFileSync(`/proc/${Number(pid)}/stat`, "utf8");
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    const same = start === null || start === Number(fields[19]);
    return same && !"ZX".includes(fields[0] ?? "Z") ? `${pid} ${start}` : null;
  } catch {
    return null;
  }
}

/** By two files in a folder: we append to events.jsonl, and are answered in commands.jsonl. */
function byFiles(folder: string, take: (text: string) => void, lost: () => void): Transport {
  const debuggee = here(folder);
  if (debuggee === null) throw new Error("no debugger is there");
  const events = fs.openSync(join(folder, "events.jsonl"), "a+", 0o600);
  const size = fs.fstatSync(events).size;
  const last = Buffer.alloc(1);
  // An earlier agent may have ended in the middle of a line; what is there to read was said to others.
  if (size > 0 && fs.readSync(events, last, 0, 1, size - 1) === 1 && last[0] !== 10) fs.writeSync(events, "\n");
  const commands = fs.openSync(join(folder, "commands.jsonl"), "r");
  let at = fs.fstatSync(commands).size;
  const decoder = new StringDecoder("utf8");
  const buffer = Buffer.alloc(64 * 1024);
  let [half, pause, looked, ended, waits] = ["", 1, Date.now(), false, false];
  let timer: NodeJS.Timeout | undefined;
  const look = (): void => {
    if (ended) return;
    for (let read; (read = fs.readSync(commands, buffer, 0, buffer.length, at)) > 0; pause = 1) {
      at += read;
      const lines = (half + decoder.write(buffer.subarray(0, read))).split("\n");
      half = lines.pop() ?? "";
      lines.forEach(take);
    }
    if (Date.now() - looked > 200) {
      looked = Date.now();
      if (here(folder) !== debuggee) return ended = true, lost();
    }
    pause = Math.min(pause * 1.5, 50);
    timer = setTimeout(look, pause);
    if (!waits) timer.unref();
  };
  look();
  return {
    send: (line) => {
      const bytes = Buffer.from(JSON.stringify(line) + "\n");
      for (let done = 0; done < bytes.length; ) done += fs.writeSync(events, bytes, done);
    },
    hold: (now) => {
      [waits, pause] = [now, 1];
      clearTimeout(timer);
      look();
    },
    close: async () => {
      ended = true;
      clearTimeout(timer);
    },
  };
}

/** The way to the debugger. Several questions may wait at once. */
export class Debugger {
  #transport: Transport | null = null;
  #closed: boolean;
  #waiting = new Map<string, (answer: Answer | null) => void>();
  #prefix = `${process.pid}-${randomBytes(4).toString("hex")}-`;
  #count = 0;

  constructor(closed = false) {
    this.#closed = closed;
  }

  /** Whether a debugger is there. */
  get attached(): boolean {
    return this.#transport !== null;
  }

  /** Asks whether to go on, and waits for the answer, however long that takes. */
  async gate(point: Point, ask: Ask = {}): Promise<Answer> {
    const id = this.#prefix + String(++this.#count);
    const answer = await new Promise<Answer | null>((answered) => {
      this.#waiting.set(id, answered);
      if (this.#send({ type: "gate", id, point, powers: ALL_POWERS, ...ask })) this.#transport?.hold(true);
      else answered(null);
    });
    this.#waiting.delete(id);
    if (this.#waiting.size === 0) this.#transport?.hold(false);
    if (answer !== null) return answer;
    const denied = this.#closed && (point === "before_tool" || point === "before_prompt");
    const reason = denied ? "the debugger is gone, and BUGEYE_AGENT_FAIL is closed" : "";
    return { verdict: denied ? "deny" : "proceed", reason, inject: [] };
  }

  /** Tells what has happened: `model.response`, `agent.spawn`, … */
  event(event: string, data: unknown = null, more: { thread?: string; span?: string } = {}): void {
    this.#send({ type: "event", event, data, ...more });
  }

  /** Says the last of it, and leaves. */
  async close(): Promise<void> {
    const transport = this.#transport;
    this.#lost();
    await transport?.close();
  }

  /** @internal */
  async open(way: (take: (text: string) => void, lost: () => void) => Promise<Transport>, about: Line): Promise<this> {
    try {
      this.#transport = await way((text) => this.#take(text), () => this.#lost());
      this.#send({ v: VERSION, type: "hello", tap: "sdk", ...about });
    } catch {
      this.#lost();
    }
    return this;
  }

  #send(line: Line): boolean {
    if (this.#transport === null) return false;
    try {
      line.pid = process.pid;
      if (Buffer.byteLength(JSON.stringify(line)) >= MAX_LINE) {
        const message = `a ${line.point ?? line.type} of more than ${MAX_LINE} bytes was not told`;
        this.#send({ type: "event", event: "log", data: { message } });
        return false;
      }
      this.#transport.send(line);
      return true;
    } catch {
      this.#lost();
      return false;
    }
  }

  #take(text: string): void {
    let line: Line;
    try {
      line = JSON.parse(text);
    } catch {
      return;
    }
    const answered = this.#waiting.get(String(line.id));
    if (line.type !== "answer" && line.type !== "error") return;
    answered?.({ verdict: "proceed", reason: "", inject: [], ...line } as Answer);
  }

  #lost(): void {
    this.#transport = null;
    for (const answered of this.#waiting.values()) answered(null);
  }
}

/** Finds the debugger that started this agent; without one, everything proceeds. */
export async function connect(about: { agent: string; version?: string; model?: string; transport?: "auto" | "socket" | "files" }): Promise<Debugger> {
  const { transport = "auto", ...rest } = about;
  const { BUGEYE_AGENT_SOCKET: path, BUGEYE_AGENT_TOKEN: token, BUGEYE_AGENT_DIR: folder, BUGEYE_AGENT_FAIL: fail } = process.env;
  const socket = path && token && transport !== "files";
  const files = folder && transport !== "socket";
  const bug = new Debugger(fail === "closed" && Boolean(socket || files));
  const said = { ...rest, cwd: process.cwd() };
  if (socket) return bug.open((take, lost) => bySocket(path, token, take, lost), said);
  if (files) return bug.open(async (take, lost) => byFiles(folder, take, lost), said);
  return bug;
}
