//! What a command line is, found out by looking at the files it names: which language, which interpreter, what has to be
//! built first, and which program is the one to debug.
//!
//! One file per family of tools, one line each in [`LOCATORS`]. A locator reads files and runs nothing: what must be run
//! to know more is a [`Build`], which the hub carries out with the caller's environment, and which goes on from its output.

mod cargo;
mod cmake;
mod go;
mod java;
mod js;
mod make;
mod native;
mod perl;
mod php;
mod python;
mod ruby;
pub mod scan;
mod script;

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use crate::failure::Failure;
use crate::find;

pub use native::NO_DEBUG_INFO;

/// A command line, and where it was typed.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    pub words: &'a [String],
    pub cwd: &'a Path,
    pub env: &'a [(String, String)],
    /// The PATH of that environment.
    pub env_path: &'a str,
}

/// The same, to be kept until a build is done.
#[derive(Debug, Clone)]
pub struct Kept {
    pub words: Vec<String>,
    pub cwd: PathBuf,
    pub env: Vec<(String, String)>,
    pub env_path: String,
}

/// A program that can be debugged.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Program {
    /// `c` stands for whatever is native and not known better.
    pub language: &'static str,
    /// The interpreter's command line before the script; empty for an executable.
    pub interpreter: Vec<String>,
    pub program: PathBuf,
    pub args: Vec<String>,
    /// Set on top of the caller's environment.
    pub env: Vec<(String, String)>,
    /// Where it runs, if not where the command was typed.
    pub cwd: Option<PathBuf>,
    /// Exceptions to stop at when the user named none (`panic`, `raised`).
    pub catch: Vec<String>,
    /// What the user should know before being surprised.
    pub notes: Vec<String>,
}

/// What to do for a command line.
#[derive(Debug)]
pub enum Plan {
    Debug(Program),
    Build(Build),
}

/// A command to run first. When it fails, its own output is the answer.
pub struct Build {
    pub argv: Vec<String>,
    pub cwd: PathBuf,
    /// Set on top of the caller's environment.
    pub env: Vec<(String, String)>,
    /// What to do next, by what it wrote to its standard output.
    pub then: Then,
}

/// Goes on from a build's standard output.
pub type Then = Box<dyn FnOnce(&str) -> Result<Plan, Failure> + Send>;

impl Plan {
    /// The same, with more variables; those that the plan itself sets stay.
    #[must_use]
    pub fn with_env(self, env: Vec<(String, String)>) -> Self {
        let more = |mut own: Vec<(String, String)>, env: &[(String, String)]| {
            let new: Vec<_> =
                env.iter().filter(|(name, _)| own.iter().all(|(known, _)| known != name)).cloned().collect();
            own.extend(new);
            own
        };
        match self {
            Self::Debug(program) => Self::Debug(Program { env: more(program.env, &env), ..program }),
            Self::Build(Build { argv, cwd, env: own, then }) => Self::Build(Build {
                argv,
                cwd,
                env: more(own, &env),
                then: Box::new(move |output| Ok(then(output)?.with_env(env))),
            }),
        }
    }
}

impl Plan {
    /// The same, run in this folder where the plan names none.
    #[must_use]
    pub fn in_folder(self, folder: PathBuf) -> Self {
        self.finally(move |program| Program { cwd: Some(program.cwd.unwrap_or(folder)), ..program })
    }

    #[must_use]
    pub fn with_note(self, note: Option<String>) -> Self {
        self.finally(move |mut program| {
            program.notes.extend(note);
            program
        })
    }

    /// Changes the program that a plan ends with.
    fn finally(self, change: impl FnOnce(Program) -> Program + Send + 'static) -> Self {
        self.changed(Box::new(change))
    }

    fn changed(self, change: Change) -> Self {
        match self {
            Self::Debug(program) => Self::Debug(change(program)),
            Self::Build(Build { argv, cwd, env, then }) => {
                Self::Build(Build { argv, cwd, env, then: Box::new(move |output| Ok(then(output)?.changed(change))) })
            }
        }
    }
}

type Change = Box<dyn FnOnce(Program) -> Program + Send>;

impl std::fmt::Debug for Build {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Build").field("argv", &self.argv).field("cwd", &self.cwd).finish_non_exhaustive()
    }
}

/// One family of tools.
#[derive(Debug)]
struct Locator {
    /// The plan for a command line of this family; None where it is another's.
    locate: fn(&Asked) -> Result<Option<Plan>, Failure>,
    /// The command line that runs exactly one test of the project in a folder; None where it is no such project, and
    /// "not found" where it is one and plainly has no such test.
    test: fn(project: &Path, name: &str, asked: &Asked) -> Result<Option<Vec<String>>, Failure>,
}

/// Every family, in the order they are asked. The last takes whatever is a program.
const LOCATORS: &[Locator] = &[
    Locator { locate: cargo::locate, test: cargo::test },
    Locator { locate: java::locate, test: java::test },
    Locator { locate: go::locate, test: go::test },
    Locator { locate: cmake::locate, test: |_, _, _| Ok(None) },
    Locator { locate: make::locate, test: make::test },
    Locator { locate: python::locate, test: python::test },
    Locator { locate: js::locate, test: js::test },
    Locator { locate: ruby::locate, test: ruby::test },
    Locator { locate: php::locate, test: php::test },
    Locator { locate: perl::locate, test: perl::test },
    Locator { locate: native::locate, test: |_, _, _| Ok(None) },
];

/// Finds out what a command line starts, as a shell would there.
pub fn locate(asked: &Asked) -> Result<Plan, Failure> {
    if asked.words.first().is_none_or(String::is_empty) {
        return Err(Failure::usage("nothing to debug was named")
            .hint("bugeye start ./program -- ARGS")
            .hint("bugeye run -- python app.py"));
    }
    for locator in LOCATORS {
        if let Some(plan) = (locator.locate)(asked)? {
            return Ok(plan);
        }
    }
    Err(Failure::unsupported(format!("`{}` is nothing that is known to be debugged", asked.words.join(" "))))
}

/// The command lines that run the one test of this name in the project of a folder, best first.
pub fn tests(project: &Path, name: &str, asked: &Asked) -> Vec<Result<Vec<String>, Failure>> {
    LOCATORS.iter().filter_map(|locator| (locator.test)(project, name, asked).transpose()).collect()
}

impl Asked<'_> {
    /// The first word without its folder: `cargo`.
    #[must_use]
    pub fn name(&self) -> &str {
        let first = self.words.first().map_or("", String::as_str);
        first.rsplit('/').next().unwrap_or(first)
    }

    /// The words after the first.
    #[must_use]
    pub fn args(&self) -> &[String] {
        self.words.get(1..).unwrap_or_default()
    }

    /// The file that the first word names, with its first bytes; None where there is none to read.
    #[must_use]
    pub fn file(&self) -> Option<(PathBuf, Vec<u8>)> {
        let path = find_word(self.words.first()?, self.cwd, self.env_path).ok()?;
        // Only a regular file is opened: a pipe would wait for its writer.
        let head = path.metadata().ok().filter(std::fs::Metadata::is_file).and_then(|_| head_of(&path).ok())?;
        Some((path, head))
    }

    #[must_use]
    pub fn keep(&self) -> Kept {
        Kept {
            words: self.words.to_vec(),
            cwd: self.cwd.to_path_buf(),
            env: self.env.to_vec(),
            env_path: self.env_path.into(),
        }
    }
}

impl Kept {
    #[must_use]
    pub fn asked(&self) -> Asked<'_> {
        Asked { words: &self.words, cwd: &self.cwd, env: &self.env, env_path: &self.env_path }
    }
}

/// The first bytes of a file.
pub fn head_of(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut head = vec![0; 256];
    let read = File::open(path)?.read(&mut head)?;
    head.truncate(read);
    Ok(head)
}

/// The words of a `#!` line.
#[must_use]
pub fn shebang(head: &[u8]) -> Option<Vec<String>> {
    let line = head.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let words: Vec<String> = String::from_utf8_lossy(line).split_whitespace().map(Into::into).collect();
    (!words.is_empty()).then_some(words)
}

/// The interpreter a `#!` line names, with its options; what `/usr/bin/env` runs is looked up on the PATH.
#[must_use]
pub fn interpreter_of(words: &[String], env_path: &str) -> Option<Vec<String>> {
    if !words.first()?.ends_with("/env") {
        return Some(words.to_vec());
    }
    let mut rest = words.iter().skip(1).skip_while(|word| word.starts_with('-') || word.contains('='));
    let path = find::on_path(rest.next()?, env_path)?;
    Some(std::iter::once(path.to_string_lossy().into_owned()).chain(rest.cloned()).collect())
}

/// A name with a slash is a path; another is a file here, or a program on the PATH.
pub fn find_word(word: &str, cwd: &Path, env_path: &str) -> Result<PathBuf, Failure> {
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
    if let Some(near) = near(std::env::split_paths(env_path), word) {
        failure.hints.insert(0, format!("did you mean {near}?"));
    }
    Err(failure)
}

fn missing(path: &Path) -> Failure {
    let mut failure = Failure::not_found(format!("there is no {}", path.display()));
    if let (Some(parent), Some(name)) = (path.parent(), path.file_name().and_then(|name| name.to_str()))
        && let Some(near) = near([parent], name)
    {
        failure = failure.hint(format!("did you mean {}?", parent.join(near).display()));
    }
    failure.hint("is it built? paths are relative to the current directory")
}

/// A name in one of the folders that this one may be a typing mistake for.
fn near(folders: impl IntoIterator<Item = impl AsRef<Path>>, name: &str) -> Option<String> {
    let entries = folders.into_iter().filter_map(|folder| std::fs::read_dir(folder).ok()).flatten();
    let names: Vec<String> =
        entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).take(10_000).collect();
    crate::nearest::nearest(name, names.iter().map(String::as_str)).map(ToString::to_string)
}

/// A regular file, or why there is none.
pub fn check_file(path: &Path) -> Result<(), Failure> {
    let Ok(data) = path.metadata() else { return Err(missing(path)) };
    if data.is_dir() {
        return Err(Failure::refused(format!("{} is a directory", path.display())).hint("name the program in it"));
    }
    if !data.is_file() {
        return Err(Failure::refused(format!("{} is no regular file", path.display())).hint("name a program"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(Into::into).collect()
    }

    /// What a command line starts where nothing has to be built.
    fn recognise(words: &[String], cwd: &Path, env_path: &str) -> Result<Program, Failure> {
        match locate(&Asked { words, cwd, env: &[], env_path })? {
            Plan::Debug(program) => Ok(program),
            Plan::Build(build) => panic!("{build:?}"),
        }
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
        std::fs::set_permissions(cwd.join("text"), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
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
