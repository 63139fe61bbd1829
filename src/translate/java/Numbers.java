package bugeye;

/** Java's arithmetic on boxed values. */
final class Numbers {
    private Numbers() {}

    static boolean is(Object value) {
        return value instanceof Number || value instanceof Character;
    }

    static Object unary(String operator, Object value) {
        if (operator.equals("~")) {
            return binary("^", value, -1);
        }
        return binary(operator, 0, value) instanceof Double ? (Object) (operator.equals("-") ? -number(value).doubleValue()
                : number(value).doubleValue()) : binary(operator, 0, value);
    }

    static Object binary(String operator, Object a, Object b) {
        if (!is(a) || !is(b)) {
            throw new Refusal("`" + operator + "` needs numbers, not " + Values.text(is(a) ? b : a));
        }
        Number x = number(a);
        Number y = number(b);
        if ("<<>>>".contains(operator) && operator.length() > 1) {
            return shift(operator, x, y);
        }
        if (x instanceof Double || y instanceof Double || x instanceof Float || y instanceof Float) {
            Object result = real(operator, x.doubleValue(), y.doubleValue());
            boolean wide = x instanceof Double || y instanceof Double || !(result instanceof Double);
            return wide ? result : (Object) ((Double) result).floatValue();
        }
        Object result = whole(operator, x.longValue(), y.longValue());
        boolean wide = x instanceof Long || y instanceof Long || !(result instanceof Long);
        return wide ? result : (Object) ((Long) result).intValue();
    }

    private static Object shift(String operator, Number x, Number y) {
        int by = y.intValue();
        if (x instanceof Long) {
            long value = x.longValue();
            return operator.equals("<<") ? value << by : operator.equals(">>") ? value >> by : value >>> by;
        }
        int value = x.intValue();
        return operator.equals("<<") ? value << by : operator.equals(">>") ? value >> by : value >>> by;
    }

    private static Object whole(String operator, long x, long y) {
        if (y == 0 && (operator.equals("/") || operator.equals("%"))) {
            throw new Refusal("division by zero");
        }
        switch (operator) {
            case "+":
                return x + y;
            case "-":
                return x - y;
            case "*":
                return x * y;
            case "/":
                return x / y;
            case "%":
                return x % y;
            case "&":
                return x & y;
            case "|":
                return x | y;
            case "^":
                return x ^ y;
            default:
                return compare(operator, Long.compare(x, y));
        }
    }

    private static Object real(String operator, double x, double y) {
        switch (operator) {
            case "+":
                return x + y;
            case "-":
                return x - y;
            case "*":
                return x * y;
            case "/":
                return x / y;
            case "%":
                return x % y;
            case "&":
            case "|":
            case "^":
                throw new Refusal("`" + operator + "` needs whole numbers");
            default:
                boolean unordered = Double.isNaN(x) || Double.isNaN(y);
                return unordered ? (Object) operator.equals("!=") : compare(operator, x < y ? -1 : x > y ? 1 : 0);
        }
    }

    private static Object compare(String operator, int order) {
        switch (operator) {
            case "==":
                return order == 0;
            case "!=":
                return order != 0;
            case "<":
                return order < 0;
            case "<=":
                return order <= 0;
            case ">":
                return order > 0;
            default:
                return order >= 0;
        }
    }

    private static Number number(Object value) {
        return value instanceof Character ? (Number) (int) (Character) value : (Number) value;
    }

    static Object cast(Object value, String type) {
        if (!is(value)) {
            throw new Refusal(Values.text(value) + " is no number");
        }
        Number number = number(value);
        boolean real = number instanceof Double || number instanceof Float;
        switch (type) {
            case "int":
                return real ? (Object) (int) number.doubleValue() : (Object) number.intValue();
            case "long":
                return real ? (Object) (long) number.doubleValue() : (Object) number.longValue();
            case "short":
                return number.shortValue();
            case "byte":
                return number.byteValue();
            case "char":
                return (char) number.intValue();
            case "float":
                return number.floatValue();
            default:
                return number.doubleValue();
        }
    }

    /** The same number as another type; refused where that type can't hold it. */
    static Object exact(Object value, String type) {
        Object cast = cast(value, type);
        Object same = binary("==", cast, value);
        boolean precise = type.equals("float") || type.equals("double") || Boolean.TRUE.equals(same);
        if (!precise) {
            throw new Refusal(Values.text(value) + " is no " + type);
        }
        return cast;
    }
}
