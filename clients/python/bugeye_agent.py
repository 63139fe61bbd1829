"""An agent's side of Bugeye: ask before you act, tell what happened, and a debugger can hold, change or stop you.

One file without dependencies, for Python 3.8 and later: copy it. Without a debugger every call returns at once and
changes nothing, so an agent can always make them. docs/agent-bridge.md in Bugeye's repository is the contract.

    bug = bugeye_agent.connect("my-agent", version="1.0")
    answer = bug.gate("before_tool", name="bash", value={"command": "ls"}, span="call_1")
    if answer.verdict == "deny": ...
"""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from typing import Any, Dict, List, NamedTuple, Optional

VERSION = 1
MAX_LINE = 16 * 1024 * 1024
ALL_POWERS = {"hold": True, "edit": True, "deny": True, "synthesize": True, "abort": True, "inject": True}


class Answer(NamedTuple):
    """What is to become of what was asked about."""

    verdict: str = "proceed"  # proceed, edit, deny, synthesize, abort
    value: Any = None  # of edit and synthesize
    reason: str = ""  # of deny and abort: what the model is to be told
    inject: List[Dict[str, str]] = []  # messages for the conversation, each {"role", "text"}


class Gone(Exception):
    """No debugger is there, or no longer."""


class _Socket:
    """Lines by a Unix socket. Its end is the debugger's."""

    def __init__(self, path: str, token: str) -> None:
        self._token = token
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(5)
        self._socket.connect(path)
        self._socket.settimeout(None)
        self._reader = self._socket.makefile("rb")

    def send(self, line: Dict[str, Any]) -> None:
        if line["type"] == "hello":
            line = {**line, "token": self._token}
        self._socket.sendall(_bytes(line))

    def lines(self):
        yield from self._reader

    def close(self) -> None:
        try:
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self._socket.close()


class _Files:
    """Lines by two files in a folder: we append to events.jsonl, and are answered in commands.jsonl."""

    def __init__(self, folder: str) -> None:
        self._folder, self._closed = folder, False
        self._debugger = self._here()
        if self._debugger is None:
            raise Gone("no debugger")
        events = os.path.join(folder, "events.jsonl")
        self._events = os.open(events, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
        size = os.fstat(self._events).st_size
        if size and os.pread(self._events, 1, size - 1) != b"\n":
            os.write(self._events, b"\n")  # an earlier agent ended in the middle of a line
        self._commands = open(os.path.join(folder, "commands.jsonl"), "rb")
        self._commands.seek(0, os.SEEK_END)  # what is there was said to others

    def _here(self) -> Optional[tuple]:
        """The debugger's process and when it began, if it lives."""
        try:
            with open(os.path.join(self._folder, "debugger.json"), encoding="utf-8") as file:
                said = json.load(file)
            pid, start = said["pid"], said["start"]
            if not os.path.exists("/proc/self/stat"):
                os.kill(pid, 0)
                return (pid, start)
            with open("/proc/%d/stat" % pid, encoding="utf-8", errors="replace") as file:
                fields = file.read().rpartition(")")[2].split()
            return (pid, start) if start in (None, int(fields[19])) and fields[0] not in "ZX" else None
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def send(self, line: Dict[str, Any]) -> None:
        data = memoryview(_bytes(line))
        while data:
            data = data[os.write(self._events, data) :]

    def lines(self):
        half, pause, looked = b"", 0.001, time.monotonic()
        while not self._closed:
            piece = self._commands.readline()
            if piece:
                half, pause = half + piece, 0.001
                if half.endswith(b"\n"):
                    yield half
                    half = b""
                continue
            if time.monotonic() - looked > 0.2:
                if self._here() != self._debugger:
                    return
                looked = time.monotonic()
            time.sleep(pause)
            pause = min(pause * 1.5, 0.05)

    def close(self) -> None:
        self._closed = True


def _bytes(line: Dict[str, Any]) -> bytes:
    return json.dumps(line, ensure_ascii=False, default=str).encode("utf-8", "backslashreplace") + b"\n"


class Debugger:
    """The way to the debugger. Any thread may ask; each waits for its own answer."""

    def __init__(self, transport: Any, closed: bool = False) -> None:
        self._transport, self._fail_closed = transport, closed
        self._lock = threading.Lock()
        self._waiting: Dict[str, List[Any]] = {}
        self._count = 0
        self._prefix = "%d-%s-" % (os.getpid(), os.urandom(4).hex())

    @property
    def attached(self) -> bool:
        """Whether a debugger is there."""
        return self._transport is not None

    def gate(self, point: str, *, value: Any = None, name: Optional[str] = None, span: Optional[str] = None,
             thread: str = "main", powers: Optional[Dict[str, bool]] = None, **more: Any) -> Answer:
        """Asks whether to go on, and waits for the answer, however long that takes.

        `more` is input, ok and ms after a tool; conversation before the model is asked; aside, key.
        """
        with self._lock:
            self._count += 1
            id = self._prefix + str(self._count)
            waits = self._waiting[id] = [threading.Event(), None]
        line = {"type": "gate", "id": id, "point": point, "thread": thread, "value": value, "name": name, "span": span,
                "powers": ALL_POWERS if powers is None else powers, **more}
        try:
            if not self._send({key: value for key, value in line.items() if value is not None}):
                return self._gone(line)
            waits[0].wait()
            return self._gone(line) if waits[1] is None else waits[1]
        except BaseException:  # whoever is interrupted no longer waits
            self._send({"type": "withdraw", "id": id})
            raise
        finally:
            self._waiting.pop(id, None)

    def event(self, event: str, data: Any = None, *, thread: str = "main", span: Optional[str] = None) -> None:
        """Tells what has happened: `model.response`, `agent.spawn`, ..."""
        line = {"type": "event", "event": event, "thread": thread, "data": data}
        self._send(line if span is None else {**line, "span": span})

    def close(self) -> None:
        self._lost()

    def _gone(self, line: Dict[str, Any]) -> Answer:
        if self._fail_closed and line["point"] in ("before_tool", "before_prompt"):
            return Answer("deny", reason="the debugger is gone, and BUGEYE_AGENT_FAIL is closed")
        return Answer()

    def _send(self, line: Dict[str, Any]) -> bool:
        transport = self._transport
        if transport is None:
            return False
        line["pid"] = os.getpid()
        if len(_bytes(line)) > MAX_LINE:
            text = "a %s of more than %d bytes was not told" % (line.get("point") or line["type"], MAX_LINE)
            line = {"type": "event", "event": "log", "data": {"message": text}, "pid": os.getpid()}
            self._send(line)
            return False
        try:
            with self._lock:
                transport.send(line)
            return True
        except OSError:
            self._lost()
            return False

    def _lost(self) -> None:
        transport, self._transport = self._transport, None
        if transport is not None:
            transport.close()
        for waits in list(self._waiting.values()):
            waits[0].set()

    def _read(self, transport: Any) -> None:
        try:
            for text in transport.lines():
                line = json.loads(text)
                waits = self._waiting.get(str(line.get("id")))
                if waits is not None and line.get("type") in ("answer", "error"):
                    waits[1] = Answer(line.get("verdict", "proceed"), line.get("value"), line.get("reason", ""),
                                      line.get("inject", []))
                    waits[0].set()
        except (OSError, ValueError):
            pass
        self._lost()


def connect(agent: str, version: str = "", model: Optional[str] = None, transport: str = "auto") -> Debugger:
    """Finds the debugger that started this agent; without one, everything proceeds.

    `transport` is `socket`, `files` or `auto`: what the environment names, the socket first.
    """
    ask, token, folder = (os.environ.get("BUGEYE_AGENT_" + name) for name in ("SOCKET", "TOKEN", "DIR"))
    wanted = bool((ask and transport != "files") or (folder and transport != "socket"))
    closed = wanted and os.environ.get("BUGEYE_AGENT_FAIL") == "closed"
    found: Any = None
    try:
        if ask and token and transport != "files":
            found = _Socket(ask, token)
        elif folder and transport != "socket":
            found = _Files(folder)
    except (OSError, Gone):
        found = None
    debugger = Debugger(found, closed)
    about = {"agent": agent, "version": version, "model": model, "cwd": os.getcwd()}
    if debugger._send({"v": VERSION, "type": "hello", "tap": "sdk", **{k: v for k, v in about.items() if v}}):
        threading.Thread(target=debugger._read, args=(found,), daemon=True).start()
    return debugger
