//! Maven artifacts and all they need, as jars in the private folder.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use super::Installer;
use super::child::run;
use super::private::{record_version, remove};
use crate::failure::Failure;

/// The goal that copies a project's dependencies, in a version that every Maven 3 can run.
const COPY: &str = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies";

impl Installer<'_> {
    /// Each artifact is `group:name:version`.
    pub(super) fn maven(&mut self, fresh: &Path, artifacts: &[&str]) -> Result<(), Failure> {
        let named = artifacts.join(", ");
        (self.report)(&format!("fetching {named} with mvn"));
        // Maven only knows projects: one is made whose dependencies they are.
        let project = fresh.join("project");
        let pom = project.join("pom.xml");
        fs::create_dir(&project)
            .and_then(|()| fs::write(&pom, project_file(artifacts)))
            .map_err(|error| Failure::io(format!("write {}", pom.display()), &error))?;
        let mut command = Command::new(self.tool("mvn")?);
        command
            .args(["--batch-mode", "--no-transfer-progress", "--file"])
            .arg(&pom)
            .arg(COPY)
            .arg(format!("-DoutputDirectory={}", fresh.display()))
            .arg("-DincludeScope=runtime")
            .current_dir(&project)
            .env("PATH", &self.env_path);
        run(&mut command, "mvn", self.report)?.or_failure(&format!("{named} could not be fetched")).map_err(
            |failure| {
                let first = artifacts.first().copied().unwrap_or_default();
                failure
                    .hint(format!("check that the repository can be reached: `mvn dependency:get -Dartifact={first}`"))
            },
        )?;
        remove(&project)?;
        let version =
            artifacts.first().and_then(|artifact| artifact.rsplit_once(':')).map_or("", |(_, version)| version);
        record_version(fresh, version);
        Ok(())
    }
}

/// A project that depends on these artifacts and has nothing else.
fn project_file(artifacts: &[&str]) -> String {
    let mut dependencies = String::new();
    for artifact in artifacts {
        let mut parts = artifact.splitn(3, ':');
        let mut part = || parts.next().unwrap_or_default();
        let _ = write!(
            dependencies,
            "<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version></dependency>",
            part(),
            part(),
            part()
        );
    }
    format!(
        "<project xmlns=\"http://maven.apache.org/POM/4.0.0\"><modelVersion>4.0.0</modelVersion>\
         <groupId>bugeye</groupId><artifactId>adapter</artifactId><version>1</version><packaging>pom</packaging>\
         <dependencies>{dependencies}</dependencies></project>\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_project_names_every_artifact() {
        let text = project_file(&["a.b:c:1.2", "d:e:3"]);
        assert!(text.contains("<groupId>a.b</groupId><artifactId>c</artifactId><version>1.2</version>"), "{text}");
        assert!(text.contains("<groupId>d</groupId><artifactId>e</artifactId><version>3</version>"), "{text}");
    }
}
