//! What a command line is, found out by looking at the files it names: which language, which interpreter, and whether
//! it can be debugged at all.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use crate::failure::Failure;
use crate::find;

/// A command line that can be debugged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// `c` stands for whatever is native and not known better.
    pub language: &'static str,
    pub interpreter: Vec<String>,
    pub program: PathBuf,
    pub args: Vec<String>,
    /// What the user should know before being surprised.
    pub notes: Vec<String>,
}

/// Finds out what `words` starts, as a shell in `cwd` with this PATH would.
pub fn recognise(words: &[String], cwd: &Path, env_path: &str) -> Result<Program, Failure> {
    let Some((first, args)) = words.split_first().filter(|(first, _)| !first.is_empty()) else {
        return Err(Failure::usage("nothing to debug was named")
            .hint("bugeye start ./program -- ARGS")
            .hint("bugeye run -- python app.py"));
    };
    if is_python(first) {
        return python_command(first, args, cwd, env_path);
    }
    let path = locate(first, cwd, env_path)?;
    check_file(&path)?;
    let mut head = [0u8; 256];
    let read = File::open(&path).and_then(|mut file| file.read(&mut head));
    let head = &head[..read.map_err(|error| Failure::io(format!("read {}", path.display()), &error))?];
    if path.extension().is_some_and(|extension| extension == "py") {
        let interpreter = shebang(head).filter(|words| words.iter().any(|word| is_python(word)));
        let interpreter = match interpreter {
            Some(words) => python_of(&words, env_path)?,
            None => vec![default_python(env_path)?],
        };
        return Ok(python(interpreter, path, args));
    }
    if let Some(words) = shebang(head) {
        if words.iter().any(|word| is_python(word)) {
            return Ok(python(python_of(&words, env_path)?, path, args));
        }
        return Err(Failure::unsupported(format!(
            "{} is a script for {}, which no adapter here debugs",
            path.display(),
            words.join(" ")
        )));
    }
    check_executable(&path)?;
    native(path, head, args)
}

fn native(path: PathBuf, head: &[u8], args: &[String]) -> Result<Program, Failure> {
    let mut notes = Vec::new();
    let mut language = "c";
    if head.starts_with(b"\x7fELF") {
        let elf = Elf::read(&path).map_err(|error| Failure::io(format!("read {}", path.display()), &error))?;
        if !elf.has_debug_info {
            notes.push("no debug information: lines and variables can't be shown; build it with -g".into());
        }
        if elf.is_rust {
            language = "rust";
        }
        if elf.is_go {
            language = "go";
        }
    } else if !is_foreign_executable(head) {
        return Err(Failure::refused(format!("{} is neither a program nor a script with a #! line", path.display()))
            .hint("name the program that runs it: bugeye start -- INTERPRETER FILE"));
    }
    Ok(Program { language, interpreter: Vec::new(), program: path, args: args.to_vec(), notes })
}

/// Mach-O and PE, which are looked at no further.
fn is_foreign_executable(head: &[u8]) -> bool {
    const MAGIC: [&[u8]; 4] = [b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe", b"\xce\xfa\xed\xfe", b"MZ"];
    MAGIC.iter().any(|magic| head.starts_with(magic))
}

fn python(interpreter: Vec<String>, program: PathBuf, args: &[String]) -> Program {
    Program { language: "python", interpreter, program, args: args.to_vec(), notes: Vec::new() }
}

/// `python`, `python3`, `python3.12`, with or without a folder.
fn is_python(word: &str) -> bool {
    let name = word.rsplit('/').next().unwrap_or(word);
    name.strip_prefix("python").is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.'))
}

/// `python [options] FILE ARGS` or `python -m MODULE ARGS`.
fn python_command(first: &str, args: &[String], cwd: &Path, env_path: &str) -> Result<Program, Failure> {
    let interpreter = locate(first, cwd, env_path)?;
    check_file(&interpreter)?;
    let mut words = vec![interpreter.to_string_lossy().into_owned()];
    let mut rest = args.iter();
    while let Some(word) = rest.next() {
        match word.as_str() {
            "-m" => {
                let module = rest.next().ok_or_else(|| Failure::usage("python -m names no module"))?;
                let args: Vec<String> = rest.cloned().collect();
                return Ok(python(words, PathBuf::from(format!("-m {module}")), &args));
            }
            "-c" => {
                return Err(
                    Failure::usage("python -c has no file to set breakpoints in").hint("put the code into a file")
                );
            }
            "-X" | "-W" => {
                words.push(word.clone());
                words.extend(rest.next().cloned());
            }
            option if option.starts_with('-') && option.len() > 1 => words.push(word.clone()),
            file => {
                let path = cwd.join(file);
                check_file(&path)?;
                let args: Vec<String> = rest.cloned().collect();
                return Ok(python(words, path, &args));
            }
        }
    }
    Err(Failure::usage("python without a file to run can't be debugged").hint("bugeye run -- python app.py"))
}

fn default_python(env_path: &str) -> Result<String, Failure> {
    find::interpreter(env_path).map(|path| path.to_string_lossy().into_owned()).ok_or_else(|| {
        Failure::refused("no python3 is on the PATH").hint("name one: bugeye run -- /path/to/python3 FILE")
    })
}

/// The interpreter a `#!` line names; `/usr/bin/env python3` is looked up on the PATH.
fn python_of(words: &[String], env_path: &str) -> Result<Vec<String>, Failure> {
    let by_env = words.first().is_some_and(|word| word.ends_with("/env"));
    if !by_env {
        return Ok(words.to_vec());
    }
    let name = words.iter().skip(1).find(|word| is_python(word)).map_or("python3", String::as_str);
    match find::on_path(name, env_path) {
        Some(path) => Ok(vec![path.to_string_lossy().into_owned()]),
        None => default_python(env_path).map(|python| vec![python]),
    }
}

fn shebang(head: &[u8]) -> Option<Vec<String>> {
    let line = head.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let words: Vec<String> = String::from_utf8_lossy(line).split_whitespace().map(Into::into).collect();
    (!words.is_empty()).then_some(words)
}

/// A name with a slash is a path; another is a file here, or a program on the PATH.
fn locate(word: &str, cwd: &Path, env_path: &str) -> Result<PathBuf, Failure> {
    let here = std::path::absolute(cwd.join(word)).unwrap_or_else(|_| cwd.join(word));
    if word.contains('/') || here.is_file() {
        return Ok(here);
    }
    if let Some(found) = find::on_path(word, env_path) {
        return Ok(found);
    }
    let mut failure = missing(&here);
    if here.is_dir() {
        failure = Failure::refused(format!("{} is a directory", here.display())).hint("name the program in it");
    }
    Err(failure)
}

fn missing(path: &Path) -> Failure {
    let mut failure = Failure::not_found(format!("there is no {}", path.display()));
    if let (Some(parent), Some(name)) = (path.parent(), path.file_name().and_then(|name| name.to_str()))
        && let Ok(entries) = std::fs::read_dir(parent)
    {
        let names: Vec<String> =
            entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).take(2000).collect();
        if let Some(near) = crate::nearest::nearest(name, names.iter().map(String::as_str)) {
            failure = failure.hint(format!("did you mean {}?", parent.join(near).display()));
        }
    }
    failure.hint("is it built? paths are relative to the current directory")
}

fn check_file(path: &Path) -> Result<(), Failure> {
    let Ok(data) = path.metadata() else { return Err(missing(path)) };
    if data.is_dir() {
        return Err(Failure::refused(format!("{} is a directory", path.display())).hint("name the program in it"));
    }
    if !data.is_file() {
        return Err(Failure::refused(format!("{} is no regular file", path.display())).hint("name a program"));
    }
    Ok(())
}

/// How a source file becomes a program, by its extension.
fn build_command(extension: &str) -> Option<&'static str> {
    match extension {
        "c" => Some("cc -g -O0 -o program FILE.c"),
        "cc" | "cpp" | "cxx" => Some("c++ -g -O0 -o program FILE.cpp"),
        "rs" => Some("cargo build, or rustc -g FILE.rs"),
        _ => None,
    }
}

fn check_executable(path: &Path) -> Result<(), Failure> {
    let executable = path.metadata().is_ok_and(|data| data.permissions().mode() & 0o111 != 0);
    if executable {
        return Ok(());
    }
    let shown = path.display();
    if let Some(build) = path.extension().and_then(|extension| extension.to_str()).and_then(build_command) {
        return Err(Failure::refused(format!("{shown} is source code, not a program"))
            .hint(format!("build it with debug information first: {build}")));
    }
    Err(Failure::refused(format!("{shown} is not executable")).hint(format!("chmod +x {shown}")))
}

/// What the section names of an ELF file tell.
struct Elf {
    has_debug_info: bool,
    is_rust: bool,
    is_go: bool,
}

impl Elf {
    /// Reads the section table of a 64-bit file; others are taken as having what is needed.
    fn read(path: &Path) -> std::io::Result<Self> {
        let unknown = Self { has_debug_info: true, is_rust: false, is_go: false };
        let mut file = File::open(path)?;
        let mut head = [0u8; 64];
        if file.read(&mut head)? < 64 || head[4] != 2 || head[5] != 1 {
            return Ok(unknown);
        }
        let table = word(&head, 40, 8);
        let (size, count, names) = (word(&head, 58, 2), word(&head, 60, 2), word(&head, 62, 2));
        if size < 64 || count == 0 || size * count > 1 << 20 {
            return Ok(unknown);
        }
        let sections = read_at(&mut file, table, size * count)?;
        let section = |index: u64, field: usize| {
            let start = usize::try_from(index * size).unwrap_or(usize::MAX).saturating_add(field);
            sections.get(start..).map_or(0, |bytes| word(bytes, 0, if field == 0 { 4 } else { 8 }))
        };
        let strings = read_at(&mut file, section(names, 24), section(names, 32).min(1 << 16))?;
        let mut elf = Self { has_debug_info: false, is_rust: false, is_go: false };
        for index in 0..count {
            let start = usize::try_from(section(index, 0)).unwrap_or(usize::MAX);
            let name = strings.get(start..).unwrap_or_default().split(|byte| *byte == 0).next().unwrap_or_default();
            match name {
                b".debug_info" | b".zdebug_info" | b".gnu_debuglink" | b".debug_line" => elf.has_debug_info = true,
                b".go.buildinfo" | b".note.go.buildid" => elf.is_go = true,
                b".comment" => {
                    let text = read_at(&mut file, section(index, 24), section(index, 32).min(1 << 16))?;
                    elf.is_rust = text.windows(14).any(|window| window == b"rustc version ");
                }
                _ => {}
            }
        }
        Ok(elf)
    }
}

fn word(bytes: &[u8], at: usize, length: usize) -> u64 {
    bytes.get(at..at + length).unwrap_or_default().iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte))
}

fn read_at(file: &mut File, at: u64, length: u64) -> std::io::Result<Vec<u8>> {
    file.seek(SeekFrom::Start(at))?;
    let mut bytes = Vec::new();
    file.take(length).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(Into::into).collect()
    }

    #[test]
    fn python_command_lines_are_taken_apart() {
        let folder = tempfile::tempdir().unwrap();
        let cwd = folder.path();
        std::fs::write(cwd.join("a.py"), "print()\n").unwrap();
        let path = std::env::var("PATH").unwrap();
        let program = recognise(&words("python3 -u -X dev a.py 1 2"), cwd, &path).unwrap();
        assert_eq!(program.interpreter[1..], ["-u", "-X", "dev"]);
        assert_eq!((program.program, program.args), (cwd.join("a.py"), words("1 2")));
        let module = recognise(&words("python3 -m json.tool x"), cwd, &path).unwrap();
        assert_eq!((module.program, module.args), (PathBuf::from("-m json.tool"), words("x")));
        assert_eq!(recognise(&words("a.py"), cwd, &path).unwrap().language, "python");
    }

    #[test]
    fn what_is_no_program_is_said_to_be_none() {
        let folder = tempfile::tempdir().unwrap();
        let cwd = folder.path();
        std::fs::write(cwd.join("text"), "hello\n").unwrap();
        std::fs::create_dir(cwd.join("dir")).unwrap();
        let said = |line: &str| recognise(&words(line), cwd, "").unwrap_err();
        assert!(said("./texd").hints[0].contains("did you mean"), "{:?}", said("./texd"));
        assert!(said("./dir").message.contains("is a directory"));
        assert!(said("./text").message.contains("not executable"));
        std::fs::set_permissions(cwd.join("text"), std::fs::Permissions::from_mode(0o755)).unwrap();
        assert!(said("./text").message.contains("neither a program nor a script"));
        assert_eq!(recognise(&[], cwd, "").unwrap_err().kind, crate::failure::Kind::Usage);
    }

    #[test]
    fn this_test_is_a_rust_program() {
        let exe = std::env::current_exe().unwrap();
        let program = recognise(&[exe.to_string_lossy().into_owned()], Path::new("/"), "").unwrap();
        assert_eq!(program.language, "rust");
    }
}
