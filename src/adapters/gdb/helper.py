# Runs inside gdb: what its commands and its side of the protocol leave out. Every function answers in plain lines.
import glob
import gdb
import gdb.printing
import itertools
import os
import re
import sys

# Their text lies behind the pointer to their table of functions.
STANDARD = ["std::" + name for name in "runtime_error range_error overflow_error underflow_error".split()]
STANDARD += ["std::" + name for name in "logic_error domain_error invalid_argument length_error out_of_range".split()]
# Printers that can't say how many children there are would be asked for all of them, be there ten million.
MOST_CHILDREN = 20000


class bugeye:
    last = {}
    # How the program goes, for what can only be told by that when it stops.
    backwards = False
    replaying = False
    # Instructions that can't be recorded.
    walls = set()
    # Data breakpoints that are no more, by their numbers.
    lost = []

    @staticmethod
    def stopped(event):
        bugeye.last = dict(getattr(event, "details", None) or {})
        if "reason" not in bugeye.last and bugeye.recording():
            bugeye.last["recording"] = bugeye.edge()
        bugeye.backwards = False

    @staticmethod
    def edge():
        """Why a recorded program stopped without a reason of its own."""
        if bugeye.backwards:
            return "the recording begins here"
        frame = gdb.newest_frame()
        if bugeye.replaying and frame.pc() not in bugeye.walls:
            return "the recording ends here; to go on is new"
        bugeye.walls.add(frame.pc())
        code = frame.architecture().disassemble(frame.pc())[0]["asm"]
        if bugeye.leaving(frame, code):
            return "the program is about to exit; to go on ends the recording"
        return "gdb can't record `%s`; to go on ends the recording" % " ".join(code.split())

    @staticmethod
    def leaving(frame, code):
        for start, register, numbers in (("syscall", "rax", (60, 231)), ("svc", "x8", (93, 94))):
            if code.startswith(start):
                return int(frame.read_register(register)) in numbers
        return False

    @staticmethod
    def back(command):
        bugeye.backwards = True
        bugeye.go(command)

    @staticmethod
    def go(command):
        """Lets the program run in the background; where it can't, the protocol's side must not think that it does."""
        try:
            gdb.execute(command)
        except gdb.error as error:
            bugeye.backwards = False
            bugeye.stands()
            raise gdb.GdbError(str(error))

    @staticmethod
    def stands():
        """The program does not run, whatever the protocol's side has seen."""
        events = sys.modules.get("gdb.dap.events")
        if hasattr(events, "inferior_running"):
            events.inferior_running = False

    @staticmethod
    def core(file):
        try:
            text = gdb.execute("core-file " + file, to_string=True)
        except gdb.error as error:
            raise gdb.GdbError(str(error))
        bugeye.stands()
        found = re.search(r"terminated with signal (\w+), ([^\n]*)\.", text)
        if found:
            bugeye.last = {"reason": "signal-received", "signal-name": found[1], "signal-meaning": found[2]}

    @staticmethod
    def forth():
        """Before every command that goes forward."""
        if not bugeye.recording():
            return
        bugeye.replaying = "Replay mode" in gdb.execute("info record", to_string=True)
        if not bugeye.replaying and gdb.newest_frame().pc() in bugeye.walls:
            gdb.execute("record stop")

    @staticmethod
    def why():
        """What the last stop was for: a signal, an exception, or something else."""
        details = bugeye.last
        reason = details.get("reason", "")
        if reason == "signal-received":
            name, detail = details.get("signal-name", ""), details.get("signal-meaning", "")
            if name in ("SIGSEGV", "SIGBUS"):
                try:
                    address = int(gdb.parse_and_eval("$_siginfo._sifields._sigfault.si_addr"))
                    detail = "address %#x" % address
                except gdb.error:
                    pass
            print("signal", name + ": " + detail)
        elif reason == "breakpoint-hit":
            kind, text = bugeye.thrown()
            print("exception", kind + (": " + text if text else ""))
        else:
            print("other", details.get("recording", reason.replace("-", " ") or "stopped"))

    @staticmethod
    def recording():
        try:
            return gdb.current_recording() is not None
        except gdb.error:
            return False

    @staticmethod
    def thrown():
        """Type and text of the C++ exception that is being thrown or caught."""
        try:
            value = gdb.parse_and_eval("$_exception")
            value = value.cast(value.dynamic_type)
        except gdb.error:
            return bugeye.thrown_without_symbols()
        kind = str(value.type.strip_typedefs().unqualified())
        if value.type.code in (gdb.TYPE_CODE_INT, gdb.TYPE_CODE_FLT, gdb.TYPE_CODE_BOOL, gdb.TYPE_CODE_PTR):
            return kind, str(value)
        return kind, bugeye.message(value.type, int(value.address))

    @staticmethod
    def thrown_without_symbols():
        """The same for a type that only the library knows: by the arguments of the throw."""
        try:
            thrown, info = (int(gdb.parse_and_eval("$_probe_arg%d" % index)) for index in (0, 1))
            text = gdb.execute("info symbol %d" % info, to_string=True)
        except gdb.error:
            return "exception", ""
        kind = text.split(" in section")[0].strip()
        if not kind.startswith("typeinfo for "):
            return "exception", ""
        kind = kind[len("typeinfo for ") :].split("@")[0]
        return kind, bugeye.text_at(thrown) if kind in STANDARD else ""

    @staticmethod
    def message(kind, address):
        """The text that the exceptions of the standard library keep, read without a call."""
        if kind.name in STANDARD:
            return bugeye.text_at(address)
        for field in kind.fields():
            if field.is_base_class:
                text = bugeye.message(field.type.strip_typedefs(), address + field.bitpos // 8)
                if text:
                    return text
        return ""

    @staticmethod
    def text_at(address):
        text = gdb.lookup_type("char").pointer()
        try:
            return gdb.Value(address + text.sizeof).cast(text.pointer()).dereference().string()
        except (gdb.error, UnicodeError):
            return ""

    @staticmethod
    def watched():
        """The data breakpoint that made the last stop: its number, then its value before and now."""
        details = bugeye.last
        for name in ("wpt", "hw-rwpt", "hw-awpt"):
            if name in details:
                values = details.get("value", {})
                now = values.get("new", values.get("value", ""))
                print("%s\t%s\t%s" % (details[name]["number"], values.get("old", ""), now))
        if details.get("reason", "watchpoint-scope") == "watchpoint-scope":
            for number in bugeye.lost:
                print("%s\tgone" % number)

    @staticmethod
    def returned():
        """What the function that was just finished returned: its type, then its value."""
        value = bugeye.last.get("finish-value")
        if value is not None:
            print("%s\t%s" % (value.type, value.format_string(max_depth=2)))

    @staticmethod
    def code(command):
        print(gdb.execute(command, to_string=True).replace("=> ", "-> "), end="")

    @staticmethod
    def jump(file, line):
        frame = gdb.newest_frame()
        frame.select()
        table = frame.find_sal().symtab
        same = table is not None and os.path.realpath(table.fullname()) == os.path.realpath(file)
        for place in (table.linetable().line(line) or ()) if same else ():
            if bugeye.function_at(place.pc) == bugeye.function_at(frame.pc()):
                gdb.execute("set var $pc = %d" % place.pc)
                return
        raise gdb.GdbError("line %d is not in the current function" % line)

    @staticmethod
    def function_at(pc):
        """Where the function begins that an instruction belongs to."""
        block = gdb.block_for_pc(pc)
        while block is not None and block.function is None:
            block = block.superblock
        return block and block.start

    @staticmethod
    def present(command):
        """Gives the command that should have been carried out, to hear why it was not."""
        if gdb.selected_inferior().pid == 0:
            gdb.execute(command)

    @staticmethod
    def printers():
        """Those of the C++ library, from the system's own folder: nothing else is loaded by itself."""
        for folder in glob.glob("/usr/share/gcc*/python"):
            sys.path.append(folder)
        try:
            from libstdcxx.v6.printers import register_libstdcxx_printers
            from libstdcxx.v6.xmethods import register_libstdcxx_xmethods

            register_libstdcxx_printers(None)
            register_libstdcxx_xmethods(None)
        except Exception:
            pass


class Pointer(gdb.printing.NoOpPointerReferencePrinter):
    """With what a pointer to a record points at."""

    def __init__(self, value):
        super().__init__(value)
        self.pointer = value

    def to_string(self):
        text = super().to_string()
        kind = self.pointer.type.strip_typedefs()
        target = kind.target().strip_typedefs()
        is_record = target.code in (gdb.TYPE_CODE_STRUCT, gdb.TYPE_CODE_UNION)
        try:
            if kind.code != gdb.TYPE_CODE_PTR and not is_record:
                return self.pointer.referenced_value().format_string()
            if is_record and (kind.code != gdb.TYPE_CODE_PTR or int(self.pointer) != 0):
                inner = self.pointer.referenced_value()
                return "%#x %s" % (int(inner.address), inner.format_string(max_depth=1, max_elements=8))
        except (gdb.error, TypeError):
            pass
        return text


class Record(gdb.printing.NoOpStructPrinter):
    """With its fields in its text, so that it says something where nobody asks for them."""

    def __init__(self, kind, value):
        super().__init__(kind, value)
        self.record = value

    def to_string(self):
        try:
            return self.record.format_string(max_depth=1, max_elements=8)
        except gdb.error:
            return ""


class Bounded:
    """As another printer, with a limit to its children."""

    def __init__(self, printer):
        self.printer = printer

    def to_string(self):
        return self.printer.to_string() if hasattr(self.printer, "to_string") else ""

    def display_hint(self):
        return self.printer.display_hint() if hasattr(self.printer, "display_hint") else None

    def children(self):
        return itertools.islice(self.printer.children(), MOST_CHILDREN)


class Map(Bounded):
    """Keys and values in turn become values with their keys as names."""

    def display_hint(self):
        return None

    def children(self):
        items = iter(super().children())
        for (_, key), (_, value) in zip(items, items):
            text = key.format_string(max_depth=1, max_elements=8) if isinstance(key, gdb.Value) else str(key)
            yield "[%s]" % text, value


class Variant(Bounded):
    """A Rust enum, as the variant that it is."""

    def to_string(self):
        for name, inner in self.printer.children():
            fields = [field for field in inner.type.fields() if field.name]
            values = [inner[field].format_string(max_depth=1, max_elements=8) for field in fields]
            if not fields:
                return name
            if fields[0].name.startswith("__"):
                return "%s(%s)" % (name, ", ".join(values))
            pairs = ["%s: %s" % (field.name, value) for field, value in zip(fields, values)]
            return "%s {%s}" % (name, ", ".join(pairs))
        return ""


def is_variant(value):
    fields = [field for field in value.type.fields() if field.name]
    return len(fields) == 1 and str(fields[0].type) == "%s::%s" % (value.type.name, fields[0].name)


def shown(value, default=getattr(gdb.printing, "make_visualizer", None)):
    printer = default(value)
    if isinstance(printer, gdb.printing.NoOpPointerReferencePrinter):
        return Pointer(value)
    if not hasattr(printer, "children"):
        return printer
    if isinstance(printer, gdb.printing.NoOpStructPrinter):
        return Variant(printer) if is_variant(value) else Record(value.type.strip_typedefs(), value)
    if hasattr(printer, "display_hint") and printer.display_hint() == "map":
        return Map(printer)
    return printer if hasattr(printer, "num_children") else Bounded(printer)


class Named(gdb.Breakpoint):
    """Rust's functions may be named without their crate, as those of C++ without their namespace."""

    crates = {}

    def __init__(self, *words, **named):
        if "function" in named:
            named["function"] = Named.whole(named["function"])
        super().__init__(*words, **named)

    @staticmethod
    def whole(name):
        program = gdb.current_progspace().filename or ""
        if program not in Named.crates:
            Named.crates[program] = list(Named.possible(program))
        for crate in Named.crates[program]:
            path = "%s::%s" % (crate, name)
            try:
                gdb.decode_line(path)
                return path
            except gdb.error:
                continue
        return name

    @staticmethod
    def possible(program):
        """The crate is in the name of its `main`, and mostly the program's name, which may have a hash behind it."""
        try:
            gdb.execute("list", to_string=True)
            table = gdb.decode_line()[1][0].symtab
            for block in (table.global_block(), table.static_block()):
                for symbol in block:
                    if symbol.is_function and symbol.name.endswith("::main"):
                        yield symbol.name.split("::")[0]
        except gdb.error:
            pass
        yield re.sub("-[0-9a-f]{16}$", "", os.path.basename(program)).replace("-", "_")


class Passes(gdb.Function):
    """Counts the passes of a breakpoint whose condition is true."""

    def __init__(self):
        super().__init__("_bugeye_pass")
        self.seen = {}

    def invoke(self, number):
        number = int(number)
        self.seen[number] = self.seen.get(number, 0) + 1
        return self.seen[number]


class Thrown(gdb.Function):
    """The name of the type that is being thrown."""

    def __init__(self):
        super().__init__("_bugeye_thrown")

    def invoke(self):
        return bugeye.thrown()[0]


for command in ("continue", "next", "step", "nexti", "stepi", "finish"):
    gdb.execute("define hook-%s\npython bugeye.forth()\nend" % command)
Passes()
Thrown()
gdb.Breakpoint = Named
if hasattr(gdb.printing, "make_visualizer"):
    gdb.printing.make_visualizer = shown
bugeye.printers()
gdb.events.stop.connect(bugeye.stopped)
gdb.events.breakpoint_deleted.connect(lambda breakpoint: bugeye.lost.append(breakpoint.number))
gdb.events.cont.connect(lambda event: bugeye.lost.clear())
