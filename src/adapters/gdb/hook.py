# Run by gdb itself at breakpoints of its own: writes down what it sees and says that the program is not to stop.
# Values go through the same code of gdb that answers for its side of the protocol.
import __main__
import fnmatch
import gdb
import json
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
    all, ways, threads = [], {}, {}

    @staticmethod
    def ready(path, most, depth):
        bugeye_hook.sink = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        bugeye_hook.most, bugeye_hook.depth = most, depth
        bugeye_hook.began = time.perf_counter_ns()

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
        """Takes all of it away, also what tells of calls."""
        for made in bugeye_hook.all:
            if made.is_valid():
                made.delete()
        bugeye_hook.all = []
        if bugeye_hook.sink >= 0:
            os.close(bugeye_hook.sink)
            bugeye_hook.sink = -1

    @staticmethod
    def calls(globs, most):
        Calls.watch(globs, most)

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
        self.passes, self.failed = 0, False

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
        except (gdb.error, RuntimeError, ValueError, TypeError) as error:
            if not self.failed:
                self.failed = True
                bugeye_hook.write(["w", self.point, str(error) or type(error).__name__])
            return False


class Calls:
    """Functions whose calls are told: a breakpoint behind each one's prologue, one at each of its returns."""

    most, told = 0, 0
    # Of each thread, the calls that are told and not left: their numbers, each with the address where its frame begins.
    open = {}
    # Where returns are: a function, and how far into it.
    returns = []
    names = set()

    @staticmethod
    def watch(globs, most):
        Calls.most, Calls.told, Calls.open, Calls.returns = most, 0, {}, []
        places = {place for glob in globs for place in Calls.matching(glob)}
        if not places:
            raise gdb.GdbError("no function of this program is called like that")
        if len(places) > MOST_FUNCTIONS:
            raise gdb.GdbError("%d functions are called like that: %d at most" % (len(places), MOST_FUNCTIONS))
        starts = set()
        for file, name in sorted(places):
            try:
                entered = Entry(function=name, source=file, internal=True)
            except gdb.error:
                continue
            bugeye_hook.all.append(entered)
            found = (Calls.function_at(location.address) for location in entered.locations)
            # Where it is part of another function it has no frame and no return of its own.
            starts.update(place for place in found if place is not None and place[0].name == name)
        Calls.names = {function.name for function, _, _ in starts}
        for place in starts:
            Calls.add_returns(place)

    @staticmethod
    def matching(glob):
        """Files and names of functions, as gdb writes them."""
        literal = max(re.split(r"[*?\[\]]", glob), key=len)
        words = ["--name", re.sub(r"([.^$\\*\[\]])", r"\\\1", literal)] if literal else []
        whole = re.compile(fnmatch.translate(glob))
        anywhere = "::" in glob and not glob.startswith("*")
        for file in gdb.execute_mi("-symbol-info-functions", *words)["symbols"].get("debug", ()):
            if not anywhere and not is_own(file["fullname"]):
                continue
            for symbol in file["symbols"]:
                name = bare(symbol["name"])
                if is_made_up(name):
                    continue
                if whole.match(name) or "::" not in glob and whole.match(last(name)):
                    yield file["fullname"], symbol["name"]

    @staticmethod
    def function_at(pc):
        """The function that an instruction belongs to, whatever became part of it, with its beginning and end."""
        block, found = gdb.block_for_pc(pc), None
        while block is not None:
            found = (block.function, block.start, block.end) if block.function is not None else found
            block = block.superblock
        return found

    @staticmethod
    def frame():
        frame = gdb.newest_frame()
        while frame.type() == gdb.INLINE_FRAME:
            frame = frame.older()
        return frame

    @staticmethod
    def add_returns(place):
        function, start, end = place
        code = gdb.selected_inferior().architecture().disassemble(start, end - 1)
        for instruction in code:
            words = instruction["asm"].split()
            if words and words[-1 if words[0] in ("repz", "rep", "bnd") else 0].startswith("ret"):
                Calls.returns.append((function, instruction["addr"] - start))
                # Computed anew when the program is moved to where it will run.
                made = Return("*$_bugeye_return(%d)" % (len(Calls.returns) - 1), internal=True)
                bugeye_hook.all.append(made)

    @staticmethod
    def left(thread, base, is_return):
        """Takes away the calls whose frames are gone, and answers with the one that returns here if there is one."""
        calls = Calls.open.setdefault(thread, [])
        # What is further away is another stack.
        while calls and calls[-1][1] <= base < calls[-1][1] + (16 << 20):
            call, start = calls.pop()
            if start == base and is_return:
                return call
            bugeye_hook.write(["r", call, bugeye_hook.micros(), ["it was left by an exception or a jump"]])
        return None

    @staticmethod
    def returned(frame, kind):
        """The value that a function is about to return; None where there is none."""
        kind = kind.strip_typedefs()
        size = kind.sizeof
        if kind.code == gdb.TYPE_CODE_VOID or size == 0:
            return None
        intel = frame.architecture().name().startswith("i386:x86-64")
        whole = (gdb.TYPE_CODE_INT, gdb.TYPE_CODE_BOOL, gdb.TYPE_CODE_ENUM, gdb.TYPE_CODE_CHAR, gdb.TYPE_CODE_PTR)
        if kind.code in whole + (gdb.TYPE_CODE_REF, gdb.TYPE_CODE_RVALUE_REF) and size <= 8:
            bits = int(frame.read_register("rax" if intel else "x0"))
        elif kind.code == gdb.TYPE_CODE_FLT and size in (4, 8):
            register = frame.read_register("xmm0" if intel else "v0")
            bits = int(register["v2_int64"][0] if intel else register["d"]["u"][0])
        else:
            return ["a value of type %s is not read where it is returned" % kind]
        bytes = (bits & ((1 << 8 * size) - 1)).to_bytes(size, "little")
        return bugeye_hook.told(gdb.Value(bytes, kind), [0])


class Entry(gdb.Breakpoint):
    """A function is entered."""

    def stop(self):
        frame = Calls.frame()
        function = frame.function()
        if Calls.told >= Calls.most or function is None or function.name not in Calls.names:
            return False
        thread, base = bugeye_hook.thread(), int(frame.older().read_register("sp"))
        Calls.left(thread, base, False)
        calls = Calls.open[thread]
        Calls.told += 1
        opened = [0]
        arguments = [[symbol.name, self.value(symbol, frame, opened)] for symbol in self.arguments(frame)]
        place = bugeye_hook.frame(frame)[:2] + [function.line]
        bugeye_hook.write(["c", Calls.told, bugeye_hook.micros(), thread, len(calls), place, arguments])
        calls.append((Calls.told, base))
        return False

    @staticmethod
    def arguments(frame):
        block = frame.block()
        while block.function is None:
            block = block.superblock
        return [symbol for symbol in block if symbol.is_argument and symbol.name and not symbol.name.startswith("__")]

    @staticmethod
    def value(symbol, frame, opened):
        try:
            return bugeye_hook.told(symbol.value(frame), opened)
        except Exception as error:
            return [str(error)]


class Return(gdb.Breakpoint):
    """A function is about to return."""

    def stop(self):
        frame, thread = Calls.frame(), gdb.selected_thread().global_num
        above = 8 if frame.architecture().name().startswith("i386:x86-64") else 0
        call = Calls.left(thread, int(frame.read_register("sp")) + above, True)
        if call is not None:
            try:
                value = Calls.returned(frame, frame.function().type.target())
            except Exception as error:
                value = [str(error)]
            bugeye_hook.write(["r", call, bugeye_hook.micros(), value])
        return False


class Where(gdb.Function):
    """Where a return is, wherever the program is."""

    def __init__(self):
        super().__init__("_bugeye_return")

    def invoke(self, number):
        function, offset = Calls.returns[int(number)]
        return int(function.value().address) + offset


Where()
# One that was never taken away may have left breakpoints.
if hasattr(__main__, "bugeye_hook"):
    __main__.bugeye_hook.remove()
__main__.bugeye_hook = bugeye_hook
