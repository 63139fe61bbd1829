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
import queue
import socket
import threading
import time
import uuid
from typing import Any, Dict, Iterable, List, NamedTuple, Optional

VERSION = 1
MAX_LINE = 16 * 1024 * 1024
ALL_POWERS = {"hold": True, "edit": True, "deny": True, "synthesize": True, "abort": True, "inject": True}


class Answer(NamedTuple):
    """What is to become of what was asked about."""

    verdict: str = "proceed"  # proceed, edit, deny, synthesize, abort
    value: Any = None  # of edit and synthesize
    reason: str = ""  # of deny and abort: what the model is to be told
    inject: List[Dict[str, str]] = []  # messages for the conversation, each {"role", "text"}


class _Socket:
    """Lines by a Unix socket. Its end is the debugger's."""

    def __init__(self, path: str) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.connect(path)

    def send(self, data: bytes) -> None:
        self._socket.sendall(data)

    def lines(self) -> Iterable[bytes]:
        return self._socket.makefile("rb")

    def close(self) -> None:
        try:
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # the other side was faster
        self._socket.close()


class _Files:
    """Lines by two files in a folder: we append to events.jsonl, and are answered in commands.jsonl."""

    def __init__(self, folder: str) -> None:
        self._folder, self._closed = folder, False
        self._debugger = self._alive()
        if self._debugger is None:
            raise OSError("no debugger is there")
        self._events = open(os.path.join(folder, "events.jsonl"), "ab", buffering=0)
        self._commands = open(os.path.join(folder, "commands.jsonl"), "rb")
        self._commands.seek(0, os.SEEK_END)  # what is there was said to others
        self.send(b"\n")  # who wrote before us may have ended in the middle of a line

    def _alive(self) -> Optional[Dict[str, Any]]:
        """What the debugger says of itself, if its process lives."""
        try:
            with open(os.path.join(self._folder, "debugger.json"), encoding="utf-8") as file:
                debugger = json.load(file)
            if debugger["start"] is None:  # where there is no /proc
                os.kill(debugger["pid"], 0)
                return debugger
            with open("/proc/%d/stat" % debugger["pid"], errors="replace") as file:
                fields = file.read().rpartition(")")[2].split()
            return debugger if int(fields[19]) == debugger["start"] and fields[0] not in "ZX" else None
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def send(self, data: bytes) -> None:
        while data:
            data = data[self._events.write(data) :]

    def lines(self) -> Iterable[bytes]:
        looked = time.monotonic()
        while not self._closed:
            line = self._commands.readline()
            if line.endswith(b"\n"):
                yield line
                continue
            self._commands.seek(-len(line), os.SEEK_CUR)  # until the rest of it is there
            if time.monotonic() - looked > 0.2:
                if self._alive() != self._debugger:
                    return
                looked = time.monotonic()
            time.sleep(0.005)

    def close(self) -> None:
        self._closed = True


class Debugger:
    """The way to the debugger. Any thread may ask; each waits for its own answer."""

    def __init__(self, transport: Any, closed: bool = False) -> None:
        self._transport, self._fail_closed = transport, closed
        self._sending = threading.Lock()
        self._waiting: Dict[str, Any] = {}

    @property
    def attached(self) -> bool:
        """Whether a debugger is there."""
        return self._transport is not None

    def gate(self, point: str, *, value: Any = None, name: Optional[str] = None, span: Optional[str] = None,
             thread: str = "main", powers: Optional[Dict[str, bool]] = None, **more: Any) -> Answer:
        """Asks whether to go on, and waits for the answer, however long that takes.

        `more` is input, ok and ms after a tool; conversation before the model is asked; aside, key.
        """
        id, answer = uuid.uuid4().hex, queue.SimpleQueue()
        self._waiting[id] = answer
        try:
            asked = self._send("gate", id=id, point=point, thread=thread, value=value, name=name, span=span,
                               powers=ALL_POWERS if powers is None else powers, **more)
            return (answer.get() if asked else None) or self._alone(point)
        except BaseException:  # whoever is interrupted no longer waits
            self._send("withdraw", id=id)
            raise
        finally:
            del self._waiting[id]

    def event(self, event: str, data: Any = None, *, thread: str = "main", span: Optional[str] = None) -> None:
        """Tells what has happened: `model.response`, `agent.spawn`, ..."""
        self._send("event", event=event, data=data, thread=thread, span=span)

    def close(self) -> None:
        """Leaves. Whoever still waits goes on."""
        transport, self._transport = self._transport, None
        if transport is not None:
            transport.close()
        for answer in list(self._waiting.values()):
            answer.put(None)

    def _alone(self, point: str) -> Answer:
        if self._fail_closed and point in ("before_tool", "before_prompt"):
            return Answer("deny", reason="the debugger is gone, and BUGEYE_AGENT_FAIL is closed")
        return Answer()

    def _send(self, type: str, **fields: Any) -> bool:
        transport = self._transport
        if transport is None:
            return False
        line = {key: value for key, value in fields.items() if value is not None}
        text = json.dumps({"type": type, **line, "pid": os.getpid()}, ensure_ascii=False, default=str)
        data = text.encode("utf-8", "backslashreplace") + b"\n"
        if len(data) > MAX_LINE:
            what = fields.get("point", type)
            self._send("event", event="log", data={"message": "a %s of %d bytes was not told" % (what, len(data))})
            return False
        try:
            with self._sending:
                transport.send(data)
            return True
        except OSError:
            self.close()
            return False

    def _read(self, transport: Any) -> None:
        try:
            for text in transport.lines():
                try:
                    line = json.loads(text)
                    waits = self._waiting.get(line.get("id")) if line.get("type") in ("answer", "error") else None
                except (ValueError, TypeError, AttributeError):
                    continue  # by files anybody may write; what is not understood is passed over
                if waits is not None:
                    waits.put(Answer(**{field: line[field] for field in Answer._fields if field in line}))
        except OSError:
            pass
        self.close()


def connect(agent: str, version: str = "", model: Optional[str] = None) -> Debugger:
    """Finds the debugger that started this agent, by a socket or by files; without one, everything proceeds."""
    path, token, folder, fail = (os.environ.get("BUGEYE_AGENT_" + name) for name in ("SOCKET", "TOKEN", "DIR", "FAIL"))
    by_socket = bool(path and token)
    try:
        found = _Socket(path) if by_socket else _Files(folder) if folder else None
    except OSError:
        found = None
    debugger = Debugger(found, fail == "closed" and bool(by_socket or folder))
    hello = {"v": VERSION, "tap": "sdk", "agent": agent, "version": version, "model": model, "cwd": os.getcwd()}
    if debugger._send("hello", token=token if by_socket else None, **hello):
        threading.Thread(target=debugger._read, args=(found,), daemon=True).start()
    return debugger
