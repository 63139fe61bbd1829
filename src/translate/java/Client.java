package bugeye;

import java.io.BufferedInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.util.Map;

/** The other end of the debug adapter protocol: framed messages on two streams. */
final class Client {
    private final InputStream in;
    private final OutputStream out;
    private long seq;

    Client(InputStream in, OutputStream out) {
        this.in = new BufferedInputStream(in);
        this.out = out;
    }

    /** The next message, or null when the client is gone. */
    Map<String, Object> read() throws IOException {
        int length = -1;
        for (String line = line(); ; line = line()) {
            if (line == null) {
                return null;
            }
            if (line.isEmpty() && length >= 0) {
                break;
            }
            if (line.toLowerCase().startsWith("content-length:")) {
                length = Integer.parseInt(line.substring(15).trim());
            }
        }
        byte[] body = in.readNBytes(length);
        if (body.length < length) {
            return null;
        }
        return Json.asObject(Json.read(new String(body, StandardCharsets.UTF_8)));
    }

    private String line() throws IOException {
        StringBuilder line = new StringBuilder();
        for (int c = in.read(); c != '\n'; c = in.read()) {
            if (c < 0) {
                return null;
            }
            if (c != '\r') {
                line.append((char) c);
            }
        }
        return line.toString();
    }

    void answer(Map<String, Object> request, Object body) {
        send(Json.object("type", "response", "request_seq", request.get("seq"), "command", request.get("command"),
                "success", true, "body", body));
    }

    void refuse(Map<String, Object> request, String message) {
        send(Json.object("type", "response", "request_seq", request.get("seq"), "command", request.get("command"),
                "success", false, "message", message));
    }

    void event(String event, Map<String, Object> body) {
        send(Json.object("type", "event", "event", event, "body", body));
    }

    /** In one write. A client that is gone is noticed by the end of what it asks. */
    private synchronized void send(Map<String, Object> message) {
        message.put("seq", ++seq);
        StringBuilder text = new StringBuilder();
        Json.write(message, text);
        byte[] body = text.toString().getBytes(StandardCharsets.UTF_8);
        byte[] head = ("Content-Length: " + body.length + "\r\n\r\n").getBytes(StandardCharsets.US_ASCII);
        byte[] all = new byte[head.length + body.length];
        System.arraycopy(head, 0, all, 0, head.length);
        System.arraycopy(body, 0, all, head.length, body.length);
        try {
            out.write(all);
            out.flush();
        } catch (IOException e) {
            // The reader sees it too.
        }
    }
}
