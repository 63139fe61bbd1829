package bugeye;

import com.sun.jdi.Field;
import com.sun.jdi.LocalVariable;
import com.sun.jdi.ObjectReference;

/** Where a value is kept: a local variable, or a field of an object or a class. */
abstract class Place {
    final LocalVariable local;
    final Field field;
    /** The object a field is of; null for a static one. */
    final ObjectReference owner;

    Place(LocalVariable local, Field field, ObjectReference owner) {
        this.local = local;
        this.field = field;
        this.owner = owner;
    }

    abstract Object get();

    abstract void set(Object value);
}
