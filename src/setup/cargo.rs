//! A crate's program, built by cargo into the private folder's `bin`.

use std::path::Path;
use std::process::Command;

use super::Installer;
use super::child::run;
use super::private::record_version;
use crate::failure::Failure;

impl Installer<'_> {
    /// `name` has its version: `x@1.2.3`.
    pub(super) fn cargo(&mut self, fresh: &Path, name: &str) -> Result<(), Failure> {
        (self.report)(&format!("building {name} with cargo install, which takes a few minutes"));
        let mut command = Command::new(self.tool("cargo")?);
        command
            .args(["install", "--locked", "--root"])
            .arg(fresh)
            .arg(name)
            // A project's own settings and toolchain are not meant for this.
            .current_dir("/")
            .env("PATH", &self.env_path)
            .env("CARGO_TERM_COLOR", "never")
            .env("CARGO_NET_RETRY", "1")
            .env_remove("CARGO_BUILD_TARGET");
        run(&mut command, "cargo", self.report)?
            .or_failure(&format!("{name} could not be built"))
            .map_err(|failure| failure.hint(format!("check that the registry can be reached: `cargo info {name}`")))?;
        let version = name.rsplit_once('@').map_or("", |(_, version)| version);
        record_version(fresh, version);
        Ok(())
    }
}
