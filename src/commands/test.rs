//! `test`: one test of the project, under the debugger.

use std::path::{Path, PathBuf};

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::report::{Report, WaitArgs};
use super::start::{LaunchArgs, launch};
use super::{Command, Group, Past};
use crate::failure::{Failure, Kind};
use crate::hub::launch::{Blueprint, variable};
use crate::hub::{Context, places};
use crate::locate::{self, Asked};
use crate::model::View;

/// Run one test under the debugger and stop where it fails
///
/// The project's files tell what runs its tests; what has to be built is built. Only that test runs, and it stops at its
/// breakpoints and where it fails, with frames and locals. One that passes answers `exited: code 0`.
#[derive(Debug, Clone, Default, Args, Serialize, Deserialize, JsonSchema)]
pub struct Test {
    /// The test's name, as its runner prints it; without modules or classes where that is enough.
    #[arg(value_name = "NAME")]
    pub test: String,
    /// The debug adapter to use.
    #[arg(long, value_name = "NAME")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adapter: Option<String>,
    /// The project's folder, or one in it.
    #[arg(long, value_name = "DIR")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// Set a variable of the test's environment (K=V).
    #[arg(long, value_name = "K=V")]
    #[serde(default)]
    pub env: Vec<String>,
    /// Set a breakpoint for this session alone (file:line, function).
    #[arg(long = "break", short = 'b', value_name = "PLACE")]
    #[serde(default)]
    pub breaks: Vec<String>,
    /// A name for the session.
    #[arg(long)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[command(flatten)]
    #[serde(flatten)]
    pub wait: WaitArgs,
    /// Exit with the test's own code, if it ended.
    #[arg(long)]
    #[serde(default)]
    pub propagate: bool,
}

/// Command lines that run the test, each with its project's folder, and why others do not.
#[derive(Debug, Default)]
struct Candidates {
    found: Vec<(PathBuf, Vec<String>)>,
    failures: Vec<Failure>,
}

impl Candidates {
    /// Looks in the folder and upwards, to the root of the project.
    fn find(cwd: &Path, name: &str, asked: &Asked) -> Self {
        let top = places::project_of(cwd);
        let mut candidates = Self::default();
        for folder in cwd.ancestors().take_while(|folder| folder.starts_with(&top)) {
            for answer in locate::tests(folder, name, asked) {
                match answer {
                    Ok(words) => candidates.found.push((folder.to_path_buf(), words)),
                    Err(failure) => candidates.failures.push(failure),
                }
            }
            if !candidates.found.is_empty() {
                break;
            }
        }
        candidates
    }

    /// Why there is nothing to run: the failure that says most.
    fn failure(mut self, name: &str) -> Failure {
        if let Some(at) = self.failures.iter().position(|failure| failure.kind != Kind::NotFound) {
            return self.failures.swap_remove(at);
        }
        // The last one looked at most of the project.
        self.failures.pop().unwrap_or_else(|| {
            Failure::not_found("nothing here says what runs the tests")
                .hint("known are projects of Cargo, pytest, unittest, CTest and make, and what `bugeye doctor` lists")
                .hint(format!("give the whole command: bugeye run -- COMMAND {name}"))
        })
    }
}

impl Test {
    fn blueprint(&self, cx: &Context) -> Result<Blueprint, Failure> {
        let base = cx.caller.cwd.clone();
        // A place is named from where the caller stands, wherever the test runs.
        let absolute = |place: &String| match place.rsplit_once(':') {
            Some((file, line)) if base.join(file).is_file() => format!("{}:{line}", base.join(file).display()),
            _ => place.clone(),
        };
        let arguments = LaunchArgs {
            adapter: self.adapter.clone(),
            cwd: self.cwd.clone(),
            env: self.env.clone(),
            breaks: self.breaks.iter().map(absolute).collect(),
            name: self.name.clone(),
            ..LaunchArgs::default()
        };
        arguments.blueprint(cx)
    }
}

impl Command for Test {
    const NAME: &'static str = "test";
    const GROUP: Group = Group::Sessions;
    const PAST: Past = Past::Apart;
    const SPAWNS: bool = true;
    type Output = Report;

    async fn run(self, cx: Context) -> Result<Report, Failure> {
        if self.test.is_empty() {
            return Err(Failure::usage("no test was named").hint("bugeye test NAME"));
        }
        let blueprint = self.blueprint(&cx)?;
        if !blueprint.cwd.is_dir() {
            return Err(Failure::not_found(format!("there is no directory {}", blueprint.cwd.display())));
        }
        let env_path = variable(&blueprint.env, "PATH").unwrap_or_default();
        let asked = Asked { words: &[], cwd: &blueprint.cwd, env: &blueprint.env, env_path: &env_path };
        let mut candidates = Candidates::find(&blueprint.cwd, &self.test, &asked);
        let view = View::default();
        for (folder, words) in std::mem::take(&mut candidates.found) {
            let blueprint = Blueprint { words, cwd: folder, ..blueprint.clone() };
            match launch(&cx, blueprint, Some(self.wait.to_wait(view)), view).await {
                // Another runner may have it.
                Err(failure) if failure.kind == Kind::NotFound => candidates.failures.push(failure),
                Err(failure) => return Err(failure),
                Ok(mut report) => {
                    report.notes.extend(self.wait.note());
                    if self.propagate {
                        report.propagate();
                    }
                    return Ok(report);
                }
            }
        }
        Err(candidates.failure(&self.test))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_project_around_a_folder_is_asked() {
        let root = tempfile::tempdir().unwrap();
        let inner = root.path().join("src/deep");
        std::fs::create_dir_all(&inner).unwrap();
        let asked = Asked { words: &[], cwd: &inner, env: &[], env_path: "" };
        let nothing = Candidates::find(&inner, "adds", &asked);
        assert!(nothing.failure("adds").hints[1].contains("bugeye run -- COMMAND adds"));
        std::fs::write(root.path().join("Cargo.toml"), "[package]\n").unwrap();
        let found = Candidates::find(&inner, "adds", &asked).found;
        assert_eq!((found.len(), found[0].0.as_path()), (1, root.path()));
        assert_eq!(found[0].1[..2], ["cargo", "test"]);
    }

    #[test]
    fn a_failure_that_can_be_mended_comes_before_one_that_says_no() {
        let failures = vec![Failure::not_found("none"), Failure::refused("not configured"), Failure::not_found("last")];
        assert_eq!(Candidates { found: Vec::new(), failures }.failure("x").message, "not configured");
    }
}
