# Written into the program while it is held: a condition that calls it writes down what it sees and is false. Values are
# read where the program is, written at once, and so are there whatever happens to the program next. What is written is
# what the debugger itself would show: its own means read all that is more than a number or a text.
def make(path, most, depth):
    import fcntl, itertools, os, sys, threading, time
    from json.encoder import encode_basestring_ascii as quote

    from _pydevd_bundle._debug_adapter.pydevd_base_schema import BaseSchema
    from _pydevd_bundle.pydevd_constants import filter_all_warnings, get_current_thread_id, get_global_debugger
    from _pydevd_bundle.pydevd_suspended_frames import _ObjectVariable
    from _pydevd_bundle.pydevd_vars import ExceptionOnEvaluate, compile_as_eval, evaluate_expression
    from pydevd_file_utils import get_abs_path_real_path_and_base_from_frame as path_of

    clock, write, new_object = time.perf_counter_ns, os.write, object
    # Characters of a value that are told, and one that tells that there are more.
    WIDTH = 201
    ITEMS = 20
    UNASKED = 40
    missing = new_object()

    class State:
        """What a process has of its own; one that was forked begins anew."""

    state = State()

    def open_sink():
        out = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        # Beyond the numbers that a program takes, or closes by the dozen.
        try:
            high = fcntl.fcntl(out, fcntl.F_DUPFD_CLOEXEC, 900)
        except OSError:
            return out
        os.close(out)
        return high

    def begin():
        """The first process says when it began; others go by its clock, and count from their own number on."""
        pid = os.getpid()
        try:
            origin, owner = os.pread(state.out, 64, 0).split(b"\n")[0][5:-1].split(b",")
            state.origin, owner = int(origin), int(owner)
        except ValueError:
            state.origin, owner = clock(), pid
            write(state.out, b'["o",%d,%d]\n' % (state.origin, pid))
        state.child = owner != pid
        first = pid << 20 if state.child else 0
        state.lock = threading.RLock()
        state.local = threading.local()
        state.ways = {}
        state.way_numbers = itertools.count(first + 1)
        state.thread_numbers = itertools.count(pid * 1000 + 1)
        state.call_numbers = itertools.count(first + 1)
        state.pid = pid

    def tell(line):
        data = line.encode("ascii")
        try:
            left = len(data) - write(state.out, data)
        except OSError:
            # The program closed what it did not open.
            state.out = open_sink()
            left = len(data) - write(state.out, data)
        if left:
            write(state.out, data[-left:])

    def thread_number():
        local = state.local
        try:
            return local.number
        except AttributeError:
            pass
        thread = threading.current_thread()
        name = str(thread.name)
        if state.child:
            number, name = next(state.thread_numbers), "%s (pid %d)" % (name, state.pid)
        else:
            number = BaseSchema._translate_id_to_dap(get_current_thread_id(thread))
        tell('["t",%d,%s]\n' % (number, quote(name)))
        local.number = number
        return number

    # Values

    def text_of(value):
        return quote(value[:WIDTH].encode("utf-8", "backslashreplace").decode("utf-8"))

    def is_furniture(name, value):
        return (
            name in ("special variables", "function variables", "class variables", "protected variables", "len()")
            or name.startswith("@py_")
            or value.startswith(("<function ", "<class '", "<module '", "<built-in function "))
        )

    def described(variable, context, level, room):
        """As the debugger would; what says nothing by its text, by its parts."""
        data = variable.get_var_data(context=context)
        text = str(data["value"]).strip()
        if " object at 0x" not in text or not data["variablesReference"] or level > 1 or room[0] <= 0:
            return text_of(text)
        room[0] -= 1
        length, parts, count = None, [], 0
        for child in variable.get_children_variables():
            name, known = str(child.get_name()), None
            if name == "len()":
                length = child.value
                continue
            # Only those that are told are asked for their text, beyond what it takes to know them.
            if count <= ITEMS or callable(child.value) or isinstance(child.value, type(os)):
                known = str(child.get_var_data()["value"]).strip()
                if is_furniture(name, known):
                    continue
            count += 1
            if count <= ITEMS + 1:
                parts.append("[%s,%s]" % (text_of(name), described(child, None, level + 1, room)))
        kind, total = text_of(str(data["type"] or "")), count if length is None else int(length)
        return "[%s,%s,%d,[%s]]" % (text_of(text), kind, total, ",".join(parts))

    def shown(value):
        kind = type(value)
        if kind is int or kind is float or kind is bool or value is None:
            try:
                return '"%s"' % repr(value)[:WIDTH]
            except ValueError:
                pass
        elif kind is str and len(value) <= 1000:
            return quote(repr(value)[:WIDTH])
        try:
            with filter_all_warnings():
                variable = _ObjectVariable(get_global_debugger(), "", value, lambda _: None)
                return described(variable, "watch", 0, [UNASKED])
        except BaseException as error:
            return failed(error)

    def failed(error):
        try:
            text = "%s: %s" % (type(error).__name__, error)
        except BaseException:
            text = type(error).__name__
        return "[%s]" % quote(text[:1000].encode("utf-8", "backslashreplace").decode("utf-8"))

    def reader(text):
        """What reads an expression in a frame as JSON: a name at once, what is plain by its code, the rest as the
        debugger would."""

        def by_debugger(frame, values):
            try:
                with filter_all_warnings():
                    value = evaluate_expression(get_global_debugger(), frame, text, False)
            except BaseException as error:
                return failed(error)
            if type(value) is ExceptionOnEvaluate:
                return failed(value.result)
            return shown(value)

        try:
            with filter_all_warnings():
                code = compile_as_eval(text)
        except BaseException:
            return by_debugger
        if text.strip().isidentifier() and code.co_names:
            name = code.co_names[0]

            def by_name(frame, values):
                value = values.get(name, missing)
                if value is missing:
                    value = frame.f_globals.get(name, missing)
                    if value is missing:
                        value = frame.f_builtins.get(name, missing)
                        if value is missing:
                            return by_debugger(frame, values)
                kind = type(value)
                if kind is int and -1000000000000 < value < 1000000000000:
                    return '"%d"' % value
                return shown(value)

            return by_name
        # What looks at its own surroundings has the debugger's; what calls may warn.
        calls = "(" in text.replace("len(", "")
        inner = any(hasattr(const, "co_code") for const in code.co_consts)
        if calls or inner or ":=" in text or "__" in text or "await" in text or code.co_flags & 0x80:
            return by_debugger

        def by_code(frame, values):
            try:
                value = eval(code, frame.f_globals, values)
            except BaseException as error:
                return failed(error)
            return shown(value)

        return by_code

    # The way to a hit

    frames_of = {}

    def known_frame(frame):
        """(told, hidden, function, file) of a frame's code: hidden ones do not even count."""
        debugger, code = get_global_debugger(), frame.f_code
        if debugger is None:
            # The program is about to end.
            return (False, True, code.co_name, code.co_filename)
        place = path_of(frame)
        hidden = debugger.get_file_type(frame, place) == debugger.PYDEV_FILE
        told = not hidden and debugger.in_project_scope(frame)
        known = frames_of[code] = (told, hidden, code.co_name, place[0])
        return known

    def way_of(frame):
        key, left = [], depth
        while frame is not None and left:
            code = frame.f_code
            known = frames_of.get(code) or known_frame(frame)
            if not known[1]:
                left -= 1
                if known[0]:
                    key.append((code, frame.f_lineno))
            frame = frame.f_back
        key = tuple(key)
        way = state.ways.get(key)
        if way is None:
            way = next(state.way_numbers)
            frames = ["[%s,%s,%d]" % (quote(frames_of[c][2]), quote(frames_of[c][3]), n or 0) for c, n in key]
            tell('["s",%d,[%s]]\n' % (way, ",".join(frames)))
            state.ways[key] = way
        return way

    # Hits

    RESUME = __import__("opcode").opmap.get("RESUME")
    entered_first = sys.version_info < (3, 12)

    def is_entry(frame):
        """A lambda or module that is being entered: the debugger comes again for its first line."""
        if frame.f_code.co_name not in ("<lambda>", "<module>") or not entered_first:
            return False
        last = frame.f_lasti
        return last < 0 or (RESUME is not None and frame.f_code.co_code[last] == RESUME)

    counted = itertools.count(1)

    def point(number, when, every, texts):
        condition = when and compile_as_eval(when)
        readers = [reader(text) for text in texts]
        passes = itertools.count(1)
        head = "[%d,%%d,%%d,%%d,[%%s]]\n" % number
        simple = frozenset(("<lambda>", "<module>"))
        failures = []

        def collect(frame, values):
            micros = (clock() - state.origin) // 1000
            try:
                thread = state.local.number
            except AttributeError:
                thread = thread_number()
            way = way_of(frame) if depth else 0
            parts = [read(frame, values) for read in readers]
            data = (head % (micros, thread, way, ",".join(parts))).encode("ascii")
            try:
                if write(state.out, data) != len(data):
                    raise OSError
            except OSError:
                tell("\n" + data.decode("ascii"))

        def hit(frame):
            if frame.f_code.co_name in simple and is_entry(frame):
                return False
            values = frame.f_locals
            if condition is not None:
                try:
                    if not eval(condition, frame.f_globals, values):
                        return False
                except Exception as error:
                    if not failures:
                        failures.append(error)
                        tell('["w",%d,%s]\n' % (number, failed(error)[1:-1]))
                    return False
            if every > 1 and next(passes) % every:
                return False
            if not most:
                collect(frame, values)
                return False
            with state.lock:
                count = next(counted)
                if count <= most:
                    collect(frame, values)
                return count >= most

        points[number] = hit

    points = {}

    def bind(number, hit):
        """From the first hit on the debugger calls the hook itself, without a text to compile at each."""
        debugger, text = get_global_debugger(), "__bugeye__(%d)" % number
        by_line = [found for lines in list(debugger.breakpoints.values()) for found in list(lines.values())]
        for found in by_line + list(debugger.function_breakpoint_name_to_breakpoint.values()):
            if found.condition == text and not found.hit_condition:
                found.handle_hit_condition, found.hit_condition, found.condition = hit, text, ""

    def entry(number):
        hit = points[number]
        frame = sys._getframe(1).f_back
        while frame is not None:
            found = frame.f_locals.get("new_frame") if frame.f_code.co_name == "handle_breakpoint_condition" else None
            if found is not None:
                break
            frame = frame.f_back
        try:
            bind(number, hit)
        except Exception:
            pass
        return hit(found)

    # Calls

    def glob_test(globs):
        """Whether a function is told: by its whole name, with its module, or by a part of it in the program's own code."""
        import fnmatch, re, sysconfig

        names = [(glob, re.compile(fnmatch.translate(glob)).match, "." in glob and not glob.startswith("*")) for glob in globs]
        paths = [sysconfig.get_paths().get(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")]
        library = tuple(os.path.join(path, "") for path in paths if path)

        def is_told(frame):
            code = frame.f_code
            # A module's or class's body is no function, nor is a loop in brackets.
            if not code.co_flags & 2 or code.co_name in ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"):
                return False
            file = code.co_filename
            if "/debugpy/" in file or (frames_of.get(code) or known_frame(frame))[1]:
                return False
            own = not file.startswith(library) and not file.startswith("<")
            own = own and "/site-packages/" not in file and "/dist-packages/" not in file
            qualified = getattr(code, "co_qualname", code.co_name).replace("<locals>.", "")
            whole = "%s.%s" % (frame.f_globals.get("__name__", ""), qualified)
            for glob, match, anywhere in names:
                if (own or anywhere) and match(whole):
                    return whole, own
                if own and (match(qualified) or ("." not in glob and match(code.co_name))):
                    return whole, own
            return False

        return is_told

    def arguments_of(frame):
        code, values = frame.f_code, frame.f_locals
        count = code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & 4) + bool(code.co_flags & 8)
        names = code.co_varnames[:count]
        return ",".join("[%s,%s]" % (quote(name), shown(values[name])) for name in names if name in values)

    class Calls:
        """The calls of told functions: a stack for each thread, numbers for the whole process."""

        def __init__(self, globs, most):
            self.is_told, self.most, self.on = glob_test(globs), most, True
            self.codes, self.open, self.count = {}, {}, itertools.count(1)

        def told(self, frame):
            code = frame.f_code
            known = self.codes.get(code)
            if known is None:
                known = self.codes[code] = self.is_told(frame)
            return known

        def stack(self):
            try:
                return state.local.stack
            except AttributeError:
                state.local.stack = stack = []
                return stack

        def is_debuggers(self, frame):
            """The debugger uses the library too."""
            while frame is not None:
                told, hidden = (frames_of.get(frame.f_code) or known_frame(frame))[:2]
                if told or hidden:
                    return hidden
                frame = frame.f_back
            return True

        def enter(self, frame, known):
            name, own = known
            if not own and self.is_debuggers(frame.f_back):
                return
            if next(self.count) > self.most:
                self.stop()
                return
            number, stack, code = next(state.call_numbers), self.stack(), frame.f_code
            arguments, thread = arguments_of(frame), thread_number()
            place = "[%s,%s,%d]" % (quote(name), quote(frames_of[code][3]), code.co_firstlineno)
            micros = (clock() - state.origin) // 1000
            tell('["c",%d,%d,%d,%d,%s,[%s]]\n' % (number, micros, thread, len(stack), place, arguments))
            self.open[id(frame)] = number
            stack.append(id(frame))

        def resume(self, frame):
            if id(frame) in self.open:
                self.stack().append(id(frame))

        def pause(self, frame):
            stack = self.stack()
            if id(frame) in stack:
                del stack[stack.index(id(frame)) :]

        def leave(self, frame, value):
            self.pause(frame)
            number = self.open.pop(id(frame), None)
            if number is not None and self.on:
                tell('["r",%d,%d,%s]\n' % (number, (clock() - state.origin) // 1000, value))

        def stop(self):
            if self.on:
                self.on = False
                self.off()

    def raised(error):
        return failed(error).replace('["', '["raised ', 1)

    def watch_calls(calls):
        """From Python 3.12 on, in all threads at once."""
        monitoring = sys.monitoring
        events = monitoring.events
        tool = next(tool for tool in (2, 4, 3, 5) if monitoring.get_tool(tool) is None)
        monitoring.use_tool_id(tool, "bugeye")

        def on_start(code, offset):
            frame = sys._getframe(1)
            name = frame.f_code is code and calls.told(frame)
            if not name:
                return monitoring.DISABLE
            calls.enter(frame, name)

        def on_resume(code, offset, *rest):
            if calls.codes.get(code):
                calls.resume(sys._getframe(1))

        def on_yield(code, offset, value):
            if calls.codes.get(code):
                calls.pause(sys._getframe(1))

        def on_return(code, offset, value):
            if calls.codes.get(code):
                calls.leave(sys._getframe(1), shown(value))

        def on_unwind(code, offset, error):
            if calls.codes.get(code):
                calls.leave(sys._getframe(1), raised(error))

        handlers = {
            events.PY_START: on_start,
            events.PY_RESUME: on_resume,
            events.PY_THROW: on_resume,
            events.PY_YIELD: on_yield,
            events.PY_RETURN: on_return,
            events.PY_UNWIND: on_unwind,
        }
        for event, handler in handlers.items():
            monitoring.register_callback(tool, event, handler)
        monitoring.set_events(tool, sum(handlers))

        def off():
            monitoring.set_events(tool, 0)
            monitoring.free_tool_id(tool)

        return off

    def profile_calls(calls):
        """Before, thread by thread: those that come begin with it, the main one is interrupted for it."""
        import ctypes, opcode

        returns, yields, yields_from = map(opcode.opmap.get, ("RETURN_VALUE", "YIELD_VALUE", "YIELD_FROM"))
        texts, errors = {}, {}

        def operation(frame):
            code = frame.f_code
            text = texts.get(code)
            if text is None:
                text = texts[code] = code.co_code
            return text[frame.f_lasti : frame.f_lasti + 4]

        def is_begun(frame):
            if frame.f_lasti < 0:
                return False
            if RESUME is None:
                return True
            return operation(frame)[:2] != bytes((RESUME, 0))

        def follow(frame):
            """Learns of exceptions in a frame, beside what the debugger itself does there."""
            inner = frame.f_trace
            if inner is None and not frame.f_code.co_flags & 0x2A0:
                frame.f_trace_lines = False

            def trace(frame, event, argument):
                nonlocal inner
                if event == "exception":
                    errors[id(frame)] = argument[1]
                elif event == "line":
                    errors.pop(id(frame), None)
                if inner is not None:
                    answer = inner(frame, event, argument)
                    inner = frame.f_trace if frame.f_trace is not trace else answer or inner
                return trace

            frame.f_trace = trace

        def profile(frame, event, argument):
            try:
                take(frame, event, argument)
            except Exception:
                # What goes wrong here is not the program's.
                pass

        def take(frame, event, argument):
            if event == "call":
                if not calls.on:
                    return sys.setprofile(None)
                name = calls.told(frame)
                if not name:
                    return
                if is_begun(frame):
                    calls.resume(frame)
                else:
                    follow(frame)
                    calls.enter(frame, name)
            elif event == "return" and calls.codes.get(frame.f_code):
                last = operation(frame)
                error = errors.pop(id(frame), None)
                # One that waits for another stands before the instruction, to come to it again.
                waits = yields_from is not None and last[2:3] == bytes((yields_from,))
                if last[0] == returns:
                    calls.leave(frame, shown(argument))
                elif (last[0] == yields or waits) and error is None:
                    calls.pause(frame)
                elif isinstance(error, BaseException):
                    calls.leave(frame, raised(error))
                else:
                    calls.leave(frame, '["raised an exception"]')

        @ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)
        def in_main(_):
            if calls.on:
                sys.setprofile(profile)
            return 0

        calls.kept = in_main
        threading.setprofile(profile)
        if threading.current_thread() is threading.main_thread():
            in_main(None)
        else:
            ctypes.pythonapi.Py_AddPendingCall(in_main, None)

        def off():
            threading.setprofile(None)
            sys.setprofile(None)

        return off

    def calls(globs, most):
        told = Calls(globs, most)
        told.off = watch_calls(told) if hasattr(sys, "monitoring") else profile_calls(told)
        entry.told = told

    def stop():
        """Nothing is told any more; the breakpoints are the debugger's to remove."""
        for number in points:
            points[number] = lambda frame: False
        if entry.told is not None:
            entry.told.stop()

    state.out = open_sink()
    begin()
    os.register_at_fork(after_in_child=begin)
    entry.point, entry.calls, entry.stop, entry.told = point, calls, stop, None
    return entry
