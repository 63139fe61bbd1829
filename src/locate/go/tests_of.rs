//! Which package has a test, told by reading its files.

use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// Folders that are looked into for tests.
const MOST_FOLDERS: usize = 5000;

/// A line of `go list`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Package {
    pub folder: PathBuf,
    pub import: String,
    has_tests: bool,
}

impl Package {
    /// Reads `folder`, `import path` and the numbers of test files of each line.
    pub fn read(listed: &str) -> Vec<Self> {
        let read = |line: &str| {
            let mut parts = line.split('\t');
            let (folder, import) = (parts.next()?, parts.next()?);
            let has_tests = parts.any(|number| number.trim() != "0");
            Some(Self { folder: folder.into(), import: import.into(), has_tests })
        };
        listed.lines().filter_map(read).collect()
    }
}

/// The package to build, and what the user should know of the others.
pub fn choose<'a>(packages: &'a [Package], pattern: Option<&str>) -> Result<(&'a Package, Vec<String>), Failure> {
    let with_tests: Vec<&Package> = packages.iter().filter(|package| package.has_tests).collect();
    let wanted = pattern.map(Wanted::read);
    let matches = |package: &&&Package| {
        wanted.as_ref().is_none_or(|wanted| names_in(&package.folder).iter().any(|name| wanted.takes(name)))
    };
    let found: Vec<&Package> = with_tests.iter().filter(matches).copied().collect();
    match (&found[..], &with_tests[..]) {
        ([only], _) => Ok((only, Vec::new())),
        ([], []) => Err(Failure::not_found("no package that was named has tests").hint("go list ./...")),
        ([], [only]) => Ok((only, Vec::new())),
        ([], _) => Err(Failure::not_found(format!("no test matches {}", pattern.unwrap_or_default()))
            .hint("its whole name finds it: go test ./... -run '^TestName$'")),
        ([first, ..], _) if pattern.is_some() => {
            let others: Vec<&str> = found.iter().skip(1).map(|package| package.import.as_str()).collect();
            let note = format!("tests of {} are debugged; also matched: {}", first.import, others.join(", "));
            Ok((first, vec![note]))
        }
        _ => {
            let names: Vec<&str> = found.iter().take(12).map(|package| package.import.as_str()).collect();
            Err(Failure::usage("several packages have tests, and each is a program of its own")
                .hint(format!("name one: {}", names.join(", ")))
                .hint("or a test: go test ./... -run TestName"))
        }
    }
}

/// A pattern of `-run`, as far as it is a name.
struct Wanted {
    text: String,
    from_start: bool,
    to_end: bool,
}

impl Wanted {
    fn read(pattern: &str) -> Self {
        let top = pattern.split('/').next().unwrap_or(pattern);
        let text = top.strip_prefix('^').unwrap_or(top);
        let text = text.strip_suffix('$').unwrap_or(text);
        Self { text: text.into(), from_start: top.starts_with('^'), to_end: top.ends_with('$') }
    }

    /// A pattern that is more than a name takes every test: the test's own program will choose.
    fn takes(&self, name: &str) -> bool {
        let plain = self.text.chars().all(|c| c.is_alphanumeric() || c == '_');
        match (self.from_start, self.to_end) {
            _ if !plain => true,
            (true, true) => name == self.text,
            (true, false) => name.starts_with(&self.text),
            (false, true) => name.ends_with(&self.text),
            (false, false) => name.contains(&self.text),
        }
    }
}

/// What a search for a test has found.
#[derive(Debug, Default)]
pub struct Found {
    /// Packages that have the test.
    pub folders: Vec<PathBuf>,
    /// All tests that were seen.
    pub names: Vec<String>,
}

/// The packages of a module that have a test of this name.
pub fn packages_with(module: &Path, name: &str) -> Found {
    let mut found = Found::default();
    let mut folders = vec![module.to_path_buf()];
    let mut seen = 0;
    while let Some(folder) = folders.pop() {
        seen += 1;
        if seen > MOST_FOLDERS {
            break;
        }
        let names = names_in(&folder);
        if names.iter().any(|test| test == name) {
            found.folders.push(folder.clone());
        }
        found.names.extend(names);
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        let mut below: Vec<PathBuf> = entries
            .flatten()
            .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
            .filter(|entry| is_source(&entry.file_name().to_string_lossy()))
            .map(|entry| entry.path())
            .collect();
        below.sort();
        below.reverse();
        folders.extend(below);
    }
    found
}

/// Folders that `./...` goes into.
fn is_source(name: &str) -> bool {
    !name.starts_with(['.', '_']) && !["vendor", "testdata", "node_modules"].contains(&name)
}

/// The tests of the package in a folder.
fn names_in(folder: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut names = Vec::new();
    for entry in entries.flatten().filter(|entry| entry.file_name().to_string_lossy().ends_with("_test.go")) {
        let text = std::fs::read(entry.path()).unwrap_or_default();
        names.extend(String::from_utf8_lossy(&text).lines().filter_map(test_name));
    }
    names
}

/// `func TestX(t *testing.T) {` at the beginning of a line.
fn test_name(line: &str) -> Option<String> {
    let name = line.strip_prefix("func ")?.split_once('(')?.0.trim();
    let is_test = ["Test", "Benchmark", "Fuzz", "Example"].iter().any(|start| name.starts_with(start));
    is_test.then(|| name.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_names_or_anything() {
        let takes = |pattern: &str, name: &str| Wanted::read(pattern).takes(name);
        assert!(takes("^TestX$", "TestX") && !takes("^TestX$", "TestXy"));
        assert!(takes("TestX", "TestXy") && takes("X", "TestXy") && !takes("TestY", "TestX"));
        assert!(takes("^TestX$/^sub$", "TestX"));
        assert!(takes("Test(A|B)", "TestZ"), "left to the test itself");
    }

    #[test]
    fn tests_are_told_from_other_functions() {
        assert_eq!(test_name("func TestA(t *testing.T) {"), Some("TestA".into()));
        assert_eq!(test_name("func helper(t *testing.T) {"), None);
        assert_eq!(test_name("func (s *Suite) TestA() {"), None);
        assert_eq!(test_name("\tfunc TestA(t *testing.T) {"), None);
    }
}
