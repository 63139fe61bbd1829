package bugeye;

import com.sun.jdi.IncompatibleThreadStateException;
import com.sun.jdi.Location;
import com.sun.jdi.ObjectReference;
import com.sun.jdi.StackFrame;
import com.sun.jdi.VirtualMachine;
import com.sun.jdi.event.ExceptionEvent;
import com.sun.jdi.request.EventRequest;
import com.sun.jdi.request.ExceptionRequest;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** Which exceptions are a stop. */
final class Exceptions {
    /** Code that catches what it was given to be thrown: that is no failure. */
    private static final String[] EXPECTING = {
        "org.junit.jupiter.api.AssertThrows", "org.junit.jupiter.api.AssertDoesNotThrow", "org.junit.Assert",
        "org.junit.internal.runners.statements.ExpectException", "org.assertj.core.api.ThrowableAssert",
        "org.hamcrest.", "org.testng.Assert",
    };

    private final Sources sources;
    private final Set<String> filters = new HashSet<>();
    private final List<String> anywhere = new ArrayList<>();
    private final List<String> unhandled = new ArrayList<>();
    private ExceptionRequest request;

    Exceptions(Sources sources) {
        this.sources = sources;
    }

    static List<Object> filters() {
        return List.of(
                Json.object("filter", "uncaught", "label", "Uncaught exceptions", "default", true),
                Json.object("filter", "raised", "label", "All exceptions", "default", false),
                Json.object("filter", "caught", "label", "Caught exceptions", "default", false),
                Json.object("filter", "userUnhandled", "label", "Exceptions that leave the program's own code",
                        "default", false));
    }

    void set(VirtualMachine vm, Map<String, Object> arguments) {
        filters.clear();
        filters.addAll(Json.asTexts(arguments.get("filters")));
        anywhere.clear();
        unhandled.clear();
        for (Object option : Json.asList(arguments.get("exceptionOptions"))) {
            List<Object> path = Json.asList(Json.asObject(option).get("path"));
            if (!path.isEmpty()) {
                List<String> names = Json.asTexts(Json.asObject(path.get(path.size() - 1)).get("names"));
                boolean always = "always".equals(Json.asObject(option).get("breakMode"));
                (always ? anywhere : unhandled).addAll(names);
            }
        }
        if (request != null) {
            vm.eventRequestManager().deleteEventRequest(request);
            request = null;
        }
        boolean caught = filters.contains("raised") || filters.contains("caught") || filters.contains("userUnhandled")
                || !anywhere.isEmpty();
        boolean uncaught = filters.contains("uncaught") || filters.contains("raised")
                || filters.contains("userUnhandled") || !anywhere.isEmpty() || !unhandled.isEmpty();
        if (caught || uncaught) {
            request = vm.eventRequestManager().createExceptionRequest(null, caught, uncaught);
            request.setSuspendPolicy(EventRequest.SUSPEND_ALL);
            request.enable();
        }
    }

    boolean stops(ExceptionEvent event) {
        Location caught = event.catchLocation();
        if (isOfPlatform(event.location()) && caught != null && isOfPlatform(caught)) {
            return false;
        }
        ObjectReference exception = event.exception();
        if (isOne(exception, anywhere) || caught == null && isOne(exception, unhandled)) {
            return true;
        }
        return filters.contains("raised")
                || filters.contains(caught == null ? "uncaught" : "caught")
                || filters.contains("userUnhandled") && (caught == null || isForeign(caught) && leavesOwnCode(event));
    }

    private static boolean isOne(ObjectReference exception, List<String> types) {
        return types.stream().anyMatch(type -> Types.isOf(exception.referenceType(), type));
    }

    private static boolean isOfPlatform(Location location) {
        return Sources.isPlatform(location.declaringType().name());
    }

    /** Whether a function of the program is left on the way to where it is caught. */
    private boolean leavesOwnCode(ExceptionEvent event) {
        try {
            for (StackFrame frame : event.thread().frames()) {
                if (frame.location().method().equals(event.catchLocation().method())) {
                    return false;
                }
                if (sources.find(frame.location().declaringType()) != null) {
                    return true;
                }
            }
        } catch (IncompatibleThreadStateException e) {
            // It stands, since the event stopped it.
        }
        return false;
    }

    /** Caught by code whose source is not the program's, such as a test runner's. */
    private boolean isForeign(Location caught) {
        String type = caught.declaringType().name();
        for (String expecting : EXPECTING) {
            if (type.startsWith(expecting)) {
                return false;
            }
        }
        return sources.find(caught.declaringType()) == null;
    }
}
