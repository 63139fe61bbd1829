//! The programs under the debugger, compiled once, and the adapter that has to be installed, installed once; shared by
//! tests that run at the same time, in one process or in several.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")
}

/// Where a language's fixtures are.
pub fn folder(language: &str) -> PathBuf {
    root().join(language)
}

/// What is made here lives as long as the build folder.
fn made(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("debug");
    fs::create_dir_all(&folder).unwrap();
    folder.join(name)
}

/// Makes something once, whoever else wants it at the same time.
fn once(lock: &str, is_there: impl Fn() -> bool, make: impl FnOnce()) {
    if is_there() {
        return;
    }
    let lock = File::create(made(&format!("{lock}.lock"))).unwrap();
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive).unwrap();
    if !is_there() {
        make();
    }
}

/// The folder that `bugeye setup` installed debugpy into.
pub fn debugpy() -> PathBuf {
    installed("debugpy", "interpreter")
}

/// The folder that `bugeye setup` installed an adapter into; `proof` is a file in it.
pub fn installed(adapter: &str, proof: &str) -> PathBuf {
    let home = made("adapters");
    let folder = home.join("data/adapters").join(adapter);
    once(
        "adapters",
        || folder.join(proof).is_file(),
        || {
            let mut command = Command::new(env!("CARGO_BIN_EXE_bugeye"));
            let done = command.args(["setup", adapter, "--yes", "--force"]).env("BUGEYE_HOME", &home).output().unwrap();
            assert!(done.status.success(), "{adapter} can't be installed: {}", String::from_utf8_lossy(&done.stderr));
        },
    );
    folder
}

/// The folder of Bugeye's own adapter for Java, compiled by its first start.
pub fn java() -> PathBuf {
    static FOLDER: std::sync::OnceLock<PathBuf> = std::sync::OnceLock::new();
    let compile = || {
        let home = made("adapters");
        let mut command = Command::new(env!("CARGO_BIN_EXE_bugeye"));
        let command = command.args(["adapter", "java", "--", "java"]).env("BUGEYE_HOME", &home);
        let done = command.stdin(std::process::Stdio::null()).output().unwrap();
        assert!(done.status.success(), "no adapter for Java: {}", String::from_utf8_lossy(&done.stderr));
        home.join("data/adapters/java")
    };
    FOLDER.get_or_init(compile).clone()
}

/// A folder with an environment of Python that has pytest.
pub fn pytest() -> PathBuf {
    let folder = made("pytest");
    once(
        "pytest",
        || folder.join("done").is_file(),
        || {
            let python = folder.join("bin/python");
            let run = |command: &mut Command| {
                let done = command.output().unwrap();
                assert!(done.status.success(), "pytest can't be installed: {}", String::from_utf8_lossy(&done.stderr));
            };
            run(Command::new("python3").args(["-m", "venv"]).arg(&folder));
            run(Command::new(python).args(["-m", "pip", "install", "--quiet", "pytest==8.4.2"]));
            fs::write(folder.join("done"), "").unwrap();
        },
    );
    folder
}

/// A folder with the packages that the project `js` depends on.
pub fn node_modules() -> PathBuf {
    let folder = made("js");
    let (manifest, installed) = (root().join("projects/js/package.json"), folder.join("package.json"));
    once(
        "js",
        || fs::read(&manifest).ok() == fs::read(folder.join("done")).ok(),
        || {
            fs::create_dir_all(&folder).unwrap();
            fs::copy(&manifest, installed).unwrap();
            let mut command = Command::new("npm");
            let done = command.args(["install", "--no-audit", "--no-fund"]).current_dir(&folder).output().unwrap();
            assert!(done.status.success(), "npm install: {}", String::from_utf8_lossy(&done.stderr));
            fs::copy(&manifest, folder.join("done")).unwrap();
        },
    );
    folder.join("node_modules")
}

/// Where projects of Cargo are built, so that what is the same is built once.
pub fn cargo_target() -> PathBuf {
    made("cargo")
}

/// A copy of a small project (`projects/NAME`) at a place of the test's own.
pub fn copy_project(name: &str, to: &Path) {
    let mut folders = vec![(root().join("projects").join(name), to.to_path_buf())];
    while let Some((from, to)) = folders.pop() {
        fs::create_dir_all(&to).unwrap();
        for entry in fs::read_dir(from).unwrap() {
            let entry = entry.unwrap();
            let target = to.join(entry.file_name());
            if entry.path().is_dir() {
                folders.push((entry.path(), target));
            } else {
                fs::copy(entry.path(), target).unwrap();
            }
        }
    }
}

/// The program made from a fixture (`c/loop_basic.c`).
pub fn program(name: &str) -> String {
    let source = root().join(name);
    let (language, file) = name.split_once('/').unwrap();
    let stem = Path::new(file).file_stem().unwrap().to_str().unwrap();
    if ["python", "js", "ts", "ruby", "php", "perl"].contains(&language) {
        return file.to_string();
    }
    let binary = made(&format!("{language}-{stem}{}", if language == "java" { ".jar" } else { "" }));
    let time = |path: &Path| fs::metadata(path).and_then(|data| data.modified()).unwrap_or(SystemTime::UNIX_EPOCH);
    once(&format!("{language}-{stem}"), || time(&binary) > time(&source), || compile(language, &source, &binary));
    binary.to_str().unwrap().to_string()
}

fn compile(language: &str, source: &Path, binary: &Path) {
    if language == "java" {
        return compile_jar(source, binary);
    }
    if language == "go" {
        return compile_go(source, binary);
    }
    let plain = ["-O0", "-g", "-fno-omit-frame-pointer", "-fno-inline", "-Wall", "-pthread"];
    let (compiler, flags) = match language {
        "c" => ("cc", &plain[..]),
        "cpp" => ("c++", &["-std=c++17", "-O0", "-g", "-fno-omit-frame-pointer", "-fno-inline", "-Wall"][..]),
        _ => ("rustc", &["-g"][..]),
    };
    let new = binary.with_extension("new");
    let done = Command::new(compiler).args(flags).arg("-o").arg(&new).arg(source).output().unwrap();
    assert!(done.status.success(), "{}: {}", source.display(), String::from_utf8_lossy(&done.stderr));
    fs::rename(new, binary).unwrap();
}

fn compile_jar(source: &Path, jar: &Path) {
    let classes = jar.with_extension("classes");
    let new = jar.with_extension("new");
    let done = Command::new("javac").arg("-g").arg("-d").arg(&classes).arg(source).output().unwrap();
    assert!(done.status.success(), "{}: {}", source.display(), String::from_utf8_lossy(&done.stderr));
    let stem = source.file_stem().unwrap();
    let mut command = Command::new("jar");
    command.arg("--create").arg("--file").arg(&new).arg("--main-class").arg(stem).arg("-C").arg(&classes).arg(".");
    let done = command.output().unwrap();
    assert!(done.status.success(), "{}: {}", source.display(), String::from_utf8_lossy(&done.stderr));
    fs::rename(new, jar).unwrap();
}

fn compile_go(source: &Path, binary: &Path) {
    let new = binary.with_extension("new");
    let mut command = Command::new("go");
    command.args(["build", "-gcflags=all=-N -l", "-o"]).arg(&new).arg(source);
    let done = command.output().unwrap();
    assert!(done.status.success(), "{}: {}", source.display(), String::from_utf8_lossy(&done.stderr));
    fs::rename(new, binary).unwrap();
}

/// The line of a fixture that carries `BREAK:mark`.
pub fn line(name: &str, mark: &str) -> u32 {
    let text = fs::read_to_string(root().join(name)).unwrap();
    let mark = format!("BREAK:{mark}");
    let found = text.lines().position(|line| line.split_whitespace().any(|word| word == mark));
    u32::try_from(found.unwrap_or_else(|| panic!("no {mark} in {name}")) + 1).unwrap()
}

/// The place of a mark, as it is typed in the fixture's folder: `loop_basic.c:6`.
pub fn at(name: &str, mark: &str) -> String {
    let (_, file) = name.split_once('/').unwrap();
    format!("{file}:{}", line(name, mark))
}
