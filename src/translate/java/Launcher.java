package bugeye;

import com.sun.jdi.Bootstrap;
import com.sun.jdi.VirtualMachine;
import com.sun.jdi.connect.AttachingConnector;
import com.sun.jdi.connect.Connector;
import com.sun.jdi.connect.IllegalConnectorArgumentsException;
import com.sun.jdi.connect.ListeningConnector;
import java.io.File;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** Ways to a virtual machine: start one that connects to us, or connect to one that listens. */
final class Launcher {
    private static final String HOW =
            "start it with -agentlib:jdwp=transport=dt_socket,server=y,suspend=n,address=127.0.0.1:5005";

    /** Where a build tool's command line takes the option for the virtual machine that it starts. */
    private static final String AGENT = "{jdwp}";

    /** A program that was started. */
    static final class Started {
        final Process process;
        final VirtualMachine vm;

        Started(Process process, VirtualMachine vm) {
            this.process = process;
            this.vm = vm;
        }
    }

    private Launcher() {}

    /**
     * Starts a program on a virtual machine of its own, which connects to us and is held before its first class. Said
     * so, it prints nothing of its own about that.
     */
    static Started launch(Map<String, Object> arguments, String[] streams) {
        List<String> command = new ArrayList<>(Json.asTexts(arguments.get("command")));
        if (command.isEmpty() || streams.length != 3) {
            throw new Refusal("no command or no streams for the program were given");
        }
        ListeningConnector connector = null;
        for (ListeningConnector one : Bootstrap.virtualMachineManager().listeningConnectors()) {
            connector = one.name().equals("com.sun.jdi.SocketListen") ? one : connector;
        }
        if (connector == null) {
            throw new Refusal("this Java can't listen for a program to debug");
        }
        Map<String, Connector.Argument> settings = connector.defaultArguments();
        settings.get("localAddress").setValue("127.0.0.1");
        settings.get("timeout").setValue("55000");
        ListeningConnector listener = connector;
        Process process = null;
        try {
            String address = listener.startListening(settings);
            String port = address.substring(address.lastIndexOf(':') + 1);
            String agent = "-agentlib:jdwp=transport=dt_socket,server=n,suspend=y,quiet=y,address=127.0.0.1:" + port;
            if (command.stream().anyMatch(word -> word.contains(AGENT))) {
                command.replaceAll(word -> word.replace(AGENT, agent));
            } else {
                command.add(1, agent);
            }
            ProcessBuilder builder = new ProcessBuilder(command);
            builder.directory(new File(String.valueOf(arguments.get("cwd"))));
            builder.environment().clear();
            Json.asObject(arguments.get("env")).forEach((name, value) ->
                    builder.environment().put(name, String.valueOf(value)));
            builder.redirectInput(new File(streams[0]));
            builder.redirectOutput(ProcessBuilder.Redirect.appendTo(new File(streams[1])));
            builder.redirectError(ProcessBuilder.Redirect.appendTo(new File(streams[2])));
            process = builder.start();
            // A virtual machine that does not come up never connects.
            process.onExit().thenRun(() -> {
                try {
                    listener.stopListening(settings);
                } catch (IOException | IllegalConnectorArgumentsException e) {
                    // It was over before.
                }
            });
            VirtualMachine vm = listener.accept(settings);
            return new Started(process, vm);
        } catch (IOException | IllegalConnectorArgumentsException e) {
            if (process != null && !process.isAlive()) {
                throw new Refusal("java ended with code " + process.exitValue() + " before the program began");
            }
            if (process != null) {
                process.destroyForcibly();
            }
            throw new Refusal(e.getMessage());
        } finally {
            try {
                listener.stopListening(settings);
            } catch (IOException | IllegalConnectorArgumentsException e) {
                // It was over before.
            }
        }
    }

    static VirtualMachine attach(Map<String, Object> arguments) {
        long pid = Json.number(arguments, "processId", 0);
        String name = pid > 0 ? "com.sun.jdi.ProcessAttach" : "com.sun.jdi.SocketAttach";
        for (AttachingConnector connector : Bootstrap.virtualMachineManager().attachingConnectors()) {
            if (!connector.name().equals(name)) {
                continue;
            }
            Map<String, Connector.Argument> settings = connector.defaultArguments();
            if (pid > 0) {
                settings.get("pid").setValue(String.valueOf(pid));
            } else {
                settings.get("hostname").setValue(String.valueOf(arguments.get("hostName")));
                settings.get("port").setValue(String.valueOf(arguments.get("port")));
            }
            if (settings.containsKey("timeout")) {
                settings.get("timeout").setValue("10000");
            }
            try {
                return connector.attach(settings);
            } catch (IllegalConnectorArgumentsException e) {
                throw new Refusal(e.getMessage());
            } catch (IOException e) {
                throw new Refusal(pid > 0
                        ? "process " + pid + " does not listen for a debugger; " + HOW
                        : "no Java program listens there (" + e.getMessage() + "); " + HOW);
            }
        }
        throw new Refusal("this Java can't attach to programs");
    }
}
