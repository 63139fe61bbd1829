//! Where an adapter is on this machine: the configuration's word, then the private folder, then the system, then what
//! editors have brought.
//!
//! Apart from the adapters' own files, which only say what to look for: this is the part that touches the disk. It is
//! on the path of every `start`, so it reads directory entries and file names and starts a process only as a last
//! resort.

mod editors;
mod python;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
mod version;

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use crate::adapters::{Adapter, Found, own};
use crate::config::Config;
use crate::failure::Failure;
use crate::paths::Paths;

pub use python::interpreter;
pub(crate) use version::{asked_version, too_old};

/// Folders outside PATH that package managers put debuggers in; `*` is a version, highest first.
const WELL_KNOWN: [&str; 7] = [
    "/usr/lib/llvm-*/bin",
    "/opt/homebrew/opt/llvm/bin",
    "/usr/local/opt/llvm/bin",
    "~/go/bin",
    "~/.cargo/bin",
    "~/.local/bin",
    "~/.local/share/nvim/mason/bin",
];

/// The file beside a private Python module that names the interpreter it was installed for.
pub(crate) const INTERPRETER_FILE: &str = "interpreter";
/// The file in a private folder that tells the version of what is there, where nothing else does.
pub(crate) const VERSION_FILE: &str = "version";

/// How long a question to another program may take.
const ASK_LIMIT: Duration = Duration::from_secs(5);

/// The path and extra arguments that the configuration gives an adapter.
pub type Configured<'a> = Option<(&'a Path, &'a [String])>;

/// Looks for an adapter, with the PATH of the client that asks.
///
/// # Errors
/// Refused, when the configured path is no program, the adapter is nowhere, or it is too old to be used; the hint is what
/// to do about it.
pub fn find(
    adapter: &'static Adapter,
    paths: &Paths,
    configured: Configured<'_>,
    env_path: &str,
) -> Result<Found, Failure> {
    if adapter.quirks.agents {
        // It is this program.
        return Ok(Found::program(adapter, PathBuf::new()));
    }
    let folder = private_folder(adapter, paths);
    let mut found = match configured {
        Some((path, _)) => find_configured(adapter, &expand_home(path), &folder, paths, env_path)?,
        None if adapter.find.python_module.is_some() => python::find(adapter, &folder, env_path)?,
        None if adapter.find.file.is_some() => find_file(adapter, &folder, env_path)?,
        None => find_program(adapter, &folder, env_path)?,
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
    if let Some(module) = adapter.find.python_module {
        return python::find_configured(adapter, module, path, folder, env_path, &wrong);
    }
    // A file that something else runs, or the folder that it lies in as in the private one.
    if let Some(file) = adapter.find.file {
        let whole = path.join(file);
        let file = if path.is_dir() { &whole } else { path };
        if !file.is_file() {
            return Err(wrong(&format!("holds no {}", file.display())));
        }
        return run_by_program(adapter, file.to_path_buf(), folder, env_path);
    }
    if !is_executable(path) {
        return Err(wrong("is not an executable file"));
    }
    let found = program(adapter, path.to_path_buf(), folder);
    too_old(&found).map_or(Ok(found), Err)
}

/// The best program that is new enough.
fn find_program(adapter: &'static Adapter, folder: &Path, env_path: &str) -> Result<Found, Failure> {
    let mut older = None;
    for path in programs(adapter, folder, env_path) {
        let found = program(adapter, path, folder);
        match too_old(&found) {
            None => return Ok(found),
            Some(failure) => older = older.or(Some(failure)),
        }
    }
    Err(older.unwrap_or_else(|| not_installed(adapter)))
}

/// A file and the program that runs it.
fn find_file(adapter: &'static Adapter, folder: &Path, env_path: &str) -> Result<Found, Failure> {
    let private = adapter.find.file.map(|file| folder.join(file)).filter(|file| file.is_file());
    let file = private.or_else(|| editors::kept(adapter).find(|file| file.is_file()));
    run_by_program(adapter, file.ok_or_else(|| not_installed(adapter))?, folder, env_path)
}

fn run_by_program(adapter: &'static Adapter, file: PathBuf, folder: &Path, env_path: &str) -> Result<Found, Failure> {
    let names = names(adapter);
    let program = names.iter().find_map(|name| on_path(name, env_path)).ok_or_else(|| {
        Failure::refused(format!("{} needs {}, and PATH has none", adapter.id, names.join(" or ")))
            .hint(format!("install {}, or add its folder to PATH", names.first().map_or("it", String::as_str)))
    })?;
    let found = Found { version: version::of_file(&file, folder), ..Found::program(adapter, program) };
    let found = Found { file: Some(file), ..found };
    too_old(&found).map_or(Ok(found), Err)
}

/// The executables that may be it, best first.
fn programs<'a>(adapter: &'a Adapter, folder: &Path, env_path: &'a str) -> impl Iterator<Item = PathBuf> + 'a {
    let names = names(adapter);
    let places = [folder.join("bin"), folder.join("node_modules/.bin"), folder.to_path_buf()];
    let private: Vec<PathBuf> =
        names.iter().flat_map(|name| places.iter().map(move |folder| folder.join(name))).collect();
    let on_path: Vec<PathBuf> = names
        .iter()
        .flat_map(|name| {
            let folders = std::env::split_paths(env_path).filter(|folder| folder.is_absolute());
            folders.map(move |folder| folder.join(name))
        })
        .collect();
    private
        .into_iter()
        .chain(on_path)
        .chain(well_known(adapter, names))
        .chain(editors::kept(adapter))
        .chain(std::iter::once_with(|| by_xcrun(adapter)).flatten())
        .filter(|path| is_executable(path))
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

fn well_known(adapter: &Adapter, names: Vec<String>) -> impl Iterator<Item = PathBuf> {
    let versions = adapter.find.versions.clone();
    let folders = WELL_KNOWN.iter().flat_map(move |pattern| match pattern.contains('*') {
        true => versions.clone().rev().map(|v| pattern.replace('*', &v.to_string())).collect(),
        false => vec![(*pattern).to_string()],
    });
    folders.flat_map(move |folder| {
        let folder = expand_home(Path::new(&folder));
        names.iter().map(|name| folder.join(name)).collect::<Vec<_>>()
    })
}

fn by_xcrun(adapter: &Adapter) -> Option<PathBuf> {
    let name = adapter.find.xcrun.filter(|_| cfg!(target_os = "macos"))?;
    let (status, text) = ask(Command::new("/usr/bin/xcrun").args(["--find", name]), ASK_LIMIT)?;
    let path = PathBuf::from(text.trim());
    (status.success() && is_executable(&path)).then_some(path)
}

fn program(adapter: &'static Adapter, path: PathBuf, folder: &Path) -> Found {
    let version = version::of_program(&path, folder);
    Found { version, ..Found::program(adapter, path) }
}

fn entries(folder: &Path, prefix: &str) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    entries
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(prefix))
        .map(|entry| entry.path())
        .collect()
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
        return Failure::refused(format!("{} can't be started: PATH has no program `{}`", adapter.id, own.program))
            .hint(format!("correct `command` below [adapters.{}] in config.toml", adapter.id));
    }
    let failure =
        Failure::refused(format!("{} is not installed (it debugs {})", adapter.id, adapter.languages.join(", ")));
    match adapter.install.note {
        Some(note) if !crate::setup::installs(adapter) => failure.hint(note),
        _ => failure.hint(format!("bugeye setup {}", adapter.install.setup_name)),
    }
}

/// Whether a failure of [`find`] only says that there is nothing.
pub(crate) fn is_missing(adapter: &Adapter, failure: &Failure) -> bool {
    failure.message == not_installed(adapter).message
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
