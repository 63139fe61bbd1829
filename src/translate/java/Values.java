package bugeye;

import com.sun.jdi.ArrayReference;
import com.sun.jdi.BooleanValue;
import com.sun.jdi.CharValue;
import com.sun.jdi.ClassObjectReference;
import com.sun.jdi.ClassType;
import com.sun.jdi.Field;
import com.sun.jdi.ObjectReference;
import com.sun.jdi.PrimitiveValue;
import com.sun.jdi.ReferenceType;
import com.sun.jdi.StringReference;
import com.sun.jdi.ThreadReference;
import com.sun.jdi.Type;
import com.sun.jdi.Value;
import com.sun.jdi.VoidValue;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Values as text and as trees. Nothing of the program runs for them: objects are shown by their fields. */
final class Values {
    /** A collection of no more plain items than this is written out; else its text is its size, and they are below it. */
    private static final int INLINE = 20;
    private static final int LONGEST_STRING = 4000;

    /** What can be gone down into until the program runs on: by the number that stands for it. */
    private final Map<Long, Below> known = new LinkedHashMap<>();
    private long last;

    /** Something with variables below it. */
    interface Below {
        List<Map<String, Object>> variables(int start, int count);
    }

    void forget() {
        known.clear();
    }

    long keep(Below below) {
        known.put(++last, below);
        return last;
    }

    List<Map<String, Object>> variables(long reference, int start, int count) {
        Below below = known.get(reference);
        if (below == null) {
            throw new Refusal("that value is of an earlier stop");
        }
        return below.variables(start, count);
    }

    /** A variable of the protocol. */
    Map<String, Object> variable(String name, Object value, Type declared) {
        Map<String, Object> variable = describe("value", value);
        if (value == null && declared != null) {
            variable.put("type", declared.name());
        }
        variable.put("name", name);
        return variable;
    }

    /** The text of a value under a name, with its type and what is below it. */
    Map<String, Object> describe(String name, Object value) {
        Map<String, Object> out = Json.object(name, text(value), "type", typeName(value), "variablesReference", 0L);
        if (!(value instanceof ObjectReference) || isPlain((ObjectReference) value)) {
            return out;
        }
        ObjectReference object = (ObjectReference) value;
        Items items = Items.of(object);
        if (items != null) {
            out.put("indexedVariables", items.size);
            if (items.size > 0) {
                out.put("variablesReference", keep((start, count) -> items(items, start, count)));
            }
            return out;
        }
        List<Field> fields = fields(object.referenceType());
        if (!fields.isEmpty()) {
            out.put("namedVariables", fields.size());
            out.put("variablesReference", keep((start, count) -> fields(object, fields, start, count)));
        }
        return out;
    }

    private List<Map<String, Object>> items(Items items, int start, int count) {
        List<Map<String, Object>> out = new ArrayList<>();
        int index = start;
        for (Items.Item item : items.part(start, count)) {
            String name = items.isMap ? text(item.key) : "[" + index + "]";
            out.add(variable(name, item.value, null));
            index++;
        }
        return out;
    }

    private List<Map<String, Object>> fields(ObjectReference object, List<Field> fields, int start, int count) {
        List<Field> part = fields.subList(Math.min(start, fields.size()), Math.min(start + count, fields.size()));
        Map<Field, Value> values = object.getValues(part);
        List<Map<String, Object>> out = new ArrayList<>();
        for (Field field : part) {
            out.add(variable(field.name(), values.get(field), declaredType(field)));
        }
        return out;
    }

    /** The static fields of a class. */
    List<Map<String, Object>> statics(ReferenceType type) {
        List<Field> fields = new ArrayList<>();
        for (Field field : type.visibleFields()) {
            if (field.isStatic() && !field.isSynthetic()) {
                fields.add(field);
            }
        }
        Map<Field, Value> values = type.getValues(fields);
        List<Map<String, Object>> out = new ArrayList<>();
        for (Field field : fields) {
            out.add(variable(field.name(), values.get(field), declaredType(field)));
        }
        return out;
    }

    private static Type declaredType(Field field) {
        try {
            return field.type();
        } catch (com.sun.jdi.ClassNotLoadedException e) {
            return null;
        }
    }

    /** The fields of an object, without those that the compiler made. */
    private static List<Field> fields(ReferenceType type) {
        List<Field> fields = new ArrayList<>();
        for (Field field : type.allFields()) {
            if (!field.isStatic() && !field.isSynthetic()) {
                fields.add(field);
            }
        }
        return fields;
    }

    static String typeName(Object value) {
        if (value == null) {
            return null;
        }
        if (value instanceof Value) {
            return ((Value) value).type().name();
        }
        if (value instanceof ReferenceType) {
            return "class";
        }
        String name = value.getClass().getSimpleName();
        switch (name) {
            case "Integer":
                return "int";
            case "Character":
                return "char";
            case "String":
                return "java.lang.String";
            default:
                return name.toLowerCase();
        }
    }

    /** A value in one line, as its author would write it. */
    static String text(Object value) {
        if (value == null || value instanceof VoidValue) {
            return value == null ? "null" : "void";
        }
        if (value instanceof ReferenceType) {
            return "class " + ((ReferenceType) value).name();
        }
        if (!(value instanceof Value)) {
            return value instanceof String ? quoted((String) value, '"')
                    : value instanceof Character ? quoted(value.toString(), '\'') : value.toString();
        }
        if (value instanceof CharValue) {
            return quoted(String.valueOf(((CharValue) value).value()), '\'');
        }
        if (value instanceof PrimitiveValue) {
            return value.toString();
        }
        ObjectReference object = (ObjectReference) value;
        Object plain = plain(object);
        if (plain != null) {
            return text(plain);
        }
        if (object instanceof ClassObjectReference) {
            return "class " + ((ClassObjectReference) object).reflectedType().name();
        }
        if (object instanceof ThreadReference) {
            return shortName(object.referenceType().name()) + " " + quoted(((ThreadReference) object).name(), '"');
        }
        Items items = Items.of(object);
        if (items != null) {
            return inline(items);
        }
        String type = shortName(object.referenceType().name());
        String special = special(object, type);
        return special != null ? special : type + "@" + object.uniqueID();
    }

    private static String inline(Items items) {
        if (items.size > INLINE) {
            return "size=" + items.size;
        }
        StringBuilder out = new StringBuilder(items.isMap ? "{" : "[");
        String separator = "";
        for (Items.Item item : items.part(0, INLINE)) {
            if (!isSimple(item.key) || !isSimple(item.value)) {
                return "size=" + items.size;
            }
            out.append(separator);
            if (items.isMap) {
                out.append(text(item.key)).append('=');
            }
            out.append(text(item.value));
            separator = ", ";
        }
        return out.append(items.isMap ? '}' : ']').toString();
    }

    /** A value that has nothing below it. */
    private static boolean isSimple(Value value) {
        return !(value instanceof ObjectReference) || isPlain((ObjectReference) value)
                || isEnum(((ObjectReference) value).referenceType());
    }

    private static boolean isPlain(ObjectReference object) {
        return plain(object) != null || object instanceof ClassObjectReference;
    }

    /** Strings, boxed numbers and constants of enums: what is written as itself. Else null. */
    static Object plain(ObjectReference object) {
        if (object instanceof StringReference) {
            return ((StringReference) object).value();
        }
        if (object instanceof ArrayReference) {
            return null;
        }
        switch (object.referenceType().name()) {
            case "java.lang.Integer":
            case "java.lang.Long":
            case "java.lang.Short":
            case "java.lang.Byte":
            case "java.lang.Double":
            case "java.lang.Float":
            case "java.lang.Boolean":
            case "java.lang.Character":
                return unmirrored(Items.get(object, "value"));
            default:
                return null;
        }
    }

    /** Kinds of objects whose text says more than their fields. */
    private static String special(ObjectReference object, String type) {
        try {
            if (isEnum(object.referenceType())) {
                return ((StringReference) Items.get(object, "name")).value();
            }
            switch (object.referenceType().name()) {
                case "java.util.Optional":
                    Value held = Items.get(object, "value");
                    return held == null ? "Optional.empty" : "Optional[" + text(held) + "]";
                case "java.util.concurrent.atomic.AtomicInteger":
                case "java.util.concurrent.atomic.AtomicLong":
                    return text(Items.get(object, "value"));
                case "java.util.concurrent.atomic.AtomicBoolean":
                    return String.valueOf(!text(Items.get(object, "value")).equals("0"));
                case "java.util.concurrent.atomic.AtomicReference":
                    return "AtomicReference[" + text(Items.get(object, "value")) + "]";
                case "java.lang.StringBuilder":
                case "java.lang.StringBuffer":
                    return quoted(builderText(object), '"');
                default:
                    break;
            }
            String message = message(object);
            return message == null ? null : type + ": " + message;
        } catch (IllegalArgumentException | ClassCastException e) {
            return null;
        }
    }

    private static boolean isEnum(ReferenceType type) {
        return type instanceof ClassType && (((ClassType) type).isEnum()
                || ((ClassType) type).superclass() != null && ((ClassType) type).superclass().isEnum());
    }

    /** What an exception says; null for what is none, or says nothing. */
    static String message(ObjectReference object) {
        if (!(object.referenceType() instanceof ClassType)) {
            return null;
        }
        for (ClassType type = (ClassType) object.referenceType(); type != null; type = type.superclass()) {
            if (type.name().equals("java.lang.Throwable")) {
                Value message = object.getValue(type.fieldByName("detailMessage"));
                return message instanceof StringReference ? ((StringReference) message).value() : null;
            }
        }
        return null;
    }

    private static String builderText(ObjectReference object) {
        ArrayReference bytes = (ArrayReference) Items.get(object, "value");
        int count = Math.min(((com.sun.jdi.IntegerValue) Items.get(object, "count")).value(), LONGEST_STRING);
        boolean wide = !text(Items.get(object, "coder")).equals("0");
        StringBuilder out = new StringBuilder();
        List<Value> values = count == 0 ? List.of() : bytes.getValues(0, wide ? count * 2 : count);
        for (int i = 0; i < count; i++) {
            int low = ((PrimitiveValue) values.get(wide ? 2 * i : i)).byteValue() & 0xff;
            int high = wide ? ((PrimitiveValue) values.get(2 * i + 1)).byteValue() & 0xff : 0;
            out.append((char) (high << 8 | low));
        }
        return out.toString();
    }

    /** A primitive value of the program as one of ours. */
    static Object unmirrored(Value value) {
        if (!(value instanceof PrimitiveValue)) {
            return value;
        }
        PrimitiveValue primitive = (PrimitiveValue) value;
        switch (value.type().signature().charAt(0)) {
            case 'Z':
                return ((BooleanValue) value).value();
            case 'C':
                return primitive.charValue();
            case 'B':
                return primitive.byteValue();
            case 'S':
                return primitive.shortValue();
            case 'I':
                return primitive.intValue();
            case 'J':
                return primitive.longValue();
            case 'F':
                return primitive.floatValue();
            default:
                return primitive.doubleValue();
        }
    }

    /** A type without its package. */
    static String shortName(String type) {
        return type.substring(type.lastIndexOf('.') + 1);
    }

    private static String quoted(String text, char quote) {
        StringBuilder out = new StringBuilder().append(quote);
        int shown = Math.min(text.length(), LONGEST_STRING);
        for (int i = 0; i < shown; i++) {
            char c = text.charAt(i);
            if (c == quote || c == '\\') {
                out.append('\\').append(c);
            } else if (c == '\n') {
                out.append("\\n");
            } else if (c == '\t') {
                out.append("\\t");
            } else if (c == '\r') {
                out.append("\\r");
            } else if (c < ' ' || c == 127) {
                out.append(String.format("\\u%04x", (int) c));
            } else {
                out.append(c);
            }
        }
        if (shown < text.length()) {
            out.append("… ").append(text.length()).append(" characters");
        }
        return out.append(quote).toString();
    }
}
