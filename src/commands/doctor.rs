//! `doctor`: what is there, which version, what is missing, and the one command that mends it.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::setup::{by_name, shown_path};
use super::{Group, Local};
use crate::adapters::{self, Adapter};
use crate::cli::LocalContext;
use crate::config::Config;
use crate::failure::Failure;
use crate::find::{self, on_path};
use crate::greet::greet;
use crate::paths::Paths;
use crate::render::{Page, Render, quoted};
use crate::setup;

/// A socket's path may not be longer than this, with its file name.
const LONGEST_SOCKET_PATH: usize = 100;

/// Check what is installed and what is missing.
///
/// Every adapter that is found is really started and greeted, all at the same time. Exits 0 whatever it finds, unless
/// `--strict` is given.
#[derive(Debug, Args, Serialize, Deserialize, JsonSchema)]
pub struct Doctor {
    /// Exit with 1 when a language that is on this machine has no working adapter, or anything else stands in the way.
    #[arg(long)]
    #[serde(default)]
    pub strict: bool,
}

/// The state of this machine.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct DoctorReport {
    /// Adapters that are selected and can't be used.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    pub adapters: Vec<AdapterCheck>,
    pub checks: Vec<Check>,
    pub strict: bool,
}

/// One adapter, as it answered.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct AdapterCheck {
    pub adapter: String,
    pub languages: Vec<String>,
    /// Those of them that have no compiler or interpreter here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub absent: Vec<String>,
    pub state: State,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// From its start to its answer to `initialize`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub milliseconds: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// The command that mends it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// It answered.
    Ok,
    /// It is not installed.
    Missing,
    /// What is there can't be used: it is too old, or lacks something, and was not started.
    Unusable,
    /// It was started and did not answer.
    Broken,
}

/// One thing about the machine itself.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct Check {
    pub name: String,
    pub state: CheckState,
    pub detail: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CheckState {
    Ok,
    /// Something won't work; most things do.
    Limited,
    /// Nothing works before this is mended.
    Problem,
}

impl Local for Doctor {
    const NAME: &'static str = "doctor";
    const GROUP: Group = Group::Around;
    type Output = DoctorReport;

    fn run(self, cx: &LocalContext) -> Result<DoctorReport, Failure> {
        let env_path = std::env::var("PATH").unwrap_or_default();
        let adapters = examine_all(&adapters::all(), &cx.paths, &cx.config, &env_path);
        let selections = [
            ("BUGEYE_ADAPTER", Config::asked_adapter(None)),
            ("`[defaults] adapter` of config.toml", cx.config.default_adapter()),
        ];
        let warnings = selections
            .into_iter()
            .filter_map(|(origin, name)| warning(&name?, origin, &adapters::all(), &adapters))
            .chain(configured_and_wrong(&cx.config, &adapters))
            .collect();
        let checks = vec![
            runtime_directory(&cx.paths.runtime),
            ptrace_scope(),
            tool("python3", "runs Python programs", "install python3", &env_path),
            tool("cc", "builds C and C++ programs", "install a C compiler", &env_path),
        ];
        Ok(DoctorReport { warnings, adapters, checks, strict: self.strict })
    }
}

/// What to shout when a selected adapter can't be used.
fn warning(name: &str, origin: &str, registry: &[&'static Adapter], checks: &[AdapterCheck]) -> Option<String> {
    let Ok(adapter) = by_name(registry, name) else {
        return Some(format!("{origin} selects `{}`, which is no adapter", quoted(name)));
    };
    let check = checks.iter().find(|check| check.adapter == adapter.id)?;
    let what = match check.state {
        State::Ok => return None,
        State::Missing => "is not installed",
        State::Unusable => "can't be used",
        State::Broken => "does not work",
    };
    let mend = match adapters::own::of(adapter) {
        Some(_) => "look at its table in config.toml".to_string(),
        None => format!("`bugeye setup {}`", adapter.install.setup_name),
    };
    Some(format!("{origin} selects {}, which {what}: {mend}", adapter.id))
}

/// A path in the configuration is a selection too.
fn configured_and_wrong(config: &Config, checks: &[AdapterCheck]) -> Vec<String> {
    let settings = config.adapters().into_iter().filter(|(_, settings)| settings.path.is_some());
    settings
        .filter_map(|(name, _)| {
            let Ok(adapter) = by_name(&adapters::all(), &name) else {
                return Some(format!("`[adapters.{}]` of config.toml is about no adapter there is", quoted(&name)));
            };
            let check = checks.iter().find(|check| check.adapter == adapter.id && check.state != State::Ok)?;
            Some(check.problem.clone().unwrap_or_else(|| format!("{} does not work", adapter.id)))
        })
        .collect()
}

/// All of them at once: each takes a part of a second, most of it waiting.
fn examine_all(registry: &[&'static Adapter], paths: &Paths, config: &Config, env_path: &str) -> Vec<AdapterCheck> {
    std::thread::scope(|scope| {
        let examine = |adapter: &'static Adapter| scope.spawn(move || examine(adapter, paths, config, env_path));
        let at_work: Vec<_> = registry.iter().map(|adapter| examine(adapter)).collect();
        at_work.into_iter().filter_map(|thread| thread.join().ok()).collect()
    })
}

fn examine(adapter: &'static Adapter, paths: &Paths, config: &Config, env_path: &str) -> AdapterCheck {
    let languages = || adapter.languages.iter().map(ToString::to_string);
    let mut check = AdapterCheck {
        adapter: adapter.id.to_string(),
        languages: languages().collect(),
        absent: languages().filter(|language| setup::absent(language, env_path).is_some()).collect(),
        state: State::Missing,
        version: None,
        path: None,
        milliseconds: None,
        problem: None,
        fix: None,
    };
    let own = adapters::own::of(adapter).is_some();
    let setup = match own {
        true => format!("correct [adapters.{}] in {}", adapter.id, paths.config_file().display()),
        false => format!("bugeye setup {}", adapter.install.setup_name),
    };
    match find::find_with(adapter, paths, config, env_path) {
        Err(failure) => {
            if !find::is_missing(adapter, &failure) {
                check.state = State::Unusable;
            }
            check.fix = failure.hints.first().cloned().or(Some(setup));
            check.problem = Some(failure.to_string());
        }
        Ok(found) => {
            check.path = Some(shown_path(&found));
            match greet(&found, env_path) {
                Ok(greeting) => {
                    check.state = State::Ok;
                    check.milliseconds = u64::try_from(greeting.took.as_millis()).ok();
                    check.version = greeting.version;
                }
                Err(failure) => {
                    check.state = State::Broken;
                    check.problem = Some(format!("{} does not work: {failure}", adapter.id));
                    check.fix = Some(match adapter.install.note {
                        _ if own => setup,
                        Some(note) if !setup::installs(adapter) => note.to_string(),
                        _ => format!("{setup} --force"),
                    });
                }
            }
            check.version = check.version.or_else(|| found.version.clone()).or_else(|| find::asked_version(&found));
        }
    }
    check
}

fn runtime_directory(path: &Path) -> Check {
    let check = |state, detail: String, fix: Option<&str>| Check {
        name: "runtime directory".into(),
        state,
        detail,
        fix: fix.map(Into::into),
    };
    let shown = path.display();
    let elsewhere = Some("set XDG_RUNTIME_DIR to a short path of a folder that only you can enter");
    if path.as_os_str().len() + "/daemon.sock".len() > LONGEST_SOCKET_PATH {
        return check(CheckState::Problem, format!("{shown} is too long for a socket"), elsewhere);
    }
    match std::fs::symlink_metadata(path) {
        Ok(data) if !data.is_dir() => check(CheckState::Problem, format!("{shown} is not a folder"), elsewhere),
        Ok(data) if data.uid() != rustix::process::geteuid().as_raw() => {
            check(CheckState::Problem, format!("{shown} belongs to another user"), elsewhere)
        }
        Ok(data) if data.permissions().mode() & 0o077 != 0 => {
            let fix = format!("chmod 700 {shown}");
            check(CheckState::Problem, format!("{shown} is open to other users"), Some(&fix))
        }
        Ok(_) => check(CheckState::Ok, shown.to_string(), None),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let parent = path.ancestors().skip(1).find(|parent| parent.exists()).unwrap_or(Path::new("/"));
            let writable = rustix::fs::access(parent, rustix::fs::Access::WRITE_OK).is_ok();
            if writable {
                check(CheckState::Ok, format!("{shown} (made when it is needed)"), None)
            } else {
                check(CheckState::Problem, format!("{shown} can't be made"), elsewhere)
            }
        }
        Err(error) => check(CheckState::Problem, format!("{shown}: {error}"), elsewhere),
    }
}

fn ptrace_scope() -> Check {
    let text = std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").ok();
    ptrace_check(text.as_deref().map(str::trim), rustix::process::geteuid().is_root())
}

fn ptrace_check(scope: Option<&str>, root: bool) -> Check {
    let (state, detail) = match scope {
        None | Some("0") => (CheckState::Ok, "any process of yours can be debugged"),
        Some("1" | "2") if root => (CheckState::Ok, "any process can be debugged by root"),
        Some("1") => (CheckState::Limited, "programs started here can be debugged, `attach` to others is refused"),
        Some("2") => (CheckState::Problem, "only root may debug"),
        Some(_) => (CheckState::Problem, "the kernel refuses all debugging until the next boot"),
    };
    let fix = match (state, scope) {
        (CheckState::Ok, _) => None,
        (_, Some("1" | "2")) => Some("sudo sysctl kernel.yama.ptrace_scope=0".to_string()),
        _ => Some("set kernel.yama.ptrace_scope to 0 in /etc/sysctl.d, then boot again".to_string()),
    };
    Check { name: "ptrace".into(), state, detail: detail.into(), fix }
}

fn tool(name: &str, purpose: &str, fix: &str, env_path: &str) -> Check {
    match on_path(name, env_path) {
        Some(path) => Check { name: name.into(), state: CheckState::Ok, detail: path.display().to_string(), fix: None },
        None => Check {
            name: name.into(),
            state: CheckState::Limited,
            detail: format!("not on PATH ({purpose})"),
            fix: Some(fix.into()),
        },
    }
}

impl DoctorReport {
    /// Languages of this machine that no working adapter serves.
    fn unserved(&self) -> Vec<&str> {
        let of = |wanted: fn(State) -> bool| {
            self.adapters.iter().filter(move |check| wanted(check.state)).flat_map(|check| {
                check.languages.iter().filter(|language| !check.absent.contains(language)).map(String::as_str)
            })
        };
        let served: Vec<&str> = of(|state| state == State::Ok).collect();
        let mut languages: Vec<&str> =
            of(|state| state != State::Ok).filter(|language| !served.contains(language)).collect();
        languages.dedup();
        languages
    }
}

impl AdapterCheck {
    /// Whether there is anything here that it could debug.
    fn is_needed(&self) -> bool {
        self.languages.len() > self.absent.len()
    }

    fn row(&self) -> [String; 5] {
        let state = match (self.state, self.milliseconds) {
            (State::Ok, Some(milliseconds)) => format!("ok ({milliseconds} ms)"),
            (State::Ok, None) => "ok".into(),
            (State::Missing, _) => "missing".into(),
            (State::Unusable, _) if !self.is_needed() => "missing".into(),
            (State::Unusable, _) => "unusable".into(),
            (State::Broken, _) => "BROKEN".into(),
        };
        let last = match (self.state, &self.path, &self.fix) {
            (State::Missing | State::Unusable, _, _) if !self.is_needed() => {
                format!("not needed: no {} here", self.absent.join(", "))
            }
            (State::Missing, _, Some(fix)) => quoted(fix),
            (_, Some(path), _) => quoted(path),
            _ => "-".into(),
        };
        let version = self.version.as_deref().map_or_else(|| "-".into(), quoted);
        [self.languages.join(", "), self.adapter.clone(), version, state, last]
    }
}

impl Render for DoctorReport {
    fn render(&self, page: &mut Page) {
        for warning in &self.warnings {
            page.line(format!("WARNING: {warning}"));
        }
        let mut rows = vec![["language", "adapter", "version", "state", "path, or what to run"].map(String::from)];
        rows.extend(self.adapters.iter().map(AdapterCheck::row));
        let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
        let widths = [0, 1, 2, 3].map(width);
        for row in &rows {
            let mut line = String::new();
            for (cell, width) in row.iter().zip(widths) {
                line.push_str(&format!("{cell:width$}  "));
            }
            page.line(line + &row[4]);
        }
        let told = |check: &&AdapterCheck| match check.state {
            State::Broken => true,
            State::Unusable => check.is_needed(),
            State::Ok | State::Missing => false,
        };
        for check in self.adapters.iter().filter(told) {
            let problem = check.problem.as_deref().unwrap_or_default();
            let fix = check.fix.as_deref().unwrap_or_default();
            page.line(format!("{}\n  fix: {}", quoted(problem), quoted(fix)));
        }
        page.line("");
        for check in &self.checks {
            let state = match check.state {
                CheckState::Ok => "ok",
                CheckState::Limited => "limited",
                CheckState::Problem => "PROBLEM",
            };
            page.line(format!("{}: {state}, {}", check.name, quoted(&check.detail)));
            if let Some(fix) = &check.fix {
                page.line(format!("  fix: {}", quoted(fix)));
            }
        }
    }

    fn exit_code(&self) -> u8 {
        let stopped = self.checks.iter().any(|check| check.state == CheckState::Problem);
        u8::from(self.strict && (stopped || !self.warnings.is_empty() || !self.unserved().is_empty()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::find::testing::{NATIVE, SCRIPTED};

    #[test]
    fn the_kernels_word_on_ptrace_is_read() {
        assert_eq!(ptrace_check(None, false).state, CheckState::Ok);
        assert_eq!(ptrace_check(Some("1"), false).state, CheckState::Limited);
        assert_eq!(ptrace_check(Some("2"), true).state, CheckState::Ok);
        assert_eq!(ptrace_check(Some("3"), true).state, CheckState::Problem);
    }

    #[test]
    fn a_runtime_directory_must_be_private() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("run");
        assert_eq!(runtime_directory(&path).state, CheckState::Ok);
        std::fs::create_dir(&path).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(runtime_directory(&path).detail, format!("{} is open to other users", path.display()));
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o700)).unwrap();
        assert_eq!(runtime_directory(&path).state, CheckState::Ok);
        assert_eq!(runtime_directory(&root.path().join("x".repeat(120))).state, CheckState::Problem);
    }

    #[test]
    fn the_report_is_loud_about_what_is_selected_and_missing() {
        let root = tempfile::tempdir().unwrap();
        let paths = crate::find::testing::paths_in(root.path());
        let mut missing = examine_all(&[&SCRIPTED], &paths, &Config::default(), "").remove(0);
        assert_eq!((missing.state, missing.absent.len()), (State::Unusable, 1));
        missing.absent.clear();
        let working = AdapterCheck {
            adapter: NATIVE.id.into(),
            languages: vec!["c".into(), "rust".into()],
            absent: Vec::new(),
            state: State::Ok,
            version: Some("19.1.7".into()),
            path: Some("/usr/bin/lldb-dap-19".into()),
            milliseconds: Some(31),
            problem: None,
            fix: None,
        };
        let adapters = vec![working, missing];
        let registry: &[&'static Adapter] = &[&NATIVE, &SCRIPTED];
        assert_eq!(warning("native", "BUGEYE_ADAPTER", registry, &adapters), None);
        let warnings = vec![warning("script", "BUGEYE_ADAPTER", registry, &adapters).unwrap()];
        let checks = vec![ptrace_check(Some("1"), false)];
        let mut report = DoctorReport { warnings, adapters, checks, strict: false };
        let mut page = Page::new("/".into());
        report.render(&mut page);
        insta::assert_snapshot!(page.text(), @r"
        WARNING: BUGEYE_ADAPTER selects scripted, which can't be used: `bugeye setup scripted`
        language  adapter     version  state       path, or what to run
        c, rust   native-dap  19.1.7   ok (31 ms)  /usr/bin/lldb-dap-19
        python    scripted    -        unusable    -
        scripted needs Python, and PATH has neither `python3` nor `python`
          fix: install Python 3, or add its folder to PATH

        ptrace: limited, programs started here can be debugged, `attach` to others is refused
          fix: sudo sysctl kernel.yama.ptrace_scope=0
        ");
        assert_eq!(report.exit_code(), 0);
        report.strict = true;
        assert_eq!(report.exit_code(), 1);
        // What has nothing here to debug is no problem.
        report.warnings.clear();
        report.adapters[1].absent = vec!["python".into()];
        assert_eq!(report.adapters[1].row()[4], "not needed: no python here");
        assert_eq!(report.exit_code(), 0);
    }
}
