package bugeye;

import com.sun.jdi.ArrayReference;
import com.sun.jdi.Field;
import com.sun.jdi.IntegerValue;
import com.sun.jdi.ObjectReference;
import com.sun.jdi.Value;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;

/**
 * What a collection of the platform's library holds, read from its own fields: no code of the program runs for it, so
 * that looking changes nothing and can't block. A kind that is not known here, or looks otherwise than expected, is none.
 */
final class Items {
    /** Entries of maps have keys; elements have null. */
    static final class Item {
        final Value key;
        final Value value;

        Item(Value key, Value value) {
            this.key = key;
            this.value = value;
        }
    }

    private static final int ALL = Integer.MAX_VALUE;

    final int size;
    final boolean isMap;
    private final Reader reader;

    /** Gives the items up to a number. */
    private interface Reader {
        List<Item> first(int count);
    }

    private Items(int size, boolean isMap, Reader reader) {
        this.size = size;
        this.isMap = isMap;
        this.reader = reader;
    }

    /** So many items from one on. */
    List<Item> part(int start, int count) {
        int end = Math.min(size, start + Math.max(0, count));
        if (start >= end) {
            return Collections.emptyList();
        }
        List<Item> items = reader.first(end);
        return items.subList(Math.min(start, items.size()), Math.min(end, items.size()));
    }

    /** The items of an array or a collection; null for everything else. */
    static Items of(ObjectReference object) {
        try {
            return object instanceof ArrayReference ? array((ArrayReference) object, ALL) : library(object);
        } catch (RuntimeException e) {
            if (e instanceof com.sun.jdi.VMDisconnectedException) {
                throw e;
            }
            return null;
        }
    }

    private static Items library(ObjectReference object) {
        String type = object.referenceType().name();
        if (!type.startsWith("java.util.")) {
            return null;
        }
        switch (type.substring(10)) {
            case "ArrayList":
                return array((ArrayReference) get(object, "elementData"), number(object, "size"));
            case "Vector":
            case "Stack":
                return array((ArrayReference) get(object, "elementData"), number(object, "elementCount"));
            case "PriorityQueue":
                return array((ArrayReference) get(object, "queue"), number(object, "size"));
            case "Arrays$ArrayList":
                return array((ArrayReference) get(object, "a"), ALL);
            case "ImmutableCollections$ListN":
                return array((ArrayReference) get(object, "elements"), ALL);
            case "ImmutableCollections$List12":
            case "ImmutableCollections$Set12":
                return pair(object);
            case "ImmutableCollections$SetN":
                return present((ArrayReference) get(object, "elements"), number(object, "size"));
            case "ImmutableCollections$Map1":
                return list(Collections.singletonList(new Item(get(object, "k0"), get(object, "v0"))), true);
            case "ImmutableCollections$MapN":
                return alternating((ArrayReference) get(object, "table"), number(object, "size"));
            case "LinkedList":
                return chain((ObjectReference) get(object, "first"), number(object, "size"), "next", null, "item");
            case "ArrayDeque":
                return ring((ArrayReference) get(object, "elements"), number(object, "head"), number(object, "tail"));
            case "HashMap":
                return buckets((ArrayReference) get(object, "table"), number(object, "size"), "value");
            case "LinkedHashMap":
                return chain((ObjectReference) get(object, "head"), number(object, "size"), "after", "key", "value");
            case "concurrent.ConcurrentHashMap":
                return buckets((ArrayReference) get(object, "table"), -1, "val");
            case "TreeMap":
                return tree((ObjectReference) get(object, "root"), number(object, "size"));
            case "HashSet":
            case "LinkedHashSet":
                return keys(library((ObjectReference) get(object, "map")));
            case "TreeSet":
                return keys(library((ObjectReference) get(object, "m")));
            case "Collections$UnmodifiableMap":
            case "Collections$SynchronizedMap":
                return library((ObjectReference) get(object, "m"));
            case "Collections$UnmodifiableCollection":
            case "Collections$UnmodifiableList":
            case "Collections$UnmodifiableRandomAccessList":
            case "Collections$UnmodifiableSet":
            case "Collections$SynchronizedCollection":
            case "Collections$SynchronizedList":
            case "Collections$SynchronizedRandomAccessList":
            case "Collections$SynchronizedSet":
                return library((ObjectReference) get(object, "c"));
            case "concurrent.CopyOnWriteArrayList":
                return array((ArrayReference) get(object, "array"), ALL);
            case "Collections$EmptyList":
            case "Collections$EmptySet":
                return list(Collections.emptyList(), false);
            case "Collections$EmptyMap":
                return list(Collections.emptyList(), true);
            case "Collections$SingletonList":
            case "Collections$SingletonSet":
                return list(Collections.singletonList(new Item(null, get(object, "element"))), false);
            default:
                return null;
        }
    }

    static Value get(ObjectReference object, String name) {
        Field field = object.referenceType().fieldByName(name);
        if (field == null) {
            throw new IllegalArgumentException(name);
        }
        return object.getValue(field);
    }

    private static int number(ObjectReference object, String name) {
        return ((IntegerValue) get(object, name)).value();
    }

    private static Items list(List<Item> items, boolean isMap) {
        return new Items(items.size(), isMap, count -> items);
    }

    /** The first part of an array. */
    private static Items array(ArrayReference array, int length) {
        int size = Math.min(length, array.length());
        return new Items(size, false, count -> {
            List<Item> items = new ArrayList<>();
            for (Value value : count == 0 ? Collections.<Value>emptyList() : array.getValues(0, count)) {
                items.add(new Item(null, value));
            }
            return items;
        });
    }

    /** One or two elements; the second's place is taken by a mark where there is none. */
    private static Items pair(ObjectReference object) {
        List<Item> items = new ArrayList<>();
        items.add(new Item(null, get(object, "e0")));
        Value second = get(object, "e1");
        boolean none = second == null || second.type().name().equals("java.lang.Object");
        if (!none) {
            items.add(new Item(null, second));
        }
        return list(items, false);
    }

    private static Items present(ArrayReference table, int size) {
        List<Item> items = new ArrayList<>();
        for (Value value : table.length() == 0 ? Collections.<Value>emptyList() : table.getValues()) {
            if (value != null) {
                items.add(new Item(null, value));
            }
        }
        return new Items(size, false, count -> items);
    }

    private static Items alternating(ArrayReference table, int size) {
        List<Item> items = new ArrayList<>();
        List<Value> values = table.length() == 0 ? Collections.<Value>emptyList() : table.getValues();
        for (int i = 0; i + 1 < values.size(); i += 2) {
            if (values.get(i) != null) {
                items.add(new Item(values.get(i), values.get(i + 1)));
            }
        }
        return new Items(size, true, count -> items);
    }

    private static Items chain(ObjectReference first, int size, String next, String key, String value) {
        return new Items(size, key != null, count -> {
            List<Item> items = new ArrayList<>();
            for (ObjectReference node = first; node != null && items.size() < count;
                    node = (ObjectReference) get(node, next)) {
                items.add(new Item(key == null ? null : get(node, key), get(node, value)));
            }
            return items;
        });
    }

    private static Items ring(ArrayReference elements, int head, int tail) {
        int length = elements.length();
        int size = Math.floorMod(tail - head, length);
        return new Items(size, false, count -> {
            List<Item> items = new ArrayList<>();
            for (int i = 0; i < count; i++) {
                items.add(new Item(null, elements.getValue((head + i) % length)));
            }
            return items;
        });
    }

    /** A hash table of chains. A size of -1 is not known and has to be counted. */
    private static Items buckets(ArrayReference table, int size, String value) {
        if (table == null) {
            return list(Collections.emptyList(), true);
        }
        if (size < 0) {
            return list(inBuckets(table, ALL, value), true);
        }
        return new Items(size, true, count -> inBuckets(table, count, value));
    }

    private static List<Item> inBuckets(ArrayReference table, int count, String value) {
        List<Item> items = new ArrayList<>();
        for (Value bucket : table.getValues()) {
            for (ObjectReference node = (ObjectReference) bucket; node != null && items.size() < count;
                    node = (ObjectReference) get(node, "next")) {
                items.add(new Item(get(node, "key"), get(node, value)));
            }
        }
        return items;
    }

    private static Items tree(ObjectReference root, int size) {
        return new Items(size, true, count -> {
            List<Item> items = new ArrayList<>();
            inOrder(root, count, items);
            return items;
        });
    }

    private static void inOrder(ObjectReference node, int count, List<Item> items) {
        if (node == null || items.size() >= count) {
            return;
        }
        inOrder((ObjectReference) get(node, "left"), count, items);
        if (items.size() < count) {
            items.add(new Item(get(node, "key"), get(node, "value")));
            inOrder((ObjectReference) get(node, "right"), count, items);
        }
    }

    private static Items keys(Items map) {
        if (map == null) {
            return null;
        }
        return new Items(map.size, false, count -> {
            List<Item> items = new ArrayList<>();
            for (Item item : map.part(0, count)) {
                items.add(new Item(null, item.key));
            }
            return items;
        });
    }
}
