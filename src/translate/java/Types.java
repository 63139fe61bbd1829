package bugeye;

import com.sun.jdi.ClassType;
import com.sun.jdi.InterfaceType;
import com.sun.jdi.ReferenceType;
import java.util.ArrayList;
import java.util.List;

/** Questions about classes by their names. */
final class Types {
    private Types() {}

    /** Whether a class has this name, with or without its package, or inherits from one that has. */
    static boolean isOf(ReferenceType type, String name) {
        if (isNamed(type.name(), name) || name.equals("java.lang.Object") || name.equals("Object")) {
            return true;
        }
        List<ReferenceType> above = new ArrayList<>();
        if (type instanceof ClassType) {
            ClassType own = (ClassType) type;
            above.addAll(own.interfaces());
            if (own.superclass() != null) {
                above.add(own.superclass());
            }
        } else if (type instanceof InterfaceType) {
            above.addAll(((InterfaceType) type).superinterfaces());
        }
        for (ReferenceType one : above) {
            if (isOf(one, name)) {
                return true;
            }
        }
        return false;
    }

    /** `C`, `p.C`, `Outer.C` and `Outer$C` all name `p.Outer$C` or `p.C`. */
    static boolean isNamed(String type, String name) {
        String full = type.replace('$', '.');
        String asked = name.replace('$', '.');
        return full.equals(asked) || full.endsWith("." + asked);
    }
}
