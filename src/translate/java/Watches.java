package bugeye;

import com.sun.jdi.IncompatibleThreadStateException;
import com.sun.jdi.ThreadReference;
import com.sun.jdi.VirtualMachine;
import com.sun.jdi.request.EventRequest;
import com.sun.jdi.request.EventRequestManager;
import com.sun.jdi.request.WatchpointRequest;
import java.util.ArrayList;
import java.util.List;

/**
 * Data breakpoints. The virtual machine watches fields. A local variable can only be changed by the code of its own
 * frame, so that its value is compared after each line that frame executes.
 */
final class Watches {
    private final Debuggee debuggee;
    private final List<Watch> watches = new ArrayList<>();
    /** Those whose variables went with their functions, until that is told. */
    private final List<Integer> gone = new ArrayList<>();
    private int last;

    static final class Watch {
        int number;
        String expression;
        String condition;
        Place place;
        /** Of a local variable: its thread, and how many frames there are up to its own. */
        ThreadReference thread;
        int level;
        String before = "";
        String now = "";
        /** A write was announced, and is about to be made. */
        boolean writing;
        final List<WatchpointRequest> requests = new ArrayList<>();
    }

    Watches(Debuggee debuggee) {
        this.debuggee = debuggee;
    }

    /** Begins to watch, and tells it as a line of {@link #list}. */
    String set(String access, String expression, ThreadReference thread, int depth) {
        Watch watch = new Watch();
        watch.expression = expression;
        watch.place = Parser.parse(expression).place(new Scope(debuggee, thread, depth, false));
        if (watch.place.field == null) {
            if (!access.equals("write")) {
                throw Refusal.unsupported("watching reads of a local variable; its writes can be watched, and a field's reads");
            }
            watch.thread = thread;
            try {
                watch.level = thread.frameCount() - depth;
            } catch (IncompatibleThreadStateException e) {
                throw new Refusal("the thread is running");
            }
        } else {
            watchField(watch, access);
        }
        watch.now = Values.text(watch.place.get());
        watch.number = ++last;
        watches.add(watch);
        return line(watch);
    }

    private void watchField(Watch watch, String access) {
        VirtualMachine vm = debuggee.vm();
        EventRequestManager manager = vm.eventRequestManager();
        if (!vm.canWatchFieldModification() || !vm.canWatchFieldAccess()) {
            throw Refusal.unsupported("watching fields: this virtual machine can't");
        }
        if (!access.equals("read")) {
            watch.requests.add(manager.createModificationWatchpointRequest(watch.place.field));
        }
        if (!access.equals("write")) {
            watch.requests.add(manager.createAccessWatchpointRequest(watch.place.field));
        }
        for (WatchpointRequest request : watch.requests) {
            if (watch.place.owner != null && vm.canUseInstanceFilters()) {
                request.addInstanceFilter(watch.place.owner);
            }
            request.setSuspendPolicy(EventRequest.SUSPEND_ALL);
            request.putProperty("watch", watch);
            request.enable();
        }
    }

    void setCondition(int number, String condition) {
        Parser.parse(condition);
        find(number).condition = condition;
    }

    void remove(int number) {
        Watch watch = find(number);
        debuggee.vm().eventRequestManager().deleteEventRequests(watch.requests);
        watches.remove(watch);
    }

    void clear() {
        for (Watch watch : watches) {
            debuggee.vm().eventRequestManager().deleteEventRequests(watch.requests);
        }
        watches.clear();
    }

    private Watch find(int number) {
        for (Watch watch : watches) {
            if (watch.number == number) {
                return watch;
            }
        }
        throw new Refusal("there is no watch " + number);
    }

    /** Number, value before and value now of each, a line each; `gone` for those that are. */
    String list() {
        StringBuilder out = new StringBuilder();
        for (int number : gone) {
            out.append(number).append("\tgone\n");
        }
        gone.clear();
        for (Watch watch : watches) {
            out.append(line(watch)).append('\n');
        }
        return out.toString();
    }

    private static String line(Watch watch) {
        return watch.number + "\t" + watch.before + "\t" + watch.now;
    }

    /** The frame, counted from the outermost, of the innermost local variable that is watched; 0 for none. */
    int level(ThreadReference thread) {
        int level = 0;
        for (Watch watch : watches) {
            level = thread.equals(watch.thread) ? Math.max(level, watch.level) : level;
        }
        return level;
    }

    /** The watch whose variable has changed, after a thread made a step; those whose frame is gone are forgotten. */
    Watch changed(ThreadReference thread, int frames) {
        Watch changed = null;
        for (Watch watch : new ArrayList<>(watches)) {
            if (!thread.equals(watch.thread) || watch.level > frames) {
                if (thread.equals(watch.thread)) {
                    watches.remove(watch);
                    gone.add(watch.number);
                }
                continue;
            }
            int depth = frames - watch.level;
            String now;
            try {
                now = Values.text(Parser.parse(watch.expression).value(new Scope(debuggee, thread, depth, false)));
            } catch (Refusal e) {
                continue;
            }
            if (!now.equals(watch.now)) {
                watch.before = watch.now;
                watch.now = now;
                changed = changed == null && passes(watch, thread, depth) ? watch : changed;
            }
        }
        return changed;
    }

    /** Whether the function of a watched variable has just returned. */
    boolean isOver() {
        return !gone.isEmpty();
    }

    /** The watch whose field was just written, and is a stop. */
    Watch written(ThreadReference thread) {
        Watch written = null;
        for (Watch watch : watches) {
            if (watch.writing) {
                watch.writing = false;
                watch.now = Values.text(watch.place.get());
                written = passes(watch, thread, 0) ? watch : written;
            }
        }
        return written;
    }

    /** A condition that can't be evaluated stops. */
    boolean passes(Watch watch, ThreadReference thread, int depth) {
        if (watch.condition == null) {
            return true;
        }
        try {
            return Node.truth(Parser.parse(watch.condition).value(new Scope(debuggee, thread, depth, false)));
        } catch (Refusal e) {
            return true;
        }
    }
}
