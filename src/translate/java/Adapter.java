package bugeye;

import com.sun.jdi.AbsentInformationException;
import com.sun.jdi.IncompatibleThreadStateException;
import com.sun.jdi.LocalVariable;
import com.sun.jdi.Location;
import com.sun.jdi.ObjectReference;
import com.sun.jdi.PathSearchingVirtualMachine;
import com.sun.jdi.ReferenceType;
import com.sun.jdi.StackFrame;
import com.sun.jdi.ThreadReference;
import com.sun.jdi.VMDisconnectedException;
import com.sun.jdi.Value;
import com.sun.jdi.VirtualMachine;
import com.sun.jdi.event.ExceptionEvent;
import com.sun.jdi.request.StepRequest;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;

/** Answers the client's requests. */
final class Adapter {
    /** Frame numbers: the thread's number times this, and the frame's place in its stack. */
    private static final long FRAMES = 1_000_000;
    private static final int LONGEST_TRACE = 30;
    private static final String HELP = "help, version, classes TEXT, watches";

    private final Client client;
    private final String[] streams;
    private final Sources sources = new Sources();
    private Debuggee debuggee;
    private Process process;
    /** What is to happen once the answer is sent. */
    private Runnable then;

    Adapter(Client client, String[] streams) {
        this.client = client;
        this.streams = streams;
    }

    /** Until the client is gone or says goodbye. */
    void serve() throws IOException {
        for (Map<String, Object> request = client.read(); request != null; request = client.read()) {
            String command = String.valueOf(request.get("command"));
            Object lock = debuggee == null ? this : debuggee;
            synchronized (lock) {
                then = null;
                try {
                    Object body = answer(command, Json.asObject(request.get("arguments")));
                    client.answer(request, body);
                    if (then != null) {
                        then.run();
                    }
                } catch (Refusal e) {
                    client.refuse(request, e.getMessage());
                } catch (VMDisconnectedException e) {
                    client.refuse(request, "the program has ended");
                } catch (RuntimeException e) {
                    e.printStackTrace();
                    client.refuse(request, String.valueOf(e));
                }
            }
            if (command.equals("disconnect")) {
                return;
            }
        }
        end(process != null);
    }

    private Object answer(String command, Map<String, Object> arguments) {
        switch (command) {
            case "initialize":
                return capabilities();
            case "launch":
                return launch(arguments);
            case "attach":
                return attach(arguments);
            case "disconnect":
                end(arguments.containsKey("terminateDebuggee") ? Json.flag(arguments, "terminateDebuggee")
                        : process != null);
                return null;
            default:
                break;
        }
        if (debuggee == null) {
            throw new Refusal("nothing is being debugged yet");
        }
        switch (command) {
            case "setBreakpoints":
                return debuggee.breakpoints.setLines(Json.text(Json.asObject(arguments.get("source")), "path"),
                        Json.asList(arguments.get("breakpoints")));
            case "setFunctionBreakpoints":
                return debuggee.breakpoints.setFunctions(Json.asList(arguments.get("breakpoints")));
            case "setExceptionBreakpoints":
                debuggee.exceptions.set(debuggee.vm(), arguments);
                return null;
            case "configurationDone":
                then = this::begin;
                return null;
            case "threads":
                return threads();
            case "modules":
                return modules();
            case "pause":
                then = () -> debuggee.pause(known(Json.number(arguments, "threadId", 0)));
                return null;
            case "terminate":
                end(true);
                return null;
            default:
                return answerStanding(command, arguments);
        }
    }

    /** What needs a program that stands. */
    private Object answerStanding(String command, Map<String, Object> arguments) {
        if (command.equals("evaluate") && String.valueOf(arguments.get("expression")).startsWith(":")) {
            return Json.object("result", command(String.valueOf(arguments.get("expression")).substring(1), arguments),
                    "variablesReference", 0L);
        }
        if (debuggee.isRunning()) {
            throw new Refusal("the program is running");
        }
        switch (command) {
            case "continue":
                then = debuggee::resume;
                return Json.object("allThreadsContinued", true);
            case "next":
                return step(arguments, StepRequest.STEP_OVER);
            case "stepIn":
                return step(arguments, StepRequest.STEP_INTO);
            case "stepOut":
                return step(arguments, StepRequest.STEP_OUT);
            case "stackTrace":
                return stack(arguments);
            case "scopes":
                return scopes(Json.number(arguments, "frameId", 0));
            case "variables":
                return Json.object("variables", debuggee.values.variables(
                        Json.number(arguments, "variablesReference", 0), (int) Json.number(arguments, "start", 0),
                        count(arguments)));
            case "evaluate":
                return evaluate(arguments);
            case "setExpression":
                return set(arguments);
            case "exceptionInfo":
                return exceptionInfo();
            default:
                throw Refusal.unsupported("the request " + command);
        }
    }

    private static int count(Map<String, Object> arguments) {
        long count = Json.number(arguments, "count", 0);
        return count <= 0 || count > 1_000_000 ? 1_000_000 : (int) count;
    }

    private static Map<String, Object> capabilities() {
        return Json.object("supportsConfigurationDoneRequest", true, "supportsFunctionBreakpoints", true,
                "supportsConditionalBreakpoints", true, "supportsHitConditionalBreakpoints", true,
                "supportsEvaluateForHovers", true, "supportsSetExpression", true, "supportsExceptionOptions", true,
                "supportsExceptionInfoRequest", true, "supportsModulesRequest", true, "supportTerminateDebuggee", true,
                "supportsTerminateRequest", true, "exceptionBreakpointFilters", Exceptions.filters());
    }

    private Object launch(Map<String, Object> arguments) {
        String cwd = Json.text(arguments, "cwd");
        sources.addRoot(cwd);
        List<String> command = Json.asTexts(arguments.get("command"));
        for (int i = 0; i + 1 < command.size(); i++) {
            if (List.of("-cp", "-classpath", "--class-path").contains(command.get(i))) {
                sources.addClassPath(command.get(i + 1), Paths.get(String.valueOf(cwd)));
            }
        }
        Launcher.Started started = Launcher.launch(arguments, streams);
        process = started.process;
        begin(started.vm, false);
        Process watched = process;
        Thread listener = listen();
        Thread waiter = new Thread(() -> onExit(watched, listener));
        waiter.setDaemon(true);
        waiter.start();
        String name = command.isEmpty() ? "java" : command.get(0);
        then = () -> {
            client.event("process", Json.object("name", name, "systemProcessId", watched.pid(), "isLocalProcess", true,
                    "startMethod", "launch"));
            client.event("initialized", Json.object());
        };
        return null;
    }

    private Object attach(Map<String, Object> arguments) {
        long pid = Json.number(arguments, "processId", 0);
        VirtualMachine vm = Launcher.attach(arguments);
        sources.addRoot(Json.text(arguments, "cwd"));
        if (pid > 0) {
            try {
                sources.addRoot(Files.readSymbolicLink(Path.of("/proc/" + pid + "/cwd")).toString());
            } catch (IOException e) {
                sources.addRoot(System.getenv("PWD"));
            }
        } else {
            sources.addRoot(System.getenv("PWD"));
        }
        begin(vm, true);
        Thread listener = listen();
        new Thread(() -> {
            join(listener);
            client.event("terminated", Json.object());
        }).start();
        then = () -> {
            if (pid > 0) {
                client.event("process", Json.object("name", "java", "systemProcessId", pid, "startMethod", "attach"));
            }
            client.event("initialized", Json.object());
        };
        return null;
    }

    private void begin(VirtualMachine vm, boolean attached) {
        ClassFiles files = new ClassFiles(List.of(), null);
        if (vm instanceof PathSearchingVirtualMachine) {
            PathSearchingVirtualMachine told = (PathSearchingVirtualMachine) vm;
            files = new ClassFiles(told.classPath(), told.baseDirectory());
        }
        debuggee = new Debuggee(client, vm, sources, files, attached);
        debuggee.threads.own(vm).forEach(debuggee.threads::number);
        client.event("output", Json.object("category", "telemetry", "output", "version", "data",
                Json.object("packageVersion", System.getProperty("java.version"))));
    }

    private Thread listen() {
        Thread listener = new Thread(debuggee::listen);
        listener.setDaemon(true);
        listener.start();
        return listener;
    }

    /** The program is configured: it goes, unless it was attached to before its beginning. */
    private void begin() {
        if (process != null) {
            debuggee.resume();
            return;
        }
        // The event that tells of a program held at its beginning may be under way.
        long deadline = System.nanoTime() + 200_000_000L;
        while (!debuggee.startedHeld() && System.nanoTime() < deadline && isHeld()) {
            try {
                debuggee.wait(5);
            } catch (InterruptedException e) {
                return;
            }
        }
        if (debuggee.startedHeld()) {
            debuggee.tellHeld();
        }
    }

    private boolean isHeld() {
        return debuggee.vm().allThreads().stream().anyMatch(thread -> thread.suspendCount() > 0);
    }

    private void onExit(Process watched, Thread listener) {
        try {
            int code = watched.waitFor();
            join(listener);
            client.event("exited", Json.object("exitCode", code));
            client.event("terminated", Json.object());
        } catch (InterruptedException e) {
            // Nobody interrupts it.
        }
    }

    private static void join(Thread thread) {
        try {
            thread.join();
        } catch (InterruptedException e) {
            // Nobody interrupts it.
        }
    }

    /** Ends the program, or lets it go on without us. */
    private void end(boolean terminate) {
        try {
            if (process != null && terminate) {
                process.destroyForcibly();
            } else if (debuggee != null && terminate) {
                debuggee.vm().exit(143);
            } else if (debuggee != null) {
                debuggee.letGo();
            }
        } catch (VMDisconnectedException e) {
            // It is gone.
        }
    }

    private ThreadReference known(long number) {
        try {
            return debuggee.threads.find(number);
        } catch (Refusal e) {
            return null;
        }
    }

    private Object threads() {
        List<ThreadReference> own = debuggee.threads.own(debuggee.vm());
        ThreadReference stopped = debuggee.stopped();
        if (stopped != null && !own.contains(stopped)) {
            own.add(stopped);
        }
        List<Object> out = new ArrayList<>();
        own.sort(Comparator.comparingLong(debuggee.threads::number));
        for (ThreadReference thread : own) {
            try {
                out.add(Json.object("id", debuggee.threads.number(thread), "name", thread.name()));
            } catch (com.sun.jdi.ObjectCollectedException e) {
                // It has just ended.
            }
        }
        return Json.object("threads", out);
    }

    /** What the program's classes are loaded from. */
    private Object modules() {
        List<Object> out = new ArrayList<>();
        if (debuggee.vm() instanceof PathSearchingVirtualMachine) {
            for (String entry : ((PathSearchingVirtualMachine) debuggee.vm()).classPath()) {
                String name = String.valueOf(Path.of(entry).getFileName());
                out.add(Json.object("id", entry, "name", name.isEmpty() ? entry : name, "path", entry));
            }
        }
        return Json.object("modules", out, "totalModules", out.size());
    }

    private Object step(Map<String, Object> arguments, int depth) {
        ThreadReference thread = debuggee.threads.find(Json.number(arguments, "threadId", 0));
        then = () -> debuggee.resume(thread, depth);
        return null;
    }

    private Object stack(Map<String, Object> arguments) {
        long number = Json.number(arguments, "threadId", 0);
        ThreadReference thread = debuggee.threads.find(number);
        int start = (int) Json.number(arguments, "startFrame", 0);
        int levels = (int) Json.number(arguments, "levels", 0);
        List<Object> out = new ArrayList<>();
        try {
            int total = thread.frameCount();
            int count = Math.max(0, Math.min(levels <= 0 ? total : levels, total - start));
            int depth = start;
            for (StackFrame frame : count == 0 ? List.<StackFrame>of() : thread.frames(start, count)) {
                out.add(frame(number * FRAMES + depth, frame.location()));
                depth++;
            }
            return Json.object("stackFrames", out, "totalFrames", total);
        } catch (IncompatibleThreadStateException e) {
            throw new Refusal("the thread has ended or is running");
        }
    }

    private Map<String, Object> frame(long id, Location location) {
        ReferenceType type = location.declaringType();
        String name = null;
        try {
            name = location.sourceName();
        } catch (AbsentInformationException e) {
            // It is shown without.
        }
        Map<String, Object> source =
                name == null ? null : Json.object("name", name, "path", sources.find(type));
        return Json.object("id", id, "name", Debuggee.nameOf(location), "line", Math.max(0, location.lineNumber()),
                "column", 0, "source", source, "presentationHint", Sources.isPlatform(type.name()) ? "subtle" : null);
    }

    private Object scopes(long id) {
        ThreadReference thread = debuggee.threads.find(id / FRAMES);
        int depth = (int) (id % FRAMES);
        ReferenceType type = debuggee.frame(thread, depth).location().declaringType();
        long locals = debuggee.values.keep((start, count) -> locals(thread, depth));
        long statics = debuggee.values.keep((start, count) -> debuggee.values.statics(type));
        return Json.object("scopes", List.of(
                Json.object("name", "Locals", "presentationHint", "locals", "variablesReference", locals, "expensive",
                        false),
                Json.object("name", "Static fields (globals)", "variablesReference", statics, "expensive", false)));
    }

    private List<Map<String, Object>> locals(ThreadReference thread, int depth) {
        StackFrame frame = debuggee.frame(thread, depth);
        List<Map<String, Object>> out = new ArrayList<>();
        if (frame.thisObject() != null) {
            out.add(debuggee.values.variable("this", frame.thisObject(), null));
        }
        try {
            List<LocalVariable> locals = inOrder(frame);
            Map<LocalVariable, Value> values = frame.getValues(locals);
            for (LocalVariable local : locals) {
                Map<String, Object> variable = debuggee.values.variable(local.name(), values.get(local), null);
                variable.putIfAbsent("type", local.typeName());
                out.add(variable);
            }
        } catch (AbsentInformationException e) {
            int index = 0;
            for (Value value : frame.location().method().isNative() ? List.<Value>of() : frame.getArgumentValues()) {
                out.add(debuggee.values.variable("arg" + index, value, null));
                index++;
            }
        }
        return out;
    }

    /** Arguments first, then as they were declared. */
    private static List<LocalVariable> inOrder(StackFrame frame) throws AbsentInformationException {
        List<LocalVariable> locals = new ArrayList<>(frame.visibleVariables());
        locals.sort(Comparator.comparing((LocalVariable local) -> !local.isArgument())
                .thenComparing(Comparator.naturalOrder()));
        return locals;
    }

    private Scope scope(Map<String, Object> arguments, boolean mayChange) {
        long id = Json.number(arguments, "frameId", 0);
        return new Scope(debuggee, debuggee.threads.find(id / FRAMES), (int) (id % FRAMES), mayChange);
    }

    private Object evaluate(Map<String, Object> arguments) {
        boolean mayChange = "repl".equals(arguments.get("context"));
        Node node = Parser.parse(String.valueOf(arguments.get("expression")));
        return debuggee.values.describe("result", node.value(scope(arguments, mayChange)));
    }

    private Object set(Map<String, Object> arguments) {
        Scope scope = scope(arguments, true);
        Node target = Parser.parse(String.valueOf(arguments.get("expression")));
        target.assign(scope, Parser.parse(String.valueOf(arguments.get("value"))).value(scope));
        return debuggee.values.describe("value", target.value(scope));
    }

    private Object exceptionInfo() {
        ExceptionEvent event = debuggee.exception();
        if (event == null) {
            throw new Refusal("the program did not stop on an exception");
        }
        String type = event.exception().referenceType().name();
        String trace = trace(event.thread());
        return Json.object("exceptionId", type, "description", Values.message(event.exception()), "breakMode",
                event.catchLocation() == null ? "unhandled" : "always", "details",
                details(event.exception(), trace, 0));
    }

    /** The stack as Java prints it. */
    private static String trace(ThreadReference thread) {
        StringBuilder trace = new StringBuilder();
        try {
            int total = thread.frameCount();
            for (StackFrame frame : thread.frames(0, Math.min(total, LONGEST_TRACE))) {
                Location location = frame.location();
                String place = "Unknown Source";
                try {
                    place = location.sourceName() + (location.lineNumber() > 0 ? ":" + location.lineNumber() : "");
                } catch (AbsentInformationException e) {
                    // As it is then.
                }
                trace.append("\tat ").append(Debuggee.nameOf(location)).append('(').append(place).append(")\n");
            }
            if (total > LONGEST_TRACE) {
                trace.append("\t… ").append(total - LONGEST_TRACE).append(" more\n");
            }
        } catch (IncompatibleThreadStateException e) {
            // It is shown without.
        }
        return trace.toString();
    }

    private static Map<String, Object> details(ObjectReference exception, String trace, int depth) {
        List<Object> inner = new ArrayList<>();
        Value cause = Items.get(exception, "cause");
        if (cause != null && !cause.equals(exception) && depth < 8) {
            inner.add(details((ObjectReference) cause, null, depth + 1));
        }
        return Json.object("typeName", exception.referenceType().name(), "message", Values.message(exception),
                "stackTrace", trace, "innerException", inner);
    }

    /** Commands beside the protocol, which no Java expression looks like. */
    private String command(String text, Map<String, Object> arguments) {
        String[] words = text.trim().split("\\s+", 3);
        String second = words.length > 1 ? words[1] : "";
        String third = words.length > 2 ? words[2] : "";
        switch (words[0]) {
            case "parse":
                Parser.parse(text.trim().substring(5));
                return "";
            case "arguments":
                return arguments(Json.number(arguments, "frameId", 0));
            case "returned":
                return debuggee.returned();
            case "watch":
                long id = Json.number(arguments, "frameId", 0);
                return debuggee.watches.set(second, third, debuggee.threads.find(id / FRAMES), (int) (id % FRAMES));
            case "watch-if":
                debuggee.watches.setCondition(Integer.parseInt(second), third);
                return "";
            case "unwatch":
                debuggee.watches.remove(Integer.parseInt(second));
                return "";
            case "watches":
                return debuggee.watches.list();
            case "version":
                return debuggee.vm().description();
            case "classes":
                StringBuilder out = new StringBuilder();
                debuggee.vm().allClasses().stream().map(ReferenceType::name).filter(name -> name.contains(second))
                        .sorted().limit(500).forEach(name -> out.append(name).append('\n'));
                return out.toString();
            case "help":
                return HELP;
            default:
                throw new Refusal("there is no command `" + words[0] + "`; there are: " + HELP);
        }
    }

    private String arguments(long id) {
        StackFrame frame = debuggee.frame(debuggee.threads.find(id / FRAMES), (int) (id % FRAMES));
        List<String> names = new ArrayList<>();
        try {
            for (LocalVariable local : inOrder(frame)) {
                if (local.isArgument()) {
                    names.add(local.name());
                }
            }
        } catch (AbsentInformationException e) {
            for (int i = 0; i < frame.location().method().argumentTypeNames().size(); i++) {
                names.add("arg" + i);
            }
        }
        return String.join(",", names);
    }
}
