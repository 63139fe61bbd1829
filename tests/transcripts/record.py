#!/usr/bin/env python3
"""Records the transcripts in this folder again: `record.py path/to/bugeye`.

Runs one short session with each real adapter (start, two hits of a breakpoint, locals, exit), takes what was sent and
received from the daemon's log, and writes it without anything of the machine it ran on. Both adapters must be
installed (`bugeye setup lldb debugpy`).
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
FIXTURES = HERE.parent / "fixtures"


def data_home():
    base = os.environ.get("XDG_DATA_HOME") or str(Path.home() / ".local/share")
    return Path(base) / "bugeye"


def scrub(text, home, cwd, whole):
    pid = re.search(r'"systemProcessId":(\d+)', whole)[1]
    text = text.replace(f"{home}/runtime/sessions/s1/", "/r/")
    text = re.sub(r'[^"]*/adapters/debugpy/', "/a/", text)
    text = text.replace(str(cwd), "/p")
    text = re.sub(rf"\b{pid}\b", "4321", text)
    terminal = re.search(r'"processId":(\d+)', whole)
    if terminal:
        text = re.sub(rf"\b{terminal[1]}\b", "4300", text)
    text = re.sub(r'"/[^"]*/python3?[^"/]*"', '"/usr/bin/python3"', text)
    text = re.sub(r'/[^"]*/lib/python3\.\d+/', "/usr/lib/python3/", text)
    text = re.sub(r'("port":)\d+', r"\g<1>40000", text)
    return re.sub(r'(launcher",)"\d+"', r'\1"40000"', text)


def record(bugeye, name, first, program, place):
    home, cwd = Path(tempfile.mkdtemp()), Path(tempfile.mkdtemp())
    shutil.copy(FIXTURES / "c/loop_basic.c", cwd)
    shutil.copy(FIXTURES / "python/loop.py", cwd)
    subprocess.run(["cc", "-g", "-O0", "-o", "app", "loop_basic.c"], cwd=cwd, check=True)
    os.symlink(data_home(), home / "data")
    # A small environment, for a small launch request.
    env = {"PATH": os.environ["PATH"], "HOME": "/h", "BUGEYE_HOME": str(home), "BUGEYE_LOG": "payloads"}
    run = " run" if first == "run" else ""
    steps = [([first, "--break", place, program], f"start b=1@/p/{place}{run} frames=5")]
    if first == "start":
        steps.append((["continue"], "continue frames=5"))
    steps += [
        (["continue"], "continue frames=5"),
        (["locals"], "look locals"),
        (["unbreak", "--all"], "break"),
        (["continue"], "continue frames=5"),
    ]
    lines, read = [], 0
    for number, (words, op) in enumerate(steps, 1):
        subprocess.run([bugeye, *words], env=env, cwd=cwd, check=True, stdout=subprocess.DEVNULL)
        lines.append(("op", f"{number} {op}"))
        log = (home / "state/daemon.log").read_text()
        for line in log[read:].splitlines():
            if found := re.match(r"\S+ data ([<>]) (\{.*)$", line):
                lines.append(("send" if found[1] == ">" else "recv", found[2]))
        read = len(log)
    subprocess.run([bugeye, "daemon", "stop"], env=env, cwd=cwd, check=True, stdout=subprocess.DEVNULL)
    whole = "\n".join(text for _, text in lines)
    with open(HERE / name, "w", encoding="utf-8") as out:
        for kind, text in lines:
            text = scrub(text, home, cwd, whole)
            value = text if kind == "op" else json.loads(text)
            if kind == "send" and value["command"] == "launch":
                value["arguments"]["env"] = type(value["arguments"]["env"])()
            out.write(json.dumps({kind: value}, separators=(",", ":"), ensure_ascii=False) + "\n")
    shutil.rmtree(home)
    shutil.rmtree(cwd)


def main():
    bugeye = str(Path(sys.argv[1]).resolve())
    record(bugeye, "lldb-dap-19.jsonl", "start", "./app", "loop_basic.c:6")
    record(bugeye, "debugpy-1.8.jsonl", "run", "loop.py", "loop.py:7")


main()
