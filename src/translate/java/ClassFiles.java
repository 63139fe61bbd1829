package bugeye;

import java.io.ByteArrayInputStream;
import java.io.DataInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Enumeration;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.jar.Attributes;
import java.util.jar.JarFile;
import java.util.stream.Stream;
import java.util.zip.ZipEntry;

/**
 * The program's classes as they lie on its class path: which lines have code is known before anything is loaded. What
 * can't be read is passed over, since the virtual machine has the last word.
 */
final class ClassFiles {
    private static final int MOST_CLASSES = 5000;
    /** Jars larger than this are not looked through for a method of any class. */
    private static final long LARGE_JAR = 8 << 20;

    /** What a class file says about where it comes from. */
    static final class Info {
        /** As in `p.Outer$C`. */
        String name = "";
        String source = "";
        final Map<String, TreeSet<Integer>> methods = new TreeMap<>();
    }

    private interface Taker {
        /** False when enough was seen. */
        boolean take(Info info);
    }

    private final Set<Path> entries = new LinkedHashSet<>();

    /** The class path as the virtual machine tells it, relative to the folder that it was started in. */
    ClassFiles(List<String> classPath, String folder) {
        Path base = Path.of(folder == null ? "/" : folder);
        for (String entry : classPath) {
            Path path = base.resolve(entry);
            if (entry.endsWith(".jar")) {
                addJar(path);
            } else {
                entries.add(path);
            }
        }
    }

    /** A jar, and the others that it names. */
    private void addJar(Path path) {
        entries.add(path);
        try (JarFile jar = new JarFile(path.toFile())) {
            String more = jar.getManifest() == null ? null
                    : jar.getManifest().getMainAttributes().getValue(Attributes.Name.CLASS_PATH);
            for (String name : more == null ? new String[0] : more.split("\\s+")) {
                Path other = path.resolveSibling(name.replaceFirst("^file:", "").replace("%20", " "));
                if (Files.exists(other)) {
                    entries.add(other);
                }
            }
        } catch (IOException | RuntimeException e) {
            // It has no manifest that can be read.
        }
    }

    /** The lines that have code in the classes of a source file; empty where none of its classes is there. */
    TreeSet<Integer> lines(String inPackage, String source) {
        TreeSet<Integer> lines = new TreeSet<>();
        for (Path entry : entries) {
            walk(entry, inPackage.replace('.', '/'), info -> {
                if (info.source.equals(source)) {
                    info.methods.values().forEach(lines::addAll);
                }
                return true;
            });
            if (!lines.isEmpty()) {
                break;
            }
        }
        return lines;
    }

    /** The first line of a method; 0 where no class has one. The type may be empty for any. */
    int method(String type, String name) {
        int[] found = {0};
        for (Path entry : entries) {
            walk(entry, null, info -> {
                boolean fits = type.isEmpty() ? !Sources.isPlatform(info.name) : Types.isNamed(info.name, type);
                TreeSet<Integer> lines = fits ? info.methods.get(name) : null;
                found[0] = lines == null || lines.isEmpty() ? found[0] : lines.first();
                return found[0] == 0;
            });
            if (found[0] > 0) {
                break;
            }
        }
        return found[0];
    }

    /** Goes through the classes of one package, or of all where none is named. */
    private static void walk(Path entry, String folder, Taker taker) {
        try {
            if (Files.isDirectory(entry)) {
                walkFolder(folder == null ? entry : entry.resolve(folder), folder == null ? 20 : 1, taker);
            } else if (Files.isRegularFile(entry) && (folder != null || Files.size(entry) < LARGE_JAR)) {
                walkJar(entry, folder, taker);
            }
        } catch (IOException | RuntimeException e) {
            // What can't be read says nothing.
        }
    }

    private static void walkFolder(Path folder, int depth, Taker taker) throws IOException {
        if (!Files.isDirectory(folder)) {
            return;
        }
        List<Path> files = new ArrayList<>();
        try (Stream<Path> all = Files.walk(folder, depth)) {
            all.limit(10L * MOST_CLASSES).filter(file -> file.toString().endsWith(".class")).limit(MOST_CLASSES)
                    .forEach(files::add);
        }
        for (Path file : files) {
            if (!taker.take(read(Files.readAllBytes(file)))) {
                return;
            }
        }
    }

    private static void walkJar(Path path, String folder, Taker taker) throws IOException {
        try (JarFile jar = new JarFile(path.toFile())) {
            int left = MOST_CLASSES;
            for (Enumeration<? extends ZipEntry> names = jar.entries(); names.hasMoreElements() && left > 0; ) {
                ZipEntry entry = names.nextElement();
                String name = entry.getName();
                int slash = name.lastIndexOf('/');
                boolean there = folder == null || name.substring(0, Math.max(slash, 0)).equals(folder);
                if (!there || !name.endsWith(".class")) {
                    continue;
                }
                left--;
                try (InputStream stream = jar.getInputStream(entry)) {
                    if (!taker.take(read(stream.readAllBytes()))) {
                        return;
                    }
                }
            }
        }
    }

    /** Reads a class file (chapter 4 of the specification of the virtual machine). */
    private static Info read(byte[] bytes) throws IOException {
        DataInputStream in = new DataInputStream(new ByteArrayInputStream(bytes));
        Info info = new Info();
        if (in.readInt() != 0xcafebabe) {
            return info;
        }
        in.readInt();
        int count = in.readUnsignedShort();
        String[] texts = new String[count];
        int[] names = new int[count];
        for (int i = 1; i < count; i++) {
            int tag = in.readUnsignedByte();
            switch (tag) {
                case 1:
                    texts[i] = in.readUTF();
                    break;
                case 5:
                case 6:
                    // Takes two places.
                    in.readLong();
                    i++;
                    break;
                case 7:
                    names[i] = in.readUnsignedShort();
                    break;
                case 8:
                case 16:
                case 19:
                case 20:
                    in.readUnsignedShort();
                    break;
                case 15:
                    in.skipBytes(3);
                    break;
                default:
                    in.readInt();
            }
        }
        in.readUnsignedShort();
        info.name = texts[names[in.readUnsignedShort()]].replace('/', '.');
        in.readUnsignedShort();
        in.skipBytes(2 * in.readUnsignedShort());
        for (int fields = in.readUnsignedShort(); fields > 0; fields--) {
            in.skipBytes(6);
            attributes(in, texts, info, null);
        }
        for (int methods = in.readUnsignedShort(); methods > 0; methods--) {
            in.readUnsignedShort();
            String name = texts[in.readUnsignedShort()];
            in.readUnsignedShort();
            attributes(in, texts, info, info.methods.computeIfAbsent(name, key -> new TreeSet<>()));
        }
        attributes(in, texts, info, null);
        return info;
    }

    private static void attributes(DataInputStream in, String[] texts, Info info, TreeSet<Integer> lines)
            throws IOException {
        for (int count = in.readUnsignedShort(); count > 0; count--) {
            String name = texts[in.readUnsignedShort()];
            int length = in.readInt();
            if (name.equals("SourceFile")) {
                info.source = texts[in.readUnsignedShort()];
            } else if (name.equals("Code") && lines != null) {
                in.readInt();
                in.skipBytes(in.readInt());
                in.skipBytes(8 * in.readUnsignedShort());
                attributes(in, texts, info, lines);
            } else if (name.equals("LineNumberTable") && lines != null) {
                for (int left = in.readUnsignedShort(); left > 0; left--) {
                    in.readUnsignedShort();
                    lines.add(in.readUnsignedShort());
                }
            } else {
                in.skipBytes(length);
            }
        }
    }
}
