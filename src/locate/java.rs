//! Java: classes, jars, single files of source, and tests under Maven or Gradle.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::{Asked, Build, Plan, Program, check_file, find_word};
use crate::failure::Failure;
use crate::find;
use crate::paths::{Paths, create_private};

/// Stands for the option that lets the debugger in, where it is not the first one of `java` itself.
const AGENT: &str = "{jdwp}";

/// What runs a program, and what source files end in.
const COMMAND: &str = "java";
const EXTENSION: &str = "java";

/// Options of `java` whose value is the next word.
const WITH_VALUE: [&str; 14] = [
    "-cp",
    "-classpath",
    "--class-path",
    "-p",
    "--module-path",
    "--add-modules",
    "--add-opens",
    "--add-exports",
    "--add-reads",
    "--limit-modules",
    "--patch-module",
    "--upgrade-module-path",
    "--enable-native-access",
    "--source",
];

/// The file beside compiled classes that names the folder of their source; the adapter reads it.
const MARK: &str = ".sources";

/// Gives the virtual machines of Gradle's tests the option that the command line carries as a property.
const GRADLE_SCRIPT: &str = "allprojects { tasks.withType(Test) { jvmArgs System.getProperty('bugeye.jdwp'); outputs.upToDateWhen { false } } }\n";

pub fn locate(asked: &Asked) -> Result<Option<Plan>, Failure> {
    match asked.name() {
        name if name == COMMAND => {
            let java = find_word(&asked.words[0], asked.cwd, asked.env_path)?;
            check_file(&java)?;
            command(asked, &java, asked.args()).map(Some)
        }
        "mvn" | "mvnw" => maven(asked).map(Some),
        "gradle" | "gradlew" => gradle(asked).map(Some),
        name if name.ends_with(".java") => command(asked, &default_java(asked.env_path)?, asked.words).map(Some),
        name if name.ends_with(".jar") => {
            let mut words = vec!["-jar".to_string()];
            words.extend(asked.words.iter().cloned());
            command(asked, &default_java(asked.env_path)?, &words).map(Some)
        }
        _ => Ok(None),
    }
}

fn default_java(env_path: &str) -> Result<PathBuf, Failure> {
    find::on_path("java", env_path)
        .ok_or_else(|| Failure::refused("no java is on the PATH").hint("install a JDK: bugeye setup java"))
}

/// `java [options] CLASS ARGS`, `java [options] -jar FILE ARGS` or `java [options] FILE.java ARGS`.
fn command(asked: &Asked, java: &Path, args: &[String]) -> Result<Plan, Failure> {
    let mut options = Vec::new();
    let mut notes = Vec::new();
    let mut rest = args.iter();
    while let Some(word) = rest.next() {
        match word.as_str() {
            "-jar" => {
                let jar = rest.next().ok_or_else(|| Failure::usage("java -jar names no file"))?;
                let path = asked.cwd.join(jar);
                check_file(&path)?;
                options.push(word.clone());
                return Ok(run(java, options, path, rest.cloned().collect(), notes));
            }
            "-m" | "--module" => {
                let module = rest.next().ok_or_else(|| Failure::usage("java -m names no module"))?;
                options.push(word.clone());
                return Ok(run(java, options, module.into(), rest.cloned().collect(), notes));
            }
            option if WITH_VALUE.contains(&option) => {
                options.push(word.clone());
                options.extend(rest.next().cloned());
            }
            option
                if option.starts_with("-agentlib:jdwp") || option.starts_with("-Xrunjdwp") || option == "-Xdebug" =>
            {
                notes.push(format!("`{option}` is left out: the debugger brings its own"));
            }
            option if option.starts_with('-') || option.starts_with('@') => options.push(word.clone()),
            file if file.ends_with(".java") => {
                let path = asked.cwd.join(file);
                check_file(&path)?;
                return source(asked, java, &options, &path, rest.cloned().collect());
            }
            _ => return Ok(run(java, options, word.into(), rest.cloned().collect(), notes)),
        }
    }
    Err(Failure::usage("java without a class, a jar or a file to run can't be debugged")
        .hint("bugeye run -- java -cp classes Main")
        .hint("bugeye run -- java Main.java"))
}

fn run(java: &Path, options: Vec<String>, program: PathBuf, args: Vec<String>, notes: Vec<String>) -> Plan {
    let mut interpreter = vec![java.to_string_lossy().into_owned()];
    interpreter.extend(options);
    Plan::Debug(Program { language: "java", interpreter, program, args, notes, ..Program::default() })
}

/// A file of source that `java` would compile and run in memory, without the names of local variables: it is compiled with
/// them first, into a folder of ours that serves until the file or its neighbours change.
fn source(asked: &Asked, java: &Path, options: &[String], file: &Path, args: Vec<String>) -> Result<Plan, Failure> {
    let text =
        std::fs::read_to_string(file).map_err(|error| Failure::io(format!("read {}", file.display()), &error))?;
    let folder = file.parent().unwrap_or(asked.cwd).to_path_buf();
    let main = main_class(&text, file);
    let classes = Paths::locate()?.runtime.join("java").join(format!("{:016x}", key(file, &folder, options)));
    let own_path = value_of(options, &["-cp", "-classpath", "--class-path"]);
    let class_path = match &own_path {
        Some(path) => format!("{}:{path}", classes.display()),
        None => classes.display().to_string(),
    };
    let mut run_options: Vec<String> = without(options, &["-cp", "-classpath", "--class-path", "--source"]);
    run_options.extend(["-cp".into(), class_path]);
    let plan = run(java, run_options, main.into(), args, Vec::new());
    if classes.join(MARK).is_file() {
        return Ok(plan);
    }
    create_private(&classes)?;
    let real = std::fs::canonicalize(java).unwrap_or_else(|_| java.to_path_buf());
    let compiler = real.parent().map(|folder| folder.join("javac")).filter(|path| path.is_file());
    let compiler = compiler.or_else(|| find::on_path("javac", asked.env_path)).ok_or_else(|| {
        Failure::refused(format!("{} is a Java without a compiler", java.display()))
            .hint("install a JDK: bugeye setup java")
    })?;
    let mut argv = vec![compiler.to_string_lossy().into_owned()];
    argv.extend(["-g", "-proc:none", "-d"].map(Into::into));
    argv.extend([classes.to_string_lossy().into_owned(), "-sourcepath".into(), folder.to_string_lossy().into_owned()]);
    if let Some(path) = own_path {
        argv.extend(["-cp".into(), path]);
    }
    if let Some(version) = value_of(options, &["--source"]) {
        argv.extend(["--source".into(), version]);
    }
    argv.extend(options.iter().filter(|option| *option == "--enable-preview").cloned());
    argv.push(file.to_string_lossy().into_owned());
    let then = Box::new(move |_: &str| {
        std::fs::write(classes.join(MARK), format!("{}\n", folder.display()))
            .map_err(|error| Failure::io(format!("write to {}", classes.display()), &error))?;
        Ok(plan)
    });
    Ok(Plan::Build(Build { argv, cwd: asked.cwd.to_path_buf(), env: Vec::new(), then }))
}

/// The first class of a file, which is the one that `java FILE` runs, with its package.
fn main_class(text: &str, file: &Path) -> String {
    let bare = without_comments(text);
    let words: Vec<&str> = bare.split(|c: char| !c.is_alphanumeric() && !"_$.@".contains(c)).collect();
    let after = |kinds: &[&str]| {
        let kind = words.iter().position(|word| kinds.contains(word))?;
        words[kind + 1..].iter().find(|word| !word.is_empty()).copied()
    };
    let stem = file.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let class = after(&["class", "record", "enum", "interface"]).unwrap_or(&stem);
    match after(&["package"]).filter(|_| bare.trim_start().starts_with("package ")) {
        Some(package) => format!("{package}.{class}"),
        None => class.to_string(),
    }
}

fn without_comments(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(start) = rest.find("/*").into_iter().chain(rest.find("//")).min() {
        out.push_str(&rest[..start]);
        let end = if rest[start..].starts_with("/*") {
            rest[start..].find("*/").map(|end| start + end + 2)
        } else {
            rest[start..].find('\n').map(|end| start + end)
        };
        rest = end.map_or("", |end| &rest[end..]);
    }
    out.push_str(rest);
    out
}

/// Changes with the options, and with every source file of the folder.
fn key(file: &Path, folder: &Path, options: &[String]) -> u64 {
    let mut hasher = DefaultHasher::new();
    (file, options).hash(&mut hasher);
    let mut files: Vec<(PathBuf, u64, Option<SystemTime>)> = std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| entry.path().extension().is_some_and(|extension| extension == EXTENSION))
        .filter_map(|entry| entry.metadata().ok().map(|data| (entry.path(), data.len(), data.modified().ok())))
        .collect();
    files.sort();
    files.hash(&mut hasher);
    hasher.finish()
}

fn value_of(options: &[String], names: &[&str]) -> Option<String> {
    let at = options.iter().position(|option| names.contains(&option.as_str()))?;
    options.get(at + 1).cloned()
}

fn without(options: &[String], names: &[&str]) -> Vec<String> {
    let mut kept = Vec::new();
    let mut rest = options.iter();
    while let Some(option) = rest.next() {
        if names.contains(&option.as_str()) {
            rest.next();
        } else {
            kept.push(option.clone());
        }
    }
    kept
}

/// `mvn … test …`: what it compiles is compiled first, then the virtual machine that it starts for the tests is the one
/// that is debugged.
fn maven(asked: &Asked) -> Result<Plan, Failure> {
    let tool = find_word(&asked.words[0], asked.cwd, asked.env_path)?;
    check_file(&tool)?;
    let phases = ["test", "package", "verify", "install", "surefire:test"];
    if !asked.args().iter().any(|word| phases.contains(&word.as_str())) {
        return Err(Failure::unsupported(format!("`{}` starts no tests to debug", asked.words.join(" ")))
            .hint("one test: bugeye run -- mvn test -Dtest=NAME")
            .hint("a program: mvn compile, then bugeye run -- java -cp target/classes Main"));
    }
    let tool = tool.to_string_lossy().into_owned();
    let compile = |word: &String| if phases.contains(&word.as_str()) { "test-compile".into() } else { word.clone() };
    let mut argv = vec![tool.clone(), "-q".into()];
    argv.extend(asked.args().iter().filter(|word| *word != "-q").map(compile));
    let program = tests(asked, tool, vec!["-B".into(), format!("-Dmaven.surefire.debug={AGENT}")]);
    let then = Box::new(move |_: &str| Ok(Plan::Debug(program)));
    Ok(Plan::Build(Build { argv, cwd: asked.cwd.to_path_buf(), env: Vec::new(), then }))
}

/// A build tool whose tests run in a virtual machine that it starts.
fn tests(asked: &Asked, tool: String, options: Vec<String>) -> Program {
    let mut interpreter = vec![tool];
    interpreter.extend(options);
    let (program, args) = asked
        .args()
        .split_first()
        .map_or((PathBuf::new(), Vec::new()), |(first, args)| (PathBuf::from(first), args.to_vec()));
    Program { language: "java", interpreter, program, args, catch: vec!["userUnhandled".into()], ..Program::default() }
}

/// `gradle … test …`, compiled first as with Maven.
fn gradle(asked: &Asked) -> Result<Plan, Failure> {
    let tool = find_word(&asked.words[0], asked.cwd, asked.env_path)?;
    check_file(&tool)?;
    let is_test = |word: &String| word == "test" || word.ends_with(":test");
    if !asked.args().iter().any(is_test) {
        return Err(Failure::unsupported(format!("`{}` starts no tests to debug", asked.words.join(" ")))
            .hint("one test: bugeye run -- gradle test --tests NAME")
            .hint("a program: gradle classes, then bugeye run -- java -cp build/classes/java/main Main"));
    }
    let folder = Paths::locate()?.runtime.join("java");
    create_private(&folder)?;
    let script = folder.join("tests.gradle");
    std::fs::write(&script, GRADLE_SCRIPT)
        .map_err(|error| Failure::io(format!("write {}", script.display()), &error))?;
    let tool = tool.to_string_lossy().into_owned();
    let mut argv = vec![tool.clone(), "-q".into()];
    let mut rest = asked.args().iter();
    while let Some(word) = rest.next() {
        match word.as_str() {
            "--tests" => {
                rest.next();
            }
            _ if is_test(word) => argv.push(format!("{}testClasses", word.strip_suffix("test").unwrap_or_default())),
            _ => argv.push(word.clone()),
        }
    }
    let options = vec![
        // The virtual machine of the tests is then below us, and ends with us.
        "--no-daemon".into(),
        "--init-script".into(),
        script.to_string_lossy().into_owned(),
        format!("-Dbugeye.jdwp={AGENT}"),
    ];
    let program = tests(asked, tool, options);
    let then = Box::new(move |_: &str| Ok(Plan::Debug(program)));
    Ok(Plan::Build(Build { argv, cwd: asked.cwd.to_path_buf(), env: Vec::new(), then }))
}

/// The command line that runs one test: `Class`, `Class#method`, `Class.method` or a method alone.
pub fn test(project: &Path, name: &str, _: &Asked) -> Result<Option<Vec<String>>, Failure> {
    let maven = project.join("pom.xml").is_file();
    let gradle = ["build.gradle", "build.gradle.kts"].iter().any(|file| project.join(file).is_file());
    if !maven && !gradle {
        return Ok(None);
    }
    let Some((class, method)) = find_test(&project.join("src/test"), name) else {
        return Err(Failure::not_found(format!("no test class below src/test has `{name}`"))
            .hint("name a class, or a class and a method: bugeye test ShopTest#total"));
    };
    let tool = |wrapper: &str, tool: &str| match project.join(wrapper).is_file() {
        true => project.join(wrapper).to_string_lossy().into_owned(),
        false => tool.to_string(),
    };
    let words = if maven {
        let test = method.map_or_else(|| class.clone(), |method| format!("{class}#{method}"));
        vec![tool("mvnw", "mvn"), "-q".into(), "test".into(), format!("-Dtest={test}")]
    } else {
        let test = method.map_or_else(|| class.clone(), |method| format!("{class}.{method}"));
        vec![tool("gradlew", "gradle"), "test".into(), "--tests".into(), test]
    };
    Ok(Some(words))
}

/// The class and the method that a test's name means, among the files of a folder.
fn find_test(folder: &Path, name: &str) -> Option<(String, Option<String>)> {
    let (class, method) = match name.rsplit_once('#').or_else(|| name.rsplit_once("::")) {
        Some((class, method)) => (Some(class), Some(method)),
        None => (None, None),
    };
    let simple = |class: &str| class.rsplit('.').next().unwrap_or(class).to_string();
    let mut folders = vec![folder.to_path_buf()];
    let mut left = 5000;
    let mut by_method = None;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            left -= 1;
            let path = entry.path();
            if left == 0 {
                return by_method;
            }
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let is_source = path.extension().is_some_and(|extension| extension == EXTENSION || extension == "kt");
            let Some(stem) = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).filter(|_| is_source)
            else {
                continue;
            };
            if class.is_some_and(|class| simple(class) == stem) {
                return Some((stem, method.map(Into::into)));
            }
            if class.is_none() && simple(name) == stem {
                return Some((stem, None));
            }
            let has = |method: &str| {
                let text = std::fs::read_to_string(&path).unwrap_or_default();
                text.lines().any(|line| line.contains(&format!(" {method}(")) && !line.contains(';'))
            };
            match name.rsplit_once('.') {
                Some((class, method)) if simple(class) == stem && has(method) => {
                    return Some((stem, Some(method.into())));
                }
                None if class.is_none() && by_method.is_none() && has(name) => {
                    by_method = Some((stem, Some(name.into())));
                }
                _ => {}
            }
        }
    }
    by_method
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(Into::into).collect()
    }

    fn plan(line: &str, cwd: &Path) -> Result<Plan, Failure> {
        let path = std::env::var("PATH").unwrap();
        let words = words(line);
        locate(&Asked { words: &words, cwd, env: &[], env_path: &path }).map(Option::unwrap)
    }

    fn program(line: &str, cwd: &Path) -> Program {
        match plan(line, cwd).unwrap() {
            Plan::Debug(program) => program,
            Plan::Build(build) => panic!("{build:?}"),
        }
    }

    #[test]
    fn command_lines_are_taken_apart() {
        let folder = tempfile::tempdir().unwrap();
        let cwd = folder.path();
        std::fs::write(cwd.join("x.jar"), "").unwrap();
        let class = program("java -cp a:b -ea -Xdebug shop.Main 1 -x", cwd);
        assert_eq!(class.interpreter[1..], ["-cp", "a:b", "-ea"]);
        assert_eq!((class.program, class.args), (PathBuf::from("shop.Main"), words("1 -x")));
        assert_eq!(class.notes.len(), 1);
        let jar = program("java -Xmx1g -jar x.jar 2", cwd);
        assert_eq!((jar.interpreter[1..].to_vec(), jar.program), (words("-Xmx1g -jar"), cwd.join("x.jar")));
        assert_eq!(program("./x.jar 2", cwd).interpreter[1..], ["-jar"]);
        assert!(plan("java -ea", cwd).unwrap_err().message.contains("without a class"));
        assert!(plan("java -jar y.jar", cwd).unwrap_err().message.contains("there is no"));
    }

    #[test]
    fn the_first_class_of_a_file_is_run() {
        let file = Path::new("/p/Odd.java");
        assert_eq!(main_class("// class A\n/* class B */ package a.b;\nfinal class C {} class D {}", file), "a.b.C");
        assert_eq!(main_class("import x.y;\npublic record R(int a) {}", file), "R");
        assert_eq!(main_class("void main() {}", file), "Odd");
    }

    #[test]
    fn tests_are_found_by_class_and_by_method() {
        let folder = tempfile::tempdir().unwrap();
        let tests = folder.path().join("src/test/java/shop");
        std::fs::create_dir_all(&tests).unwrap();
        std::fs::write(tests.join("CartTest.java"), "class CartTest {\n  @Test void adds() {\n  }\n}\n").unwrap();
        let found = |name: &str| find_test(&folder.path().join("src/test"), name);
        let adds = Some(("CartTest".to_string(), Some("adds".to_string())));
        assert_eq!(found("adds"), adds);
        assert_eq!(found("CartTest#adds"), adds);
        assert_eq!(found("shop.CartTest.adds"), adds);
        assert_eq!(found("CartTest"), Some(("CartTest".into(), None)));
        assert_eq!(found("shop.CartTest"), Some(("CartTest".into(), None)));
        assert_eq!(found("removes"), None);
    }
}
