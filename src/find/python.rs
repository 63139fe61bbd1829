//! Adapters that are a Python module: in the private folder, or where an interpreter keeps its own.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{ASK_LIMIT, INTERPRETER_FILE, ask, entries, is_executable, not_installed, on_path};
use crate::adapters::{Adapter, Found};
use crate::failure::Failure;

/// The Python that a user of this PATH gets.
#[must_use]
pub fn interpreter(env_path: &str) -> Option<PathBuf> {
    ["python3", "python"].iter().find_map(|name| on_path(name, env_path))
}

pub(super) fn find(adapter: &'static Adapter, folder: &Path, env_path: &str) -> Result<Found, Failure> {
    let module = adapter.find.python_module.unwrap_or_default();
    if has_module(folder, module) {
        let python = recorded_interpreter(folder).or_else(|| interpreter(env_path));
        return Ok(in_folder(adapter, module, folder, python.ok_or_else(|| no_python(adapter))?));
    }
    let python = interpreter(env_path).ok_or_else(|| no_python(adapter))?;
    in_interpreter(adapter, module, &python, env_path).ok_or_else(|| not_installed(adapter))
}

/// A configured folder holds the module; a configured file is the interpreter to run it with.
pub(super) fn find_configured(
    adapter: &'static Adapter,
    module: &str,
    path: &Path,
    folder: &Path,
    env_path: &str,
    wrong: &dyn Fn(&str) -> Failure,
) -> Result<Found, Failure> {
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

fn in_folder(adapter: &'static Adapter, module: &str, folder: &Path, python: PathBuf) -> Found {
    Found {
        module_path: Some(folder.to_path_buf()),
        version: module_version(folder, module),
        ..Found::program(adapter, python)
    }
}

/// A module in an interpreter's own library folders.
fn in_interpreter(adapter: &'static Adapter, module: &str, python: &Path, env_path: &str) -> Option<Found> {
    let found = |program: PathBuf, folder: Option<&Path>| Found {
        version: folder.and_then(|folder| module_version(folder, module)),
        ..Found::program(adapter, program)
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

fn recorded_interpreter(folder: &Path) -> Option<PathBuf> {
    let text = std::fs::read_to_string(folder.join(INTERPRETER_FILE)).ok()?;
    Some(PathBuf::from(text.trim_end())).filter(|path| is_executable(path))
}

fn no_python(adapter: &Adapter) -> Failure {
    Failure::refused(format!("{} needs Python, and PATH has neither `python3` nor `python`", adapter.id))
        .hint("install Python 3, or add its folder to PATH")
}
