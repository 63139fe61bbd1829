# Run by LLDB itself at breakpoints of its own: writes down what it sees and says that the program is not to stop.
# Values are told in the words of the adapter that runs this LLDB: `plain` for LLDB's own, else CodeLLDB's.
def make(path, most, depth, plain):
    import bisect, fnmatch, json, sys, time, types
    import lldb

    # One that was never taken away may have left breakpoints.
    if "bugeye_hook" in sys.modules:
        sys.modules["bugeye_hook"].remove()
    out = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    clock, began = time.perf_counter_ns, time.perf_counter_ns()
    points, ways, threads, made_here, passes, state = {}, {}, {}, [], {}, {"left": most}
    walks, missing, failed, sure, plain_numbers = {}, {}, set(), set(), set()
    target = lldb.debugger.GetSelectedTarget()
    dynamic = lldb.eDynamicDontRunTarget
    version = lldb.debugger.GetVersionString().partition("version ")[2].split(".")[0]
    tells_address = plain and version.isdigit() and int(version) < 21
    # Return addresses are where they are found without unwinding.
    on_stack = (target.GetTriple() or "").startswith("x86_64")
    # As many parts of a value as a look asks for, and of how many values.
    most_parts, most_opened = 21, 40
    # Functions whose calls are told at once.
    most_functions = 1000
    names = "Bool Short UnsignedShort Int UnsignedInt Long UnsignedLong LongLong UnsignedLongLong Float Double"
    numbers = {getattr(lldb, "eBasicType" + name) for name in names.split()}
    of_frame = (lldb.eValueTypeVariableLocal, lldb.eValueTypeVariableArgument)
    records = lldb.eTypeClassUnion | lldb.eTypeClassStruct | lldb.eTypeClassArray

    encode = json.JSONEncoder(separators=(",", ":")).encode

    def write(*lines):
        text = "".join(encode(line) + "\n" for line in lines)
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

    def read(frame, place, text, is_name, opened):
        if (place, text) in plain_numbers:
            # The same variable as before: its type is no question.
            shown = frame.FindVariable(text, dynamic).GetValue()
            if shown is not None:
                return shown
        value = find(frame, text, is_name)
        if isinstance(value, list):
            return value
        if value.GetType().GetBasicType() in numbers:
            shown = value.GetValue()
            if shown is not None:
                if is_name and value.GetValueType() in of_frame:
                    plain_numbers.add((place, text))
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
        name = frame.GetFunctionName()
        if plain and frame.GetFunction().GetIsOptimized():
            name = (name or "") + " [opt]"
        return [name or "", str(entry.GetFileSpec()) if entry.IsValid() else "", entry.GetLine() if entry.IsValid() else 0]

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
        known = points.get(location.GetBreakpoint().GetID())
        if known is None:
            return False
        point, condition, every, texts = known
        try:
            if condition and not is_wanted(frame, point, condition):
                return False
            passes[point] = count = passes.get(point, 0) + 1
            if count % every or state["left"] < 0:
                return state["left"] < 0
            thread = frame.GetThread()
            number = thread_of(thread)
            way = way_of(thread, frame) if depth else 0
            place, opened = frame.GetPC(), [0]
            seen = [read(frame, place, text, is_name, opened) for text, is_name in texts]
            write([point, micros(), number, way, seen])
        except Exception as error:
            write([point, micros(), 0, 0, [[str(error)] for _ in texts]])
        if state["left"]:
            state["left"] = state["left"] - 1 or -1
        return state["left"] < 0

    def is_wanted(frame, point, condition):
        """Whether a condition is true. LLDB, which asks first where that changes nothing, takes one that fails for true,
        and so the next one."""
        when, names = condition
        place = (frame.GetPC(), point)
        if place in sure:
            return True
        if names and all(is_number(frame, name) for name in names) and not frame.GetFunction().GetIsOptimized():
            sure.add(place)
            return True
        value = evaluated(frame, "!!(%s)" % when)
        if not isinstance(value, list):
            return value.GetValueAsUnsigned() != 0
        if point not in failed:
            failed.add(point)
            said = re.search("<user expression [^ ]* (?:error: )?(.+)", value[0])
            write(["w", point, said[1] if said else value[0]])
        return False

    def is_number(frame, name):
        value = frame.FindVariable(name, dynamic)
        return value.IsValid() and value.GetError().Success() and value.GetType().GetBasicType() in numbers

    def names_in(when):
        """The names in a condition that can't fail if they are numbers; none where it can."""
        safe = re.fullmatch(r"(?:[\w\s<>=!&|^~()+-]|[/%]\s*[1-9]\d*)+", when)
        return set(re.findall(r"\b[A-Za-z_]\w*", when)) if safe else set()

    def add(point, file, line, function, address, when, is_pure, every, texts):
        if function:
            made = target.BreakpointCreateByName(function)
        elif address:
            made = target.BreakpointCreateByAddress(address)
        else:
            made = target.BreakpointCreateByLocation(file, line)
        if when and is_pure:
            made.SetCondition(when)
        condition = when and (when, names_in(when) if is_pure else set())
        points[made.GetID()] = (point, condition, every, [(text, text.isidentifier()) for text in texts])
        made.SetScriptCallbackFunction("bugeye_hook.hit")
        made_here.append(made)
        made.AddName("bugeye_%d" % point)

    def remove():
        """Takes all of it away, also what tells of calls."""
        for made in made_here:
            target.BreakpointDelete(made.GetID())
        for known in (made_here, points, entries, returns):
            known.clear()
        if not state.get("closed"):
            state["closed"] = True
            os.close(out)

    # -- calls: a breakpoint behind each function's prologue, one at each of its returns

    entries, returns, tables, told_calls, limit = {}, {}, {}, [0], [0]
    # Of each thread, the calls that are told and not left: their numbers, each with the address where its frame begins.
    open_calls = {}

    def matching(globs):
        found = {}
        wholes = [(glob, re.compile(fnmatch.translate(glob))) for glob in globs]
        for symbol in (symbol for module in target.module_iter() for symbol in module):
            if symbol.GetType() != lldb.eSymbolTypeCode:
                continue
            name = bare(symbol.GetName() or "")
            if not name or is_made_up(name):
                continue
            for glob, whole in wholes:
                if whole.match(name) or "::" not in glob and whole.match(last(name)):
                    start = symbol.GetStartAddress()
                    function, file = start.GetFunction(), str(start.GetLineEntry().GetFileSpec())
                    anywhere = "::" in glob and not glob.startswith("*")
                    if function.IsValid() and (anywhere or is_own(file)):
                        found[start.GetFileAddress()] = (function, file)
        return found.values()

    def calls(globs, most):
        found = list(matching(globs))
        # What a script prints goes elsewhere; a command of our own is answered.
        lldb.debugger.HandleCommand("command script add -f bugeye_hook.answer bugeye-calls")
        state["calls"] = "" if found else "no function of this program is called like that"
        if len(found) > most_functions:
            state["calls"] = "%d functions are called like that: %d at most" % (len(found), most_functions)
            return
        limit[0] = most
        for function, file in found:
            start = function.GetStartAddress()
            line = start.GetLineEntry().GetLine()
            start.OffsetAddress(function.GetPrologueByteSize() or second_entry(function))
            made = at_address(start, "enter")
            entries[made.GetID()] = [bare(function.GetName() or "").lstrip(":"), file, line]
            for instruction in function.GetInstructions(target):
                if instruction.GetMnemonic(target).startswith("ret"):
                    made = at_address(instruction.GetAddress(), "leave")
                    returns[made.GetID()] = function.GetType().GetFunctionReturnType()

    def answer(debugger, command, result, internal):
        if state["calls"]:
            result.SetError(state["calls"])

    def second_entry(function):
        """How far into a function of one line its prologue goes: to the second of its entries in the table of lines."""
        start, end = function.GetStartAddress(), function.GetEndAddress()
        unit = start.GetCompileUnit()
        key = (str(unit.GetFileSpec()), unit.GetNumLineEntries())
        if key not in tables:
            tables[key] = sorted({entry.GetStartAddress().GetFileAddress() for entry in unit})
        table, first = tables[key], start.GetFileAddress()
        at = bisect.bisect_right(table, first)
        return table[at] - first if at < len(table) and table[at] < end.GetFileAddress() else 0

    def at_address(address, name):
        made = target.BreakpointCreateBySBAddress(address)
        made.SetScriptCallbackFunction("bugeye_hook." + name)
        made_here.append(made)
        return made

    def outer(frame):
        """The frame of the function itself, not of what became part of it."""
        while frame.IsInlined():
            frame = frame.GetThread().GetFrameAtIndex(frame.GetFrameID() + 1)
        return frame

    def gone(thread, base, is_return):
        """Takes away the calls whose frames are gone, and answers with the one that returns here if there is one."""
        calls = open_calls.setdefault(thread, [])
        # What is further away is another stack.
        while calls and calls[-1][1] <= base < calls[-1][1] + (16 << 20):
            call, start = calls.pop()
            if start == base and is_return:
                return call
            write(["r", call, micros(), ["it was left by an exception or a jump"]])
        return None

    def enter(frame, location, extra, internal):
        place = entries.get(location.GetBreakpoint().GetID())
        if place is None or told_calls[0] >= limit[0]:
            return False
        frame = outer(frame)
        thread, base = thread_of(frame.GetThread()), frame.GetCFA()
        gone(thread, base, False)
        told_calls[0] += 1
        opened = [0]
        values = frame.GetVariables(True, False, False, True, dynamic)
        arguments = [[value.GetName(), told(value, 0, opened)] for value in values if value.GetName()]
        depth = len(open_calls[thread])
        write(["c", told_calls[0], micros(), thread, depth, place, arguments])
        open_calls[thread].append((told_calls[0], base))
        return False

    def leave(frame, location, extra, internal):
        kind = returns.get(location.GetBreakpoint().GetID())
        if kind is None:
            return False
        call = gone(frame.GetThread().GetThreadID(), frame.GetSP() + (8 if on_stack else 0), True)
        if call is not None:
            try:
                value = returned(frame, kind)
            except Exception as error:
                value = [str(error)]
            write(["r", call, micros(), value])
        return False

    def returned(frame, kind):
        """The value that a function is about to return; None where there is none."""
        plain_kind = kind.GetCanonicalType()
        size, basic = plain_kind.GetByteSize(), plain_kind.GetBasicType()
        if basic == lldb.eBasicTypeVoid or size == 0:
            return None
        whole = is_reference(plain_kind) or plain_kind.GetTypeClass() & lldb.eTypeClassEnumeration
        if basic in (lldb.eBasicTypeFloat, lldb.eBasicTypeDouble):
            bytes = register(frame, "xmm0" if on_stack else "v0", size)
        elif size <= 8 and (whole or basic not in (lldb.eBasicTypeInvalid, lldb.eBasicTypeOther, lldb.eBasicTypeHalf)):
            bytes = register(frame, "rax" if on_stack else "x0", size)
        else:
            return ["a value of type %s is not read where it is returned" % kind.GetDisplayTypeName()]
        data, error = lldb.SBData(), lldb.SBError()
        data.SetData(error, bytes, lldb.eByteOrderLittle, target.GetAddressByteSize())
        return told(target.CreateValueFromData("returned", data, kind), 0, [0])

    def register(frame, name, size):
        return frame.FindRegister(name).GetData().ReadRawData(lldb.SBError(), 0, size)

    module = types.ModuleType("bugeye_hook")
    module.hit, module.add, module.remove = hit, add, remove
    module.calls, module.answer, module.enter, module.leave = calls, answer, enter, leave
    sys.modules["bugeye_hook"] = module
