package bugeye;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Reads and writes JSON: objects are maps, arrays are lists, numbers are Long or Double. */
final class Json {
    private final String text;
    private int at;

    private Json(String text) {
        this.text = text;
    }

    static Object read(String text) {
        return new Json(text).value();
    }

    /** An object of names and values in turn; a value that is null is left out. */
    static Map<String, Object> object(Object... pairs) {
        Map<String, Object> object = new LinkedHashMap<>();
        for (int i = 0; i + 1 < pairs.length; i += 2) {
            if (pairs[i + 1] != null) {
                object.put((String) pairs[i], pairs[i + 1]);
            }
        }
        return object;
    }

    @SuppressWarnings("unchecked")
    static Map<String, Object> asObject(Object value) {
        return value instanceof Map ? (Map<String, Object>) value : new LinkedHashMap<>();
    }

    @SuppressWarnings("unchecked")
    static List<Object> asList(Object value) {
        return value instanceof List ? (List<Object>) value : new ArrayList<>();
    }

    static List<String> asTexts(Object value) {
        List<String> texts = new ArrayList<>();
        for (Object item : asList(value)) {
            texts.add(String.valueOf(item));
        }
        return texts;
    }

    static String text(Map<String, Object> object, String name) {
        Object value = object.get(name);
        return value instanceof String ? (String) value : null;
    }

    static long number(Map<String, Object> object, String name, long otherwise) {
        Object value = object.get(name);
        return value instanceof Number ? ((Number) value).longValue() : otherwise;
    }

    static boolean flag(Map<String, Object> object, String name) {
        return Boolean.TRUE.equals(object.get(name));
    }

    static void write(Object value, StringBuilder out) {
        if (value instanceof Map) {
            String separator = "{";
            for (Map.Entry<?, ?> entry : ((Map<?, ?>) value).entrySet()) {
                out.append(separator);
                writeText(String.valueOf(entry.getKey()), out);
                out.append(':');
                write(entry.getValue(), out);
                separator = ",";
            }
            out.append(separator.equals("{") ? "{}" : "}");
        } else if (value instanceof List) {
            String separator = "[";
            for (Object item : (List<?>) value) {
                out.append(separator);
                write(item, out);
                separator = ",";
            }
            out.append(separator.equals("[") ? "[]" : "]");
        } else if (value instanceof String) {
            writeText((String) value, out);
        } else {
            out.append(value);
        }
    }

    private static void writeText(String text, StringBuilder out) {
        out.append('"');
        for (int i = 0; i < text.length(); i++) {
            char c = text.charAt(i);
            boolean lone = Character.isSurrogate(c) && !isPair(text, i);
            if (c == '"' || c == '\\') {
                out.append('\\').append(c);
            } else if (lone) {
                out.append('\ufffd');
            } else if (c < ' ') {
                out.append(String.format("\\u%04x", (int) c));
            } else {
                out.append(c);
            }
        }
        out.append('"');
    }

    private static boolean isPair(String text, int i) {
        char c = text.charAt(i);
        return Character.isHighSurrogate(c)
                ? i + 1 < text.length() && Character.isLowSurrogate(text.charAt(i + 1))
                : i > 0 && Character.isHighSurrogate(text.charAt(i - 1));
    }

    private Object value() {
        space();
        char c = peek();
        if (c == '{') {
            return object();
        }
        if (c == '[') {
            return list();
        }
        if (c == '"') {
            return string();
        }
        int from = at;
        while (at < text.length() && "{}[],:\" \t\r\n".indexOf(text.charAt(at)) < 0) {
            at++;
        }
        String word = text.substring(from, at);
        switch (word) {
            case "true":
                return true;
            case "false":
                return false;
            case "null":
                return null;
            default:
                break;
        }
        try {
            return Long.valueOf(word);
        } catch (NumberFormatException e) {
            return Double.valueOf(word);
        }
    }

    private Map<String, Object> object() {
        Map<String, Object> object = new LinkedHashMap<>();
        expect('{');
        for (space(); peek() != '}'; space()) {
            String name = string();
            space();
            expect(':');
            object.put(name, value());
            space();
            if (peek() == ',') {
                at++;
            }
        }
        at++;
        return object;
    }

    private List<Object> list() {
        List<Object> list = new ArrayList<>();
        expect('[');
        for (space(); peek() != ']'; space()) {
            list.add(value());
            space();
            if (peek() == ',') {
                at++;
            }
        }
        at++;
        return list;
    }

    private String string() {
        expect('"');
        StringBuilder out = new StringBuilder();
        for (char c = next(); c != '"'; c = next()) {
            if (c != '\\') {
                out.append(c);
                continue;
            }
            char escaped = next();
            switch (escaped) {
                case 'n':
                    out.append('\n');
                    break;
                case 't':
                    out.append('\t');
                    break;
                case 'r':
                    out.append('\r');
                    break;
                case 'b':
                    out.append('\b');
                    break;
                case 'f':
                    out.append('\f');
                    break;
                case 'u':
                    out.append((char) Integer.parseInt(text.substring(at, at + 4), 16));
                    at += 4;
                    break;
                default:
                    out.append(escaped);
            }
        }
        return out.toString();
    }

    private void space() {
        while (at < text.length() && text.charAt(at) <= ' ') {
            at++;
        }
    }

    private char peek() {
        if (at >= text.length()) {
            throw new IllegalArgumentException("the message ends too early");
        }
        return text.charAt(at);
    }

    private char next() {
        char c = peek();
        at++;
        return c;
    }

    private void expect(char wanted) {
        char c = next();
        if (c != wanted) {
            throw new IllegalArgumentException("'" + wanted + "' was expected, not '" + c + "'");
        }
    }
}
