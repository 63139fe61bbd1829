//! A Python module, by the interpreter's own pip; one that has none is lent it by a virtual environment.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use super::child::{Done, run};
use super::private::remove;
use super::{Installer, program_name};
use crate::failure::Failure;
use crate::find::{self, INTERPRETER_FILE, ask};

impl Installer<'_> {
    pub(super) fn pip(&mut self, fresh: &Path, requirement: &str) -> Result<(), Failure> {
        let python = find::interpreter(&self.env_path).ok_or_else(|| {
            Failure::refused(format!("{} needs Python 3, and PATH has none", self.adapter.id))
                .hint("install python3, then try again")
        })?;
        let venv = fresh.with_extension("venv");
        remove(&venv)?;
        let installed = self.pip_or_venv(&python, &venv, fresh, requirement);
        let _ = remove(&venv);
        installed?;
        record_interpreter(&python, fresh);
        Ok(())
    }

    fn pip_or_venv(&mut self, python: &Path, venv: &Path, target: &Path, requirement: &str) -> Result<(), Failure> {
        (self.report)(&format!("installing {requirement} with {} -m pip", program_name(python)));
        let done = self.pip_install(python, target, requirement)?;
        if !done.output.contains("No module named pip") {
            return done.or_failure(&format!("{requirement} could not be installed")).map_err(|failure| {
                let command = format!("{} -m pip download --no-deps {requirement}", program_name(python));
                failure.hint(format!("check that the package index can be reached: `{command}`"))
            });
        }
        (self.report)("this Python has no pip; making a virtual environment for its own");
        let no_pip = "install pip (Debian: `apt-get install python3-pip`), then try again";
        let mut command = Command::new(python);
        command.args(["-m", "venv", "--clear"]).arg(venv).current_dir("/");
        run(&mut command, "venv", self.report)?
            .or_failure("this Python has neither pip nor a way to make a virtual environment")
            .map_err(|failure| failure.hint(no_pip))?;
        self.pip_install(&venv.join("bin/python"), target, requirement)?
            .or_failure(&format!("{requirement} could not be installed"))
            .map_err(|failure| failure.hint(no_pip))
    }

    fn pip_install(&mut self, python: &Path, target: &Path, requirement: &str) -> Result<Done, Failure> {
        let mut command = Command::new(python);
        command
            .args(["-m", "pip", "install", "--no-input", "--disable-pip-version-check", "--progress-bar", "off"])
            .arg("--target")
            .arg(target)
            .arg(requirement)
            // `-m` imports from the current directory first: not from the caller's.
            .current_dir(target)
            .env("PIP_ROOT_USER_ACTION", "ignore")
            // A user's own settings that contradict `--target`.
            .env("PIP_USER", "0")
            .env("PIP_REQUIRE_VIRTUALENV", "0");
        run(&mut command, "pip", self.report)
    }
}

/// The interpreter's real executable, written beside what was installed for it: compiled parts fit no other, and a
/// shim costs a shell at every start.
fn record_interpreter(python: &Path, folder: &Path) {
    let mut command = Command::new(python);
    command.args(["-c", "import sys; print(sys.executable)"]).current_dir("/");
    if let Some((status, text)) = ask(&mut command, Duration::from_secs(5))
        && status.success()
    {
        // Without the file the first Python on PATH is used, which works as well.
        let _ = fs::write(folder.join(INTERPRETER_FILE), text);
    }
}
