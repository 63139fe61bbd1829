package bugeye;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** Reads a Java expression: paths, literals, operators, calls, assignments. The rest of the language is refused. */
final class Parser {
    /** Binary operators, the loosest first; those of one row bind alike. */
    private static final String[][] BINARY = {
        {"||"}, {"&&"}, {"|"}, {"^"}, {"&"}, {"==", "!="}, {"<=", ">=", "<", ">", "instanceof"}, {"<<", ">>>", ">>"},
        {"+", "-"}, {"*", "/", "%"},
    };
    private static final String[] OPERATORS = {
        ">>>", "==", "!=", "<=", ">=", "&&", "||", "<<", ">>", "++", "--", "->", "::", "+=", "-=", "*=", "/=",
    };
    private static final List<String> PRIMITIVES =
            Arrays.asList("int", "long", "short", "byte", "char", "double", "float", "boolean");
    private static final String WORKS =
            "paths, literals, comparisons, arithmetic, && || ! and calls (`bugeye eval`) work";

    private final List<Token> tokens = new ArrayList<>();
    private int at;

    private enum Kind { NAME, NUMBER, TEXT, CHARACTER, OPERATOR, END }

    private static final class Token {
        final Kind kind;
        final String text;

        Token(Kind kind, String text) {
            this.kind = kind;
            this.text = text;
        }
    }

    private Parser(String text) {
        scan(text);
    }

    static Node parse(String text) {
        Parser parser = new Parser(text);
        Node node = parser.assignment();
        if (parser.peek().kind != Kind.END) {
            throw parser.unexpected();
        }
        return node;
    }

    private void scan(String text) {
        int i = 0;
        while (i < text.length()) {
            char c = text.charAt(i);
            int start = i;
            if (Character.isWhitespace(c)) {
                i++;
            } else if (Character.isJavaIdentifierStart(c)) {
                while (i < text.length() && Character.isJavaIdentifierPart(text.charAt(i))) {
                    i++;
                }
                tokens.add(new Token(Kind.NAME, text.substring(start, i)));
            } else if (Character.isDigit(c) || c == '.' && i + 1 < text.length() && Character.isDigit(text.charAt(i + 1))) {
                i = endOfNumber(text, i);
                tokens.add(new Token(Kind.NUMBER, text.substring(start, i)));
            } else if (c == '"' || c == '\'') {
                StringBuilder content = new StringBuilder();
                i = quoted(text, i, content);
                tokens.add(new Token(c == '"' ? Kind.TEXT : Kind.CHARACTER, content.toString()));
            } else {
                String operator = String.valueOf(c);
                for (String known : OPERATORS) {
                    if (text.startsWith(known, i)) {
                        operator = known;
                        break;
                    }
                }
                i += operator.length();
                tokens.add(new Token(Kind.OPERATOR, operator));
            }
        }
        tokens.add(new Token(Kind.END, "the end"));
    }

    private static int endOfNumber(String text, int from) {
        int i = from;
        boolean hex = text.startsWith("0x", from) || text.startsWith("0X", from);
        while (i < text.length()) {
            char c = text.charAt(i);
            boolean sign = (c == '+' || c == '-') && !hex && "eE".indexOf(text.charAt(i - 1)) >= 0;
            if (!Character.isLetterOrDigit(c) && c != '.' && c != '_' && !sign) {
                break;
            }
            i++;
        }
        return i;
    }

    private static int quoted(String text, int from, StringBuilder content) {
        char quote = text.charAt(from);
        int i = from + 1;
        for (; i < text.length() && text.charAt(i) != quote; i++) {
            char c = text.charAt(i);
            if (c != '\\' || i + 1 == text.length()) {
                content.append(c);
                continue;
            }
            c = text.charAt(++i);
            int known = "ntrbf0".indexOf(c);
            if (c == 'u' && i + 4 < text.length()) {
                content.append((char) Integer.parseInt(text.substring(i + 1, i + 5), 16));
                i += 4;
            } else {
                content.append(known < 0 ? c : "\n\t\r\b\f\0".charAt(known));
            }
        }
        if (i >= text.length()) {
            throw new Refusal("a quote is not closed");
        }
        return i + 1;
    }

    private Token peek() {
        return tokens.get(at);
    }

    private boolean is(String operator) {
        Token token = peek();
        return (token.kind == Kind.OPERATOR || token.kind == Kind.NAME) && token.text.equals(operator);
    }

    private boolean take(String operator) {
        boolean found = is(operator);
        if (found) {
            at++;
        }
        return found;
    }

    private void expect(String operator) {
        if (!take(operator)) {
            throw peek().kind == Kind.END ? new Refusal("`" + operator + "` is missing at the end") : unexpected();
        }
    }

    private Refusal unexpected() {
        Token token = peek();
        if (token.kind == Kind.END) {
            return new Refusal("the expression is not complete");
        }
        if (Arrays.asList("->", "::", "++", "--", "{").contains(token.text) || token.text.endsWith("=")) {
            return Refusal.unsupported("`" + token.text + "` in an expression; " + WORKS);
        }
        return new Refusal("`" + token.text + "` was not expected there");
    }

    private Node assignment() {
        Node left = choice();
        if (take("=")) {
            return Node.assign(left, assignment());
        }
        for (String operator : new String[] {"+", "-", "*", "/"}) {
            if (take(operator + "=")) {
                return Node.assign(left, Node.binary(operator, left, assignment()));
            }
        }
        return left;
    }

    private Node choice() {
        Node condition = binary(0);
        if (!take("?")) {
            return condition;
        }
        Node yes = choice();
        expect(":");
        return Node.choice(condition, yes, choice());
    }

    private Node binary(int level) {
        if (level == BINARY.length) {
            return unary();
        }
        Node left = binary(level + 1);
        while (true) {
            String operator = null;
            for (String known : BINARY[level]) {
                if (is(known)) {
                    operator = known;
                }
            }
            if (operator == null) {
                return left;
            }
            at++;
            left = operator.equals("instanceof") ? Node.instance(left, typeName())
                    : Node.binary(operator, left, binary(level + 1));
        }
    }

    private String typeName() {
        StringBuilder name = new StringBuilder(name());
        while (take(".")) {
            name.append('.').append(name());
        }
        return name.toString();
    }

    private String name() {
        if (peek().kind != Kind.NAME) {
            throw unexpected();
        }
        return tokens.get(at++).text;
    }

    private Node unary() {
        for (String operator : new String[] {"!", "-", "+", "~"}) {
            if (take(operator)) {
                return Node.unary(operator, unary());
            }
        }
        Token next = tokens.get(Math.min(at + 1, tokens.size() - 1));
        if (is("(") && PRIMITIVES.contains(next.text)) {
            at++;
            String type = name();
            expect(")");
            return Node.cast(type, unary());
        }
        return postfix(primary());
    }

    private Node postfix(Node start) {
        Node node = start;
        while (true) {
            if (take(".")) {
                String name = name();
                node = is("(") ? Node.call(node, name, arguments()) : Node.member(node, name);
            } else if (take("[")) {
                node = Node.index(node, assignment());
                expect("]");
            } else {
                return node;
            }
        }
    }

    private List<Node> arguments() {
        List<Node> arguments = new ArrayList<>();
        expect("(");
        while (!take(")")) {
            arguments.add(assignment());
            if (!is(")")) {
                expect(",");
            }
        }
        return arguments;
    }

    private Node primary() {
        Token token = peek();
        switch (token.kind) {
            case NUMBER:
                at++;
                return Node.literal(number(token.text));
            case TEXT:
                at++;
                return Node.literal(token.text);
            case CHARACTER:
                at++;
                if (token.text.length() != 1) {
                    throw new Refusal("'" + token.text + "' is not one character; text stands in \" \"");
                }
                return Node.literal(token.text.charAt(0));
            case NAME:
                return word();
            default:
                break;
        }
        if (take("(")) {
            if (is(")")) {
                throw Refusal.unsupported("a function in an expression; " + WORKS);
            }
            Node inner = assignment();
            expect(")");
            boolean looksLikeCast = peek().kind == Kind.NAME && !is("instanceof") || peek().kind == Kind.TEXT;
            if (looksLikeCast && inner.path() != null) {
                return unary();
            }
            return inner;
        }
        throw unexpected();
    }

    private Node word() {
        String name = name();
        switch (name) {
            case "true":
            case "false":
                return Node.literal(name.equals("true"));
            case "null":
                return Node.literal(null);
            case "new":
            case "switch":
            case "super":
                throw Refusal.unsupported("`" + name + "` in an expression; " + WORKS);
            default:
                return is("(") ? Node.call(null, name, arguments()) : Node.name(name);
        }
    }

    private static Object number(String written) {
        String text = written.replace("_", "").toLowerCase();
        try {
            if (text.startsWith("0x") || text.startsWith("0b")) {
                boolean isLong = text.endsWith("l");
                String digits = text.substring(2, isLong ? text.length() - 1 : text.length());
                long value = Long.parseUnsignedLong(digits, text.charAt(1) == 'x' ? 16 : 2);
                return isLong || value > 0xffffffffL ? (Object) value : (Object) (int) value;
            }
            if (text.endsWith("l")) {
                return Long.valueOf(text.substring(0, text.length() - 1));
            }
            if (text.endsWith("f")) {
                return Float.valueOf(text);
            }
            if (text.endsWith("d") || text.contains(".") || text.contains("e")) {
                return Double.valueOf(text);
            }
            long value = Long.parseLong(text);
            return value == (int) value ? (Object) (int) value : (Object) value;
        } catch (NumberFormatException e) {
            throw new Refusal("`" + written + "` is no number");
        }
    }
}
