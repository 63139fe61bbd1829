//! Where an adapter is on this machine: the configuration's word, then the private folder, then the system.
//!
//! Apart from the adapters' own files, which only say what to look for: this is the part that touches the disk. It is
//! on the path of every `start`, so it reads directory entries and file names and starts a process only as a last
//! resort.

use std::ffi::OsStr;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use crate::adapters::{Adapter, Found, own};
use crate::config::Config;
use crate::failure::Failure;
use crate::paths::Paths;

/// Folders outside PATH that package managers put debuggers in; `*` is a version, highest first.
const WELL_KNOWN: [&str; 3] = ["/usr/lib/llvm-*/bin", "/opt/homebrew/opt/llvm/bin", "/usr/local/opt/llvm/bin"];

/// The file beside a private Python module that names the interpreter it was installed for.
pub(crate) const INTERPRETER_FILE: &str = "interpreter";

/// How long a question to another program may take.
const ASK_LIMIT: Duration = Duration::from_secs(5);

/// The path and extra arguments that the configuration gives an adapter.
pub type Configured<'a> = Option<(&'a Path, &'a [String])>;

/// Looks for an adapter, with the PATH of the client that asks.
///
/// # Errors
/// Refused, when the configured path is no program, or the adapter is nowhere; the hint is the command that installs it.
pub fn find(
    adapter: &'static Adapter,
    paths: &Paths,
    configured: Configured<'_>,
    env_path: &str,
) -> Result<Found, Failure> {
    let folder = private_folder(adapter, paths);
    let mut found = match configured {
        Some((path, _)) => find_configured(adapter, &expand_home(path), &folder, paths, env_path)?,
        None => find_unconfigured(adapter, &folder, env_path)?,
    };
    if let Some((_, args)) = configured {
        found.args = args.to_vec();
    }
    Ok(found)
}

/// As [`find`], with what the user's configuration says about the adapter.
///
/// # Errors
/// As [`find`].
pub fn find_with(adapter: &'static Adapter, paths: &Paths, config: &Config, env_path: &str) -> Result<Found, Failure> {
    let names: Vec<&str> = std::iter::once(adapter.id).chain(adapter.aliases.iter().copied()).collect();
    let settings = config.adapter(&names).unwrap_or_default();
    let configured = settings.path.as_deref().map(|path| (path, &settings.args[..]));
    let found = find(adapter, paths, configured, env_path)?;
    // Arguments alone go with whatever is found.
    Ok(Found { args: settings.args, ..found })
}

/// The folder that `setup` installs an adapter into.
#[must_use]
pub fn private_folder(adapter: &Adapter, paths: &Paths) -> PathBuf {
    paths.data.join("adapters").join(adapter.id)
}

/// The first executable of this name on a PATH. Relative entries are passed over: a repository must not be able to
/// put its own programs in the way.
#[must_use]
pub fn on_path(name: &str, env_path: &str) -> Option<PathBuf> {
    std::env::split_paths(env_path)
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(name))
        .find(|path| is_executable(path))
}

fn find_configured(
    adapter: &'static Adapter,
    path: &Path,
    folder: &Path,
    paths: &Paths,
    env_path: &str,
) -> Result<Found, Failure> {
    let wrong = |what: &str| {
        let config = paths.config_file();
        let failure = Failure::refused(format!("the configured path of {} {what}: {}", adapter.id, path.display()))
            .hint(format!("correct `[adapters.{}] path` in {}", adapter.id, config.display()));
        match own::of(adapter) {
            Some(_) => failure,
            None => failure.hint(format!("or remove it and run `bugeye setup {}`", adapter.install.setup_name)),
        }
    };
    if !path.exists() {
        return Err(wrong("does not exist"));
    }
    let Some(module) = adapter.find.python_module else {
        if !is_executable(path) {
            return Err(wrong("is not an executable file"));
        }
        return Ok(program(adapter, path.to_path_buf()));
    };
    // A folder holds the module; a file is the interpreter to run it with.
    if path.is_dir() {
        if !has_module(path, module) {
            return Err(wrong(&format!("holds no Python module {module}")));
        }
        return Ok(in_folder(adapter, module, path, interpreter(env_path).ok_or_else(|| no_python(adapter))?));
    }
    if !is_executable(path) {
        return Err(wrong("is not an executable file"));
    }
    if has_module(folder, module) {
        return Ok(in_folder(adapter, module, folder, path.to_path_buf()));
    }
    in_interpreter(adapter, module, path, env_path).ok_or_else(|| wrong(&format!("can't import {module}")))
}

fn find_unconfigured(adapter: &'static Adapter, folder: &Path, env_path: &str) -> Result<Found, Failure> {
    if let Some(module) = adapter.find.python_module {
        if has_module(folder, module) {
            let python = recorded_interpreter(folder).or_else(|| interpreter(env_path));
            return Ok(in_folder(adapter, module, folder, python.ok_or_else(|| no_python(adapter))?));
        }
        let python = interpreter(env_path).ok_or_else(|| no_python(adapter))?;
        return in_interpreter(adapter, module, &python, env_path).ok_or_else(|| not_installed(adapter));
    }
    find_program(adapter, folder, env_path).map(|path| program(adapter, path)).ok_or_else(|| not_installed(adapter))
}

fn find_program(adapter: &Adapter, folder: &Path, env_path: &str) -> Option<PathBuf> {
    let names = names(adapter);
    let private = [folder.join("bin"), folder.to_path_buf()];
    names
        .iter()
        .flat_map(|name| private.iter().map(move |folder| folder.join(name)))
        .find(|path| is_executable(path))
        .or_else(|| names.iter().find_map(|name| on_path(name, env_path)))
        .or_else(|| in_well_known(adapter, &names))
        .or_else(|| by_xcrun(adapter))
}

/// The executables to look for, best first.
fn names(adapter: &Adapter) -> Vec<String> {
    let mut names = Vec::new();
    for name in adapter.find.programs {
        if name.contains("{v}") {
            names.extend(adapter.find.versions.clone().rev().map(|v| name.replace("{v}", &v.to_string())));
        } else {
            names.push((*name).to_string());
        }
    }
    names
}

fn in_well_known(adapter: &Adapter, names: &[String]) -> Option<PathBuf> {
    let folders = WELL_KNOWN.iter().flat_map(|pattern| match pattern.contains('*') {
        true => adapter.find.versions.clone().rev().map(|v| pattern.replace('*', &v.to_string())).collect(),
        false => vec![(*pattern).to_string()],
    });
    folders
        .flat_map(|folder| names.iter().map(move |name| Path::new(&folder).join(name)))
        .find(|path| is_executable(path))
}

fn by_xcrun(adapter: &Adapter) -> Option<PathBuf> {
    let name = adapter.find.xcrun.filter(|_| cfg!(target_os = "macos"))?;
    let (status, text) = ask(Command::new("/usr/bin/xcrun").args(["--find", name]), ASK_LIMIT)?;
    let path = PathBuf::from(text.trim());
    (status.success() && is_executable(&path)).then_some(path)
}

fn program(adapter: &'static Adapter, path: PathBuf) -> Found {
    let version = version_of(&path);
    Found { adapter, program: path, args: Vec::new(), module_path: None, version }
}

fn in_folder(adapter: &'static Adapter, module: &str, folder: &Path, python: PathBuf) -> Found {
    Found {
        adapter,
        program: python,
        args: Vec::new(),
        module_path: Some(folder.to_path_buf()),
        version: module_version(folder, module),
    }
}

/// A module in an interpreter's own library folders.
fn in_interpreter(adapter: &'static Adapter, module: &str, python: &Path, env_path: &str) -> Option<Found> {
    let found = |program: PathBuf, folder: Option<&Path>| Found {
        adapter,
        program,
        args: Vec::new(),
        module_path: None,
        version: folder.and_then(|folder| module_version(folder, module)),
    };
    let folders = library_folders(python);
    if let Some(folder) = folders.iter().find(|folder| has_module(folder, module)) {
        return Some(found(python.to_path_buf(), Some(folder)));
    }
    // Shims and unusual layouts hide their folders: only the interpreter itself knows. It also names its real
    // executable, which starts faster than a shim. Not from the caller's directory, whose files it would import.
    let code = "import importlib.util as u,os,sys\n\
                s=u.find_spec(sys.argv[1])\n\
                s is None and sys.exit(1)\n\
                print(sys.executable)\n\
                print(os.path.dirname(os.path.dirname(s.origin or '')))";
    let mut command = Command::new(python);
    command.args(["-c", code, module]).current_dir("/").env("PATH", env_path);
    let (status, text) = ask(&mut command, ASK_LIMIT)?;
    let mut lines = text.lines();
    let executable = PathBuf::from(lines.next().unwrap_or_default());
    let folder = PathBuf::from(lines.next().unwrap_or_default());
    status.success().then(|| {
        let executable = if is_executable(&executable) { executable } else { python.to_path_buf() };
        found(executable, Some(&folder))
    })
}

/// The folders that an interpreter imports from, as far as its place tells.
fn library_folders(python: &Path) -> Vec<PathBuf> {
    let real = std::fs::canonicalize(python).unwrap_or_else(|_| python.to_path_buf());
    let prefixes = [python, &real].map(|path| path.parent().and_then(Path::parent).map(Path::to_path_buf));
    let series = real.file_name().and_then(OsStr::to_str).filter(|name| name.starts_with("python3."));
    let mut folders = Vec::new();
    for prefix in prefixes.into_iter().flatten() {
        let library = prefix.join("lib");
        let of_series: Vec<PathBuf> = match series {
            Some(series) => vec![library.join(series)],
            // A name that does not say which series it is of: certain only where there is just one.
            None => match &entries(&library, "python3.")[..] {
                [only] => vec![only.clone()],
                _ => Vec::new(),
            },
        };
        folders.extend(of_series.iter().map(|folder| folder.join("site-packages")));
        if prefix == Path::new("/usr") {
            folders.push(PathBuf::from("/usr/lib/python3/dist-packages"));
            folders.extend(series.map(|series| Path::new("/usr/local/lib").join(series).join("dist-packages")));
        }
    }
    folders
}

fn entries(folder: &Path, prefix: &str) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    entries
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(prefix))
        .map(|entry| entry.path())
        .collect()
}

fn has_module(folder: &Path, module: &str) -> bool {
    folder.join(module).join("__init__.py").is_file()
}

/// The version in the name of a module's `MODULE-X.Y.Z.dist-info`.
fn module_version(folder: &Path, module: &str) -> Option<String> {
    let prefix = format!("{module}-");
    entries(folder, &prefix).iter().find_map(|path| {
        let name = path.file_name()?.to_str()?;
        Some(name.strip_prefix(&prefix)?.strip_suffix(".dist-info")?.to_string())
    })
}

/// The Python that a user of this PATH gets.
#[must_use]
pub fn interpreter(env_path: &str) -> Option<PathBuf> {
    ["python3", "python"].iter().find_map(|name| on_path(name, env_path))
}

fn recorded_interpreter(folder: &Path) -> Option<PathBuf> {
    let text = std::fs::read_to_string(folder.join(INTERPRETER_FILE)).ok()?;
    Some(PathBuf::from(text.trim_end())).filter(|path| is_executable(path))
}

/// The version that a program's place tells: `lldb-dap-19`, `/usr/lib/llvm-19/bin`, `Cellar/llvm/19.1.7/bin`.
fn version_of(path: &Path) -> Option<String> {
    let real = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    let number = |text: &str| {
        let looks_right = text.starts_with(|c: char| c.is_ascii_digit())
            && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        looks_right.then(|| text.to_string())
    };
    let name = path.file_name()?.to_str()?;
    let suffix = name.rsplit_once('-').and_then(|(_, version)| number(version));
    suffix.or_else(|| {
        // Only the folder that holds it, and `bin`'s: further up, a number is about something else.
        real.components().rev().skip(1).take(2).find_map(|part| {
            let part = part.as_os_str().to_str()?;
            let version = part.rsplit_once('-').map_or(part, |(_, version)| version);
            // A bare number is no version: too many folders have one for a name.
            number(version).filter(|_| version != part || version.contains('.'))
        })
    })
}

fn expand_home(path: &Path) -> PathBuf {
    match (path.strip_prefix("~"), std::env::var_os("HOME")) {
        (Ok(rest), Some(home)) => Path::new(&home).join(rest),
        _ => path.to_path_buf(),
    }
}

fn is_executable(path: &Path) -> bool {
    path.is_file() && rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok()
}

fn not_installed(adapter: &Adapter) -> Failure {
    if let Some(own) = own::of(adapter) {
        return Failure::refused(format!(
            "{} can't be started: there is no program `{}` on PATH",
            adapter.id, own.program
        ))
        .hint(format!("correct `command` below [adapters.{}] in config.toml", adapter.id));
    }
    Failure::refused(format!("{} is not installed (it debugs {})", adapter.id, adapter.languages.join(", ")))
        .hint(format!("bugeye setup {}", adapter.install.setup_name))
}

fn no_python(adapter: &Adapter) -> Failure {
    Failure::refused(format!("{} needs Python, and PATH has neither `python3` nor `python`", adapter.id))
        .hint("install Python 3, or add its folder to PATH")
}

/// Runs a short question with nothing on its standard input; None when it can't be run or takes too long.
pub(crate) fn ask(command: &mut Command, limit: Duration) -> Option<(ExitStatus, String)> {
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
    let mut child = child.ok()?;
    let mut stdout = child.stdout.take()?;
    let reader = std::thread::spawn(move || {
        let mut text = Vec::new();
        let _ = stdout.read_to_end(&mut text);
        String::from_utf8_lossy(&text).into_owned()
    });
    let deadline = Instant::now() + limit;
    loop {
        if let Some(status) = child.try_wait().ok()? {
            // What it left behind may hold the pipe open for ever.
            while !reader.is_finished() && Instant::now() < deadline {
                std::thread::sleep(Duration::from_millis(1));
            }
            return Some((status, if reader.is_finished() { reader.join().ok()? } else { String::new() }));
        }
        if Instant::now() >= deadline {
            let _ = child.kill();
            let _ = child.wait();
            return None;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[cfg(test)]
pub(crate) mod testing {
    //! Adapters that only have what finding, installing and greeting need.

    use super::*;
    use crate::adapters::debugpy::DEBUGPY;
    use crate::adapters::lldb::LLDB;
    use crate::adapters::{Find, Install};

    pub static NATIVE: Adapter = Adapter {
        id: "native-dap",
        aliases: &["native"],
        languages: &["c", "rust"],
        install: Install { setup_name: "native", ..LLDB.install },
        ..LLDB
    };

    pub static SCRIPTED: Adapter = Adapter {
        id: "scripted",
        aliases: &["script"],
        languages: &["python"],
        find: Find { python_module: Some("fakepy"), ..DEBUGPY.find },
        install: Install { setup_name: "scripted", pip: Some("fakepy==1.2.3"), ..DEBUGPY.install },
        ..DEBUGPY
    };

    pub fn paths_in(root: &Path) -> Paths {
        Paths {
            runtime: root.join("runtime"),
            state: root.join("state"),
            data: root.join("data"),
            config: root.join("config"),
        }
    }

    /// An executable script. Written by another process: a file that is open for writing in this one, or in a child
    /// that another test's thread forks meanwhile, can't be run.
    pub fn script(path: &Path, text: &str) {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let writes = ["-c", "printf %s \"$1\" > \"$0\" && chmod 755 \"$0\""];
        let status = Command::new("/bin/sh").args(writes).arg(path).arg(text).status().unwrap();
        assert!(status.success());
    }
}

#[cfg(test)]
mod tests {
    use super::testing::{NATIVE, SCRIPTED, paths_in, script};
    use super::*;
    use crate::failure::Kind;

    struct Machine {
        root: tempfile::TempDir,
        paths: Paths,
    }

    impl Machine {
        fn new() -> Self {
            let root = tempfile::tempdir().unwrap();
            let paths = paths_in(root.path());
            Self { root, paths }
        }

        fn at(&self, path: &str) -> PathBuf {
            self.root.path().join(path)
        }

        fn env_path(&self) -> String {
            format!("relative:{}:{}", self.at("first").display(), self.at("second").display())
        }

        fn find(&self, adapter: &'static Adapter, configured: Configured<'_>) -> Result<Found, Failure> {
            find(adapter, &self.paths, configured, &self.env_path())
        }
    }

    #[test]
    fn the_highest_version_on_path_wins_wherever_it_is() {
        let machine = Machine::new();
        script(&machine.at("first/lldb-dap"), "");
        script(&machine.at("first/lldb-dap-18"), "");
        script(&machine.at("second/lldb-dap-20"), "");
        std::fs::write(machine.at("second/lldb-dap-22"), "not executable").unwrap();
        let found = machine.find(&NATIVE, None).unwrap();
        assert_eq!(found.program, machine.at("second/lldb-dap-20"));
        assert_eq!(found.version.as_deref(), Some("20"));
    }

    #[test]
    fn the_private_folder_goes_before_path() {
        let machine = Machine::new();
        script(&machine.at("first/lldb-dap-22"), "");
        script(&machine.at("data/adapters/native-dap/bin/lldb-dap"), "");
        assert!(machine.find(&NATIVE, None).unwrap().program.ends_with("native-dap/bin/lldb-dap"));
    }

    #[test]
    fn a_plain_name_has_the_version_of_the_folder_it_leads_to() {
        let machine = Machine::new();
        script(&machine.at("llvm-19/bin/lldb-dap"), "");
        std::fs::create_dir(machine.at("first")).unwrap();
        std::os::unix::fs::symlink(machine.at("llvm-19/bin/lldb-dap"), machine.at("first/lldb-dap")).unwrap();
        assert_eq!(machine.find(&NATIVE, None).unwrap().version.as_deref(), Some("19"));
        script(&machine.at("Cellar/llvm/20.1.8/bin/lldb-dap"), "");
        assert_eq!(version_of(&machine.at("Cellar/llvm/20.1.8/bin/lldb-dap")).as_deref(), Some("20.1.8"));
    }

    #[test]
    fn a_configured_path_is_the_only_one_looked_at() {
        let machine = Machine::new();
        script(&machine.at("first/lldb-dap-19"), "");
        script(&machine.at("mine/my-lldb"), "");
        let args = ["--repl-mode=auto".to_string()];
        let found = machine.find(&NATIVE, Some((&machine.at("mine/my-lldb"), &args))).unwrap();
        assert_eq!((found.program, found.args, found.version), (machine.at("mine/my-lldb"), args.to_vec(), None));

        for (path, words) in [("mine/none", "does not exist"), ("mine", "is not an executable file")] {
            let failure = machine.find(&NATIVE, Some((&machine.at(path), &[]))).unwrap_err();
            assert_eq!(failure.kind, Kind::Refused);
            assert!(failure.message.contains(words), "{failure}");
            assert!(failure.hints[0].contains("config.toml"), "{failure:?}");
        }
    }

    #[test]
    fn the_configuration_is_read_under_any_name_and_arguments_need_no_path() {
        let machine = Machine::new();
        script(&machine.at("first/lldb-dap-19"), "");
        script(&machine.at("mine/my-lldb"), "");
        let find_with = |text: &str| {
            std::fs::create_dir_all(&machine.paths.config).unwrap();
            std::fs::write(machine.paths.config_file(), text).unwrap();
            let config = Config::load(&machine.paths).unwrap();
            let found = super::find_with(&NATIVE, &machine.paths, &config, &machine.env_path()).unwrap();
            (found.program, found.args)
        };
        let found = find_with("[adapters.native]\nargs = [\"-x\"]\n");
        assert_eq!(found, (machine.at("first/lldb-dap-19"), vec!["-x".to_string()]));
        let found = find_with(&format!("[adapters.native-dap]\npath = {:?}\n", machine.at("mine/my-lldb")));
        assert_eq!(found, (machine.at("mine/my-lldb"), Vec::new()));
    }

    #[test]
    fn a_private_module_runs_with_the_interpreter_it_was_installed_for() {
        let machine = Machine::new();
        let folder = machine.at("data/adapters/scripted");
        std::fs::create_dir_all(folder.join("fakepy-1.2.3.dist-info")).unwrap();
        script(&folder.join("fakepy/__init__.py"), "");
        assert!(machine.find(&SCRIPTED, None).unwrap_err().message.contains("needs Python"));
        script(&machine.at("second/python"), "");
        let found = machine.find(&SCRIPTED, None).unwrap();
        assert_eq!(found.program, machine.at("second/python"));
        assert_eq!((found.module_path, found.version.as_deref()), (Some(folder.clone()), Some("1.2.3")));
        script(&machine.at("real/python3.12"), "");
        std::fs::write(folder.join(INTERPRETER_FILE), format!("{}\n", machine.at("real/python3.12").display()))
            .unwrap();
        assert_eq!(machine.find(&SCRIPTED, None).unwrap().program, machine.at("real/python3.12"));
    }

    #[test]
    fn a_module_beside_its_interpreter_is_seen_without_running_it() {
        let machine = Machine::new();
        script(&machine.at("venv/bin/python3"), "#!/bin/sh\nexit 1\n");
        script(&machine.at("venv/lib/python3.12/site-packages/fakepy/__init__.py"), "");
        std::fs::create_dir(machine.at("venv/lib/python3.12/site-packages/fakepy-2.0.dist-info")).unwrap();
        let env_path = machine.at("venv/bin").display().to_string();
        let found = find(&SCRIPTED, &machine.paths, None, &env_path).unwrap();
        assert_eq!((found.module_path, found.version.as_deref()), (None, Some("2.0")));
        std::fs::create_dir(machine.at("venv/lib/python3.9")).unwrap();
        assert!(find(&SCRIPTED, &machine.paths, None, &env_path).is_err(), "two series: not certain, so it is asked");
    }

    #[test]
    fn what_is_nowhere_is_refused_with_the_command_that_installs_it() {
        let machine = Machine::new();
        script(&machine.at("first/python3"), "#!/bin/sh\nexit 1\n");
        let failure = machine.find(&SCRIPTED, None).unwrap_err();
        assert_eq!(failure.hints, ["bugeye setup scripted"]);
        assert_eq!(failure.message, "scripted is not installed (it debugs python)");
    }

    #[test]
    fn a_question_has_a_limit() {
        let began = Instant::now();
        assert!(ask(Command::new("sleep").arg("30"), Duration::from_millis(50)).is_none());
        assert!(began.elapsed() < Duration::from_secs(5));
        let (status, text) = ask(Command::new("echo").arg("yes"), ASK_LIMIT).unwrap();
        assert!(status.success());
        assert_eq!(text, "yes\n");
    }
}
