//! The system's package manager, for what has no private way. It needs root, which is never taken silently.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::child::{Done, run};
use super::{Installer, program_name};
use crate::adapters::Adapter;
use crate::failure::Failure;
use crate::find::{ask, on_path};

/// A package manager of this machine, and the packages to try, best first.
#[derive(Debug)]
pub(super) struct System {
    manager: PathBuf,
    kind: Manager,
    packages: Vec<&'static str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Manager {
    Apt,
    Dnf,
    Brew,
}

/// The package managers that have an adapter, each with its packages.
pub(super) fn packages(adapter: &Adapter) -> Vec<(&'static str, Manager, Vec<&'static str>)> {
    let install = &adapter.install;
    let mut choices = vec![
        ("apt-get", Manager::Apt, install.apt.to_vec()),
        ("dnf", Manager::Dnf, install.dnf.into_iter().collect()),
        ("brew", Manager::Brew, install.brew.into_iter().collect()),
    ];
    choices.retain(|(_, _, packages)| !packages.is_empty());
    choices
}

impl System {
    pub fn here(adapter: &Adapter, env_path: &str) -> Option<Self> {
        packages(adapter)
            .into_iter()
            .find_map(|(name, kind, packages)| Some(Self { manager: on_path(name, env_path)?, kind, packages }))
    }

    /// What a person would type for the best package.
    pub fn by_hand(&self) -> String {
        self.by_hand_for(self.packages.first().copied().unwrap_or_default())
    }

    fn by_hand_for(&self, package: &str) -> String {
        let sudo = if self.needs_root() { "sudo " } else { "" };
        match self.kind {
            Manager::Apt => format!("{sudo}apt-get update && {sudo}apt-get install -y {package}"),
            Manager::Dnf => format!("{sudo}dnf install -y {package}"),
            Manager::Brew => format!("brew install {package}"),
        }
    }

    /// The first package that apt can install, as its lists are now.
    fn known_package(&self) -> Option<&'static str> {
        let mut command = Command::new(self.manager.with_file_name("apt-cache"));
        command.arg("policy").args(&self.packages).env("LC_ALL", "C");
        let (_, text) = ask(&mut command, Duration::from_secs(20))?;
        first_known(&self.packages, &text)
    }

    fn needs_root(&self) -> bool {
        self.kind != Manager::Brew && !rustix::process::geteuid().is_root()
    }
}

impl Installer<'_> {
    pub(super) fn install_package(&mut self, system: &System) -> Result<(), Failure> {
        let prefix = if system.needs_root() { self.root_prefix(system)? } else { Vec::new() };
        match system.kind {
            Manager::Apt => self.install_by_apt(system, &prefix),
            Manager::Dnf | Manager::Brew => {
                let package = system.packages.first().copied().unwrap_or_default();
                let command = if self.permission.force { "reinstall" } else { "install" };
                let yes = if system.kind == Manager::Dnf { &["-y"][..] } else { &[] };
                let mut args = vec![command];
                args.extend(yes);
                args.push(package);
                (self.report)(&format!("installing {package} with {}", program_name(&system.manager)));
                self.package_command(&prefix, &system.manager, &args)
                    .and_then(|done| done.or_failure(&format!("{package} could not be installed")))
                    .map_err(|failure| failure.hint(system.by_hand()))
            }
        }
    }

    fn install_by_apt(&mut self, system: &System, prefix: &[String]) -> Result<(), Failure> {
        let mut updated = false;
        loop {
            let Some(package) = system.known_package() else {
                if updated {
                    return Err(Failure::refused(format!(
                        "this system's packages have no {}",
                        system.packages.join(" or ")
                    ))
                    .hint(self.by_hand()));
                }
                updated = true;
                self.update_lists(system, prefix)?;
                continue;
            };
            (self.report)(&format!("installing {package} with apt-get"));
            // Versions of lldb exclude each other through their Python packages: never take away what somebody uses.
            let mut args = vec!["install", "-y", "--no-install-recommends", "--no-remove"];
            if self.permission.force {
                args.push("--reinstall");
            }
            args.push(package);
            let done = self.package_command(prefix, &system.manager, &args)?;
            if done.status.success() {
                return Ok(());
            }
            if done.output.contains("remove is disabled") {
                return Err(done
                    .failure(&format!("{package} would take the place of another package"))
                    .hint(format!("if that is fine: sudo apt-get install {package}")));
            }
            // Old lists name packages that the mirror no longer has.
            if updated {
                return Err(done
                    .failure(&format!("{package} could not be installed"))
                    .hint(system.by_hand_for(package)));
            }
            updated = true;
            self.update_lists(system, prefix)?;
        }
    }

    fn update_lists(&mut self, system: &System, prefix: &[String]) -> Result<(), Failure> {
        (self.report)("fetching the package lists with apt-get update");
        self.package_command(prefix, &system.manager, &["update"])?
            .or_failure("the package lists could not be fetched")
            .map_err(|failure| failure.hint("check the network, then try again").hint(system.by_hand()))
    }

    fn package_command(&mut self, prefix: &[String], program: &Path, args: &[&str]) -> Result<Done, Failure> {
        let mut words: Vec<String> = prefix.to_vec();
        words.extend(["env".into(), "DEBIAN_FRONTEND=noninteractive".into(), program.display().to_string()]);
        words.extend(args.iter().map(ToString::to_string));
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).current_dir("/");
        run(&mut command, &program_name(program), self.report)
    }

    /// The words that make a command run as root, when that was allowed.
    fn root_prefix(&mut self, system: &System) -> Result<Vec<String>, Failure> {
        let refused = |why: &str| {
            Failure::refused(format!("installing {} needs root, {why}", self.adapter.id)).hint(system.by_hand())
        };
        let Some(sudo) = on_path("sudo", &self.env_path) else {
            return Err(refused("and there is no sudo"));
        };
        let sudo = sudo.display().to_string();
        let without_password = ask(Command::new(&sudo).args(["-n", "true"]), Duration::from_secs(5));
        if without_password.is_some_and(|(status, _)| status.success()) {
            return Ok(vec![sudo, "-n".into()]);
        }
        if !self.permission.interactive {
            return Err(refused("and there is no terminal to ask at"));
        }
        if !self.permission.yes && !confirm(&format!("Run `{}`?", system.by_hand())) {
            return Err(refused("and that was declined"));
        }
        // sudo asks for the password at the terminal itself.
        Ok(vec![sudo])
    }
}

fn first_known(packages: &[&'static str], policy: &str) -> Option<&'static str> {
    packages.iter().copied().find(|package| {
        let mut lines = policy.lines().skip_while(|line| line.strip_suffix(':') != Some(package)).skip(1);
        let candidate =
            lines.by_ref().take_while(|line| line.starts_with(' ')).find(|line| line.contains("Candidate:"));
        candidate.is_some_and(|line| !line.ends_with("(none)"))
    })
}

fn confirm(question: &str) -> bool {
    eprint!("{question} [y/N] ");
    let _ = std::io::stderr().flush();
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer).is_ok() && matches!(answer.trim(), "y" | "Y" | "yes")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_package_that_apt_knows_is_taken() {
        let policy = "lldb-19:\n  Installed: (none)\n  Candidate: (none)\n  Version table:\nlldb-18:\n  Installed: (none)\n  Candidate: 1:18.1\n";
        assert_eq!(first_known(&["lldb-22", "lldb-19", "lldb-18"], policy), Some("lldb-18"));
        assert_eq!(first_known(&["lldb-19"], policy), None);
        assert_eq!(first_known(&["lldb-19"], ""), None);
    }
}
