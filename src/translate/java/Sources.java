package bugeye;

import com.sun.jdi.AbsentInformationException;
import com.sun.jdi.ReferenceType;
import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileVisitResult;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.nio.file.SimpleFileVisitor;
import java.nio.file.attribute.BasicFileAttributes;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * Which file a class comes from. A class file holds the file's name without its folder; the folder is where a file of
 * that name declares the class's package.
 */
final class Sources {
    /** Files beside compiled classes that name the folders of their sources, one a line. */
    private static final String MARK = ".sources";
    private static final int MOST_FILES = 20_000;
    private static final int DEEPEST = 14;
    private static final String[] PLATFORM = {"java.", "javax.", "jdk.", "sun.", "com.sun."};
    private static final String[] EXTENSIONS = {".java", ".kt", ".scala", ".groovy"};

    private final Set<Path> roots = new LinkedHashSet<>();
    private final Set<Path> named = new LinkedHashSet<>();
    private final Map<Path, String> packages = new HashMap<>();
    private final Map<String, String> found = new HashMap<>();
    private Map<String, List<Path>> index;

    /** Whether a class belongs to the Java platform rather than to the program. */
    static boolean isPlatform(String type) {
        for (String start : PLATFORM) {
            if (type.startsWith(start)) {
                return true;
            }
        }
        return false;
    }

    static String[] platformPatterns() {
        String[] patterns = PLATFORM.clone();
        for (int i = 0; i < patterns.length; i++) {
            patterns[i] += "*";
        }
        return patterns;
    }

    void addRoot(String folder) {
        if (folder != null && !folder.isEmpty()) {
            roots.add(Paths.get(folder));
            index = null;
            found.clear();
        }
    }

    /** Takes the folders that a class path's entries say their sources are in. */
    void addClassPath(String classPath, Path cwd) {
        for (String entry : classPath.split(File.pathSeparator)) {
            Path mark = cwd.resolve(entry).resolve(MARK);
            if (Files.isRegularFile(mark)) {
                try {
                    for (String folder : Files.readAllLines(mark)) {
                        addRoot(folder);
                    }
                } catch (IOException e) {
                    // Without it, sources are found elsewhere or not.
                }
            }
        }
    }

    /** A file that the client named. */
    void addFile(String file) {
        if (named.add(Paths.get(file))) {
            found.clear();
        }
    }

    /** Whether a class is made of this file. */
    boolean isFrom(ReferenceType type, String file) {
        Path path = Paths.get(file);
        try {
            return type.sourceName().equals(String.valueOf(path.getFileName())) && isOfPackage(path, packageOf(type));
        } catch (AbsentInformationException e) {
            return false;
        }
    }

    /** The path of a class's source, or null. */
    String find(ReferenceType type) {
        if (isPlatform(type.name())) {
            return null;
        }
        String name;
        try {
            name = type.sourceName();
        } catch (AbsentInformationException e) {
            return null;
        }
        String inPackage = packageOf(type);
        return found.computeIfAbsent(inPackage + "/" + name, key -> look(name, inPackage));
    }

    private String look(String name, String inPackage) {
        for (Path file : named) {
            if (name.equals(String.valueOf(file.getFileName())) && isOfPackage(file, inPackage)) {
                return file.toString();
            }
        }
        String folder = inPackage.replace('.', '/');
        for (Path root : roots) {
            for (String below : new String[] {"", "src/main/java", "src/test/java", "src"}) {
                Path file = root.resolve(below).resolve(folder).resolve(name);
                if (Files.isRegularFile(file) && isOfPackage(file, inPackage)) {
                    return file.normalize().toString();
                }
            }
        }
        for (Path file : index().getOrDefault(name, List.of())) {
            if (isOfPackage(file, inPackage)) {
                return file.toString();
            }
        }
        return null;
    }

    /** The package that a file declares. */
    String packageOf(String file) {
        String declared = packages.computeIfAbsent(Paths.get(file), Sources::declaredPackage);
        return declared.equals("?") ? "" : declared;
    }

    private static String packageOf(ReferenceType type) {
        int dot = type.name().lastIndexOf('.');
        return dot < 0 ? "" : type.name().substring(0, dot);
    }

    /** By the file's own word; by its folder where it can't be read. */
    private boolean isOfPackage(Path file, String wanted) {
        String declared = packages.computeIfAbsent(file, Sources::declaredPackage);
        if (declared.equals("?")) {
            String folder = String.valueOf(file.getParent());
            return wanted.isEmpty() || folder.endsWith("/" + wanted.replace('.', '/'));
        }
        return declared.equals(wanted);
    }

    private static String declaredPackage(Path file) {
        try (BufferedReader reader = Files.newBufferedReader(file, StandardCharsets.ISO_8859_1)) {
            String line = reader.readLine();
            for (int i = 0; line != null && i < 500; i++) {
                String text = line.trim();
                if (text.startsWith("package ")) {
                    return text.substring(8).split("[;/]", 2)[0].replace(" ", "");
                }
                if (text.startsWith("import ") || text.startsWith("public class ") || text.startsWith("class ")) {
                    return "";
                }
                line = reader.readLine();
            }
            return "";
        } catch (IOException e) {
            return "?";
        }
    }

    /** All source files below the roots, as many as can be looked at in a moment. */
    private Map<String, List<Path>> index() {
        if (index != null) {
            return index;
        }
        index = new HashMap<>();
        int[] left = {MOST_FILES};
        for (Path root : roots) {
            try {
                Files.walkFileTree(root, EnumSet.noneOf(java.nio.file.FileVisitOption.class), DEEPEST,
                        new SimpleFileVisitor<Path>() {
                    @Override
                    public FileVisitResult preVisitDirectory(Path folder, BasicFileAttributes attributes) {
                        String name = String.valueOf(folder.getFileName());
                        boolean skipped = !folder.equals(root)
                                && (name.startsWith(".") || name.equals("node_modules") || name.equals("target"));
                        return skipped ? FileVisitResult.SKIP_SUBTREE : FileVisitResult.CONTINUE;
                    }

                    @Override
                    public FileVisitResult visitFile(Path file, BasicFileAttributes attributes) {
                        String name = String.valueOf(file.getFileName());
                        for (String extension : EXTENSIONS) {
                            if (name.endsWith(extension)) {
                                index.computeIfAbsent(name, key -> new ArrayList<>()).add(file.normalize());
                            }
                        }
                        return --left[0] > 0 ? FileVisitResult.CONTINUE : FileVisitResult.TERMINATE;
                    }

                    @Override
                    public FileVisitResult visitFileFailed(Path file, IOException e) {
                        return FileVisitResult.CONTINUE;
                    }
                });
            } catch (IOException e) {
                // What can't be looked at has no sources to show.
            }
        }
        return index;
    }
}
