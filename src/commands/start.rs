//! `start`: a program under the debugger, held before it begins.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use rustix::fs::{Mode, OFlags};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::report::{Report, WaitArgs};
use super::{Command, Group, Past};
use crate::failure::Failure;
use crate::hub::attach::Aim;
use crate::hub::configs::{self, Asked};
use crate::hub::launch::{Blueprint, Spooled, variable};
use crate::hub::{Context, Live, Part};
use crate::model::View;
use crate::render::quoted;
use crate::session::{Answer, Op, Wait};

/// Start a program under the debugger and hold it before it begins
///
/// The program is checked first, then held at the earliest point its debugger allows; breakpoints are set, and each is
/// answered as verified, moved or pending. `bugeye continue` lets it go.
#[derive(Debug, Clone, Default, Args, Serialize, Deserialize, JsonSchema)]
pub struct Start {
    #[command(flatten)]
    #[serde(flatten)]
    pub launch: LaunchArgs,
}

/// Says what an agent does at a gate when its debugger is gone.
const FAIL: &str = "BUGEYE_AGENT_FAIL";

/// How long an agent takes to be a process.
const BEGINNING: Duration = Duration::from_millis(500);

/// What to start, and how.
#[derive(Debug, Clone, Default, Args, Serialize, Deserialize, JsonSchema)]
pub struct LaunchArgs {
    /// The program; its arguments follow after `--`.
    #[arg(value_name = "PROGRAM")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    /// The program's arguments, or a whole command line (`-- python app.py 3`).
    #[arg(last = true, value_name = "ARGS")]
    #[serde(default)]
    pub args: Vec<String>,
    /// The debug adapter to use (`bugeye doctor` lists them).
    #[arg(long, value_name = "NAME")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adapter: Option<String>,
    /// The program is a coding agent (claude, codex, copilot, gemini, opencode, or one that speaks Bugeye's protocol).
    #[arg(long, conflicts_with_all = ["adapter", "core", "config", "record"])]
    #[serde(default)]
    pub agent: bool,
    /// With --agent: what must ask the debugger and finds it gone is refused, not let happen.
    #[arg(long, requires = "agent")]
    #[serde(default)]
    pub fail_closed: bool,
    /// With --agent: it may control its own session, and so may what it starts.
    #[arg(long, requires = "agent")]
    #[serde(default)]
    pub allow_self: bool,
    /// With --agent: take commands by file too. The agent itself could write them.
    #[arg(long, requires = "agent")]
    #[serde(default)]
    pub inbox: bool,
    /// Let an agent's model calls go where they go, unseen; its hooks alone hold it.
    #[arg(long, requires = "agent")]
    #[serde(default)]
    pub no_model_tap: bool,
    /// Give the program this file as standard input; `-` for what comes on this command's own.
    #[arg(long, value_name = "FILE")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stdin: Option<String>,
    /// With --agent: run it in this terminal, as without a debugger. This command ends with it; debug it from another one.
    #[arg(long, requires = "agent", conflicts_with = "stdin", num_args = 0, default_missing_value = "-")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    pub terminal: Option<String>,
    /// The program's working directory.
    #[arg(long, value_name = "DIR")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// Set a variable of the program's environment (K=V).
    #[arg(long, value_name = "K=V")]
    #[serde(default)]
    pub env: Vec<String>,
    /// Set a breakpoint for this session alone (file:line, function).
    #[arg(long = "break", short = 'b', value_name = "PLACE")]
    #[serde(default)]
    pub breaks: Vec<String>,
    /// Look at what is left of a program that crashed: PROGRAM is the one it is of, if the file does not tell.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["args", "stdin", "cwd", "env", "stop_on_entry"])]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub core: Option<String>,
    /// Start this configuration of `.vscode/launch.json` or `.zed/debug.json`; `bugeye configs` lists them.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["program", "core"])]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<String>,
    /// A variable or an input of the configuration (NAME=VALUE).
    #[arg(long = "var", value_name = "NAME=VALUE")]
    #[serde(default)]
    pub vars: Vec<String>,
    /// Stop at the program's beginning (main, or the first line).
    #[arg(long)]
    #[serde(default)]
    pub stop_on_entry: bool,
    /// Record it from its beginning, to go back with `back` and `reverse-continue` (gdb; thousands of times slower).
    #[arg(long)]
    #[serde(default)]
    pub record: bool,
    /// A name for the session.
    #[arg(long)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// A terminal, by the name of its device.
fn lendable(device: String) -> Result<String, Failure> {
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    match rustix::fs::open(&device, flags, Mode::empty()).is_ok_and(rustix::termios::isatty) {
        true => Ok(device),
        false => Err(Failure::not_found(format!("{device} is no terminal that can be lent"))),
    }
}

/// What to say of an agent that is given nothing to do, and nobody to ask.
fn wants_terminal(words: &[String]) -> Option<String> {
    let [agent] = words else { return None };
    let how = format!("without words of its own {agent} is for a terminal: bugeye run --agent --terminal -- {agent}");
    crate::agent::launch::is_known(words).then_some(how)
}

/// Splits `NAME=VALUE`.
fn pairs(settings: &[String], flag: &str) -> Result<Vec<(String, String)>, Failure> {
    let pair = |setting: &String| match setting.split_once('=').filter(|(name, _)| !name.is_empty()) {
        Some((name, value)) => Ok((name.to_string(), value.to_string())),
        None => Err(Failure::usage(format!("`{setting}` is no variable; write {flag} NAME=VALUE"))),
    };
    settings.iter().map(pair).collect()
}

impl LaunchArgs {
    /// What to start, with what is to be said about it: one, or each part of a compound configuration.
    pub async fn blueprints(mut self, cx: &Context) -> Result<Vec<(Blueprint, Vec<String>)>, Failure> {
        let Some(name) = self.config.take() else {
            if !self.vars.is_empty() {
                return Err(Failure::usage("--var is for a launch configuration: --config NAME"));
            }
            let mut notes = Vec::new();
            if self.agent && self.terminal.is_none() && self.stdin.is_none() && self.program.is_none() {
                notes.extend(wants_terminal(&self.args));
            }
            return Ok(vec![(self.blueprint(cx)?, notes)]);
        };
        let asked = Asked {
            vars: pairs(&self.vars, "--var")?,
            args: std::mem::take(&mut self.args),
            env: pairs(&self.env, "--env")?,
            has_cwd: self.cwd.is_some(),
        };
        let base = self.blueprint(cx)?;
        configs::blueprints(cx, &name, &asked, &base).await
    }

    /// What the words say, without a launch configuration.
    pub fn blueprint(mut self, cx: &Context) -> Result<Blueprint, Failure> {
        if self.agent {
            self.adapter = Some(crate::adapters::agent::AGENT.id.into());
        }
        let mut extra = serde_json::Map::new();
        if self.no_model_tap {
            extra.insert("modelTap".into(), false.into());
        }
        let lent = self.terminal.is_some();
        if let Some(terminal) = self.terminal {
            extra.insert("terminal".into(), lendable(terminal)?.into());
        }
        let base = &cx.caller.cwd;
        let cwd = self.cwd.map_or_else(|| base.clone(), |cwd| base.join(cwd));
        let mut env = cx.caller.env.clone().unwrap_or_default();
        for (name, value) in pairs(&self.env, "--env")? {
            env.retain(|(known, _)| *known != name);
            env.push((name, value));
        }
        if self.fail_closed {
            env.retain(|(known, _)| known != FAIL);
            env.push((FAIL.into(), "closed".into()));
        }
        if variable(&env, "PWD").is_some() {
            env.retain(|(name, _)| name != "PWD");
            env.push(("PWD".into(), cwd.to_string_lossy().into_owned()));
        }
        // A program is named from where the caller stands, wherever it is to run.
        let program = self.program.map(|program| match base.join(&program) {
            path if program.contains('/') || path.is_file() => path.to_string_lossy().into_owned(),
            _ => program,
        });
        if let Some(core) = self.core {
            let core = std::path::absolute(base.join(&core)).unwrap_or_else(|_| PathBuf::from(core));
            let words = program.iter().cloned().chain(["--core".into(), core.to_string_lossy().into_owned()]);
            return Ok(Blueprint {
                words: words.collect(),
                aim: Aim::Core(core),
                symbols: program.map(PathBuf::from),
                adapter: self.adapter,
                cwd,
                env,
                umask: cx.caller.umask,
                name: self.name,
                breaks: self.breaks,
                ..Blueprint::default()
            });
        }
        let stdin =
            self.stdin.map(|file| std::path::absolute(base.join(&file)).unwrap_or_else(|_| PathBuf::from(file)));
        let spooled = stdin.clone().filter(|file| file.starts_with(cx.hub.paths.spool()));
        let mut words: Vec<String> = program.into_iter().collect();
        words.extend(self.args);
        Ok(Blueprint {
            words,
            adapter: self.adapter,
            stdin,
            lent,
            spooled: spooled.map(|file| Arc::new(Spooled(file))),
            cwd,
            env,
            umask: cx.caller.umask,
            name: self.name,
            alone: false,
            allow_self: self.allow_self,
            inbox: self.inbox,
            stop_on_entry: self.stop_on_entry,
            record: self.record,
            breaks: self.breaks,
            extra,
            ..Blueprint::default()
        })
    }
}

/// Starts what the blueprint says and tells where it is.
pub async fn launch(cx: &Context, blueprint: Blueprint, run: Option<Wait>, view: View) -> Result<Report, Failure> {
    let hub = cx.hub.clone();
    let lent = blueprint.lent;
    let run = run.map(|wait| if lent { Wait { limit: Duration::ZERO, ..wait } } else { wait });
    let (live, answer) = hub.launch(cx, blueprint, run).await?;
    if lent {
        if run.is_some() {
            has_begun(cx, &live, view).await?;
        }
        return at_terminal(cx, &live, view).await;
    }
    let table = hub.wishes(&live.project);
    let wishes = table.for_session(&live.alias);
    let mut report = match answer {
        Answer::Outcome(outcome) => Report::from_outcome(cx, &live, outcome, view),
        _ => Report::held(&live),
    };
    let bindings = live.handle.snapshot.borrow().hits.clone();
    let bound = |id: &u32| bindings.get(id).cloned();
    // Lines that are kept for the project's programs are no agent's.
    let wishes = wishes.into_iter().filter(|wish| !live.adapter.quirks.agents || bindings.contains_key(&wish.id));
    report.breakpoints = wishes.map(|wish| crate::model::BreakpointReport { binding: bound(&wish.id), wish }).collect();
    if run.is_some() {
        // The stop says where the program is; only what will not stop it is news.
        report.breakpoints.retain(|report| {
            report.binding.as_ref().is_some_and(|binding| {
                matches!(binding.state, crate::model::BindingState::Pending | crate::model::BindingState::Moved)
            })
        });
    }
    report.notes.extend(live.notes.iter().cloned());
    Ok(report)
}

/// Gives an agent the time to begin, or to fail.
async fn has_begun(cx: &Context, live: &Live, view: View) -> Result<(), Failure> {
    let answer = live.handle.ask(Op::Await(Wait { limit: BEGINNING, view })).await;
    let pid = live.handle.snapshot.borrow().pid;
    if let (Err(failure), None) = (answer, pid) {
        cx.hub.end(live, false).await;
        return Err(failure);
    }
    Ok(())
}

/// Tells whoever lent an agent their terminal which process has it, and waits for its end: so long they can't have it.
async fn at_terminal(cx: &Context, live: &Live, view: View) -> Result<Report, Failure> {
    let mut snapshot = live.handle.snapshot.clone();
    let mut told = None;
    loop {
        let (pid, is_live) = {
            let now = snapshot.borrow_and_update();
            (now.pid, now.state.is_live())
        };
        if pid.is_some() && pid != told {
            told = pid;
            let _ = cx.stream.send(Part::Event(json!({ "pid": pid }))).await;
        }
        if !is_live {
            break;
        }
        tokio::select! {
            changed = snapshot.changed() => if changed.is_err() { break },
            () = cx.cancelled.cancelled() => cx.hub.end(live, false).await,
        }
    }
    let mut report = match live.handle.ask(Op::Await(WaitArgs::default().to_wait(view))).await {
        Ok(Answer::Outcome(outcome)) => Report::from_outcome(cx, live, outcome, view),
        _ => Report::held(live),
    };
    report.notes.extend(live.notes.iter().cloned());
    Ok(report)
}

/// Starts one program, or each part of a compound configuration; answers about the last one, with a note on the others.
pub async fn launch_all(cx: &Context, args: LaunchArgs, run: Option<Wait>, view: View) -> Result<Report, Failure> {
    let blueprints = args.blueprints(cx).await?;
    let last = blueprints.len().saturating_sub(1);
    let mut before: Vec<String> = Vec::new();
    for (index, (blueprint, notes)) in blueprints.into_iter().enumerate() {
        let what = quoted(&blueprint.words.join(" "));
        // Those before the last are started and left to themselves.
        let wait = run.map(|wait| if index == last { wait } else { Wait { limit: Duration::ZERO, ..wait } });
        let mut report = launch(cx, blueprint, wait, view).await.map_err(|failure| {
            before.iter().fold(failure, |failure, session| failure.hint(format!("started before it: {session}")))
        })?;
        report.notes.extend(notes);
        let session = crate::hub::lock(&cx.about).0.clone().unwrap_or_default();
        if index == last {
            report.notes.extend(before.iter().map(|session| format!("started too: {session}")));
            return Ok(report);
        }
        before.push(format!("{session} {what} ({})", report.state));
    }
    Err(Failure::refused("the compound has no configurations"))
}

impl Command for Start {
    const NAME: &'static str = "start";
    const GROUP: Group = Group::Sessions;
    const PAST: Past = Past::Apart;
    const SPAWNS: bool = true;
    type Output = Report;

    async fn run(self, cx: Context) -> Result<Report, Failure> {
        launch_all(&cx, self.launch, None, View::default()).await
    }
}
