//! `setup`: installs adapters.

use std::time::Instant;

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Group, Local};
use crate::adapters::{ADAPTERS, Adapter, Found};
use crate::cli::LocalContext;
use crate::failure::Failure;
use crate::find;
use crate::render::{Page, Render, quoted, quoted_lines};
use crate::setup::{self, Permission};

/// Install debug adapters.
///
/// Uses the system's package manager or the language's own, into a private folder where that is possible. Without
/// names it installs what is missing, one adapter for each language. Asks before anything needs root.
#[derive(Debug, Args, Serialize, Deserialize, JsonSchema)]
pub struct Setup {
    /// The adapters, by name (`lldb`, `debugpy`).
    #[arg(value_name = "ADAPTER")]
    #[serde(default)]
    pub adapters: Vec<String>,
    /// Every adapter there is.
    #[arg(long, conflicts_with = "adapters")]
    #[serde(default)]
    pub all: bool,
    /// Install again what is there already.
    #[arg(long)]
    #[serde(default)]
    pub force: bool,
    /// Only say what would be done.
    #[arg(long)]
    #[serde(default)]
    pub dry_run: bool,
    /// Answer every question with yes.
    #[arg(long, short)]
    #[serde(default)]
    pub yes: bool,
}

/// What was done for each adapter.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct SetupReport {
    pub adapters: Vec<Outcome>,
}

/// What was done for one adapter.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct Outcome {
    pub adapter: String,
    pub action: Action,
    /// The executable; for a Python module, the folder it is in or the interpreter that has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    pub seconds: f64,
    /// The commands of a dry run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Failure>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    Installed,
    Present,
    Failed,
    /// A dry run would install it.
    Planned,
}

impl Local for Setup {
    const NAME: &'static str = "setup";
    const GROUP: Group = Group::Around;
    type Output = SetupReport;

    fn run(self, cx: &LocalContext) -> Result<SetupReport, Failure> {
        let env_path = std::env::var("PATH").unwrap_or_default();
        let look = |adapter: &'static Adapter| {
            let as_configured = find::find_with(adapter, &cx.paths, &cx.config, &env_path);
            as_configured
                .or_else(|wrong| {
                    let found = find::find(adapter, &cx.paths, None, &env_path)?;
                    // It is installed, and sessions still look where the configuration says.
                    eprintln!("warning: {wrong}");
                    Ok::<_, Failure>(found)
                })
                .ok()
        };
        let chosen = self.chosen(ADAPTERS, look)?;
        let mut adapters: Vec<Outcome> =
            chosen.into_iter().map(|(adapter, found)| self.set_up(adapter, found, cx)).collect();
        // One that failed does not hide what became of the others; alone, it is the answer.
        if let [only] = &mut adapters[..]
            && let Some(error) = only.error.take()
        {
            return Err(error);
        }
        Ok(SetupReport { adapters })
    }
}

impl Setup {
    /// The adapters to see to, each with where it is now.
    fn chosen(
        &self,
        registry: &[&'static Adapter],
        look: impl Fn(&'static Adapter) -> Option<Found>,
    ) -> Result<Vec<(&'static Adapter, Option<Found>)>, Failure> {
        if !self.adapters.is_empty() {
            let mut chosen: Vec<(&'static Adapter, Option<Found>)> = Vec::new();
            for name in &self.adapters {
                let adapter = by_name(registry, name)?;
                if chosen.iter().all(|(other, _)| other.id != adapter.id) {
                    chosen.push((adapter, look(adapter)));
                }
            }
            return Ok(chosen);
        }
        let mut chosen: Vec<(&'static Adapter, Option<Found>)> =
            registry.iter().map(|adapter| (*adapter, look(adapter))).collect();
        if !self.all {
            // One adapter is enough for a language: those there are first, then the preferred ones.
            let present = chosen.iter().filter(|(_, found)| found.is_some());
            let mut served: Vec<&str> = present.flat_map(|(adapter, _)| adapter.languages).copied().collect();
            chosen.retain(|(adapter, found)| {
                let useful = found.is_some() || adapter.languages.iter().any(|language| !served.contains(language));
                served.extend(adapter.languages);
                useful
            });
        }
        Ok(chosen)
    }

    fn set_up(&self, adapter: &'static Adapter, found: Option<Found>, cx: &LocalContext) -> Outcome {
        let began = Instant::now();
        let seconds = || (began.elapsed().as_secs_f64() * 1000.0).round() / 1000.0;
        let outcome = |action, found: Option<&Found>| Outcome {
            adapter: adapter.id.to_string(),
            action,
            path: found.map(shown_path),
            version: found.and_then(|found| found.version.clone()),
            seconds: seconds(),
            commands: Vec::new(),
            error: None,
        };
        if let Some(found) = found.filter(|_| !self.force) {
            return outcome(Action::Present, Some(&found));
        }
        if self.dry_run {
            return Outcome { commands: setup::plan(adapter, &cx.paths), ..outcome(Action::Planned, None) };
        }
        let permission = Permission::of_terminal(self.force, self.yes);
        match setup::install_with(adapter, &cx.paths, permission, &mut |text| eprintln!("{}: {text}", adapter.id)) {
            Ok(found) => outcome(Action::Installed, Some(&found)),
            Err(failure) => Outcome { error: Some(failure), ..outcome(Action::Failed, None) },
        }
    }
}

/// Where an adapter is, in one path.
pub(crate) fn shown_path(found: &Found) -> String {
    found.module_path.as_ref().unwrap_or(&found.program).display().to_string()
}

/// The adapter that a user means by any of its names.
pub(crate) fn by_name(registry: &[&'static Adapter], name: &str) -> Result<&'static Adapter, Failure> {
    let is_meant = |adapter: &&&Adapter| {
        adapter.id == name || adapter.install.setup_name == name || adapter.aliases.contains(&name)
    };
    registry.iter().find(is_meant).copied().ok_or_else(|| {
        let names: Vec<&str> = registry.iter().map(|adapter| adapter.install.setup_name).collect();
        Failure::usage(format!("no adapter is called `{}`", quoted(name)))
            .hint(format!("there are: {}", names.join(", ")))
    })
}

impl Render for SetupReport {
    fn render(&self, page: &mut Page) {
        if self.adapters.is_empty() {
            page.line("nothing to install");
        }
        for outcome in &self.adapters {
            let version = outcome.version.as_ref().map(|version| format!(" {}", quoted(version))).unwrap_or_default();
            let path = outcome.path.as_ref().map(|path| format!(" at {}", quoted(path))).unwrap_or_default();
            let name = &outcome.adapter;
            match outcome.action {
                Action::Installed => page.line(format!("{name}{version}: installed{path} ({:.1} s)", outcome.seconds)),
                Action::Present => page.line(format!("{name}{version}: already installed{path}")),
                Action::Planned if outcome.commands.is_empty() => {
                    page.line(format!("{name}: no package manager here has it"));
                }
                Action::Planned => {
                    page.line(format!("{name}: would run"));
                    outcome.commands.iter().for_each(|command| page.line(format!("  {}", quoted(command))));
                }
                Action::Failed => page.line(format!("{name}: failed")),
            }
            if let Some(error) = &outcome.error {
                page.line(format!("  {}", quoted_lines(&error.to_string())));
                error.hints.iter().for_each(|hint| page.line(format!("  hint: {}", quoted_lines(hint))));
            }
        }
    }

    fn exit_code(&self) -> u8 {
        u8::from(self.adapters.iter().any(|outcome| outcome.action == Action::Failed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapters::Install;
    use crate::adapters::lldb::LLDB;
    use crate::failure::Kind;
    use crate::find::testing::{NATIVE, SCRIPTED};

    static SECOND_NATIVE: Adapter = Adapter {
        id: "second-native",
        aliases: &[],
        languages: &["c"],
        install: Install { setup_name: "second", ..LLDB.install },
        ..LLDB
    };

    const REGISTRY: &[&Adapter] = &[&NATIVE, &SECOND_NATIVE, &SCRIPTED];

    fn setup(names: &[&str], all: bool) -> Setup {
        let adapters = names.iter().map(ToString::to_string).collect();
        Setup { adapters, all, force: false, dry_run: true, yes: false }
    }

    fn here(adapter: &'static Adapter) -> Found {
        let program = "/usr/bin/x".into();
        Found { adapter, program, args: Vec::new(), module_path: None, version: Some("19".into()) }
    }

    fn ids(setup: &Setup, present: &[&str]) -> Vec<&'static str> {
        let look = |adapter: &'static Adapter| present.contains(&adapter.id).then(|| here(adapter));
        setup.chosen(REGISTRY, look).unwrap().into_iter().map(|(adapter, _)| adapter.id).collect()
    }

    #[test]
    fn without_names_one_adapter_for_each_language_is_seen_to() {
        assert_eq!(ids(&setup(&[], false), &[]), ["native-dap", "scripted"]);
        assert_eq!(ids(&setup(&[], true), &[]), ["native-dap", "second-native", "scripted"]);
        assert_eq!(
            ids(&setup(&[], false), &["native-dap", "second-native"]),
            ["native-dap", "second-native", "scripted"]
        );
    }

    #[test]
    fn any_name_of_an_adapter_will_do_and_counts_once() {
        assert_eq!(ids(&setup(&["script", "native", "native-dap"], false), &[]), ["scripted", "native-dap"]);
        let failure = setup(&["nosuch"], false).chosen(REGISTRY, |_| None).unwrap_err();
        assert_eq!(failure.kind, Kind::Usage);
        assert_eq!(failure.hints, ["there are: native, second, scripted"]);
    }

    #[test]
    fn the_text_says_what_is_there_and_what_failed() {
        let outcome = |action| Outcome {
            adapter: "native-dap".into(),
            action,
            path: Some("/usr/bin/x".into()),
            version: Some("19".into()),
            seconds: 1.25,
            commands: vec!["apt-get install x".into()],
            error: None,
        };
        let failed = Outcome {
            error: Some(Failure::refused("no network").hint("try later")),
            path: None,
            ..outcome(Action::Failed)
        };
        let report = SetupReport {
            adapters: vec![outcome(Action::Installed), outcome(Action::Present), outcome(Action::Planned), failed],
        };
        let mut page = Page::new("/".into());
        report.render(&mut page);
        insta::assert_snapshot!(page.text(), @r"
        native-dap 19: installed at /usr/bin/x (1.2 s)
        native-dap 19: already installed at /usr/bin/x
        native-dap: would run
          apt-get install x
        native-dap: failed
          no network
          hint: try later
        ");
        assert_eq!(report.exit_code(), 1);
    }
}
