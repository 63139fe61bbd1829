//! A Go command, built by the Go tool into the private folder's `bin`.

use std::path::Path;
use std::process::Command;

use super::Installer;
use super::child::run;
use super::private::record_version;
use crate::failure::Failure;

impl Installer<'_> {
    /// `module` has its version: `example.org/cmd/x@v1.2.3`.
    pub(super) fn go(&mut self, fresh: &Path, module: &str) -> Result<(), Failure> {
        (self.report)(&format!("building {module} with go install"));
        let mut command = Command::new(self.tool("go")?);
        command
            .args(["install", module])
            .current_dir("/")
            .env("PATH", &self.env_path)
            .env("GOBIN", fresh.join("bin"))
            // A user's own settings that contradict a build for this machine, or by version.
            .env("GO111MODULE", "on")
            .env("GOFLAGS", "")
            .env("GOWORK", "off")
            .env_remove("GOOS")
            .env_remove("GOARCH");
        run(&mut command, "go", self.report)?.or_failure(&format!("{module} could not be built")).map_err(
            |failure| {
                let name = module.split('@').next().unwrap_or(module);
                failure
                    .hint(format!("check that the module proxy can be reached: `go list -m -versions {}`", root(name)))
            },
        )?;
        let version = module.rsplit_once('@').map_or("", |(_, version)| version);
        record_version(fresh, version);
        Ok(())
    }
}

/// The module that a command is a part of, as far as the usual layout tells.
fn root(command: &str) -> &str {
    command.split_once("/cmd/").map_or(command, |(module, _)| module)
}
