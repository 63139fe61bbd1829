//! The tests of a Python project, found by reading its files.

use std::path::{Path, PathBuf};

use super::is_python;
use crate::failure::Failure;
use crate::find;
use crate::locate::{Asked, head_of, scan, shebang};

/// Files that hold pytest's settings.
const SETTINGS: [&str; 5] = ["pytest.ini", ".pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg"];

/// Files that mark the folder of a Python project.
const MARKS: [&str; 6] = ["pyproject.toml", "pytest.ini", "setup.cfg", "setup.py", "tox.ini", "requirements.txt"];

/// One test as it stands in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Found {
    file: PathBuf,
    class: Option<String>,
    function: String,
    /// Its class is one of `unittest`.
    is_unittest: bool,
}

/// The command line for one test: `name`, `Class::name`, `name[parameter]`, `file.py::name`, `module.Class.name`.
pub fn test(project: &Path, name: &str, asked: &Asked) -> Result<Option<Vec<String>>, Failure> {
    if !is_project(project) {
        return Ok(None);
    }
    let tests: Vec<Found> =
        scan::files(project, is_test_file).iter().flat_map(|file| read(file, &scan::text(file))).collect();
    // A project of another language may well have a `setup.cfg`.
    if tests.is_empty() {
        return Ok(None);
    }
    let (plain, parameter) = match name.split_once('[') {
        Some((plain, parameter)) => (plain, format!("[{parameter}")),
        None => (name, String::new()),
    };
    let found: Vec<&Found> = tests.iter().filter(|test| test.is_called(plain, project)).collect();
    match found.as_slice() {
        [] => {
            let known: Vec<String> = tests.iter().map(|test| test.id(project)).collect();
            Err(scan::no_such_test(name, known.iter().map(String::as_str)))
        }
        [only] => Runner::find(project, asked).words(only, &parameter, project).map(Some),
        several => {
            let failure = Failure::usage(format!("`{name}` is in several places; say which one"));
            let hint = |test: &Found| format!("bugeye test {}{parameter}", test.id(project));
            Err(several.iter().take(7).fold(failure, |failure, test| failure.hint(hint(test))))
        }
    }
}

/// A folder that says so; one with tests only where none around it does.
fn is_project(folder: &Path) -> bool {
    let is_marked = |folder: &Path| MARKS.iter().any(|mark| folder.join(mark).is_file());
    let has_tests = |folder: PathBuf| {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.file_name().into_string().ok()).any(|name| is_test_file(&name))
    };
    is_marked(folder)
        || (!folder.ancestors().take(8).any(is_marked)
            && ["", "tests", "test"].iter().any(|name| has_tests(folder.join(name))))
}

fn is_test_file(name: &str) -> bool {
    let is_test =
        |stem: &str| stem.starts_with("test_") || stem.ends_with("_test") || ["test", "tests"].contains(&stem);
    name.strip_suffix(".py").is_some_and(is_test)
}

impl Found {
    fn relative(&self, project: &Path) -> String {
        self.file.strip_prefix(project).unwrap_or(&self.file).to_string_lossy().into_owned()
    }

    /// pytest's own name for it.
    fn id(&self, project: &Path) -> String {
        let class = self.class.as_ref().map(|class| format!("{class}::")).unwrap_or_default();
        format!("{}::{class}{}", self.relative(project), self.function)
    }

    fn is_called(&self, name: &str, project: &Path) -> bool {
        let id = self.id(project);
        let dotted = id.replace(".py::", ".").replace("::", ".").replace('/', ".");
        let ends = |whole: &str, border: &[char]| {
            whole.strip_suffix(name).is_some_and(|before| before.is_empty() || before.ends_with(border))
        };
        ends(&id, &[':', '/']) || ends(&dotted, &['.'])
    }
}

/// Reads the tests of a file by its indentation.
fn read(file: &Path, text: &str) -> Vec<Found> {
    let mut found = Vec::new();
    let mut class: Option<(String, bool)> = None;
    for line in text.lines() {
        let rest = line.trim_start();
        let is_top = rest.len() == line.len();
        if is_top && !rest.is_empty() && !rest.starts_with(['#', '@', ')']) {
            class = None;
        }
        if let Some(rest) = rest.strip_prefix("class ").filter(|_| is_top) {
            class = Some((identifier(rest), rest.contains("TestCase")));
        }
        let function = rest.strip_prefix("async ").unwrap_or(rest).trim_start().strip_prefix("def ").map(identifier);
        let Some(function) = function.filter(|name| name.starts_with("test")) else { continue };
        if is_top || class.is_some() {
            let (class, is_unittest) = class.clone().unzip();
            let is_unittest = is_unittest.unwrap_or(false);
            found.push(Found { file: file.to_path_buf(), class, function, is_unittest });
        }
    }
    found
}

fn identifier(text: &str) -> String {
    text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
}

/// What runs the tests here.
struct Runner {
    python: String,
    has_pytest: bool,
}

impl Runner {
    /// The environment that is active, the project's own, or what is on the PATH.
    fn find(project: &Path, asked: &Asked) -> Self {
        let active = asked.env.iter().rev().find(|(name, _)| name == "VIRTUAL_ENV");
        let active = active.map(|(_, value)| PathBuf::from(value));
        let own = [".venv", "venv", "env"].iter().map(|name| project.join(name));
        for folder in active.into_iter().chain(own) {
            let python = folder.join("bin/python");
            if python.is_file() {
                let has_pytest = folder.join("bin/pytest").is_file();
                return Self { python: python.to_string_lossy().into_owned(), has_pytest };
            }
        }
        let Some(pytest) = find::on_path("pytest", asked.env_path) else {
            return Self { python: "python3".into(), has_pytest: false };
        };
        // The interpreter that has pytest, not just any.
        let named = head_of(&pytest).ok().and_then(|head| shebang(&head)?.into_iter().find(|word| is_python(word)));
        let beside = || pytest.parent().and_then(|folder| find::interpreter(&folder.to_string_lossy()));
        let python = named.or_else(|| beside().map(|path| path.to_string_lossy().into_owned()));
        Self { python: python.unwrap_or_else(|| "python3".into()), has_pytest: true }
    }

    fn words(&self, test: &Found, parameter: &str, project: &Path) -> Result<Vec<String>, Failure> {
        if self.has_pytest {
            let id = format!("{}{parameter}", test.id(project));
            return Ok([self.python.as_str(), "-m", "pytest", &id].map(Into::into).into());
        }
        if !test.is_unittest {
            let message = format!("{} is a test for pytest, which is not installed here", test.id(project));
            return Err(Failure::refused(message).hint(format!("{} -m pip install pytest", self.python)));
        }
        let module = test.relative(project).trim_end_matches(".py").replace('/', ".");
        let class = test.class.as_deref().unwrap_or_default();
        let name = format!("{module}.{class}.{}", test.function);
        Ok([self.python.as_str(), "-m", "unittest", &name].map(Into::into).into())
    }
}

/// The words that pytest's settings add to every command line, from the folder upwards.
pub fn configured(cwd: &Path) -> Vec<String> {
    for folder in cwd.ancestors().take(8) {
        for name in SETTINGS {
            if let Some(words) = added(&scan::text(&folder.join(name))) {
                let plain = words.split_whitespace().map(|word| word.trim_matches(['"', '\'', ',', '[', ']']));
                return plain.filter(|word| !word.is_empty()).map(Into::into).collect();
            }
        }
    }
    Vec::new()
}

/// The value of `addopts`, which may go on over indented lines.
fn added(text: &str) -> Option<String> {
    let mut lines = text.lines().skip_while(|line| !line.trim_start().starts_with("addopts"));
    let first = lines.next()?.split_once('=')?.1.to_string();
    let more = lines.take_while(|line| line.starts_with([' ', '\t']) && !line.contains(" = "));
    Some(more.fold(first, |text, line| text + " " + line.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "\
import x

@mark
def test_one():
    def test_inner():
        pass

class TestBox(Base):
    @mark
    async def test_opens(self):
        pass

    def helper(self):
        pass

class Old(unittest.TestCase):
    def test_old(self): pass

def help(): pass
";

    #[test]
    fn tests_are_read_from_a_file() {
        let found = read(Path::new("/p/tests/test_a.py"), SOURCE);
        let ids: Vec<String> = found.iter().map(|test| test.id(Path::new("/p"))).collect();
        assert_eq!(
            ids,
            ["tests/test_a.py::test_one", "tests/test_a.py::TestBox::test_opens", "tests/test_a.py::Old::test_old"]
        );
        assert_eq!(found.iter().map(|test| test.is_unittest).collect::<Vec<_>>(), [false, false, true]);
        let called = |name| found.iter().filter(|test| test.is_called(name, Path::new("/p"))).count();
        for name in ["test_one", "test_a.py::test_one", "tests/test_a.py::test_one", "test_a.test_one"] {
            assert_eq!(called(name), 1, "{name}");
        }
        assert_eq!((called("Old.test_old"), called("TestBox::test_opens"), called("one")), (1, 1, 0));
    }

    #[test]
    fn added_options_are_read_from_every_form_of_settings() {
        assert_eq!(added("[pytest]\naddopts = -ra\n  -n auto\ntestpaths = x\n").unwrap().trim(), "-ra -n auto");
        assert_eq!(added("x\n"), None);
        let folder = tempfile::tempdir().unwrap();
        let text = "[tool.pytest.ini_options]\naddopts = [\n  \"--cov=app\",\n  \"-q\",\n]\n";
        std::fs::write(folder.path().join("pyproject.toml"), text).unwrap();
        assert_eq!(configured(folder.path()), ["--cov=app", "-q"]);
    }
}
