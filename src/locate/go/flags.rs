//! The flags of `go run` and `go test`: which are for the compiler, which for the test, and what is left.

use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// Flags of the compiler that take a value.
const BUILD_VALUES: [&str; 22] = [
    "p",
    "asmflags",
    "buildmode",
    "buildvcs",
    "compiler",
    "gccgoflags",
    "gcflags",
    "installsuffix",
    "ldflags",
    "mod",
    "modfile",
    "overlay",
    "pgo",
    "pkgdir",
    "tags",
    "toolexec",
    "covermode",
    "coverpkg",
    "vet",
    "reuse",
    "goos",
    "goarch",
];
/// Flags of the compiler that stand alone.
const BUILD: [&str; 10] = ["a", "race", "msan", "asan", "cover", "linkshared", "modcacherw", "trimpath", "work", "x"];
/// Flags of a test that take a value.
const TEST_VALUES: [&str; 26] = [
    "bench",
    "benchtime",
    "blockprofile",
    "blockprofilerate",
    "count",
    "coverprofile",
    "cpu",
    "cpuprofile",
    "fuzz",
    "fuzzminimizetime",
    "fuzztime",
    "fuzzcachedir",
    "list",
    "memprofile",
    "memprofilerate",
    "mutexprofile",
    "mutexprofilefraction",
    "outputdir",
    "parallel",
    "run",
    "shuffle",
    "skip",
    "timeout",
    "trace",
    "gocoverdir",
    "testlogfile",
];
/// Flags of a test that stand alone.
const TEST: [&str; 8] = ["benchmem", "failfast", "fullpath", "short", "v", "paniconexit0", "artifacts", "json"];
/// Flags that say what to do with the program, which is ours to decide.
const OURS: [&str; 3] = ["c", "i", "n"];
const OURS_VALUES: [&str; 2] = ["exec", "o"];

/// A command line of `go`, taken apart.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Flags {
    /// Where it is as if it had been typed.
    pub folder: PathBuf,
    /// For the compiler.
    pub build: Vec<String>,
    /// For the test, as its program takes them: `-test.run=X`.
    pub test: Vec<String>,
    pub packages: Vec<String>,
    /// What follows: the package and its arguments for `run`, arguments for the test's program for `test`.
    pub rest: Vec<String>,
    pub notes: Vec<String>,
}

impl Flags {
    /// Reads the words after `go`; the first is `run` or `test`.
    pub fn read(words: &[String], cwd: &Path) -> Result<Self, Failure> {
        let mut flags = Self { folder: cwd.to_path_buf(), ..Self::default() };
        let testing = words.first().is_some_and(|word| word == "test");
        let mut words = words.iter().skip(1);
        while let Some(word) = words.next() {
            let Some(name) = word.strip_prefix('-').filter(|name| !name.is_empty()) else {
                if testing && !flags.is_over() {
                    flags.packages.push(word.clone());
                    continue;
                }
                flags.rest.push(word.clone());
                if !testing {
                    flags.rest.extend(words.cloned());
                    return Ok(flags);
                }
                continue;
            };
            let name = name.strip_prefix('-').unwrap_or(name);
            let (name, given) = name.split_once('=').map_or((name, None), |(name, value)| (name, Some(value)));
            if testing && name == "args" {
                flags.rest.extend(words.cloned());
                return Ok(flags);
            }
            let mut value = || match given {
                Some(given) => Ok(given.to_string()),
                None => words.next().cloned().ok_or_else(|| Failure::usage(format!("-{name} has no value"))),
            };
            let of_test = name.strip_prefix("test.").unwrap_or(name);
            if name == "C" {
                flags.folder = cwd.join(value()?);
            } else if BUILD_VALUES.contains(&name) {
                let value = value()?;
                flags.build.push(format!("-{name}={value}"));
            } else if BUILD.contains(&name) {
                flags.build.push(word.clone());
            } else if OURS_VALUES.contains(&name) {
                value()?;
                flags.notes.push(format!("-{name} is left out: the program is run by the debugger"));
            } else if OURS.contains(&name) {
                flags.notes.push(format!("-{name} is left out: the program is run by the debugger"));
            } else if testing && of_test == "json" {
                flags.notes.push("-json is left out: the test prints what it prints".into());
            } else if testing && TEST_VALUES.contains(&of_test) {
                let value = value()?;
                flags.test.push(format!("-test.{of_test}={value}"));
            } else if testing && TEST.contains(&of_test) {
                let value = given.map(|value| format!("={value}")).unwrap_or_default();
                flags.test.push(format!("-test.{of_test}{value}"));
            } else if testing {
                // The test's own: `go test` hands it on, and everything after it that is no flag of its own.
                flags.rest.push(word.clone());
            } else {
                return Err(Failure::usage(format!("`{word}` is no flag of `go run`")).hint("go help run"));
            }
        }
        Ok(flags)
    }

    /// Once a flag was not `go`'s, what has no dash is that flag's value.
    fn is_over(&self) -> bool {
        !self.rest.is_empty()
    }

    /// Which tests are asked for, as they were.
    pub fn pattern(&self) -> Option<&str> {
        let value = |name: &str| self.test.iter().rev().find_map(|flag| flag.strip_prefix(name));
        let run = value("-test.run=").filter(|pattern| *pattern != "^$");
        run.or_else(|| value("-test.bench=")).or_else(|| value("-test.fuzz="))
    }

    /// What changes the list of packages and files.
    pub fn listing(&self) -> Vec<String> {
        let matters =
            |flag: &&String| ["-tags=", "-mod=", "-modfile=", "-overlay="].iter().any(|name| flag.starts_with(name));
        self.build.iter().filter(matters).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Flags {
        let words: Vec<String> = line.split_whitespace().map(Into::into).collect();
        Flags::read(&words, Path::new("/p")).unwrap()
    }

    #[test]
    fn flags_go_where_they_belong() {
        let flags = read("test -race -tags x ./a ./b -run TestX -v -count=1 -timeout 30s -custom value -args y -z");
        assert_eq!(flags.build, ["-race", "-tags=x"]);
        assert_eq!(flags.packages, ["./a", "./b"]);
        assert_eq!(flags.test, ["-test.run=TestX", "-test.v", "-test.count=1", "-test.timeout=30s"]);
        assert_eq!(flags.rest, ["-custom", "value", "y", "-z"]);
        assert_eq!(flags.pattern(), Some("TestX"));
        assert_eq!(flags.listing(), ["-tags=x"]);
    }

    #[test]
    fn a_program_keeps_its_arguments() {
        let flags = read("run -C sub -ldflags=-s=x . -v --name=x -run");
        assert_eq!(flags.folder, Path::new("/p/sub"));
        assert_eq!(flags.build, ["-ldflags=-s=x"]);
        assert_eq!(flags.rest, [".", "-v", "--name=x", "-run"]);
    }

    #[test]
    fn what_is_not_done_is_said() {
        let flags = read("test -json -c -o out .");
        assert_eq!(flags.notes.len(), 3);
        assert!(flags.test.is_empty());
        let words: Vec<String> = ["run", "-nonsense", "."].into_iter().map(Into::into).collect();
        assert!(Flags::read(&words, Path::new("/p")).is_err());
    }
}
