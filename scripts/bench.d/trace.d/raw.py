"""A plain client of a debug adapter: it stops at each hit, asks for frames and two values, and goes on."""

import json
import os
import re
import socket
import subprocess
import time


class Connection:
    """One session of the protocol, over pipes or a socket."""

    def __init__(self, reader, writer):
        self.reader, self.writer = reader, writer
        self.seq, self.events, self.answers, self.asked = 0, [], {}, []

    def write(self, kind, **fields):
        self.seq += 1
        body = json.dumps({"seq": self.seq, "type": kind, **fields}).encode()
        self.writer.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        self.writer.flush()
        return self.seq

    def send(self, command, arguments=None):
        return self.write("request", command=command, arguments=arguments or {})

    def read(self):
        length = None
        while True:
            line = self.reader.readline()
            if not line:
                raise RuntimeError("the adapter ended")
            if line == b"\r\n":
                break
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        message = json.loads(self.reader.read(length))
        if message["type"] == "event":
            self.events.append(message)
        elif message["type"] == "response":
            self.answers[message["request_seq"]] = message
        else:
            self.write("response", request_seq=message["seq"], success=True, command=message["command"], body={})
            self.asked.append(message)

    def answer(self, seq):
        while seq not in self.answers:
            self.read()
        answer = self.answers.pop(seq)
        if not answer["success"]:
            raise RuntimeError(f"{answer['command']}: {answer.get('message')}")
        return answer.get("body") or {}

    def ask(self, command, arguments=None):
        return self.answer(self.send(command, arguments))

    def event(self, *names):
        """The next event of these names; others are forgotten."""
        while True:
            while self.events:
                event = self.events.pop(0)
                if event["event"] in names:
                    return event["event"], event.get("body") or {}
            self.read()

    def initialize(self, adapter):
        self.ask("initialize", {
            "clientID": "bench", "adapterID": adapter, "linesStartAt1": True, "columnsStartAt1": True,
            "pathFormat": "path", "supportsVariableType": True, "supportsStartDebuggingRequest": adapter == "js-debug",
        })

    def begin(self, request, launch, program):
        self.send(request, launch)
        self.event("initialized")
        if program:
            lines = [{"line": program.line}]
            self.ask("setBreakpoints", {"source": {"path": program.source}, "breakpoints": lines})
        self.send("configurationDone")


class Raw:
    """One adapter as it is shipped. Values only: one frame; with call paths: eight."""

    name, way, single, once = "raw DAP", "stops", False, None

    def __init__(self, adapter, argv, launch, marker=None):
        self.adapter, self.argv, self.launch, self.marker = adapter, argv, launch, marker
        self.env, self.folder = {}, None

    def run(self, program, hits, paths):
        began = time.perf_counter()
        pipe, null = subprocess.PIPE, subprocess.DEVNULL
        process = subprocess.Popen(
            self.argv, stdin=pipe, stdout=pipe, stderr=null, env={**os.environ, **self.env}, cwd=program.folder
        )
        connections = []
        try:
            if self.marker:
                connect = self.address(process)
                connections.append(connect())
            else:
                connections.append(Connection(process.stdout, process.stdin))
            main = connections[0]
            main.initialize(self.adapter)
            launch = self.launch(program)
            if self.adapter == "js-debug":
                # The program is a second session, which the first asks for.
                main.begin("launch", launch, None)
                while not any(message["command"] == "startDebugging" for message in main.asked):
                    main.read()
                asked = next(m for m in main.asked if m["command"] == "startDebugging")["arguments"]
                connections.append(connect())
                main = connections[1]
                main.initialize(self.adapter)
                main.begin(asked["request"], asked["configuration"], program)
            else:
                main.begin("launch", launch, program)
            values, ways = self.collect(main, 8 if paths else 1)
            took = time.perf_counter() - began
        finally:
            self.close(process, connections)
        return took, values, ways if paths else None

    @staticmethod
    def collect(main, levels):
        values, ways = [], []
        while True:
            name, body = main.event("stopped", "terminated")
            if name == "terminated":
                return values, ways
            thread = body["threadId"]
            frames = main.ask("stackTrace", {"threadId": thread, "startFrame": 0, "levels": levels})["stackFrames"]
            frame = frames[0]["id"]
            pair = [
                int(main.ask("evaluate", {"expression": name, "frameId": frame, "context": "watch"})["result"])
                for name in ("i", "sum")
            ]
            values.append(tuple(pair))
            # js-debug writes `global.work`, delve `main.work`.
            ways.append([frame["name"] for frame in frames])
            main.ask("continue", {"threadId": thread})

    def address(self, process):
        """What connects to the address that the adapter tells."""
        while True:
            line = process.stdout.readline().decode(errors="replace")
            if not line:
                raise RuntimeError("the adapter ended")
            found = re.search(self.marker + r"\s*\S*?:(\d+)\s*$", line)
            if found:
                break

        def connect():
            link = socket.create_connection(("127.0.0.1", int(found[1])))
            link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return Connection(link.makefile("rb"), link.makefile("wb"))

        return connect

    @staticmethod
    def close(process, connections):
        for connection in connections:
            try:
                connection.send("disconnect", {"terminateDebuggee": True})
                connection.writer.close()
            except (OSError, ValueError):
                pass
        try:
            process.wait(1)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()


def adapters(found):
    """The plain clients, by the name that Bugeye has for the adapter. `found` has the programs' paths."""
    return {
        "lldb-dap": Raw("lldb-dap", [found["lldb-dap"]], lambda p: {"program": p.target, "cwd": p.folder}),
        "gdb": Raw("gdb", [found["gdb"], "-q", "-nx", "-i=dap"], lambda p: {"program": p.target, "cwd": p.folder}),
        "debugpy": Raw(
            "debugpy", [found["python"], "-m", "debugpy.adapter"],
            lambda p: {"program": p.target, "cwd": p.folder, "console": "internalConsole"},
        ),
        "delve": Raw(
            "delve", [found["delve"], "dap", "--listen=127.0.0.1:0"],
            lambda p: {"mode": "exec", "program": p.target, "cwd": p.folder}, marker="listening at:",
        ),
        "node": Raw(
            "js-debug", ["node", found["js-debug"], "0", "127.0.0.1"],
            lambda p: {"type": "pwa-node", "program": p.target, "cwd": p.folder, "console": "internalConsole"},
            marker="listening at",
        ),
    }
