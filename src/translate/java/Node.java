package bugeye;

import com.sun.jdi.ObjectReference;
import com.sun.jdi.ReferenceType;
import com.sun.jdi.StringReference;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;

/**
 * A part of an expression. Its value is one of ours (Integer, Boolean, String, …), an object or a class of the program,
 * or null.
 */
abstract class Node {
    abstract Object value(Scope scope);

    /** The names `a.b.c`, where this is nothing else. */
    String path() {
        return null;
    }

    void assign(Scope scope, Object value) {
        throw new Refusal("only a variable, a field or an element of an array can be set");
    }

    /** What may be watched: what the last name or index of a path stands for. */
    Place place(Scope scope) {
        throw new Refusal("only a variable or a field can be watched");
    }

    static Node literal(Object value) {
        return new Node() {
            @Override
            Object value(Scope scope) {
                return value;
            }
        };
    }

    static Node name(String name) {
        return new Node() {
            @Override
            Object value(Scope scope) {
                if (name.equals("this")) {
                    return scope.self();
                }
                Place place = scope.variable(name);
                Object value = place != null ? place.get() : scope.type(name);
                if (place == null && value == null) {
                    throw scope.unknown(name);
                }
                return value;
            }

            @Override
            String path() {
                return name;
            }

            @Override
            void assign(Scope scope, Object value) {
                place(scope).set(value);
            }

            @Override
            Place place(Scope scope) {
                Place place = scope.variable(name);
                if (place == null) {
                    throw scope.unknown(name);
                }
                return place;
            }
        };
    }

    static Node member(Node target, String name) {
        return new Node() {
            @Override
            Object value(Scope scope) {
                Object object = owner(scope);
                if (object instanceof ReferenceType && name.equals("class")) {
                    return ((ReferenceType) object).classObject();
                }
                if (object instanceof ReferenceType && scope.nested((ReferenceType) object, name) != null) {
                    return scope.nested((ReferenceType) object, name);
                }
                if (object == null) {
                    ReferenceType type = scope.type(path());
                    if (type == null) {
                        throw scope.unknown(path());
                    }
                    return type;
                }
                if (name.equals("length") && object instanceof com.sun.jdi.ArrayReference) {
                    return ((com.sun.jdi.ArrayReference) object).length();
                }
                return scope.field(object, name).get();
            }

            /** The object or class before the dot; null where the path may still become a class's full name. */
            private Object owner(Scope scope) {
                String before = target.path();
                String first = before == null ? null : before.split("\\.", 2)[0];
                boolean names = first != null && !first.equals("this") && scope.variable(first) == null;
                Object object = names ? scope.type(before) : null;
                if (object == null && names && before.contains(".")) {
                    // A static field of a class further to the left, or the beginning of a package.
                    try {
                        object = target.value(scope);
                    } catch (Refusal e) {
                        return null;
                    }
                } else if (!names) {
                    object = target.value(scope);
                    if (object == null) {
                        throw new Refusal("there is no `" + name + "` of null");
                    }
                }
                return object;
            }

            @Override
            String path() {
                String before = target.path();
                return before == null ? null : before + "." + name;
            }

            @Override
            void assign(Scope scope, Object value) {
                place(scope).set(value);
            }

            @Override
            Place place(Scope scope) {
                Object object = owner(scope);
                if (object == null) {
                    throw scope.unknown(path());
                }
                return scope.field(object, name);
            }
        };
    }

    static Node index(Node target, Node index) {
        return new Node() {
            @Override
            Object value(Scope scope) {
                return scope.item(target.value(scope), index.value(scope));
            }

            @Override
            void assign(Scope scope, Object value) {
                scope.setItem(target.value(scope), index.value(scope), value);
            }
        };
    }

    static Node call(Node target, String name, List<Node> arguments) {
        return new Node() {
            @Override
            Object value(Scope scope) {
                Object object = target == null ? null : target.value(scope);
                if (target != null && object == null) {
                    throw new Refusal("`" + name + "()` can't be called on null");
                }
                List<Object> values = new ArrayList<>();
                for (Node argument : arguments) {
                    values.add(argument.value(scope));
                }
                return scope.call(object, name, values);
            }
        };
    }

    static Node assign(Node target, Node value) {
        return new Node() {
            @Override
            Object value(Scope scope) {
                scope.checkMayChange();
                Object assigned = value.value(scope);
                target.assign(scope, assigned);
                return target.value(scope);
            }
        };
    }

    static Node choice(Node condition, Node yes, Node no) {
        return new Node() {
            @Override
            Object value(Scope scope) {
                return (truth(condition.value(scope)) ? yes : no).value(scope);
            }
        };
    }

    static Node cast(String type, Node node) {
        return new Node() {
            @Override
            Object value(Scope scope) {
                Object value = plain(node.value(scope));
                if (type.equals("boolean")) {
                    return truth(value);
                }
                return Numbers.cast(value, type);
            }
        };
    }

    static Node instance(Node node, String type) {
        return new Node() {
            @Override
            Object value(Scope scope) {
                Object value = node.value(scope);
                if (value instanceof String) {
                    return "java.lang.String".endsWith(type);
                }
                return value instanceof ObjectReference && scope.isOf(((ObjectReference) value).referenceType(), type);
            }
        };
    }

    static Node unary(String operator, Node node) {
        return new Node() {
            @Override
            Object value(Scope scope) {
                Object value = plain(node.value(scope));
                return operator.equals("!") ? (Object) !truth(value) : Numbers.unary(operator, value);
            }
        };
    }

    static Node binary(String operator, Node left, Node right) {
        return new Node() {
            @Override
            Object value(Scope scope) {
                if (operator.equals("&&")) {
                    return truth(left.value(scope)) && truth(right.value(scope));
                }
                if (operator.equals("||")) {
                    return truth(left.value(scope)) || truth(right.value(scope));
                }
                Object a = plain(left.value(scope));
                Object b = plain(right.value(scope));
                if (operator.equals("==") || operator.equals("!=")) {
                    return operator.equals("==") == same(a, b);
                }
                if (operator.equals("+") && (a instanceof String || b instanceof String)) {
                    return spoken(a) + spoken(b);
                }
                if (a instanceof Boolean && b instanceof Boolean && "&|^".contains(operator)) {
                    boolean x = (Boolean) a;
                    boolean y = (Boolean) b;
                    return operator.equals("&") ? x & y : operator.equals("|") ? x | y : x ^ y;
                }
                return Numbers.binary(operator, a, b);
            }
        };
    }

    /** Text is the same when it reads the same, whichever object holds it. */
    static boolean same(Object a, Object b) {
        if (Numbers.is(a) && Numbers.is(b)) {
            return (Boolean) Numbers.binary("==", a, b);
        }
        return Objects.equals(a, b);
    }

    /** Strings and boxed values as what they hold. */
    static Object plain(Object value) {
        if (value instanceof ObjectReference) {
            Object plain = Values.plain((ObjectReference) value);
            return plain == null ? value : plain;
        }
        return value;
    }

    private static String spoken(Object value) {
        return value instanceof String ? (String) value
                : value instanceof StringReference ? ((StringReference) value).value()
                : value instanceof Character ? value.toString() : Values.text(value);
    }

    static boolean truth(Object value) {
        Object plain = plain(value);
        if (!(plain instanceof Boolean)) {
            throw new Refusal("`" + Values.text(value) + "` is neither true nor false");
        }
        return (Boolean) plain;
    }
}
