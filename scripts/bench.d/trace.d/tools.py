"""Bugeye and the other tools for agents, each in the fastest way it offers to have two values of every hit.

A tool has a home of its own and runs in the program's folder. Its time is that of all the processes it takes, from the
start of the first until the last value is there; what it leaves running for the next time is left to it.
"""

import json
import os
import re
import shutil
import subprocess
import time


class Failed(Exception):
    pass


class Tool:
    name = way = ""
    # Whether it goes hit by hit, a process for each command.
    single = False
    # Seconds for a program with a single hit, once they are known.
    once = None
    PATIENCE = 120

    def __init__(self, folder, paths):
        self.folder = os.path.join(folder, re.sub(r"\W+", "-", self.name + " " + self.way))
        for part in ("home", "run"):
            os.makedirs(os.path.join(self.folder, part), mode=0o700, exist_ok=True)
        self.home = os.path.join(self.folder, "home")
        self.env = {k: v for k, v in os.environ.items() if not k.startswith(("XDG_", "BUGEYE_", "DBG_"))}
        self.env.update(
            HOME=self.home, XDG_RUNTIME_DIR=os.path.join(self.folder, "run"), BUGEYE_HOME=self.home,
            PATH=os.pathsep.join([*paths, os.environ["PATH"]]),
        )

    def call(self, cwd, *words):
        """One command; its output."""
        try:
            done = subprocess.run(
                [self.binary, *words], cwd=cwd, env=self.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT, timeout=self.PATIENCE,
            )
        except subprocess.TimeoutExpired:
            raise Failed(f"`{words[0]}` did not answer in {self.PATIENCE} s") from None
        text = done.stdout.decode(errors="replace")
        if done.returncode != 0:
            lines = [line.strip() for line in text.splitlines() if line.strip()]
            marks = ("failed to spawn", "✗", "rror")
            told = next((line for mark in marks for line in lines if mark in line), lines[-1] if lines else "no output")
            raise Failed(f"`{words[0]}`: {told[:200]}")
        return text


class Bugeye(Tool):
    """One command."""

    name = "bugeye"

    def __init__(self, binary, adapter, folder, paths):
        self.binary, self.adapter, self.way = binary, adapter, ""
        super().__init__(folder, paths)

    def run(self, program, hits, paths):
        words = ["trace", "--json", "--timeout", "600s", "--adapter", self.adapter]
        words += [] if paths else ["--no-paths"]
        words += ["--at", f"{program.place}: i, sum", "--", *program.words]
        began = time.perf_counter()
        text = self.call(program.folder, *words)
        took = time.perf_counter() - began
        result = json.loads(text)["result"]
        self.way = result["way"]
        told = result["hits"]
        ways = [[frame["function"] for frame in hit.get("frames", [])] for hit in told] if paths else None
        if len(told) < result["total"] or hits > len(told):
            if "file" not in result:
                raise Failed(f"{len(told)} hits are told, and no file is named")
            return took, self.all(result["file"]), ways
        return took, [(int(hit["values"]["i"]), int(hit["values"]["sum"])) for hit in told], ways

    @staticmethod
    def all(path):
        """The hits of the file that the reply names."""
        with open(path) as file:
            for line in file:
                if line[1] != '"':
                    i, total = json.loads(line)[4]
                    yield tuple(int(v if isinstance(v, str) else v[0]) for v in (i, total))


class Debugger(Tool):
    """A scenario of its `test` command: one process that says every step over one connection, and prints each value."""

    name, way = "debugger-cli", "test scenario"

    def __init__(self, binary, adapter, found, folder, paths):
        self.binary = binary
        self.adapter = {"node": "js-debug"}.get(adapter, adapter)
        super().__init__(folder, paths)
        config = os.path.join(self.home, ".config", "debugger-cli")
        os.makedirs(config, exist_ok=True)
        tcp = 'transport = "tcp"\n'
        with open(os.path.join(config, "config.toml"), "w") as file:
            for name, path, words, more in (
                ("lldb-dap", found["lldb-dap"], [], ""), ("gdb", found["gdb"], ["-i=dap"], ""),
                ("debugpy", found["python"], ["-m", "debugpy.adapter"], ""), ("delve", found["delve"], ["dap"], tcp),
                ("js-debug", shutil.which("node"), [found["js-debug"]], tcp + 'spawn_style = "tcp-port-arg"\n'),
            ):
                file.write(f'[adapters.{name}]\npath = "{path}"\nargs = {json.dumps(words)}\n{more}')

    def run(self, program, hits, paths):
        path = os.path.join(self.folder, "scenario.yaml")
        steps = ["{action: command, command: continue}", "{action: await, timeout: 30}"]
        steps += ["{action: evaluate, expression: i}", "{action: evaluate, expression: sum}"]
        if paths:
            # It prints no frames here; it compares them.
            steps.append("{action: inspect_stack, asserts: [{index: 0, function: work}, {index: 1, function: run}]}")
        place = f"{program.source}:{program.line}"
        first = ["{action: await, timeout: 30}", f"{{action: command, command: 'break {place}'}}"]
        with open(path, "w") as file:
            file.write(f"name: trace\ntarget:\n  program: {program.target}\n  adapter: {self.adapter}\n")
            file.write("  stop_on_entry: true\nsteps:\n")
            file.writelines(f"- {step}\n" for step in first + steps * hits)
        began = time.perf_counter()
        text = self.call(program.folder, "test", path)
        took = time.perf_counter() - began
        values = [[int(v) for v in re.findall(rf"evaluate '{name}' = (\d+)", text)] for name in ("i", "sum")]
        ways = [["work", "run"]] * text.count("inspect stack (2 frames checked)") if paths else None
        return took, list(zip(*values)), ways


class DebuggerByHand(Debugger):
    """One command at a time, as its help shows it."""

    way, single = "commands", True

    def run(self, program, hits, paths):
        cwd, shown, ways = program.folder, [], []
        began = time.perf_counter()
        place = f"{program.source}:{program.line}"
        self.call(cwd, "start", program.target, "--adapter", self.adapter, "--break", place)
        try:
            for number in range(hits):
                if number:
                    self.call(cwd, "continue")
                self.call(cwd, "await", "--timeout", "20")
                shown.append(self.call(cwd, "locals"))
                if paths:
                    ways.append(self.call(cwd, "backtrace"))
            took = time.perf_counter() - began
        finally:
            self.call(cwd, "stop")
        found = [[re.search(rf"^ *{name}\b.*? = (\d+)", text, re.M) for name in ("i", "sum")] for text in shown]
        values = [tuple(int(value[1]) if value else None for value in pair) for pair in found]
        return took, values, [re.findall(r"^#\d+ (\S+) at ", way, re.M) for way in ways] if paths else None


class Dbg(Tool):
    """Every `continue` keeps the locals, which one `hits` shows at the end; a call path takes a `stack` at each."""

    name, way, single = "dbg-cli", "continue, hits", True

    def __init__(self, binary, kind, folder, paths):
        self.binary, self.kind = binary, kind
        super().__init__(folder, paths)

    def run(self, program, hits, paths):
        cwd, ways = program.folder, []
        began = time.perf_counter()
        self.call(cwd, "start", self.kind, program.target, "--break", program.place, "--run")
        try:
            for number in range(hits):
                if number:
                    self.call(cwd, "continue")
                if paths:
                    ways.append(self.call(cwd, "stack"))
            text = self.call(cwd, "hits", program.place)
            took = time.perf_counter() - began
        finally:
            self.call(cwd, "kill")
        values = [(int(i), int(total)) for i, total in re.findall(r"\bi=(\d+).*\bsum=(\d+)", text)]
        if paths and len(values) == 2 * hits:
            # Where `stack` shows a stop it is kept as one more hit.
            values = values[::2]
        return took, values, [functions(self.kind, way) for way in ways] if paths else None


class DbgLog(Dbg):
    """A logpoint: one `continue`, and `events` beside it, since its list keeps only the newest 2,048."""

    way, single = "logpoint, events", False

    def run(self, program, hits, paths):
        if paths:
            raise Failed("a logpoint has no call path")
        cwd, texts, seen = program.folder, [], 0
        began = time.perf_counter()
        self.call(cwd, "start", self.kind, program.target)
        try:
            self.call(cwd, "break", program.place, "log", "{i} {sum}")
            self.call(cwd, "break", f"{program.name}:{program.after}")
            null = subprocess.DEVNULL
            running = subprocess.Popen([self.binary, "continue"], cwd=cwd, env=self.env, stdout=null, stderr=null)
            stopped = re.compile(rf"{re.escape(program.name)}:{program.after} ")
            while True:
                text = self.call(cwd, "events", f"--since={seen}", "--wait=2000")
                seen = max([seen, *(int(number) for number in re.findall(r"^#(\d+) ", text, re.MULTILINE))])
                texts.append(text)
                if stopped.search(text) or running.poll() is not None and "no events" in text:
                    break
            took = time.perf_counter() - began
            running.wait()
        finally:
            self.call(cwd, "kill")
        values = re.findall(r"^#\d+ .* stdout .*?(?:\]: |B  )(\d+) (\d+)⏎", "\n".join(texts), re.MULTILINE)
        return took, [(int(i), int(total)) for i, total in values], None


class DapMcp(Tool):
    """Its server over pipes. Each stop shows the variables and the frames, so that one call is one hit."""

    name, way = "dap-mcp", "continue_execution"
    view = True

    def __init__(self, binary, adapter, found, folder, paths):
        self.binary, self.adapter, self.found = binary, adapter, found
        super().__init__(folder, paths)

    def config(self, program):
        view = {"debuggerView": {"showVariables": self.view}}
        common = {"program": program.target, "cwd": program.folder, "tools": view}
        if self.adapter == "debugpy":
            python = self.found["python"]
            return {**common, "type": "debugpy", "debuggerPath": python, "debuggerArgs": ["-m", "debugpy.adapter"],
                    "python": [python]}
        # It knows no gdb; gdb takes what it sends to lldb.
        words = ["-q", "-nx", "-i=dap"] if self.adapter == "gdb" else []
        return {**common, "type": "lldb", "name": "trace", "request": "launch", "debuggerArgs": words,
                "debuggerPath": self.found[self.adapter]}

    def run(self, program, hits, paths):
        path = os.path.join(self.folder, "config.json")
        with open(path, "w") as file:
            json.dump(self.config(program), file)
        values, ways = [], []
        began = time.perf_counter()
        self.server = subprocess.Popen(
            [self.binary, "--config", path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            env=self.env, cwd=program.folder,
        )
        try:
            self.id = 0
            client = {"name": "bench", "version": "1"}
            self.ask("initialize", {"protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": client})
            self.say({"method": "notifications/initialized"})
            self.tool("set_breakpoint", path=program.source, line=program.line)
            for number in range(hits):
                text = self.tool("continue_execution" if number else "launch")
                values.append(self.values(text))
                ways.append(text)
            took = time.perf_counter() - began
        finally:
            self.server.kill()
            self.server.wait()
        frame = re.compile(r"^\d+ (?:->|  ) (\S+)\tpath=", re.MULTILINE)
        return took, values, [frame.findall(way) for way in ways] if paths else None

    def values(self, text):
        found = [re.search(rf'<variable name="{name}"[^>]*>(\d+)</variable>', text) for name in ("i", "sum")]
        if not all(found):
            raise Failed(f"no values in {text[:100]!r}")
        return tuple(int(value[1]) for value in found)

    def say(self, message):
        self.server.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self.server.stdin.flush()

    def ask(self, method, params):
        self.id += 1
        self.say({"id": self.id, "method": method, "params": params})
        while True:
            line = self.server.stdout.readline()
            if not line:
                raise Failed(f"`{method}`: the server ended")
            answer = json.loads(line)
            if answer.get("id") == self.id:
                return answer.get("result") or {}

    def tool(self, name, **arguments):
        return self.ask("tools/call", {"name": name, "arguments": arguments})["content"][0]["text"]


class DapMcpEvaluate(DapMcp):
    """Stops without the variables, and two calls for the values."""

    way, view = "continue_execution, evaluate", False

    def values(self, _):
        texts = [self.tool("evaluate", expression=name) for name in ("i", "sum")]
        return tuple(int(re.search(r'"result": "(\d+)"', text)[1]) for text in texts)


# A frame of a printed stack, by the kind of session; pdb prints the innermost last.
FRAMES = {
    "c": r"frame #\d+: \S+ \S+?`([\w:]+)", "python": r"^[> ] \S+\(\d+\)(\S+)\(\)",
    "go": r"^\d+ +0x\w+ in (\S+)", "node": r"^#\d+ (\S+) at ",
}


def functions(kind, text):
    """The functions of a printed stack, innermost first."""
    found = re.findall(FRAMES[kind], text, re.MULTILINE)
    return found[::-1] if kind == "python" else found
