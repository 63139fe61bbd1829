//! Installing adapters: by the language's own package manager into a private folder where there is such a way, else by
//! the system's.
//!
//! Apart from the `setup` command, since other commands install too. Nothing here needs root silently: what must be
//! asked is asked, and where nobody can be asked the failure says what to run by hand. Each way to install is a file.

mod cargo;
mod child;
mod go;
mod languages;
mod maven;
mod npm;
mod pip;
mod private;
mod system;
#[cfg(test)]
mod tests;

use std::io::IsTerminal;
use std::path::Path;

use crate::adapters::{Adapter, Found};
use crate::failure::Failure;
use crate::find::{self, on_path};
use crate::paths::Paths;
use system::System;

pub use languages::{Absent, absent};

/// What `setup` may do without asking.
#[derive(Debug, Clone, Copy, Default)]
pub struct Permission {
    /// Install again what is there.
    pub force: bool,
    /// Questions are answered with yes.
    pub yes: bool,
    /// There is somebody at the terminal who can be asked.
    pub interactive: bool,
}

impl Permission {
    /// What this process's own terminal allows.
    #[must_use]
    pub fn of_terminal(force: bool, yes: bool) -> Self {
        let interactive = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
        Self { force, yes, interactive }
    }
}

/// Installs an adapter where that needs no question; what is there already is left as it is.
///
/// # Errors
/// Refused, when it can't be installed: the hints say what to run by hand.
pub fn install(adapter: &'static Adapter, paths: &Paths, report: &mut dyn FnMut(&str)) -> Result<Found, Failure> {
    let env_path = std::env::var("PATH").unwrap_or_default();
    match find::find(adapter, paths, None, &env_path) {
        Ok(found) => Ok(found),
        Err(_) => install_with(adapter, paths, Permission::default(), report),
    }
}

/// Installs an adapter, whether or not it is there.
///
/// # Errors
/// As [`install`].
pub fn install_with(
    adapter: &'static Adapter,
    paths: &Paths,
    permission: Permission,
    report: &mut dyn FnMut(&str),
) -> Result<Found, Failure> {
    let env_path = std::env::var("PATH").unwrap_or_default();
    let mut installer = Installer { adapter, paths, env_path, permission, report };
    installer.run()?;
    find::find(adapter, paths, None, &installer.env_path).map_err(|failure| {
        let hints = failure.hints.clone();
        let after = Failure::refused(format!("{} was installed and can't be used", adapter.id)).cause(failure);
        hints.into_iter().fold(after, Failure::hint)
    })
}

/// The commands that [`install_with`] would run, as far as they are known before the first.
#[must_use]
pub fn plan(adapter: &'static Adapter, paths: &Paths) -> Vec<String> {
    let env_path = std::env::var("PATH").unwrap_or_default();
    let folder = find::private_folder(adapter, paths);
    ways(adapter, &env_path).into_iter().take(1).map(|way| way.by_hand(&folder)).collect()
}

/// Whether there is any way to install an adapter, on whatever machine.
#[must_use]
pub fn installs(adapter: &Adapter) -> bool {
    !private_ways(adapter).is_empty() || !system::packages(adapter).is_empty()
}

/// One way to install an adapter.
#[derive(Debug)]
enum Way {
    /// A PyPI requirement, with an interpreter's own pip.
    Pip(&'static str),
    /// An npm package.
    Npm(&'static str),
    /// A Go command.
    Go(&'static str),
    /// A crate.
    Cargo(&'static str),
    /// Maven artifacts.
    Maven(&'static [&'static str]),
    System(System),
}

impl Way {
    /// The programs of which one must be there.
    fn tools(&self) -> &'static [&'static str] {
        match self {
            Self::Pip(_) => &["python3", "python"],
            Self::Npm(_) => &["npm"],
            Self::Go(_) => &["go"],
            Self::Cargo(_) => &["cargo"],
            Self::Maven(_) => &["mvn"],
            Self::System(_) => &[],
        }
    }

    /// What a person would type.
    fn by_hand(&self, folder: &Path) -> String {
        let folder = folder.display();
        match self {
            Self::Pip(requirement) => format!("python3 -m pip install --target {folder} {requirement}"),
            Self::Npm(package) => format!("npm install --prefix {folder} {package}"),
            Self::Go(module) => format!("GOBIN={folder}/bin go install {module}"),
            Self::Cargo(name) => format!("cargo install --root {folder} --locked {name}"),
            Self::Maven(artifacts) => {
                format!("mvn dependency:copy-dependencies -DoutputDirectory={folder} (of {})", artifacts.join(", "))
            }
            Self::System(system) => system.by_hand(),
        }
    }
}

/// The ways that need no root, best first.
fn private_ways(adapter: &Adapter) -> Vec<Way> {
    let install = &adapter.install;
    let maven = (!install.maven.is_empty()).then_some(Way::Maven(install.maven));
    let named = [
        install.pip.map(Way::Pip),
        install.npm.map(Way::Npm),
        install.go.map(Way::Go),
        install.cargo.map(Way::Cargo),
        maven,
    ];
    named.into_iter().flatten().collect()
}

/// The ways that this machine has, in the order they are tried.
fn ways(adapter: &Adapter, env_path: &str) -> Vec<Way> {
    let has_tool = |way: &Way| way.tools().iter().any(|tool| on_path(tool, env_path).is_some());
    let private = private_ways(adapter).into_iter().filter(has_tool);
    private.chain(System::here(adapter, env_path).map(Way::System)).collect()
}

/// One installation under way.
struct Installer<'a> {
    adapter: &'static Adapter,
    paths: &'a Paths,
    env_path: String,
    permission: Permission,
    report: &'a mut dyn FnMut(&str),
}

impl Installer<'_> {
    /// Tries every way in turn; the failure tells of each.
    fn run(&mut self) -> Result<(), Failure> {
        let mut failed: Option<Failure> = None;
        for way in ways(self.adapter, &self.env_path) {
            if let Some(failure) = &failed {
                (self.report)(&format!("that failed, so another way is tried: {}", failure.message));
            }
            let tried = match &way {
                Way::Pip(requirement) => self.privately(|installer, fresh| installer.pip(fresh, requirement)),
                Way::Npm(package) => self.privately(|installer, fresh| installer.npm(fresh, package)),
                Way::Go(module) => self.privately(|installer, fresh| installer.go(fresh, module)),
                Way::Cargo(name) => self.privately(|installer, fresh| installer.cargo(fresh, name)),
                Way::Maven(artifacts) => self.privately(|installer, fresh| installer.maven(fresh, artifacts)),
                Way::System(system) => self.install_package(system),
            };
            match tried {
                Ok(()) => return Ok(()),
                Err(failure) => failed = Some(failed.map_or(failure.clone(), |first| both(first, &failure))),
            }
        }
        Err(failed.unwrap_or_else(|| self.no_way()))
    }

    /// This machine has nothing that could install it.
    fn no_way(&self) -> Failure {
        let adapter = self.adapter;
        if !installs(adapter) {
            let failure = Failure::refused(format!("{} is not something that can be installed from here", adapter.id));
            return failure.hint(adapter.install.note.unwrap_or("install it by hand"));
        }
        let mut tools: Vec<&str> =
            private_ways(adapter).iter().filter_map(|way| way.tools().first().copied()).collect();
        tools.extend(system::packages(adapter).iter().map(|(manager, _, _)| *manager));
        let failure = Failure::refused(format!("nothing that installs {} was found here", adapter.id))
            .cause(format!("looked for {} on PATH", tools.join(", ")))
            .hint(self.by_hand());
        adapter.install.note.into_iter().fold(failure, Failure::hint)
    }

    fn by_hand(&self) -> String {
        format!("install {} by hand, then put its path into `[adapters.{0}] path` of config.toml", self.adapter.id)
    }

    /// The path of a tool that was seen to be there.
    fn tool(&self, name: &str) -> Result<std::path::PathBuf, Failure> {
        on_path(name, &self.env_path).ok_or_else(|| Failure::refused(format!("PATH has no {name}")))
    }
}

/// One failure that tells of two ways.
fn both(first: Failure, second: &Failure) -> Failure {
    let hints = second.hints.clone();
    let failure = first.cause(format!("and then {second}"));
    hints.into_iter().fold(failure, Failure::hint)
}

fn program_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
