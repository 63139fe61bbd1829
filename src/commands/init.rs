//! `init`: set up Bugeye in a coding agent, and take it out again.

use std::io::{BufRead as _, IsTerminal as _, Write as _};
use std::path::PathBuf;

use clap::{Args, ValueEnum as _};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Group, Local};
use crate::cli::LocalContext;
use crate::failure::Failure;
use crate::init::agents::project_of;
use crate::init::{Agent, Edit, Plan, Scope, Step, Wish, World, command, diff};
use crate::render::{Page, Render, quoted, quoted_lines};

/// Set up Bugeye in a coding agent: its MCP entry and the skill
///
/// Shows what changes as a diff, and asks on a terminal. Nothing else in those files is touched, and `--uninstall`
/// gives each back as it was. Without names it tells which agents are here.
#[derive(Debug, Clone, Default, Args, Serialize, Deserialize, JsonSchema)]
pub struct Init {
    /// The agents.
    #[arg(value_name = "AGENT", value_enum)]
    #[serde(default)]
    pub agents: Vec<Agent>,
    /// Every agent that is found here.
    #[arg(long, conflicts_with = "agents")]
    #[serde(default)]
    pub all: bool,
    /// For this project; the default in one.
    #[arg(long, conflicts_with = "user")]
    #[serde(default)]
    pub project: bool,
    /// For all that you do.
    #[arg(long)]
    #[serde(default)]
    pub user: bool,
    /// Only show what would change.
    #[arg(long)]
    #[serde(default)]
    pub dry_run: bool,
    /// Take it out again.
    #[arg(long)]
    #[serde(default)]
    pub uninstall: bool,
    /// Replace an entry or a skill that was written or changed by hand, or remove it.
    #[arg(long)]
    #[serde(default)]
    pub force: bool,
    /// Don't ask.
    #[arg(long, short)]
    #[serde(default)]
    pub yes: bool,
}

/// What was changed for each agent, or would be.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct InitReport {
    pub scope: Scope,
    /// The project's folder, or the user's.
    pub root: String,
    #[serde(default, skip_serializing_if = "is_false")]
    pub dry_run: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    pub uninstall: bool,
    /// The program that the entries name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    pub agents: Vec<AgentReport>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// The changes were shown before they were made.
    #[serde(default, skip_serializing_if = "is_false")]
    pub shown: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_false(value: &bool) -> bool {
    !value
}

/// What was changed for one agent.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct AgentReport {
    pub agent: Agent,
    pub files: Vec<FileChange>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Failure>,
}

/// What was changed in one file.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct FileChange {
    pub path: String,
    pub action: Action,
    /// As a unified diff; without it where the whole file is Bugeye's own text, except in a dry run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
    /// How many lines a file has that is shown without a diff.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lines: Option<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    Created,
    Changed,
    Removed,
    /// It was as it should be.
    Unchanged,
    /// It was written or changed by hand, and stays.
    Kept,
}

impl Local for Init {
    const NAME: &'static str = "init";
    const GROUP: Group = Group::Around;
    type Output = InitReport;

    fn run(self, _cx: &LocalContext) -> Result<InitReport, Failure> {
        let (scope, world) = self.world()?;
        let asks = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
        let agents = self.chosen(&world, asks)?;
        let (command, note) = command(&world.env_path)?;
        let wish = Wish { uninstall: self.uninstall, force: self.force, command };
        let plans: Vec<(Agent, Result<Plan, Failure>)> =
            agents.into_iter().map(|agent| (agent, Plan::make(agent, scope, &world, &wish))).collect();
        let changes = plans.iter().any(|(_, plan)| plan.as_ref().is_ok_and(Plan::changes));
        let is_named = |(agent, plan): &(Agent, Result<Plan, Failure>)| {
            let entered = |step: &Step| !step.is_skill && matches!(step.edit, Edit::Text(_));
            *agent != Agent::AgentsMd && plan.as_ref().is_ok_and(|plan| plan.steps.iter().any(entered))
        };
        let mut report = InitReport {
            scope,
            root: match scope {
                Scope::Project => world.project.unwrap_or_default().display().to_string(),
                Scope::User => world.home.display().to_string(),
            },
            dry_run: self.dry_run,
            uninstall: self.uninstall,
            command: (!self.uninstall).then_some(wish.command),
            agents: plans.iter().map(|(agent, plan)| self.report(*agent, plan.as_ref())).collect(),
            notes: note.into_iter().filter(|_| !self.uninstall && plans.iter().any(is_named)).collect(),
            shown: false,
        };
        for (_, plan) in &plans {
            let note = plan.as_ref().ok().filter(|plan| plan.changes()).and_then(|plan| plan.note);
            report.notes.extend(note.map(Into::into));
        }
        if !self.dry_run && changes {
            if asks && !self.yes {
                let mut page = Page::new(std::env::current_dir().unwrap_or_default());
                report.render_changes(&mut page);
                eprint!("{}", page.text());
                if !matches!(answer("Go ahead? [y/N] ")?.as_str(), "y" | "Y" | "yes") {
                    return Err(Failure::refused("nothing was changed"));
                }
                report.shown = true;
            }
            for ((_, plan), agent) in plans.iter().zip(&mut report.agents) {
                agent.error = match plan {
                    Ok(plan) => plan.carry_out().err(),
                    Err(failure) => Some(failure.clone()),
                };
            }
        }
        // One that failed does not hide what became of the others; alone, it is the answer.
        if let [only] = &mut report.agents[..]
            && let Some(error) = only.error.take()
        {
            return Err(error);
        }
        Ok(report)
    }
}

impl Init {
    fn world(&self) -> Result<(Scope, World), Failure> {
        let cwd = std::env::current_dir().map_err(|error| Failure::io("find the current directory", &error))?;
        let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let Some(home) = absolute("HOME") else {
            return Err(Failure::refused("HOME is not set: the agents' folders can't be found"));
        };
        let project = project_of(&cwd, &home);
        let scope = if self.user || (!self.project && project.is_none()) { Scope::User } else { Scope::Project };
        let world = World {
            project: (scope == Scope::Project).then(|| project.unwrap_or(cwd)),
            home,
            env_path: std::env::var("PATH").unwrap_or_default(),
            variable: |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute()),
        };
        Ok((scope, world))
    }

    /// The agents to see to: those named, or those found.
    fn chosen(&self, world: &World, asks: bool) -> Result<Vec<Agent>, Failure> {
        let mut chosen: Vec<Agent> = Vec::new();
        for agent in &self.agents {
            if !chosen.contains(agent) {
                chosen.push(*agent);
            }
        }
        if !chosen.is_empty() {
            return Ok(chosen);
        }
        let every = Agent::value_variants().iter();
        let found: Vec<(Agent, String)> = every.filter_map(|agent| Some((*agent, agent.found(world)?))).collect();
        if found.is_empty() {
            let names: Vec<&str> = Agent::value_variants().iter().map(|agent| agent.name()).collect();
            return Err(Failure::usage("no agent was found here")
                .hint(format!("there are: {}", names.join(", ")))
                .hint("bugeye init claude"));
        }
        if self.all {
            return Ok(found.into_iter().map(|(agent, _)| agent).collect());
        }
        let names: Vec<&str> = found.iter().map(|(agent, _)| agent.name()).collect();
        let lines = found.iter().map(|(agent, why)| format!("{} ({})", agent.name(), quoted(why)));
        let lines = lines.collect::<Vec<_>>().join(", ");
        if !asks {
            return Err(Failure::usage("which agent?")
                .hint(format!("found: {lines}"))
                .hint(format!("bugeye init {}", names.join(" ")))
                .hint("all of them: bugeye init --all"));
        }
        eprintln!("found: {lines}");
        let words = answer("Which? Names, `all`, or nothing: ")?;
        if words == "all" {
            return Ok(found.into_iter().map(|(agent, _)| agent).collect());
        }
        for word in words.split([' ', ',']).filter(|word| !word.is_empty()) {
            let agent = Agent::from_str(word, false);
            chosen.push(agent.map_err(|_| Failure::usage(format!("no agent is called `{}`", quoted(word))))?);
        }
        if chosen.is_empty() { Err(Failure::refused("nothing was changed")) } else { Ok(chosen) }
    }

    fn report(&self, agent: Agent, plan: Result<&Plan, &Failure>) -> AgentReport {
        match plan {
            Ok(plan) => {
                let files = plan.steps.iter().map(|step| self.file(step)).collect();
                AgentReport { agent, files, error: None }
            }
            Err(failure) => AgentReport { agent, files: Vec::new(), error: Some(failure.clone()) },
        }
    }

    fn file(&self, step: &Step) -> FileChange {
        let path = step.file.path.display().to_string();
        let old = step.file.text.as_deref();
        let (action, new) = match (&step.edit, old) {
            (Edit::Same, _) => (Action::Unchanged, old),
            (Edit::Kept, _) => (Action::Kept, old),
            (Edit::Text(new), None) => (Action::Created, Some(new.as_str())),
            (Edit::Text(new), Some(_)) => (Action::Changed, Some(new.as_str())),
            (Edit::Gone, _) => (Action::Removed, None),
        };
        let is_change = !matches!(action, Action::Unchanged | Action::Kept);
        let is_long = step.is_skill && !self.dry_run;
        FileChange {
            diff: (is_change && !is_long).then(|| diff::unified(&path, old, new)),
            lines: (is_change && is_long).then(|| new.or(old).unwrap_or_default().lines().count()),
            path,
            action,
        }
    }
}

/// Asks; the answer without its blanks.
fn answer(question: &str) -> Result<String, Failure> {
    let failed = |error: std::io::Error| Failure::io("ask", &error);
    eprint!("{question}");
    std::io::stderr().flush().map_err(failed)?;
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line).map_err(failed)?;
    Ok(line.trim().to_string())
}

impl InitReport {
    /// The diffs, and what is done without one.
    fn render_changes(&self, page: &mut Page) {
        for agent in &self.agents {
            for file in &agent.files {
                let path = page.path(&file.path);
                match (&file.diff, file.action) {
                    (Some(diff), _) => {
                        for line in diff.replace(&file.path, &path).lines() {
                            page.line(coloured(&quoted_lines(line), page.colour));
                        }
                    }
                    (None, Action::Unchanged) => {}
                    (None, Action::Kept) => {
                        let way = if self.uninstall { "removes" } else { "replaces" };
                        page.line(format!("kept: {path} has its own `bugeye`; --force {way} it"));
                    }
                    (None, action) => {
                        let what = match action {
                            Action::Created => "new file",
                            Action::Removed => "removed file",
                            _ => "changed file",
                        };
                        page.line(format!("{what}: {path} ({} lines)", file.lines.unwrap_or_default()));
                    }
                }
            }
        }
    }
}

fn coloured(line: &str, colour: bool) -> String {
    let code = match line.as_bytes().first() {
        Some(b'+') => "32",
        Some(b'-') => "31",
        Some(b'@') => "36",
        _ => return line.to_string(),
    };
    if colour { format!("\x1b[{code}m{line}\x1b[0m") } else { line.to_string() }
}

impl Render for InitReport {
    fn render(&self, page: &mut Page) {
        if !self.shown {
            self.render_changes(page);
        }
        let (place, from) = match self.scope {
            Scope::Project => ("in this project", "out of this project"),
            Scope::User => ("for you", "out of your settings"),
        };
        for agent in &self.agents {
            let name = agent.agent.name();
            if let Some(error) = &agent.error {
                page.line(format!("{name}: {}", quoted_lines(&error.to_string())));
                error.hints.iter().for_each(|hint| page.line(format!("  hint: {}", quoted_lines(hint))));
                continue;
            }
            let is = |action: Action| agent.files.iter().any(|file| file.action == action);
            let changes = is(Action::Created) || is(Action::Changed) || is(Action::Removed);
            let what = match (changes, self.uninstall, self.dry_run) {
                (true, false, _) if is(Action::Kept) => "the rest was set up; an entry of its own was kept".into(),
                (true, true, _) if is(Action::Kept) => "the rest was taken out; an entry of its own was kept".into(),
                (true, false, false) => format!("set up {place}; start it anew to load it"),
                (true, false, true) => format!("would be set up {place}"),
                (true, true, false) => format!("taken {from}"),
                (true, true, true) => format!("would be taken {from}"),
                (false, false, _) if is(Action::Kept) => "nothing was changed".into(),
                (false, false, _) => format!("already there {place}"),
                (false, true, _) if is(Action::Kept) => "nothing was removed".into(),
                (false, true, _) => format!("nothing to take {from}"),
            };
            page.line(format!("{name}: {what}"));
        }
        for note in &self.notes {
            page.line(format!("note: {}", quoted(note)));
        }
    }

    fn exit_code(&self) -> u8 {
        u8::from(self.agents.iter().any(|agent| agent.error.is_some()))
    }
}
