package bugeye;

import com.sun.jdi.IncompatibleThreadStateException;
import com.sun.jdi.StackFrame;
import com.sun.jdi.ThreadGroupReference;
import com.sun.jdi.ThreadReference;
import com.sun.jdi.VirtualMachine;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Small numbers for threads, and which of them are the program's. */
final class Threads {
    private final Map<Long, Long> numbers = new LinkedHashMap<>();
    private final Map<Long, ThreadReference> byNumber = new LinkedHashMap<>();

    long number(ThreadReference thread) {
        return numbers.computeIfAbsent(thread.uniqueID(), id -> {
            long number = numbers.size() + 1L;
            byNumber.put(number, thread);
            return number;
        });
    }

    ThreadReference find(long number) {
        ThreadReference thread = byNumber.get(number);
        if (thread == null) {
            throw new Refusal("there is no thread " + number);
        }
        return thread;
    }

    /** The program's own threads; those of the virtual machine are left out. */
    List<ThreadReference> own(VirtualMachine vm) {
        List<ThreadReference> own = new ArrayList<>();
        for (ThreadReference thread : vm.allThreads()) {
            if (!isOfMachine(thread)) {
                own.add(thread);
            }
        }
        return own;
    }

    private static boolean isOfMachine(ThreadReference thread) {
        try {
            ThreadGroupReference group = thread.threadGroup();
            return group != null && (group.name().equals("system") || group.name().equals("InnocuousThreadGroup"));
        } catch (com.sun.jdi.ObjectCollectedException e) {
            return true;
        }
    }

    /** The thread to show of a program that was paused: one that runs the program's code, else the one asked for. */
    ThreadReference interesting(VirtualMachine vm, ThreadReference asked, Sources sources) {
        List<ThreadReference> own = own(vm);
        ThreadReference best = own.isEmpty() ? vm.allThreads().get(0) : own.get(0);
        int bestScore = -1;
        for (ThreadReference thread : own) {
            int score = (hasOwnCode(thread, sources) ? 4 : 0) + (thread.status() == ThreadReference.THREAD_STATUS_RUNNING ? 2 : 0)
                    + (thread.equals(asked) ? 1 : 0);
            if (score > bestScore) {
                best = thread;
                bestScore = score;
            }
        }
        return best;
    }

    private static boolean hasOwnCode(ThreadReference thread, Sources sources) {
        try {
            int seen = 0;
            for (StackFrame frame : thread.frames()) {
                if (sources.find(frame.location().declaringType()) != null) {
                    return true;
                }
                if (++seen > 100) {
                    break;
                }
            }
        } catch (IncompatibleThreadStateException e) {
            // It has just ended.
        }
        return false;
    }
}
