package bugeye;

import com.sun.jdi.AbsentInformationException;
import com.sun.jdi.Location;
import com.sun.jdi.Method;
import com.sun.jdi.ReferenceType;
import com.sun.jdi.ThreadReference;
import com.sun.jdi.VirtualMachine;
import com.sun.jdi.request.BreakpointRequest;
import com.sun.jdi.request.ClassPrepareRequest;
import com.sun.jdi.request.EventRequest;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.TreeSet;

/** Breakpoints by line and by method. They wait for the classes they are in, and follow those as they are loaded. */
final class Breakpoints {
    private final Debuggee debuggee;
    private final Client client;
    private final Sources sources;
    private final ClassFiles files;
    private final Map<String, List<Breakpoint>> byFile = new LinkedHashMap<>();
    private List<Breakpoint> functions = new ArrayList<>();
    /** What class preparations are announced already. */
    private final Set<String> awaited = new HashSet<>();
    private int lastId;

    /** One wish of the client. */
    static final class Breakpoint {
        int id;
        String file;
        int line;
        String function;
        String condition;
        String hitCondition;
        long passes;
        /** The line it stands at; 0 while no class with it is loaded. */
        int boundLine;
        /** A class of its file is loaded, with code there or not. */
        boolean looked;
        String boundFile;
        /** Where the class files say it will be; 0 where they do not. */
        int expectedLine;
        /** There are class files of it. */
        boolean expected;
        final List<BreakpointRequest> requests = new ArrayList<>();

        boolean isSame(Breakpoint other) {
            return line == other.line && Objects.equals(function, other.function)
                    && Objects.equals(condition, other.condition) && Objects.equals(hitCondition, other.hitCondition);
        }
    }

    Breakpoints(Debuggee debuggee, Client client, Sources sources, ClassFiles files) {
        this.debuggee = debuggee;
        this.client = client;
        this.sources = sources;
        this.files = files;
    }

    /** Replaces the breakpoints of a file. */
    Map<String, Object> setLines(String file, List<Object> asked) {
        sources.addFile(file);
        List<Breakpoint> wanted = new ArrayList<>();
        for (Object one : asked) {
            Breakpoint breakpoint = read(Json.asObject(one));
            breakpoint.file = file;
            wanted.add(breakpoint);
        }
        List<Breakpoint> now = replace(byFile.getOrDefault(file, List.of()), wanted);
        byFile.put(file, now);
        return answer(now);
    }

    /** Replaces the breakpoints on methods. */
    Map<String, Object> setFunctions(List<Object> asked) {
        List<Breakpoint> wanted = new ArrayList<>();
        for (Object one : asked) {
            Breakpoint breakpoint = read(Json.asObject(one));
            breakpoint.function = String.valueOf(Json.asObject(one).get("name"));
            wanted.add(breakpoint);
        }
        functions = replace(functions, wanted);
        return answer(functions);
    }

    private static Breakpoint read(Map<String, Object> asked) {
        Breakpoint breakpoint = new Breakpoint();
        breakpoint.line = (int) Json.number(asked, "line", 0);
        breakpoint.condition = Json.text(asked, "condition");
        breakpoint.hitCondition = Json.text(asked, "hitCondition");
        return breakpoint;
    }

    /** What stays the same keeps its number and its count of passes. */
    private List<Breakpoint> replace(List<Breakpoint> before, List<Breakpoint> wanted) {
        List<Breakpoint> old = new ArrayList<>(before);
        List<Breakpoint> now = new ArrayList<>();
        for (Breakpoint breakpoint : wanted) {
            Breakpoint kept = null;
            for (Breakpoint candidate : old) {
                kept = kept == null && candidate.isSame(breakpoint) ? candidate : kept;
            }
            if (kept != null) {
                old.remove(kept);
                now.add(kept);
                continue;
            }
            breakpoint.id = ++lastId;
            now.add(breakpoint);
            await(breakpoint);
            expect(breakpoint);
            for (ReferenceType type : debuggee.vm().allClasses()) {
                if (type.isPrepared()) {
                    bind(breakpoint, type);
                }
            }
        }
        for (Breakpoint breakpoint : old) {
            clear(breakpoint);
        }
        return now;
    }

    private void clear(Breakpoint breakpoint) {
        debuggee.vm().eventRequestManager().deleteEventRequests(breakpoint.requests);
        breakpoint.requests.clear();
        breakpoint.boundLine = 0;
    }

    private static Map<String, Object> answer(List<Breakpoint> breakpoints) {
        List<Object> out = new ArrayList<>();
        for (Breakpoint breakpoint : breakpoints) {
            out.add(described(breakpoint));
        }
        return Json.object("breakpoints", out);
    }

    private static Map<String, Object> described(Breakpoint breakpoint) {
        boolean bound = !breakpoint.requests.isEmpty();
        int line = bound ? breakpoint.boundLine : breakpoint.expectedLine;
        String message = null;
        if (line == 0 && breakpoint.function != null) {
            message = "no class that is loaded so far has a method of that name";
        } else if (line == 0) {
            message = breakpoint.looked || breakpoint.expected ? "no code comes from that line or one below it"
                    : "no class of that file is loaded yet";
        }
        return Json.object("id", breakpoint.id, "verified", bound || line > 0, "message", message, "line",
                line > 0 ? (Object) line : null, "source",
                breakpoint.boundFile == null ? null : Json.object("path", breakpoint.boundFile));
    }

    /** What the class files say of a breakpoint, before their classes are loaded. */
    private void expect(Breakpoint breakpoint) {
        if (breakpoint.function != null) {
            breakpoint.expectedLine = files.method(typePart(breakpoint.function), methodPart(breakpoint.function));
            return;
        }
        TreeSet<Integer> lines =
                files.lines(sources.packageOf(breakpoint.file), String.valueOf(Paths.get(breakpoint.file).getFileName()));
        Integer line = lines.ceiling(breakpoint.line);
        breakpoint.expected = !lines.isEmpty();
        breakpoint.expectedLine = line == null ? 0 : line;
    }

    /** Has the program announce the classes that a breakpoint may be in, before their code runs. */
    private void await(Breakpoint breakpoint) {
        VirtualMachine vm = debuggee.vm();
        String name;
        if (breakpoint.function == null) {
            name = String.valueOf(Paths.get(breakpoint.file).getFileName());
        } else {
            String type = typePart(breakpoint.function);
            name = type.isEmpty() ? "*" : "*" + type.substring(Math.max(type.lastIndexOf('.'), type.lastIndexOf('$')) + 1);
        }
        if (!awaited.add((breakpoint.function == null) + name)) {
            return;
        }
        ClassPrepareRequest request = vm.eventRequestManager().createClassPrepareRequest();
        if (breakpoint.function == null && vm.canUseSourceNameFilters()) {
            request.addSourceNameFilter(name);
        } else if (breakpoint.function != null && !name.equals("*")) {
            request.addClassFilter(name);
        } else {
            for (String pattern : Sources.platformPatterns()) {
                request.addClassExclusionFilter(pattern);
            }
        }
        request.setSuspendPolicy(EventRequest.SUSPEND_EVENT_THREAD);
        request.enable();
    }

    /** A class was loaded. */
    void prepared(ReferenceType type) {
        for (List<Breakpoint> breakpoints : byFile.values()) {
            breakpoints.forEach(breakpoint -> bindAndTell(breakpoint, type));
        }
        functions.forEach(breakpoint -> bindAndTell(breakpoint, type));
    }

    private void bindAndTell(Breakpoint breakpoint, ReferenceType type) {
        if (bind(breakpoint, type)) {
            client.event("breakpoint", Json.object("reason", "changed", "breakpoint", described(breakpoint)));
        }
    }

    /** Whether something changed. */
    private boolean bind(Breakpoint breakpoint, ReferenceType type) {
        try {
            return breakpoint.function == null ? bindLine(breakpoint, type) : bindFunction(breakpoint, type);
        } catch (AbsentInformationException | com.sun.jdi.ObjectCollectedException e) {
            return false;
        }
    }

    /**
     * At the line, else at the next line with code. A class inside another is loaded after it, and may have code nearer
     * to the line: that is waited for where the class files tell of it, else the breakpoint moves there then.
     */
    private boolean bindLine(Breakpoint breakpoint, ReferenceType type) throws AbsentInformationException {
        if (Sources.isPlatform(type.name()) || !sources.isFrom(type, breakpoint.file)) {
            return false;
        }
        boolean first = !breakpoint.looked;
        breakpoint.looked = true;
        int nearest = Integer.MAX_VALUE;
        for (Location location : type.allLineLocations()) {
            int line = location.lineNumber();
            boolean fits = breakpoint.expectedLine > 0 ? line == breakpoint.expectedLine : line >= breakpoint.line;
            nearest = fits && line < nearest ? line : nearest;
        }
        if (nearest == Integer.MAX_VALUE || breakpoint.boundLine != 0 && nearest > breakpoint.boundLine) {
            return first;
        }
        if (nearest != breakpoint.boundLine) {
            clear(breakpoint);
        }
        breakpoint.boundLine = nearest;
        // A line may have several pieces of code in one method, such as a loop's head: the first is its beginning.
        Map<Method, Location> starts = new LinkedHashMap<>();
        for (Location location : type.locationsOfLine(nearest)) {
            starts.merge(location.method(), location, (a, b) -> a.codeIndex() <= b.codeIndex() ? a : b);
        }
        starts.values().forEach(location -> add(breakpoint, location));
        return true;
    }

    private boolean bindFunction(Breakpoint breakpoint, ReferenceType type) throws AbsentInformationException {
        String asked = typePart(breakpoint.function);
        boolean fits = asked.isEmpty() ? !Sources.isPlatform(type.name()) : Types.isNamed(type.name(), asked);
        if (!fits) {
            return false;
        }
        String name = methodPart(breakpoint.function);
        boolean constructor = !asked.isEmpty() && asked.replace('$', '.').endsWith(name)
                && Types.isNamed(type.name(), name);
        boolean changed = false;
        for (Method method : type.methods()) {
            boolean named = method.name().equals(name) || constructor && method.isConstructor();
            if (named && !method.isAbstract() && !method.isNative() && method.location() != null) {
                add(breakpoint, method.location());
                breakpoint.boundLine = Math.max(0, method.location().lineNumber());
                breakpoint.boundFile = sources.find(type);
                changed = true;
            }
        }
        return changed;
    }

    private void add(Breakpoint breakpoint, Location location) {
        BreakpointRequest request = debuggee.vm().eventRequestManager().createBreakpointRequest(location);
        request.setSuspendPolicy(EventRequest.SUSPEND_ALL);
        request.putProperty("breakpoint", breakpoint);
        request.enable();
        breakpoint.requests.add(request);
    }

    /** `p.C` of `p.C.m`, `p.C#m` and `p.C::m(int)`. */
    private static String typePart(String function) {
        String plain = plain(function);
        int dot = plain.lastIndexOf('.');
        return dot < 0 ? "" : plain.substring(0, dot);
    }

    private static String methodPart(String function) {
        String plain = plain(function);
        return plain.substring(plain.lastIndexOf('.') + 1);
    }

    private static String plain(String function) {
        int parenthesis = function.indexOf('(');
        String name = parenthesis < 0 ? function : function.substring(0, parenthesis);
        return name.replace("::", ".").replace('#', '.').trim();
    }

    /** Counts a pass and tells whether it is one to stop at. A condition that can't be evaluated stops. */
    boolean stops(Breakpoint breakpoint, ThreadReference thread) {
        if (breakpoint.condition != null && !breakpoint.condition.isEmpty()) {
            try {
                Scope scope = new Scope(debuggee, thread, 0, false);
                if (!Node.truth(Parser.parse(breakpoint.condition).value(scope))) {
                    return false;
                }
            } catch (Refusal e) {
                return true;
            }
        }
        breakpoint.passes++;
        return breakpoint.hitCondition == null || isHit(breakpoint.hitCondition.trim(), breakpoint.passes);
    }

    private static boolean isHit(String condition, long passes) {
        String digits = condition.replaceAll("[^0-9]", "");
        if (digits.isEmpty()) {
            return true;
        }
        long number = Long.parseLong(digits);
        if (condition.startsWith("%")) {
            return number == 0 || passes % number == 0;
        }
        return condition.startsWith(">=") ? passes >= number : condition.startsWith(">") ? passes > number
                : passes == number;
    }
}
