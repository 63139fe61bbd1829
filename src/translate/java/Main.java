package bugeye;

import java.io.FileDescriptor;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.IOException;

/**
 * A debug adapter for Java: the debug adapter protocol on the standard streams, the Java debug interface on the other
 * side. Its arguments are the paths of the program's standard streams.
 */
public final class Main {
    private Main() {}

    public static void main(String[] streams) throws IOException {
        Client client = new Client(new FileInputStream(FileDescriptor.in), new FileOutputStream(FileDescriptor.out));
        // Whatever prints must not print between messages.
        System.setOut(System.err);
        new Adapter(client, streams).serve();
        System.exit(0);
    }
}
