#!/usr/bin/env python3
"""A debug adapter that behaves, or misbehaves, as a script tells it.

FAKE_SCRIPT names a JSON file; FAKE_SPY names a file that gets one line for everything received and done. Without a
script it is a plain, honest adapter of a program with one stop in it. The script's fields, all optional:

  order        "lldb19" (launch answered, then `initialized`), "lldb22" (launch answered after configurationDone),
               "gdb" (`initialized` before launch), "late" (configurationDone answered at the first stop)
  faults       a list of {"at": COMMAND, "nth": N (1), "do": FAULT, ...}; `at` may be "*": any command; `nth` 0: always
  stops        how many stops before the program exits (1)
  runs         true: once let go, the program runs until it is paused
  exit_code    of the program (0)
  capabilities added to the answer to initialize
  replies      {COMMAND: body} instead of the usual body

Faults:
  silent       not answered, nor anything after it          never     not answered, the rest is
  exit CODE    exits                                        signal N  kills itself
  close        closes its output, lives on                  garbage   text that is no frame
  huge         promises a frame of `size` bytes (20 MB)     half      half a frame, then silence
  slow MS      answers later, then goes on                  duplicate answers twice
  orphan       answers a request nobody made, then this     types     wrong types in the body
  reverse      holds this answer until the next is sent     flood     `count` output events first
  refuse       answers with a failure (`message`)           twice     sends `stopped` twice
  early        sends the next `stopped` before the answer   stay      does not leave on disconnect
"""

import json
import os
import signal
import sys
import time

SCRIPT = {}
if os.environ.get("FAKE_SCRIPT"):
    with open(os.environ["FAKE_SCRIPT"], encoding="utf-8") as file:
        SCRIPT = json.load(file)
SPY = open(os.environ["FAKE_SPY"], "a", encoding="utf-8") if os.environ.get("FAKE_SPY") else None

ORDER = SCRIPT.get("order", "lldb19")
CAPABILITIES = {
    "supportsConfigurationDoneRequest": True,
    "supportsFunctionBreakpoints": True,
    "supportsConditionalBreakpoints": True,
    "supportsExceptionInfoRequest": True,
    **SCRIPT.get("capabilities", {}),
}


def spy(text):
    if SPY:
        SPY.write(text + "\n")
        SPY.flush()


def write(data):
    spy("> " + data.decode(errors="replace").split("\r\n\r\n", 1)[-1][:300])
    try:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    except (BrokenPipeError, ValueError):
        pass


def frame(message):
    body = json.dumps(message).encode()
    return b"Content-Length: %d\r\n\r\n" % len(body) + body


class Adapter:
    def __init__(self):
        self.counts = {}
        self.seq = 0
        self.deaf = False
        self.held_back = []
        self.launch = None
        self.configured = None
        self.stops_left = SCRIPT.get("stops", 1)
        self.stay = False
        self.next_breakpoint = 1
        self.bound = []

    def send(self, message):
        self.seq += 1
        write(frame({"seq": self.seq, **message}))

    def event(self, name, body=None):
        self.send({"type": "event", "event": name, "body": body or {}})

    def answer(self, request, body=None, success=True, message=None):
        reply = {"type": "response", "request_seq": request["seq"], "command": request["command"], "success": success}
        reply["body"] = SCRIPT.get("replies", {}).get(request["command"], body if body is not None else {})
        if message is not None:
            reply["message"] = message
        self.send(reply)
        while self.held_back:
            self.send(self.held_back.pop())

    def fault(self, command):
        count = self.counts[command] = self.counts.get(command, 0) + 1
        total = self.counts["*"] = self.counts.get("*", 0) + 1
        for fault in SCRIPT.get("faults", []):
            at, nth = fault["at"], fault.get("nth", 1)
            if at in (command, "*") and nth in (0, count if at == command else total):
                return fault
        return None

    def stop(self):
        if self.stops_left <= 0:
            self.event("exited", {"exitCode": SCRIPT.get("exit_code", 0)})
            self.event("terminated")
            return
        self.stops_left -= 1
        ids = [self.bound[0]] if self.bound else []
        body = {"reason": "breakpoint", "threadId": 1, "allThreadsStopped": True, "hitBreakpointIds": ids}
        self.event("stopped", body)

    def handle(self, request):
        command = request["command"]
        spy("< " + command + " " + json.dumps(request.get("arguments")))
        if self.deaf:
            return
        fault = self.fault(command) or {}
        kind = fault.get("do")
        if kind:
            spy("! " + kind)
        if kind == "silent":
            self.deaf = True
            return
        if kind == "never":
            return
        if kind == "exit":
            os._exit(fault.get("code", 0))
        if kind == "signal":
            os.kill(os.getpid(), fault.get("number", signal.SIGKILL))
        if kind == "close":
            os.close(1)
            self.deaf = True
            return
        if kind == "garbage":
            write(fault.get("text", "Segmentation fault (core dumped)\n").encode())
            self.deaf = True
            return
        if kind == "huge":
            write(b"Content-Length: %d\r\n\r\n{" % fault.get("size", 20 * 1024 * 1024))
            self.deaf = True
            return
        if kind == "half":
            write(frame({"type": "event", "event": "output"})[:-9])
            self.deaf = True
            return
        if kind == "slow":
            time.sleep(fault.get("ms", 500) / 1000)
        if kind == "orphan":
            self.send({"type": "response", "request_seq": 424242, "command": command, "success": True, "body": {}})
        if kind == "flood":
            for _ in range(fault.get("count", 20000)):
                self.event("output", {"category": "console", "output": "x" * 100 + "\n"})
        if kind == "refuse":
            return self.answer(request, success=False, message=fault.get("message", "not today"))
        if kind == "types":
            wrong = {"breakpoints": 3, "threads": {}, "stackFrames": "none", "scopes": None, "variables": True,
                     "result": [], "supportsFunctionBreakpoints": "yes", "exceptionBreakpointFilters": {}}
            self.answer(request, wrong)
            return self.follow(request)
        if kind == "stay":
            self.stay = True
        if kind == "reverse":
            self.held_back.append({"type": "response", "request_seq": request["seq"], "command": command,
                                   "success": True, "body": self.body(request)})
            return
        if kind == "early":
            self.event("continued", {"threadId": 1})
            self.stop()
            return self.answer(request)
        self.respond(request)
        if kind == "duplicate":
            self.answer(request, self.body(request))
        if kind == "twice" and command != "disconnect":
            self.event("stopped", {"reason": "breakpoint", "threadId": 1, "allThreadsStopped": True})

    def respond(self, request):
        """Answers as an honest adapter of this order does."""
        command = request["command"]
        if command == "initialize" and ORDER == "gdb":
            self.answer(request, self.body(request))
            self.event("initialized")
        elif command in ("launch", "attach"):
            if ORDER == "lldb19":
                self.answer(request)
                self.event("process", {"systemProcessId": os.getpid(), "name": "fake"})
                self.event("initialized")
            else:
                self.launch = request
                if ORDER in ("lldb22", "late"):
                    self.event("initialized")
        elif command == "configurationDone":
            if ORDER == "late":
                self.stop()
                self.answer(request)
                return
            self.answer(request)
            if self.launch:
                self.answer(self.launch)
                self.launch = None
            self.stop()
        elif command in ("continue", "next", "stepIn", "stepOut"):
            self.answer(request, {"allThreadsContinued": True})
            self.follow(request)
        elif command == "disconnect":
            self.answer(request)
            if not self.stay:
                sys.exit(0)
        else:
            self.answer(request, self.body(request))
            self.follow(request)

    def follow(self, request):
        """What comes after an answer."""
        command = request["command"]
        if command in ("continue", "next", "stepIn", "stepOut"):
            self.event("continued", {"threadId": 1})
            if not SCRIPT.get("runs"):
                self.stop()
        if command == "pause":
            self.event("stopped", {"reason": "pause", "threadId": 1, "allThreadsStopped": True})
        if command in ("launch", "attach"):
            self.event("initialized")
        if command == "configurationDone":
            self.stop()

    def body(self, request):
        command, arguments = request["command"], request.get("arguments") or {}
        if command == "initialize":
            return CAPABILITIES
        if command in ("setBreakpoints", "setFunctionBreakpoints"):
            answers = []
            for wish in arguments.get("breakpoints", []):
                answers.append({"id": self.next_breakpoint, "verified": True, "line": wish.get("line", 1)})
                self.bound.append(self.next_breakpoint)
                self.next_breakpoint += 1
            return {"breakpoints": answers}
        if command == "threads":
            return {"threads": [{"id": 1, "name": "main"}]}
        if command == "stackTrace":
            return {"stackFrames": [{"id": 1, "name": "fake", "line": 1, "source": {"path": "/fake.c"}}],
                    "totalFrames": 1}
        if command == "scopes":
            return {"scopes": [{"name": "Locals", "variablesReference": 1, "presentationHint": "locals"}]}
        if command == "variables":
            return {"variables": [{"name": "i", "value": "1", "type": "int", "variablesReference": 0}]}
        if command in ("evaluate", "setExpression"):
            return {"result": "2", "type": "int", "variablesReference": 0}
        if command == "exceptionInfo":
            return {"exceptionId": "fake", "description": "a fake exception"}
        return {}


def main():
    if SCRIPT.get("no_adapter"):
        # Not an adapter at all: it prints and leaves.
        print(SCRIPT["no_adapter"], flush=True)
        return
    adapter = Adapter()
    stream = sys.stdin.buffer
    while True:
        length = None
        while True:
            line = stream.readline()
            if not line:
                spy("end of input")
                if adapter.stay or adapter.deaf:
                    while True:
                        time.sleep(1)
                return
            if line == b"\r\n":
                break
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        adapter.handle(json.loads(stream.read(length)))


main()
