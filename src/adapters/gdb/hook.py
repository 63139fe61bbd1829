# Run by gdb itself at breakpoints of its own: writes down what it sees and says that the program is not to stop.
# Values go through the same code of gdb that answers for its side of the protocol.
import fnmatch
import gdb
import json
import os
import re
import time
from gdb.dap import varref
from gdb.FrameDecorator import DAPFrameDecorator

# As many parts of a value as a look asks for, and of how many values.
MOST_PARTS = 21
MOST_OPENED = 40
# Functions whose calls are told at once.
MOST_FUNCTIONS = 1000
SCALARS = (gdb.TYPE_CODE_INT, gdb.TYPE_CODE_FLT, gdb.TYPE_CODE_BOOL, gdb.TYPE_CODE_ENUM)
WITHOUT_EFFECT = ("may-call-functions", "may-write-memory", "may-write-registers")


class bugeye_hook:
    sink, most, depth = -1, 0, 0
    began = 0
    all, ways, threads, kinds = [], {}, {}, {}

    @staticmethod
    def ready(path, most, depth):
        bugeye_hook.remove()
        if bugeye_hook.sink >= 0:
            os.close(bugeye_hook.sink)
        bugeye_hook.sink = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        bugeye_hook.most, bugeye_hook.depth = most, depth
        bugeye_hook.began = time.perf_counter_ns()
        bugeye_hook.ways, bugeye_hook.threads = {}, {}

    @staticmethod
    def write(*records):
        text = "".join(json.dumps(record, separators=(",", ":")) + "\n" for record in records)
        os.write(bugeye_hook.sink, text.encode("utf-8", "replace"))

    @staticmethod
    def micros():
        return (time.perf_counter_ns() - bugeye_hook.began) // 1000

    @staticmethod
    def add(point, place, when, every, texts):
        """Sets a point, and answers with its line; in words where it can't be set."""
        try:
            if when is not None:
                # Refused here where it can't be parsed, as it would be by a breakpoint that stops.
                trial = gdb.Breakpoint(**place, internal=True)
                try:
                    trial.condition = when
                finally:
                    trial.delete()
            made = Point(point, when, every, texts, **place)
        except Exception as error:
            return print("no", str(error))
        bugeye_hook.all.append(made)
        if made.pending or not made.locations:
            return print("no", "no code of this program comes from there")
        source = made.locations[0].source
        print("at", source[1] if source else 0)

    @staticmethod
    def remove():
        for made in bugeye_hook.all:
            if made.is_valid():
                made.delete()
        bugeye_hook.all = []

    @staticmethod
    def thread():
        """The number of the thread that is looked at, told with its name where that is new."""
        thread = gdb.selected_thread()
        number, name = thread.global_num, thread.name or thread.details or ""
        if bugeye_hook.threads.get(number) != name:
            bugeye_hook.threads[number] = name
            bugeye_hook.write(["t", number, name])
        return number

    @staticmethod
    def way():
        frame, key, frames = gdb.newest_frame(), [], []
        while frame is not None and len(key) < bugeye_hook.depth:
            key.append(frame.pc())
            frames.append(frame)
            frame = frame.older()
        key = tuple(key)
        way = bugeye_hook.ways.get(key)
        if way is None:
            way = bugeye_hook.ways[key] = len(bugeye_hook.ways) + 1
            bugeye_hook.write(["s", way, [bugeye_hook.frame(frame) for frame in frames]])
        return way

    @staticmethod
    def frame(frame):
        told = DAPFrameDecorator(frame)
        function = told.function()
        return [function if isinstance(function, str) else "", told.filename() or "", told.line() or 0]

    @staticmethod
    def values(texts):
        """What each expression is, or why that can't be told; nothing is called or changed for it."""
        read = [bugeye_hook.simple(text) for text in texts]
        if None not in read:
            return read
        before = [(name, gdb.parameter(name)) for name in WITHOUT_EFFECT]
        try:
            for name, _ in before:
                gdb.set_parameter(name, False)
            opened = [0]
            return [bugeye_hook.read(text, opened) if known is None else known for text, known in zip(texts, read)]
        finally:
            for name, value in before:
                gdb.set_parameter(name, value)

    @staticmethod
    def simple(text):
        """A variable that is a plain number; None for all else."""
        if not text.isidentifier():
            return None
        try:
            value = gdb.parse_and_eval(text)
            kind = value.type
            if kind.code in SCALARS and kind.sizeof > 1 or kind.code == gdb.TYPE_CODE_BOOL:
                return value.format_string(raw=True)
        except (gdb.error, RuntimeError):
            pass
        return None

    @staticmethod
    def read(text, opened):
        try:
            return bugeye_hook.told(gdb.parse_and_eval(text), opened)
        except Exception as error:
            return [str(error) or type(error).__name__]

    @staticmethod
    def told(value, opened):
        known = len(varref.all_variables)
        try:
            return bugeye_hook.shown(varref.VariableReference(None, value), 0, opened)
        finally:
            del varref.all_variables[known:]

    @staticmethod
    def shown(variable, level, opened):
        told = variable.to_object()
        text, kind = told["value"].strip(), str(variable.value.type)
        total = told.get("indexedVariables") or told.get("namedVariables")
        if not told["variablesReference"] or not total or level > 1 or opened[0] >= MOST_OPENED:
            return [text, kind]
        if not bugeye_hook.says_little(text, kind):
            return [text, kind]
        opened[0] += 1
        parts = variable.fetch_children(0, min(total, MOST_PARTS))
        return [text, kind, total, [[str(part.name), bugeye_hook.shown(part, level + 1, opened)] for part in parts]]

    @staticmethod
    def says_little(text, kind):
        library = text.startswith("std::") and (" of length " in text or " with " in text)
        pointer = text.startswith(("std::unique_ptr<", "std::shared_ptr<"))
        return text in ("", kind) or "{...}" in text or text.endswith("...}") or "(size=" in text or library or pointer


class Point(gdb.Breakpoint):
    """A traced place."""

    def __init__(self, point, when, every, texts, **place):
        super().__init__(**place, internal=True)
        self.point, self.when, self.every, self.texts = point, when, every, texts
        self.passes = 0

    def stop(self):
        try:
            return self.hit()
        except Exception as error:
            bugeye_hook.write([self.point, bugeye_hook.micros(), 0, 0, [[str(error)] for _ in self.texts]])
            return False

    def hit(self):
        if self.when is not None and not self.is_wanted():
            return False
        self.passes += 1
        if self.passes % self.every or bugeye_hook.most < 0:
            return bugeye_hook.most < 0
        thread = bugeye_hook.thread()
        way = bugeye_hook.way() if bugeye_hook.depth else 0
        bugeye_hook.write([self.point, bugeye_hook.micros(), thread, way, bugeye_hook.values(self.texts)])
        if bugeye_hook.most:
            bugeye_hook.most = bugeye_hook.most - 1 or -1
        return bugeye_hook.most < 0

    def is_wanted(self):
        try:
            return bool(gdb.parse_and_eval(self.when))
        except gdb.error:
            # A breakpoint that stops does so where its condition can't be evaluated.
            return True
