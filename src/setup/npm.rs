//! An npm package, with all it needs, below the private folder's `node_modules`.

use std::path::Path;
use std::process::Command;

use super::Installer;
use super::child::run;
use super::private::record_version;
use crate::failure::Failure;

impl Installer<'_> {
    /// `package` has its version: `x@1.2.3`.
    pub(super) fn npm(&mut self, fresh: &Path, package: &str) -> Result<(), Failure> {
        (self.report)(&format!("installing {package} with npm"));
        let mut command = Command::new(self.tool("npm")?);
        command
            .args(["install", "--no-audit", "--no-fund", "--no-update-notifier", "--no-progress", "--loglevel=error"])
            .args(["--global=false", "--omit=dev"])
            .arg("--prefix")
            .arg(fresh)
            .arg(package)
            .current_dir(fresh)
            .env("PATH", &self.env_path)
            // By itself it waits more than a minute between its attempts where there is no network.
            .env("npm_config_fetch_retries", "1")
            .env("npm_config_fetch_retry_mintimeout", "1000")
            .env("npm_config_fetch_retry_maxtimeout", "2000");
        run(&mut command, "npm", self.report)?
            .or_failure(&format!("{package} could not be installed"))
            .map_err(|failure| failure.hint(format!("check that the registry can be reached: `npm view {package}`")))?;
        let version = package.rsplit_once('@').map_or("", |(_, version)| version);
        record_version(fresh, version);
        Ok(())
    }
}
