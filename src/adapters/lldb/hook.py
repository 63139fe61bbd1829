# Run by LLDB itself at breakpoints of its own: writes down what it sees and says that the program is not to stop.
# Values are told in the words of the adapter that runs this LLDB: `plain` for LLDB's own, else CodeLLDB's.
def make(path, most, depth, plain):
    import json, os, sys, time, types
    import lldb

    out = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    clock, began = time.perf_counter_ns, time.perf_counter_ns()
    points, ways, threads, made_here, passes, state = {}, {}, {}, [], {}, {"left": most}
    walks, missing = {}, {}
    target = lldb.debugger.GetSelectedTarget()
    dynamic = lldb.eDynamicDontRunTarget
    version = lldb.debugger.GetVersionString().partition("version ")[2].split(".")[0]
    tells_address = plain and version.isdigit() and int(version) < 21
    # Return addresses are where they are found without unwinding.
    on_stack = (target.GetTriple() or "").startswith("x86_64")
    # As many parts of a value as a look asks for, and of how many values.
    most_parts, most_opened = 21, 40
    names = "Bool Short UnsignedShort Int UnsignedInt Long UnsignedLong LongLong UnsignedLongLong Float Double"
    numbers = {getattr(lldb, "eBasicType" + name) for name in names.split()}
    records = lldb.eTypeClassUnion | lldb.eTypeClassStruct | lldb.eTypeClassArray

    def write(*lines):
        text = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)
        os.write(out, text.encode("utf-8", "replace"))

    def micros():
        return (clock() - began) // 1000

    # -- values

    def contents(value):
        if not value.MightHaveChildren():
            return ""
        text, apart = "{", ""
        for index in range(value.GetNumChildren()):
            if len(text.encode()) > 32:
                text += apart + "..."
                break
            child = value.GetChildAtIndex(index)
            name = child.GetName()
            if not name:
                continue
            shown = child.GetSummary() or child.GetValue()
            if not shown:
                if not plain or not child.GetType().GetTypeClass() & records:
                    continue
                shown = "{...}"
            text += apart + (shown if name.startswith("[") else name + ":" + shown)
            apart = ", "
        if plain:
            return "" if text in ("{", "{...") else text + "}"
        return text + ("...}" if len(text) <= 1 else "}")

    def is_reference(kind):
        return kind.IsPointerType() or kind.IsReferenceType()

    def words(value):
        """As LLDB's own adapter shows a value."""
        error = value.GetError()
        if error.Fail():
            return "<error: %s>" % error.GetCString()
        shown, summary = value.GetValue() or "", value.GetSummary() or ""
        if not summary:
            summary = contents(value.Dereference() if is_reference(value.GetType()) else value)
        if shown or summary:
            return shown + " " + summary if shown and summary else shown or summary
        name, address = value.GetType().GetDisplayTypeName() or "", value.GetLoadAddress()
        return "%s @ %#x" % (name, address) if tells_address and address != lldb.LLDB_INVALID_ADDRESS else name

    def other_words(value):
        """As CodeLLDB shows a value."""
        error = value.GetError()
        if error.Fail():
            return "<%s>" % error.GetCString()
        if value.GetFormat() == lldb.eFormatDefault and is_reference(value.GetType()):
            pointee = value.GetType().GetPointeeType()
            if value.IsSynthetic() or pointee.GetBasicType() != lldb.eBasicTypeInvalid:
                if value.GetSummary():
                    return value.GetSummary()
            address = value.GetValueAsUnsigned(0)
            if address == 0:
                return "<null>"
            inner = value.Dereference()
            if inner.IsValid():
                if inner.GetData().GetByteSize() == 0:
                    return "<invalid address>"
                if is_reference(pointee) and inner.GetValue():
                    return "{%s}" % inner.GetValue()
                value = inner
            elif len(target.GetProcess().ReadMemory(address, 1, lldb.SBError()) or b"") != 1:
                return "<invalid address>"
        shown = value.GetSummary() or value.GetValue()
        if shown:
            return shown
        return contents(value) if value.MightHaveChildren() and value.GetNumChildren() > 0 else "<not available>"

    def says_little(text, kind):
        if text.startswith("0x0000000000000000"):
            return False
        owner = text.startswith("0x") and ("unique_ptr<" in kind or "shared_ptr<" in kind)
        unnamed = text.startswith(kind) and " @ 0x" in text
        return (
            not text or text.startswith("size=") or ":size=" in text or text == "Has Value=true" or owner
            or text.endswith("...}") or "{...}" in text or unnamed
        )

    def is_bare(text, kind):
        """An address and nothing else, once it is shown."""
        if not text.startswith("0x") or text.startswith("0x0000000000000000"):
            return False
        return " " not in text or not (any(mark in kind for mark in "*&(") or kind.startswith("alloc::"))

    def told(value, level, opened, hidden=False):
        kind = value.GetDisplayTypeName() or ""
        text = (words(value) if plain else other_words(value)).strip()
        has_parts = value.MightHaveChildren() if plain else value.GetNumChildren() > 0 or value.IsSynthetic()
        little = level <= 1 and opened[0] < most_opened and says_little(text, kind)
        behind = hidden and is_bare(text, kind)
        if not has_parts or not (little or behind):
            return [text, kind]
        opened[0] += little
        total = value.GetNumChildren()
        hides = is_bare(text, kind)
        parts = [value.GetChildAtIndex(index) for index in range(min(total, most_parts))]
        parts = [[part.GetName() or "", told(part, level + 1, opened, hides)] for part in parts]
        return [text, kind, None if plain else total, parts]

    def evaluated(frame, text):
        place = (frame.GetPC(), text)
        if place in missing:
            return missing[place]
        value = frame.EvaluateExpression(text)
        error = value.GetError()
        if error.Success() and value.IsValid():
            return value
        why = [error.GetCString() or "it can't be evaluated"]
        if "undeclared identifier" in why[0]:
            missing[place] = why
        return why

    def find(frame, text, is_name):
        """What an expression is, or a list with why that can't be told."""
        if is_name:
            value = frame.FindVariable(text, dynamic)
            if value.IsValid() and value.GetError().Success():
                if plain or value.GetType().GetBasicType() in numbers:
                    return value
        if plain:
            value = frame.GetValueForVariablePath(text, dynamic)
            if value.IsValid() and value.GetError().Success():
                return value
        return evaluated(frame, text)

    def read(frame, text, is_name, opened):
        value = find(frame, text, is_name)
        if isinstance(value, list):
            return value
        if value.GetType().GetBasicType() in numbers:
            shown = value.GetValue()
            if shown is not None:
                return shown
        return told(value, 0, opened)

    # -- the way to a hit

    def walk(thread, frame):
        """The program's counters of the frames, and the words of the stack that lead from one to the next."""
        counters, frames, bases = [], [], []
        while frame.IsValid() and len(frames) < depth:
            counters.append(frame.GetPC())
            frames.append(frame)
            bases.append(frame.GetCFA())
            frame = thread.GetFrameAtIndex(len(frames))
        key = tuple(counters)
        way = ways.get(key)
        if way is None:
            way = ways[key] = len(ways) + 1
            write(["s", way, [named(frame) for frame in frames]])
        return way, bases[:-1]

    def named(frame):
        entry = frame.GetLineEntry()
        name = frame.GetDisplayFunctionName() if shows_display else frame.GetFunctionName()
        if plain and frame.GetFunction().GetIsOptimized():
            name = (name or "") + " [opt]"
        return [name or "", str(entry.GetFileSpec()) if entry.IsValid() else "", entry.GetLine() if entry.IsValid() else 0]

    shows_display = not plain

    def way_of(thread, frame):
        if not on_stack:
            return walk(thread, frame)[0]
        # The same counter and registers, and the same words where frames are joined: the same way.
        place = (thread.GetThreadID(), frame.GetPC(), frame.GetSP(), frame.GetFP())
        known = walks.get(place)
        if known:
            start, size, joints, way = known
            if [at for at in joints if joints[at] != stack(start, size)[at - start : at - start + 16]] == []:
                return way
        way, bases = walk(thread, frame)
        if bases and lldb.LLDB_INVALID_ADDRESS not in bases:
            start, size = bases[0] - 16, bases[-1] - bases[0] + 16
            if 0 < size <= 4096:
                bytes = stack(start, size)
                if len(bytes) == size:
                    if len(walks) > 10000:
                        walks.clear()
                    joints = {base - 16: bytes[base - 16 - start : base - start] for base in bases}
                    walks[place] = (start, size, joints, way)
        return way

    def stack(start, size):
        return target.GetProcess().ReadMemory(start, size, lldb.SBError()) or b""

    def thread_of(thread):
        number, name = thread.GetThreadID(), thread.GetName() or ""
        if threads.get(number) != name:
            threads[number] = name
            write(["t", number, name])
        return number

    # -- points

    def hit(frame, location, extra, internal):
        point, every, texts = points[location.GetBreakpoint().GetID()]
        try:
            passes[point] = count = passes.get(point, 0) + 1
            if count % every or state["left"] < 0:
                return state["left"] < 0
            thread = frame.GetThread()
            number = thread_of(thread)
            way = way_of(thread, frame) if depth else 0
            opened = [0]
            seen = [read(frame, text, is_name, opened) for text, is_name in texts]
            write([point, micros(), number, way, seen])
        except Exception as error:
            write([point, micros(), 0, 0, [[str(error)] for _ in texts]])
        if state["left"]:
            state["left"] = state["left"] - 1 or -1
        return state["left"] < 0

    def add(point, file, line, function, address, when, every, texts):
        if function:
            made = target.BreakpointCreateByName(function)
        elif address:
            made = target.BreakpointCreateByAddress(address)
        else:
            made = target.BreakpointCreateByLocation(file, line)
        if when:
            made.SetCondition(when)
        points[made.GetID()] = (point, every, [(text, text.isidentifier()) for text in texts])
        made.SetScriptCallbackFunction("bugeye_hook.hit")
        made_here.append(made)
        made.AddName("bugeye_%d" % point)

    def remove():
        for made in made_here:
            target.BreakpointDelete(made.GetID())
        made_here.clear()

    module = types.ModuleType("bugeye_hook")
    module.hit, module.add, module.remove = hit, add, remove
    sys.modules["bugeye_hook"] = module
