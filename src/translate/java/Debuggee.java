package bugeye;

import com.sun.jdi.ClassNotLoadedException;
import com.sun.jdi.IncompatibleThreadStateException;
import com.sun.jdi.InvalidTypeException;
import com.sun.jdi.InvocationException;
import com.sun.jdi.Location;
import com.sun.jdi.Method;
import com.sun.jdi.ObjectReference;
import com.sun.jdi.StackFrame;
import com.sun.jdi.ThreadReference;
import com.sun.jdi.Value;
import com.sun.jdi.VMDisconnectedException;
import com.sun.jdi.VirtualMachine;
import com.sun.jdi.event.AccessWatchpointEvent;
import com.sun.jdi.event.BreakpointEvent;
import com.sun.jdi.event.ClassPrepareEvent;
import com.sun.jdi.event.Event;
import com.sun.jdi.event.EventSet;
import com.sun.jdi.event.ExceptionEvent;
import com.sun.jdi.event.LocatableEvent;
import com.sun.jdi.event.MethodExitEvent;
import com.sun.jdi.event.ModificationWatchpointEvent;
import com.sun.jdi.event.StepEvent;
import com.sun.jdi.event.VMStartEvent;
import com.sun.jdi.request.EventRequest;
import com.sun.jdi.request.EventRequestManager;
import com.sun.jdi.request.MethodExitRequest;
import com.sun.jdi.request.StepRequest;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/**
 * The program under the debugger: its state, its events, and how it goes on. All threads stop together and go on
 * together. Requests and events take turns: whoever touches this holds its lock.
 */
final class Debuggee {
    private static final int CALL_SECONDS = 8;
    /** Returns that are looked at while a function is left, before its value is given up. */
    private static final int MOST_RETURNS = 20_000;

    private final Client client;
    private final VirtualMachine vm;
    final Sources sources;
    final Breakpoints breakpoints;
    final Exceptions exceptions;
    final Watches watches = new Watches(this);
    final Values values = new Values();
    final Threads threads = new Threads();

    /** It was there before us. */
    private final boolean attached;
    private boolean running;
    /** The thread that stopped, and how. */
    private ThreadReference stopped;
    private boolean stoppedByEvent;
    private ExceptionEvent exception;
    private Value returned;
    private boolean hasReturned;
    private int returns;
    private MethodExitRequest returning;
    private Method leaving;
    /** Events that came while the program stood. */
    private final Deque<EventSet> waiting = new ArrayDeque<>();
    private final Map<ThreadReference, Goal> goals = new HashMap<>();
    private volatile boolean calling;
    private volatile boolean startedHeld;

    /** Where a step is to end. */
    private static final class Goal {
        int depth;
        int frames;
    }

    /** A call of the program's code. */
    interface Call {
        Value make() throws InvalidTypeException, ClassNotLoadedException, IncompatibleThreadStateException,
                InvocationException;
    }

    Debuggee(Client client, VirtualMachine vm, Sources sources, ClassFiles files, boolean attached) {
        this.client = client;
        this.vm = vm;
        this.sources = sources;
        this.attached = attached;
        this.running = attached;
        this.breakpoints = new Breakpoints(this, client, sources, files);
        this.exceptions = new Exceptions(sources);
    }

    VirtualMachine vm() {
        return vm;
    }

    boolean isRunning() {
        return running;
    }

    boolean startedHeld() {
        return startedHeld;
    }

    ThreadReference stopped() {
        return running ? null : stopped;
    }

    ExceptionEvent exception() {
        return exception;
    }

    void say(String text) {
        client.event("output", Json.object("category", "console", "output", text));
    }

    /** An object that must not be collected while the program stands. */
    Value keep(Value value) {
        if (value instanceof ObjectReference) {
            ((ObjectReference) value).disableCollection();
        }
        return value;
    }

    /** Takes events until the program is gone. */
    void listen() {
        try {
            while (true) {
                EventSet set = vm.eventQueue().remove();
                if (calling) {
                    passOver(set);
                } else {
                    synchronized (this) {
                        takeSafely(set);
                    }
                }
            }
        } catch (VMDisconnectedException | InterruptedException e) {
            // It is gone.
        }
    }

    /** What happens in a call that the user made is no stop. The one who called holds the lock, and waits. */
    private void passOver(EventSet set) {
        for (Event event : set) {
            if (event instanceof ClassPrepareEvent) {
                breakpoints.prepared(((ClassPrepareEvent) event).referenceType());
            }
        }
        set.resume();
    }

    /** What goes wrong with one event must not keep the program from going on. */
    private void takeSafely(EventSet set) {
        try {
            take(set);
        } catch (VMDisconnectedException e) {
            throw e;
        } catch (RuntimeException e) {
            say("an event of the program could not be read: " + e + "\n");
            set.resume();
        }
    }

    private void take(EventSet set) {
        List<LocatableEvent> news = new ArrayList<>();
        boolean start = false;
        for (Event event : set) {
            if (event instanceof ClassPrepareEvent) {
                breakpoints.prepared(((ClassPrepareEvent) event).referenceType());
            } else if (event instanceof MethodExitEvent) {
                onReturn((MethodExitEvent) event);
            } else if (event instanceof VMStartEvent) {
                threads.number(((VMStartEvent) event).thread());
                start = true;
            } else if (event instanceof LocatableEvent) {
                news.add((LocatableEvent) event);
            }
        }
        if (start && attached) {
            // It waited for us before its beginning, and stays there.
            startedHeld = true;
            running = false;
            notifyAll();
        } else if (start) {
            // It is held until it is configured, and may have been let go by now.
            return;
        } else if (news.isEmpty()) {
            set.resume();
        } else if (running) {
            consider(set, news);
        } else {
            waiting.add(set);
        }
    }

    /** Whether any of these is a stop; the program goes on if not. */
    private void consider(EventSet set, List<LocatableEvent> news) {
        ThreadReference thread = news.get(0).thread();
        List<Object> ids = new ArrayList<>();
        String reason = null;
        Watches.Watch watch = null;
        boolean writes = false;
        ExceptionEvent thrown = null;
        for (LocatableEvent event : news) {
            if (event instanceof BreakpointEvent) {
                Object property = event.request().getProperty("breakpoint");
                Breakpoints.Breakpoint breakpoint = (Breakpoints.Breakpoint) property;
                if (breakpoint.requests.contains(event.request()) && breakpoints.stops(breakpoint, thread)) {
                    ids.add(breakpoint.id);
                    reason = breakpoint.function == null ? "breakpoint" : "function breakpoint";
                }
            } else if (event instanceof ExceptionEvent && exceptions.stops((ExceptionEvent) event)) {
                thrown = (ExceptionEvent) event;
            } else if (event instanceof ModificationWatchpointEvent) {
                aboutToWrite((ModificationWatchpointEvent) event);
                writes = true;
            } else if (event instanceof AccessWatchpointEvent) {
                Watches.Watch read = (Watches.Watch) event.request().getProperty("watch");
                read.before = read.now;
                read.now = Values.text(((AccessWatchpointEvent) event).valueCurrent());
                watch = watches.passes(read, thread, 0) ? read : watch;
            } else if (event instanceof StepEvent) {
                vm.eventRequestManager().deleteEventRequest(event.request());
                Watches.Watch changed = watches.written(thread);
                changed = changed != null ? changed : watches.changed(thread, frames(thread));
                watch = watch != null ? watch : changed;
                boolean settling = event.request().getProperty("settling") != null;
                if (!settling && isReached(thread)) {
                    reason = reason == null ? "step" : reason;
                }
            }
        }
        boolean watched = watch != null || watches.isOver();
        reason = thrown != null ? "exception" : watched ? "data breakpoint" : reason;
        if (reason == null) {
            if (writes) {
                // The event comes before the write: one instruction later it is made.
                step(thread, StepRequest.STEP_MIN, StepRequest.STEP_OVER).putProperty("settling", true);
            } else {
                arm(thread);
            }
            set.resume();
            return;
        }
        exception = thrown;
        String text = watch == null ? null : "watch " + watch.number;
        String description = text;
        if (thrown != null) {
            text = thrown.exception().referenceType().name();
            description = Values.message(thrown.exception());
        }
        stop(thread, reason, text, description == null ? text : description, ids);
        stoppedByEvent = true;
    }

    private static void aboutToWrite(ModificationWatchpointEvent event) {
        Watches.Watch watch = (Watches.Watch) event.request().getProperty("watch");
        watch.before = Values.text(event.valueCurrent());
        watch.writing = true;
    }

    /** The program stands: nothing of a step is left, and the client is told. */
    private void stop(ThreadReference thread, String reason, String text, String description, List<Object> ids) {
        running = false;
        stopped = thread;
        goals.clear();
        endReturning();
        EventRequestManager manager = vm.eventRequestManager();
        manager.deleteEventRequests(new ArrayList<>(manager.stepRequests()));
        client.event("stopped", Json.object("reason", reason, "threadId", threads.number(thread), "allThreadsStopped",
                true, "text", text, "description", description, "hitBreakpointIds", ids));
    }

    /** Lets the program go, or shows what came while it stood. */
    void resume() {
        values.forget();
        exception = null;
        startedHeld = false;
        stoppedByEvent = false;
        running = true;
        EventSet set = waiting.poll();
        if (set == null) {
            for (ThreadReference thread : watchedThreads()) {
                arm(thread);
            }
            vm.resume();
            return;
        }
        vm.resume();
        List<LocatableEvent> news = new ArrayList<>();
        for (Event event : set) {
            if (event instanceof LocatableEvent && !(event instanceof MethodExitEvent)) {
                news.add((LocatableEvent) event);
            }
        }
        consider(set, news);
    }

    private List<ThreadReference> watchedThreads() {
        List<ThreadReference> found = new ArrayList<>(goals.keySet());
        for (ThreadReference thread : vm.allThreads()) {
            if (!found.contains(thread) && watches.level(thread) > 0) {
                found.add(thread);
            }
        }
        return found;
    }

    /** Goes on until a step ends. */
    void resume(ThreadReference thread, int depth) {
        Goal goal = new Goal();
        goal.depth = depth;
        goal.frames = frames(thread);
        hasReturned = false;
        if (depth == StepRequest.STEP_OUT && goal.frames > 0) {
            awaitReturn(thread);
        }
        goals.put(thread, goal);
        resume();
    }

    private boolean isReached(ThreadReference thread) {
        Goal goal = goals.get(thread);
        return goal != null && (goal.depth != StepRequest.STEP_OUT || frames(thread) < goal.frames);
    }

    /** Sets the next step of a thread: towards its goal, or line by line where a local variable is watched. */
    private void arm(ThreadReference thread) {
        Goal goal = goals.get(thread);
        int watched = watches.level(thread);
        if (goal == null && watched == 0) {
            return;
        }
        int frames = frames(thread);
        int depth = goal == null ? StepRequest.STEP_OUT : goal.depth;
        if (watched > 0 && frames <= watched && depth == StepRequest.STEP_OUT) {
            depth = StepRequest.STEP_OVER;
        }
        step(thread, StepRequest.STEP_LINE, depth);
    }

    private StepRequest step(ThreadReference thread, int size, int depth) {
        EventRequestManager manager = vm.eventRequestManager();
        for (StepRequest old : new ArrayList<>(manager.stepRequests())) {
            if (old.thread().equals(thread)) {
                manager.deleteEventRequest(old);
            }
        }
        StepRequest request = manager.createStepRequest(thread, size, depth);
        if (size == StepRequest.STEP_LINE && !isInPlatform(thread)) {
            for (String pattern : Sources.platformPatterns()) {
                request.addClassExclusionFilter(pattern);
            }
        }
        request.setSuspendPolicy(EventRequest.SUSPEND_ALL);
        request.enable();
        return request;
    }

    private static boolean isInPlatform(ThreadReference thread) {
        try {
            return thread.frameCount() > 0 && Sources.isPlatform(thread.frame(0).location().declaringType().name());
        } catch (IncompatibleThreadStateException e) {
            return false;
        }
    }

    static int frames(ThreadReference thread) {
        try {
            return thread.frameCount();
        } catch (IncompatibleThreadStateException e) {
            return 0;
        }
    }

    /** What the current function returns is told when it does. */
    private void awaitReturn(ThreadReference thread) {
        endReturning();
        if (!vm.canGetMethodReturnValues()) {
            return;
        }
        try {
            Location location = thread.frame(0).location();
            leaving = location.method();
            returns = 0;
            returning = vm.eventRequestManager().createMethodExitRequest();
            returning.addThreadFilter(thread);
            returning.addClassFilter(location.declaringType());
            returning.setSuspendPolicy(EventRequest.SUSPEND_NONE);
            returning.enable();
        } catch (IncompatibleThreadStateException e) {
            // Without it, the step alone is made.
        }
    }

    private void onReturn(MethodExitEvent event) {
        if (returning != null && event.method().equals(leaving)) {
            returned = event.returnValue();
            hasReturned = true;
        }
        if (++returns > MOST_RETURNS) {
            hasReturned = false;
            endReturning();
        }
    }

    private void endReturning() {
        if (returning != null) {
            vm.eventRequestManager().deleteEventRequest(returning);
            returning = null;
        }
    }

    /** Type and value of what the function just left returned; empty where that is not known. */
    String returned() {
        boolean known = hasReturned && leaving != null && !leaving.returnTypeName().equals("void");
        return known ? leaving.returnTypeName() + "\t" + Values.text(returned) : "";
    }

    /** Stops all threads where they are. */
    void pause(ThreadReference asked) {
        if (!running) {
            return;
        }
        vm.suspend();
        stoppedByEvent = false;
        stop(threads.interesting(vm, asked, sources), "pause", null, null, List.of());
    }

    /** The program was held before its beginning when we attached. */
    void tellHeld() {
        stop(vm.allThreads().get(0), "pause", null, null, List.of());
    }

    /** Runs code of the program in a thread that stands. */
    Value invoke(ThreadReference thread, Method method, Call call) {
        if (!stoppedByEvent || !thread.equals(stopped)) {
            throw new Refusal("`" + method.name() + "()` can't be called here: the virtual machine makes calls only in "
                    + "the thread that stopped at a breakpoint, a step or an exception");
        }
        FutureTask<Value> task = new FutureTask<>(call::make);
        calling = true;
        Thread worker = new Thread(task);
        worker.setDaemon(true);
        worker.start();
        try {
            Value value = keep(task.get(CALL_SECONDS, TimeUnit.SECONDS));
            calling = false;
            return value;
        } catch (TimeoutException e) {
            new Thread(() -> abandon(task, thread)).start();
            running = true;
            client.event("continued", Json.object("threadId", threads.number(thread), "allThreadsContinued", true));
            vm.resume();
            throw new Refusal("`" + method.name() + "()` did not return in " + CALL_SECONDS
                    + " s, and may need other threads: the program goes on");
        } catch (ExecutionException | InterruptedException e) {
            calling = false;
            Throwable cause = e.getCause();
            if (cause instanceof InvocationException) {
                ObjectReference thrown = ((InvocationException) cause).exception();
                String message = Values.message(thrown);
                throw new Refusal("`" + method.name() + "()` threw " + thrown.referenceType().name()
                        + (message == null ? "" : ": " + message));
            }
            if (cause instanceof VMDisconnectedException) {
                throw (VMDisconnectedException) cause;
            }
            throw new Refusal("`" + method.name() + "()` can't be called: " + cause);
        }
    }

    /** A call that nobody waits for: its thread goes on when it is over. */
    private void abandon(FutureTask<Value> task, ThreadReference thread) {
        try {
            task.get();
        } catch (ExecutionException | InterruptedException e) {
            // Its end is all that counts.
        }
        calling = false;
        try {
            while (thread.suspendCount() > 0) {
                thread.resume();
            }
        } catch (VMDisconnectedException e) {
            // It is gone.
        }
    }

    StackFrame frame(ThreadReference thread, int depth) {
        try {
            return thread.frame(depth);
        } catch (IncompatibleThreadStateException | IndexOutOfBoundsException e) {
            throw new Refusal("there is no frame " + depth);
        }
    }

    /** No trap is left behind. */
    void letGo() {
        vm.dispose();
    }

    static String nameOf(Location location) {
        return location.declaringType().name() + "." + location.method().name();
    }
}
