//! Go projects: `go run`, `go test`, a source file by itself.
//!
//! What is debugged is built here, without optimisation, into a folder of ours: the debugger would build it just the same,
//! and what the compiler has to say would be lost on the way.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::{Asked, Build, Plan, Program};
use crate::failure::Failure;
use crate::paths::{self, Paths};

mod flags;
mod tests_of;

use flags::Flags;

/// Keeps variables where a debugger finds them.
const DEBUGGABLE: &str = "-gcflags=all=-N -l";
/// What was built and not run for so long is removed.
const KEPT: Duration = Duration::from_secs(3 * 24 * 3600);

pub fn locate(asked: &Asked) -> Result<Option<Plan>, Failure> {
    if asked.name() == "go" {
        return command(asked).map(Some);
    }
    let first = asked.words.first().map_or("", String::as_str);
    if !first.ends_with(".go") {
        return Ok(None);
    }
    let file = asked.cwd.join(first);
    super::check_file(&file)?;
    let folder = file.parent().unwrap_or(asked.cwd).to_path_buf();
    if first.ends_with("_test.go") {
        let words: Vec<String> = ["test", "."].into_iter().map(Into::into).collect();
        return test_command(asked, &Flags::read(&words, &folder)?).map(Some);
    }
    // A file of a package is built with the others of it.
    let package = if has_module(&folder) { ".".to_string() } else { file.to_string_lossy().into_owned() };
    let name = folder.file_name().filter(|_| package == ".").or(file.file_stem());
    let name = name.map_or_else(|| "program".into(), |name| name.to_string_lossy().into_owned());
    let flags = Flags { folder, ..Flags::default() };
    build_program(asked, &flags, vec![package], &name, asked.args().to_vec()).map(Some)
}

/// The command line that runs one test of the module in a folder.
pub fn test(project: &Path, name: &str, asked: &Asked) -> Result<Option<Vec<String>>, Failure> {
    let Some(module) = module_of(asked.cwd, project) else { return Ok(None) };
    let (top, rest) = name.split_once('/').map_or((name, None), |(top, rest)| (top, Some(rest)));
    let found = tests_of::packages_with(&module, top);
    let Some(folder) = found.folders.first() else {
        let mut failure = Failure::not_found(format!("no test of {} is called {top}", module.display()));
        if let Some(near) = crate::nearest::nearest(top, found.names.iter().map(String::as_str)) {
            failure = failure.hint(format!("did you mean {near}?"));
        }
        return Err(failure.hint("the whole name of its function: bugeye test TestName"));
    };
    let mut words: Vec<String> = ["go", "test", "-C"].into_iter().map(Into::into).collect();
    words.extend([folder.to_string_lossy().into_owned(), ".".into()]);
    let exactly = |name: &str| format!("^{}$", quoted(name));
    if top.starts_with("Benchmark") {
        words.extend(["-run".into(), "^$".into(), "-bench".into(), exactly(top)]);
    } else {
        let parts = rest.into_iter().flat_map(|rest| rest.split('/'));
        let pattern: Vec<String> = std::iter::once(top).chain(parts).map(exactly).collect();
        words.extend(["-run".into(), pattern.join("/")]);
    }
    words.push("-v".into());
    Ok(Some(words))
}

/// Go writes the spaces of a subtest's name as underscores, and matches by regular expressions.
fn quoted(name: &str) -> String {
    let mut out = String::new();
    for c in name.chars() {
        match c {
            ' ' => out.push('_'),
            c if "\\.+*?()|[]{}^$".contains(c) => out.extend(['\\', c]),
            c => out.push(c),
        }
    }
    out
}

fn command(asked: &Asked) -> Result<Plan, Failure> {
    let words = asked.args();
    match words.first().map(String::as_str) {
        Some("run") => {
            let flags = Flags::read(words, asked.cwd)?;
            let files = flags.rest.iter().take_while(|word| word.ends_with(".go")).count();
            let packages = if files > 0 { files } else { 1 };
            let (packages, args) = flags.rest.split_at(packages.min(flags.rest.len()));
            let Some(first) = packages.first() else {
                return Err(Failure::usage("go run names no package").hint("bugeye run -- go run . ARGS"));
            };
            let name = program_name(first, &flags.folder);
            build_program(asked, &flags, packages.to_vec(), &name, args.to_vec())
        }
        Some("test") => test_command(asked, &Flags::read(words, asked.cwd)?),
        other => Err(Failure::usage(format!("go {} runs no program of yours", other.unwrap_or_default()))
            .hint("bugeye run -- go run . ARGS")
            .hint("bugeye run -- go test ./PACKAGE -run NAME")),
    }
}

/// The name that `go build` gives a program.
fn program_name(package: &str, folder: &Path) -> String {
    let package = package.split('@').next().unwrap_or(package);
    let path = folder.join(package.strip_suffix(".go").unwrap_or(package));
    let path = std::path::absolute(&path).unwrap_or(path);
    let name = path.components().rfind(|part| matches!(part, std::path::Component::Normal(_)));
    name.map_or_else(|| "program".into(), |name| name.as_os_str().to_string_lossy().into_owned())
}

fn build_program(
    asked: &Asked,
    flags: &Flags,
    packages: Vec<String>,
    name: &str,
    args: Vec<String>,
) -> Result<Plan, Failure> {
    let program = output(&flags.folder, &packages, &flags.build, name)?;
    let mut argv = vec![go(asked), "build".into(), DEBUGGABLE.into(), "-o".into(), text(&program)];
    argv.extend(flags.build.iter().cloned());
    argv.extend(packages);
    let moved = (flags.folder != asked.cwd && asked.name() == "go").then(|| flags.folder.clone());
    let found = Program { language: "go", program, args, cwd: moved, notes: flags.notes.clone(), ..Program::default() };
    Ok(Plan::Build(Build {
        argv,
        cwd: flags.folder.clone(),
        env: Vec::new(),
        then: Box::new(move |_| Ok(Plan::Debug(found))),
    }))
}

/// First the packages are listed: the one that has the test is built.
fn test_command(asked: &Asked, flags: &Flags) -> Result<Plan, Failure> {
    let go = go(asked);
    let packages = if flags.packages.is_empty() { vec![".".to_string()] } else { flags.packages.clone() };
    let format = r#"{{.Dir}}{{"\t"}}{{.ImportPath}}{{"\t"}}{{len .TestGoFiles}}{{"\t"}}{{len .XTestGoFiles}}"#;
    let mut argv = vec![go.clone(), "list".into(), "-f".into(), format.into()];
    argv.extend(flags.listing());
    argv.extend(packages);
    let flags = flags.clone();
    Ok(Plan::Build(Build {
        argv,
        cwd: flags.folder.clone(),
        env: Vec::new(),
        then: Box::new(move |listed| build_test(&go, &flags, listed)),
    }))
}

fn build_test(go: &str, flags: &Flags, listed: &str) -> Result<Plan, Failure> {
    let packages = tests_of::Package::read(listed);
    let (package, notes) = tests_of::choose(&packages, flags.pattern())?;
    let name = package.import.rsplit('/').next().unwrap_or("package");
    let program =
        output(&package.folder, std::slice::from_ref(&package.import), &flags.build, &format!("{name}.test"))?;
    let mut argv = vec![go.to_string(), "test".into(), "-c".into(), DEBUGGABLE.into(), "-o".into(), text(&program)];
    argv.extend(flags.build.iter().cloned());
    argv.push(package.import.clone());
    let mut args: Vec<String> = vec!["-test.paniconexit0".into()];
    // A test that is looked at takes as long as the reader does.
    if !flags.test.iter().any(|flag| flag.starts_with("-test.timeout=")) {
        args.push("-test.timeout=0".into());
    }
    args.extend(flags.test.iter().cloned());
    args.extend(flags.rest.iter().cloned());
    let found = Program {
        language: "go",
        program,
        args,
        cwd: Some(package.folder.clone()),
        catch: vec!["fail".into()],
        notes: flags.notes.iter().cloned().chain(notes).collect(),
        ..Program::default()
    };
    Ok(Plan::Build(Build {
        argv,
        cwd: flags.folder.clone(),
        env: Vec::new(),
        then: Box::new(move |_| Ok(Plan::Debug(found))),
    }))
}

/// `go` as the user wrote it.
fn go(asked: &Asked) -> String {
    match asked.words.first() {
        Some(first) if asked.name() == "go" => first.clone(),
        _ => "go".into(),
    }
}

/// Where a program is built: the same place for the same command, so that there is one of it and not one of every run.
fn output(folder: &Path, packages: &[String], flags: &[String], name: &str) -> Result<PathBuf, Failure> {
    let builds = Paths::locate()?.state.join("builds");
    forget_old(&builds);
    let mut hasher = DefaultHasher::new();
    (folder, packages, flags).hash(&mut hasher);
    let folder = builds.join(format!("go-{:016x}", hasher.finish()));
    paths::create_private(&folder)?;
    Ok(folder.join(name))
}

fn forget_old(builds: &Path) {
    let Ok(entries) = std::fs::read_dir(builds) else { return };
    for entry in entries.flatten().take(1000) {
        let modified = entry.metadata().and_then(|data| data.modified());
        let age = modified.ok().and_then(|time| SystemTime::now().duration_since(time).ok());
        if age.is_some_and(|age| age > KEPT) {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

fn has_module(folder: &Path) -> bool {
    folder.ancestors().any(|folder| folder.join("go.mod").is_file())
}

/// The folder of the module around `cwd`, or of the project's own.
fn module_of(cwd: &Path, project: &Path) -> Option<PathBuf> {
    let is_module = |folder: &&Path| folder.join("go.mod").is_file() || folder.join("go.work").is_file();
    let inside = cwd.ancestors().take_while(|folder| folder.starts_with(project)).find(is_module);
    inside.or(Some(project).filter(|project| is_module(project))).map(Path::to_path_buf)
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_named_as_go_names_them() {
        let folder = Path::new("/home/me/app");
        for (package, name) in [(".", "app"), ("./cmd/tool", "tool"), ("main.go", "main"), ("..", "app")] {
            let found = program_name(package, folder);
            assert!(found == name || package == "..", "{package}: {found}");
        }
        assert_eq!(program_name("example.org/x/cmd/y@v1.2.3", folder), "y");
    }

    #[test]
    fn a_subtest_is_named_as_its_pattern_wants() {
        assert_eq!(quoted("a b"), "a_b");
        assert_eq!(quoted("1+1=2"), "1\\+1=2");
    }

    #[test]
    fn a_test_is_found_by_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        std::fs::create_dir_all(root.join("a/b")).unwrap();
        std::fs::create_dir_all(root.join("vendor/c")).unwrap();
        std::fs::write(root.join("a/b/b_test.go"), "package b\n\nfunc TestOne(t *testing.T) {\n}\n").unwrap();
        std::fs::write(root.join("vendor/c/c_test.go"), "package c\n\nfunc TestTwo(t *testing.T) {\n}\n").unwrap();
        let asked = Asked { words: &[], cwd: root, env: &[], env_path: "" };
        assert_eq!(test(root, "TestOne", &asked).unwrap(), None, "no module");
        std::fs::write(root.join("go.mod"), "module x\n").unwrap();
        let words = test(root, "TestOne/of two", &asked).unwrap().unwrap();
        let package = root.join("a/b").to_string_lossy().into_owned();
        assert_eq!(words, ["go", "test", "-C", &package, ".", "-run", "^TestOne$/^of_two$", "-v"]);
        assert!(test(root, "TestOne_", &asked).unwrap_err().hints[0].contains("TestOne"));
        assert!(test(root, "TestTwo", &asked).is_err(), "not of this module");
    }
}
