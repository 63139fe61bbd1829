# Runs inside gdb: what its commands and its side of the protocol leave out. Every function answers in plain lines.
import glob
import gdb
import sys


class bugeye:
    last = {}

    @staticmethod
    def stopped(event):
        bugeye.last = dict(getattr(event, "details", None) or {})

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
        elif reason:
            print("other", reason.replace("-", " "))
        else:
            print("other", "the end of the recording" if bugeye.recording() else "stopped")

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
        except gdb.error:
            return "exception", ""
        try:
            value = value.cast(value.dynamic_type)
        except gdb.error:
            pass
        kind = str(value.type.strip_typedefs().unqualified())
        if value.type.code in (gdb.TYPE_CODE_INT, gdb.TYPE_CODE_FLT, gdb.TYPE_CODE_BOOL, gdb.TYPE_CODE_PTR):
            return kind, str(value)
        return kind, bugeye.message(value)

    @staticmethod
    def message(value):
        """The text that the exceptions of the standard library keep, read without a call."""
        for field in value.type.fields():
            if field.is_base_class:
                text = bugeye.message(value[field])
            elif field.name == "_M_msg":
                inner = value[field]
                try:
                    text = inner["_M_p"].string()
                except (gdb.error, KeyError):
                    try:
                        text = inner["_M_dataplus"]["_M_p"].string()
                    except (gdb.error, KeyError):
                        text = ""
            else:
                continue
            if text:
                return text
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
        if details.get("reason") == "watchpoint-scope":
            print("%s\tgone" % details["wpnum"])

    @staticmethod
    def returned():
        """What the function that was just finished returned: its type, then its value."""
        value = bugeye.last.get("finish-value")
        if value is not None:
            print("%s\t%s" % (value.type, value.format_string(max_depth=2)))

    @staticmethod
    def jump(file, line):
        gdb.newest_frame().select()
        function = gdb.selected_frame().function()
        for place in gdb.decode_line('-source "%s" -line %d' % (file, line))[1] or ():
            block = gdb.block_for_pc(place.pc)
            while block is not None and block.function is None:
                block = block.superblock
            if place.line == line and block is not None and block.function == function:
                gdb.execute("set var $pc = %d" % place.pc)
                return
        raise gdb.GdbError("line %d is not in the current function" % line)

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

            register_libstdcxx_printers(None)
        except Exception:
            pass


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


Passes()
Thrown()
bugeye.printers()
gdb.events.stop.connect(bugeye.stopped)
