# Run by LLDB itself at a breakpoint of its own: writes down what it sees and says that the program is not to stop.
def make(path, most, depth):
    import json, os, sys, time, types
    import lldb

    out = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    write, dumps, clock, began = os.write, json.dumps, time.perf_counter_ns, time.perf_counter_ns()
    points, ways, threads, names, passes, state = {}, {}, {}, {}, {}, {"left": most}

    def text(value, level=0):
        shown, summary = value.GetValue(), value.GetSummary()
        if summary:
            return "%s %s" % (shown, summary) if shown else summary
        if shown is not None:
            return shown
        count = value.GetNumChildren()
        items = [value.GetChildAtIndex(i) for i in range(min(count, 20))]
        if count > 20:
            tail = ", … %d more" % (count - 20)
        else:
            tail = ""
        if value.GetType().IsArrayType():
            return "{%s%s}" % (", ".join(text(item, level + 1) for item in items), tail)
        apart = ": " if level == 0 else ":"
        body = "{%s%s}" % (", ".join(item.GetName() + apart + text(item, level + 1) for item in items), tail)
        return "%s %s" % (value.GetTypeName().replace("struct ", ""), body) if level == 0 else body

    def read(frame, name, plain):
        value = frame.FindVariable(name) if plain else frame.GetValueForVariablePath(name)
        if plain and not value.IsValid():
            value = frame.GetValueForVariablePath(name)
        error = value.GetError()
        if not value.IsValid() or error.Fail():
            return [error.GetCString() or "no variable of that name is in reach"]
        shown = value.GetValue()
        if shown is not None and not value.GetType().IsPointerType() and not value.GetSummary():
            return shown
        return [text(value), value.GetTypeName()]

    def way_of(thread):
        count = min(thread.GetNumFrames() if depth > 64 else depth, depth)
        key, frames = [], []
        for index in range(count):
            frame = thread.GetFrameAtIndex(index)
            if not frame.IsValid():
                break
            key.append(frame.GetPC())
            frames.append(frame)
        key = tuple(key)
        way = ways.get(key)
        if way is None:
            ways[key] = way = len(ways) + 1
            shown = []
            for frame in frames:
                entry = frame.GetLineEntry()
                file = entry.GetFileSpec()
                if entry.IsValid():
                    shown.append([frame.GetFunctionName() or "", str(file), entry.GetLine()])
            write(out, (dumps(["s", way, shown]) + "\n").encode())
        return way

    def hit(frame, location, extra, internal):
        point, when, every, parts = points[location.GetBreakpoint().GetID()]
        if every > 1:
            passes[point] = count = passes.get(point, 0) + 1
            if count % every:
                return False
        left = state["left"]
        if left < 0:
            return True
        thread = frame.GetThread()
        number = thread.GetThreadID()
        if number not in threads:
            threads[number] = True
            write(out, (dumps(["t", number, thread.GetName() or ""]) + "\n").encode())
        way = way_of(thread) if depth else 0
        seen = [read(frame, name, plain) for name, plain in parts]
        micros = (clock() - began) // 1000
        write(out, (dumps([point, micros, number, way, seen]) + "\n").encode())
        if left:
            state["left"] = left = left - 1 or -1
            return left < 0
        return False

    def add(point, file, line, function, when, every, texts):
        target = lldb.debugger.GetSelectedTarget()
        if function:
            made = target.BreakpointCreateByName(function)
        else:
            made = target.BreakpointCreateByLocation(file, line)
        if when:
            made.SetCondition(when)
        points[made.GetID()] = (point, when, every, [(t, t.replace("_", "a").isalnum()) for t in texts])
        made.SetScriptCallbackFunction("bugeye_hook.hit")
        names[point] = made
        made.AddName("bugeye-%d" % point)

    def remove():
        target = lldb.debugger.GetSelectedTarget()
        for made in names.values():
            target.BreakpointDelete(made.GetID())

    module = types.ModuleType("bugeye_hook")
    module.hit, module.add, module.remove = hit, add, remove
    sys.modules["bugeye_hook"] = module
