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
use crate::greet::greet;
use crate::render::{Page, Render, quoted, quoted_lines};
use crate::setup::{self, Absent, Permission};

/// Install debug adapters.
///
/// By the language's own package manager into a private folder where there is such a way, else by the system's. Asks
/// before anything needs root. Without names it shows what there is and what could be installed.
#[derive(Debug, Args, Serialize, Deserialize, JsonSchema)]
pub struct Setup {
    /// The adapters, by name (`lldb`, `debugpy`).
    #[arg(value_name = "ADAPTER")]
    #[serde(default)]
    pub adapters: Vec<String>,
    /// One adapter for every language that this machine has a compiler or interpreter of.
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
    pub languages: Vec<String>,
    pub action: Action,
    /// The executable; for a Python module, a script or a jar, where that is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    pub seconds: f64,
    /// The commands that were not run, in a dry run or where nothing was asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<String>,
    /// Why it was left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
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
    /// It could be installed, and was not asked for.
    Available,
    /// It was not installed, and the reason says why.
    LeftOut,
}

/// What is to become of an adapter.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Wish {
    Install,
    LeaveOut(String),
}

type Chosen = (&'static Adapter, Option<Found>, Wish);

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
        let absent = |language: &str| setup::absent(language, &env_path);
        let chosen = self.chosen(ADAPTERS, look, absent)?;
        let mut adapters: Vec<Outcome> = chosen.into_iter().map(|chosen| self.set_up(chosen, cx)).collect();
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
    /// The adapters to see to, each with where it is now and what is to become of it.
    fn chosen(
        &self,
        registry: &[&'static Adapter],
        look: impl Fn(&'static Adapter) -> Option<Found>,
        absent: impl Fn(&str) -> Option<Absent>,
    ) -> Result<Vec<Chosen>, Failure> {
        if !self.adapters.is_empty() {
            let mut chosen: Vec<Chosen> = Vec::new();
            for name in &self.adapters {
                let adapter = by_name(registry, name)?;
                if chosen.iter().all(|(other, _, _)| other.id != adapter.id) {
                    chosen.push((adapter, look(adapter), Wish::Install));
                }
            }
            return Ok(chosen);
        }
        let looked: Vec<(&'static Adapter, Option<Found>)> =
            registry.iter().map(|adapter| (*adapter, look(adapter))).collect();
        // One adapter is enough for a language: those there are first, then the preferred ones.
        let mut served: Vec<(&str, &str)> = Vec::new();
        for (adapter, _) in looked.iter().filter(|(_, found)| found.is_some()) {
            served.extend(adapter.languages.iter().map(|language| (*language, adapter.id)));
        }
        let decide = |(adapter, found): (&'static Adapter, Option<Found>)| {
            let wish = if found.is_some() { Wish::Install } else { wish(adapter, &served, &absent) };
            if wish == Wish::Install {
                served.extend(adapter.languages.iter().map(|language| (*language, adapter.id)));
            }
            (adapter, found, wish)
        };
        Ok(looked.into_iter().map(decide).collect())
    }

    fn set_up(&self, (adapter, found, wish): Chosen, cx: &LocalContext) -> Outcome {
        let began = Instant::now();
        let seconds = || (began.elapsed().as_secs_f64() * 1000.0).round() / 1000.0;
        let outcome = |action, found: Option<&Found>| Outcome {
            adapter: adapter.id.to_string(),
            languages: adapter.languages.iter().map(ToString::to_string).collect(),
            action,
            path: found.map(shown_path),
            version: found.and_then(|found| found.version.clone()),
            seconds: seconds(),
            commands: Vec::new(),
            reason: None,
            error: None,
        };
        let asked = self.all || !self.adapters.is_empty();
        let works = |found: &Found| {
            // An interpreter may be there without the debugger that it loads. What was only looked up is not started.
            let answer = if asked { greet(found, &std::env::var("PATH").unwrap_or_default()).err() } else { None };
            if let Some(failure) = &answer {
                eprintln!("{}: {} does not work: {failure}", adapter.id, shown_path(found));
            }
            answer.is_none()
        };
        if let Some(found) = found.filter(|found| !(self.force && asked) && works(found)) {
            return outcome(Action::Present, Some(&found));
        }
        if let Wish::LeaveOut(reason) = wish {
            return Outcome { reason: Some(reason), ..outcome(Action::LeftOut, None) };
        }
        if self.dry_run || !asked {
            let action = if asked { Action::Planned } else { Action::Available };
            return Outcome { commands: setup::plan(adapter, &cx.paths), ..outcome(action, None) };
        }
        let permission = Permission::of_terminal(self.force, self.yes);
        let report = &mut |text: &str| eprintln!("{}: {text}", adapter.id);
        let installed = setup::install_with(adapter, &cx.paths, permission, report).and_then(|found| {
            let answer = greet(&found, &std::env::var("PATH").unwrap_or_default());
            answer.map(|_| found).map_err(|failure| {
                Failure::refused(format!("{} was installed and does not work", adapter.id)).cause(failure)
            })
        });
        match installed {
            Ok(found) => outcome(Action::Installed, Some(&found)),
            Err(failure) => Outcome { error: Some(failure), ..outcome(Action::Failed, None) },
        }
    }
}

/// Whether an adapter that is not there should be, and why not.
fn wish(adapter: &Adapter, served: &[(&str, &str)], absent: &impl Fn(&str) -> Option<Absent>) -> Wish {
    let (missing, here): (Vec<&str>, Vec<&str>) =
        adapter.languages.iter().partition(|language| absent(language).is_some());
    if here.is_empty() {
        let tools = missing.first().and_then(|language| absent(language)).map_or(&[][..], |absent| absent.tools);
        let looked = if tools.is_empty() { String::new() } else { format!(" (looked for {})", tools.join(", ")) };
        return Wish::LeaveOut(format!("no {} here{looked}", missing.join(" or ")));
    }
    let by: Vec<Option<&str>> = here
        .iter()
        .map(|language| served.iter().find(|(known, _)| known == language).map(|(_, adapter)| *adapter))
        .collect();
    if let Some(Some(other)) = by.first()
        && by.iter().all(Option::is_some)
    {
        return Wish::LeaveOut(format!("{other} is for {}", here.join(", ")));
    }
    match adapter.install.note {
        Some(note) if !setup::installs(adapter) => Wish::LeaveOut(note.into()),
        _ => Wish::Install,
    }
}

/// Where an adapter is, in one path.
pub(crate) fn shown_path(found: &Found) -> String {
    found.module_path.as_ref().or(found.file.as_ref()).unwrap_or(&found.program).display().to_string()
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
            let languages = outcome.languages.join(", ");
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
                Action::Available if outcome.commands.is_empty() => {
                    page.line(format!("{name} ({languages}): not installed, and no package manager here has it"));
                }
                Action::Available => {
                    let command = outcome.commands.join(" && ");
                    page.line(format!("{name} ({languages}): not installed; `bugeye setup {name}` would run"));
                    page.line(format!("  {}", quoted(&command)));
                }
                Action::LeftOut => {
                    page.line(format!("{name}: left out, {}", quoted(outcome.reason.as_deref().unwrap_or_default())));
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
        Found { version: Some("19".into()), ..Found::program(adapter, "/usr/bin/x".into()) }
    }

    fn wishes(setup: &Setup, present: &[&str], languages: &[&str]) -> Vec<(&'static str, Wish)> {
        let look = |adapter: &'static Adapter| present.contains(&adapter.id).then(|| here(adapter));
        let absent = |language: &str| (!languages.contains(&language)).then_some(Absent { tools: &["tool"] });
        let chosen = setup.chosen(REGISTRY, look, absent).unwrap();
        chosen.into_iter().map(|(adapter, _, wish)| (adapter.id, wish)).collect()
    }

    #[test]
    fn one_adapter_for_each_language_that_is_there() {
        let out = |text: &str| Wish::LeaveOut(text.into());
        let all = setup(&[], true);
        assert_eq!(
            wishes(&all, &[], &["c", "python"]),
            [("native-dap", Wish::Install), ("second-native", out("native-dap is for c")), ("scripted", Wish::Install)]
        );
        assert_eq!(
            wishes(&all, &["second-native"], &["c"]),
            [
                ("native-dap", out("second-native is for c")),
                ("second-native", Wish::Install),
                ("scripted", out("no python here (looked for tool)"))
            ]
        );
    }

    #[test]
    fn any_name_of_an_adapter_will_do_and_counts_once() {
        let named = wishes(&setup(&["script", "native", "native-dap"], false), &[], &[]);
        assert_eq!(named, [("scripted", Wish::Install), ("native-dap", Wish::Install)]);
        let failure = setup(&["nosuch"], false).chosen(REGISTRY, |_| None, |_| None).unwrap_err();
        assert_eq!(failure.kind, Kind::Usage);
        assert_eq!(failure.hints, ["there are: native, second, scripted"]);
    }

    #[test]
    fn the_text_says_what_is_there_and_what_failed() {
        let outcome = |action| Outcome {
            adapter: "native-dap".into(),
            languages: vec!["c".into(), "rust".into()],
            action,
            path: Some("/usr/bin/x".into()),
            version: Some("19".into()),
            seconds: 1.25,
            commands: vec!["apt-get install x".into()],
            reason: Some("no c here".into()),
            error: None,
        };
        let failed = Outcome {
            error: Some(Failure::refused("no network").hint("try later")),
            path: None,
            ..outcome(Action::Failed)
        };
        let report = SetupReport {
            adapters: vec![
                outcome(Action::Installed),
                outcome(Action::Present),
                outcome(Action::Planned),
                outcome(Action::Available),
                outcome(Action::LeftOut),
                failed,
            ],
        };
        let mut page = Page::new("/".into());
        report.render(&mut page);
        insta::assert_snapshot!(page.text(), @r"
        native-dap 19: installed at /usr/bin/x (1.2 s)
        native-dap 19: already installed at /usr/bin/x
        native-dap: would run
          apt-get install x
        native-dap (c, rust): not installed; `bugeye setup native-dap` would run
          apt-get install x
        native-dap: left out, no c here
        native-dap: failed
          no network
          hint: try later
        ");
        assert_eq!(report.exit_code(), 1);
    }
}
