package bugeye;

import com.sun.jdi.AbsentInformationException;
import com.sun.jdi.ArrayReference;
import com.sun.jdi.ArrayType;
import com.sun.jdi.ClassNotLoadedException;
import com.sun.jdi.ClassType;
import com.sun.jdi.Field;
import com.sun.jdi.IncompatibleThreadStateException;
import com.sun.jdi.InterfaceType;
import com.sun.jdi.InvalidTypeException;
import com.sun.jdi.LocalVariable;
import com.sun.jdi.Method;
import com.sun.jdi.ObjectReference;
import com.sun.jdi.ReferenceType;
import com.sun.jdi.StackFrame;
import com.sun.jdi.ThreadReference;
import com.sun.jdi.Value;
import com.sun.jdi.VirtualMachine;
import java.util.ArrayList;
import java.util.List;

/** A frame of a stopped thread, as an expression sees it. */
final class Scope {
    private final Debuggee debuggee;
    private final VirtualMachine vm;
    private final ThreadReference thread;
    private final int depth;
    private final boolean mayChange;

    Scope(Debuggee debuggee, ThreadReference thread, int depth, boolean mayChange) {
        this.debuggee = debuggee;
        this.vm = thread.virtualMachine();
        this.thread = thread;
        this.depth = depth;
        this.mayChange = mayChange;
    }

    /** Frames are looked up anew each time: a call makes those from before it invalid. */
    private StackFrame frame() {
        try {
            return thread.frame(depth);
        } catch (IncompatibleThreadStateException | IndexOutOfBoundsException e) {
            throw new Refusal("there is no such frame");
        }
    }

    ObjectReference self() {
        ObjectReference self = frame().thisObject();
        if (self == null) {
            throw new Refusal("there is no `this` in a static method");
        }
        return self;
    }

    void checkMayChange() {
        if (!mayChange) {
            throw new Refusal("an assignment changes the program; `bugeye set` makes one");
        }
    }

    Refusal unknown(String name) {
        String hint = "";
        try {
            frame().visibleVariables();
        } catch (AbsentInformationException e) {
            hint = "; " + Values.shortName(frame().location().declaringType().name())
                    + " was compiled without -g, so its local variables have no names";
        }
        return new Refusal("there is no `" + name + "` here" + hint);
    }

    /** A local variable, or a field of `this`, its class or the classes around it; else null. */
    Place variable(String name) {
        StackFrame frame = frame();
        try {
            LocalVariable local = frame.visibleVariableByName(name);
            if (local != null) {
                return place(local);
            }
        } catch (AbsentInformationException e) {
            // Its fields are known all the same.
        }
        ObjectReference self = frame.thisObject();
        for (int outward = 0; self != null && outward < 8; outward++) {
            Field field = fieldOf(self.referenceType(), name);
            field = field != null ? field : self.referenceType().fieldByName("val$" + name);
            if (field != null) {
                return place(field, self);
            }
            self = enclosing(self);
        }
        for (ReferenceType type = frame.location().declaringType(); type != null; type = outer(type)) {
            Field field = fieldOf(type, name);
            if (field != null && field.isStatic()) {
                return place(field, null);
            }
        }
        return null;
    }

    private static Field fieldOf(ReferenceType type, String name) {
        try {
            return type.fieldByName(name);
        } catch (com.sun.jdi.ClassNotPreparedException e) {
            return null;
        }
    }

    private static ObjectReference enclosing(ObjectReference object) {
        for (Field field : object.referenceType().fields()) {
            if (field.name().startsWith("this$")) {
                return (ObjectReference) object.getValue(field);
            }
        }
        return null;
    }

    private ReferenceType outer(ReferenceType type) {
        int cut = type.name().lastIndexOf('$');
        return cut < 0 ? null : loaded(type.name().substring(0, cut));
    }

    /** A field of an object or a static one of a class. */
    Place field(Object owner, String name) {
        if (owner instanceof ReferenceType) {
            Field field = fieldOf((ReferenceType) owner, name);
            if (field == null || !field.isStatic()) {
                throw new Refusal(((ReferenceType) owner).name() + " has no static field `" + name + "`");
            }
            return place(field, null);
        }
        if (!(owner instanceof ObjectReference)) {
            throw new Refusal(Values.text(owner) + " has no fields");
        }
        ObjectReference object = (ObjectReference) owner;
        Field field = fieldOf(object.referenceType(), name);
        if (field == null) {
            throw new Refusal(object.referenceType().name() + " has no field `" + name + "`");
        }
        return place(field, field.isStatic() ? null : object);
    }

    private Place place(LocalVariable local) {
        return new Place(local, null, null) {
            @Override
            Object get() {
                return Values.unmirrored(frame().getValue(local));
            }

            @Override
            void set(Object value) {
                Value fitting = fit(value, local.typeName());
                try {
                    frame().setValue(local, fitting);
                } catch (InvalidTypeException | ClassNotLoadedException e) {
                    throw new Refusal(Values.text(value) + " is no " + local.typeName());
                }
            }
        };
    }

    private Place place(Field field, ObjectReference owner) {
        return new Place(null, field, owner) {
            @Override
            Object get() {
                return Values.unmirrored(owner == null ? field.declaringType().getValue(field) : owner.getValue(field));
            }

            @Override
            void set(Object value) {
                Value fitting = fit(value, field.typeName());
                try {
                    if (owner != null) {
                        owner.setValue(field, fitting);
                    } else if (field.declaringType() instanceof ClassType) {
                        ((ClassType) field.declaringType()).setValue(field, fitting);
                    } else {
                        throw new Refusal("a constant of an interface can't be set");
                    }
                } catch (InvalidTypeException | ClassNotLoadedException e) {
                    throw new Refusal(Values.text(value) + " is no " + field.typeName());
                } catch (IllegalArgumentException e) {
                    throw new Refusal("`" + field.name() + "` is final");
                }
            }
        };
    }

    /** An element of an array or a list, or the value of a key in a map. */
    Object item(Object container, Object index) {
        Object plain = Node.plain(index);
        if (container instanceof ObjectReference) {
            Items items = Items.of((ObjectReference) container);
            if (items != null && items.isMap) {
                for (Items.Item item : items.part(0, items.size)) {
                    if (Node.same(Node.plain(Values.unmirrored(item.key)), plain)) {
                        return Values.unmirrored(item.value);
                    }
                }
                throw new Refusal("there is no key " + Values.text(index));
            }
            if (items != null && Numbers.is(plain)) {
                int at = (Integer) Numbers.exact(plain, "int");
                if (at < 0 || at >= items.size) {
                    throw new Refusal("there is no item " + at + ": there are " + items.size);
                }
                if (container instanceof ArrayReference) {
                    return Values.unmirrored(((ArrayReference) container).getValue(at));
                }
                return Values.unmirrored(items.part(at, 1).get(0).value);
            }
        }
        throw new Refusal(Values.text(container) + " has no item " + Values.text(index));
    }

    void setItem(Object container, Object index, Object value) {
        if (!(container instanceof ArrayReference)) {
            throw Refusal.unsupported("setting an item of what is no array; call its method: bugeye eval 'x.set(0, y)'");
        }
        ArrayReference array = (ArrayReference) container;
        item(array, index);
        String type = ((ArrayType) array.referenceType()).componentTypeName();
        try {
            array.setValue((Integer) Numbers.exact(Node.plain(index), "int"), fit(value, type));
        } catch (InvalidTypeException | ClassNotLoadedException e) {
            throw new Refusal(Values.text(value) + " is no " + type);
        }
    }

    /** The class that a name means here; null where there is none. */
    ReferenceType type(String name) {
        ReferenceType here = frame().location().declaringType();
        String around = here.name();
        List<String> candidates = new ArrayList<>();
        candidates.add(name);
        for (int cut = around.length(); cut > 0; cut = around.lastIndexOf('$', cut - 1)) {
            candidates.add(around.substring(0, cut) + "$" + name);
        }
        int dot = around.lastIndexOf('.');
        candidates.add(around.substring(0, dot + 1) + name);
        candidates.add("java.lang." + name);
        candidates.add("java.util." + name);
        for (String candidate : candidates) {
            ReferenceType type = loaded(candidate);
            if (type != null) {
                return type;
            }
        }
        if (Values.shortName(around).equals(name) || name.indexOf('.') >= 0 || !Character.isUpperCase(name.charAt(0))) {
            return null;
        }
        // Imported from somewhere: certain only where one loaded class has that name.
        ReferenceType only = null;
        for (ReferenceType type : vm.allClasses()) {
            if (type.name().endsWith("." + name)) {
                if (only != null && !only.name().equals(type.name())) {
                    return null;
                }
                only = type;
            }
        }
        return only;
    }

    ReferenceType nested(ReferenceType type, String name) {
        return loaded(type.name() + "$" + name);
    }

    private ReferenceType loaded(String name) {
        List<ReferenceType> types = vm.classesByName(name);
        return types.isEmpty() || !types.get(0).isPrepared() ? null : types.get(0);
    }

    /** Whether a class is of this name, or inherits from one that is. */
    boolean isOf(ReferenceType type, String name) {
        return Types.isOf(type, name);
    }

    /** What needs no code of the program is worked out here; the rest is called, where that was asked for. */
    Object call(Object target, String name, List<Object> arguments) {
        Object known = target == null ? null : known(target, name, arguments);
        if (known != null) {
            return known;
        }
        if (!mayChange) {
            throw new Refusal("`" + name + "()` runs code of the program; `bugeye eval` makes calls");
        }
        ReferenceType type;
        ObjectReference object = null;
        if (target == null) {
            object = frame().thisObject();
            type = frame().location().declaringType();
        } else if (target instanceof ReferenceType) {
            type = (ReferenceType) target;
        } else {
            object = (ObjectReference) (target instanceof ObjectReference ? target : mirror(target, true));
            type = object.referenceType();
        }
        for (ReferenceType at = type; at != null; at = target == null ? outer(at) : null) {
            for (Method method : at.methodsByName(name)) {
                List<Value> values = fitting(method, arguments);
                boolean usable = method.isStatic() || object != null;
                if (values != null && usable && (!method.isAbstract() || object != null)) {
                    return Values.unmirrored(invoke(at, object, method, values));
                }
            }
        }
        throw new Refusal(Values.shortName(type.name()) + " has no method `" + name + "` for these arguments");
    }

    private Object known(Object target, String name, List<Object> arguments) {
        Object plain = Node.plain(target);
        Items items = target instanceof ObjectReference ? Items.of((ObjectReference) target) : null;
        Object argument = arguments.size() == 1 ? Node.plain(arguments.get(0)) : null;
        switch (name + arguments.size()) {
            case "size0":
                return items == null || target instanceof ArrayReference ? null : (Object) items.size;
            case "length0":
                return plain instanceof String ? (Object) ((String) plain).length() : null;
            case "isEmpty0":
                return plain instanceof String ? (Object) ((String) plain).isEmpty()
                        : items == null ? null : (Object) (items.size == 0);
            case "equals1":
                return plain instanceof String || Numbers.is(plain) ? (Object) plain.equals(argument) : null;
            case "startsWith1":
                return plain instanceof String && argument instanceof String
                        ? (Object) ((String) plain).startsWith((String) argument) : null;
            case "contains1":
                return plain instanceof String && argument instanceof String
                        ? (Object) ((String) plain).contains((String) argument) : null;
            case "charAt1":
                return plain instanceof String && argument instanceof Integer && (Integer) argument >= 0
                        && (Integer) argument < ((String) plain).length()
                        ? (Object) ((String) plain).charAt((Integer) argument) : null;
            case "get1":
                return items == null || target instanceof ArrayReference ? null : item(target, argument);
            default:
                return null;
        }
    }

    private List<Value> fitting(Method method, List<Object> arguments) {
        List<String> types = method.argumentTypeNames();
        if (types.size() != arguments.size()) {
            return null;
        }
        List<Value> values = new ArrayList<>();
        for (int i = 0; i < types.size(); i++) {
            Object argument = arguments.get(i);
            boolean suits = argument == null ? !isPrimitive(types.get(i)) : suits(argument, types.get(i));
            if (!suits) {
                return null;
            }
            values.add(fit(argument, types.get(i)));
        }
        return values;
    }

    private boolean suits(Object value, String type) {
        Object plain = Node.plain(value);
        if (isPrimitive(type)) {
            if (type.equals("boolean")) {
                return plain instanceof Boolean;
            }
            try {
                return Numbers.is(plain) && type.equals("char") == plain instanceof Character
                        && Numbers.exact(plain, type) != null;
            } catch (Refusal e) {
                return false;
            }
        }
        if (value instanceof ObjectReference) {
            return Types.isOf(((ObjectReference) value).referenceType(), type);
        }
        return type.equals("java.lang.Object") || type.equals(boxOf(value)) || type.equals("java.lang.CharSequence")
                && value instanceof String;
    }

    private static boolean isPrimitive(String type) {
        return type.indexOf('.') < 0 && Character.isLowerCase(type.charAt(0)) && !type.endsWith("]") && boxes(type) != null;
    }

    private static String boxes(String primitive) {
        switch (primitive) {
            case "int":
                return "java.lang.Integer";
            case "char":
                return "java.lang.Character";
            case "long":
            case "short":
            case "byte":
            case "double":
            case "float":
            case "boolean":
                return "java.lang." + Character.toUpperCase(primitive.charAt(0)) + primitive.substring(1);
            default:
                return null;
        }
    }

    private static String boxOf(Object value) {
        return value.getClass().getName();
    }

    /** A value of ours or the program's as one that a variable of this type can hold. */
    private Value fit(Object value, String type) {
        if (isPrimitive(type)) {
            Object plain = Node.plain(value);
            if (type.equals("boolean")) {
                return vm.mirrorOf(Node.truth(plain));
            }
            if (!Numbers.is(plain)) {
                throw new Refusal(Values.text(value) + " is no " + type);
            }
            return mirror(Numbers.exact(plain, type), false);
        }
        if (value == null || value instanceof ObjectReference) {
            return (Value) value;
        }
        if (value instanceof String) {
            return mirror(value, true);
        }
        for (String primitive : new String[] {"int", "long", "short", "byte", "char", "double", "float", "boolean"}) {
            if (type.equals(boxes(primitive)) && !primitive.equals("boolean") && Numbers.is(value)) {
                return mirror(Numbers.exact(value, primitive), true);
            }
        }
        return mirror(value, true);
    }

    /** One of our values in the program; boxed where an object is needed. */
    private Value mirror(Object value, boolean boxed) {
        if (value instanceof String) {
            return debuggee.keep(vm.mirrorOf((String) value));
        }
        Value primitive = value instanceof Boolean ? vm.mirrorOf((Boolean) value)
                : value instanceof Character ? vm.mirrorOf((Character) value)
                : value instanceof Integer ? vm.mirrorOf((Integer) value)
                : value instanceof Long ? vm.mirrorOf((Long) value)
                : value instanceof Short ? vm.mirrorOf((Short) value)
                : value instanceof Byte ? vm.mirrorOf((Byte) value)
                : value instanceof Float ? vm.mirrorOf((Float) value) : vm.mirrorOf((Double) value);
        if (!boxed) {
            return primitive;
        }
        ReferenceType box = loaded(boxOf(value));
        for (Method method : box == null ? new ArrayList<Method>() : box.methodsByName("valueOf")) {
            List<String> types = method.argumentTypeNames();
            if (types.size() == 1 && boxOf(value).equals(boxes(types.get(0)))) {
                return invoke(box, null, method, List.of(primitive));
            }
        }
        throw new Refusal(Values.text(value) + " can't be made an object");
    }

    private Value invoke(ReferenceType type, ObjectReference object, Method method, List<Value> arguments) {
        if (!method.isStatic()) {
            return debuggee.invoke(thread, method, () ->
                    object.invokeMethod(thread, method, arguments, ObjectReference.INVOKE_SINGLE_THREADED));
        }
        return debuggee.invoke(thread, method, () -> type instanceof InterfaceType
                ? ((InterfaceType) type).invokeMethod(thread, method, arguments, ClassType.INVOKE_SINGLE_THREADED)
                : ((ClassType) type).invokeMethod(thread, method, arguments, ClassType.INVOKE_SINGLE_THREADED));
    }
}
