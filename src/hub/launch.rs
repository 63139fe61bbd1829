//! From a command line to a session: choose the adapter, start it under a supervisor, hand the session its first
//! operation.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::sync::mpsc;

use super::attach::{self, Aim, Foreign};
use super::wishes::reanchor;
use super::{Context, Hub, Live, build, lock, own, places};
use crate::adapters::{self, Adapter, Stdio};
use crate::config::Config;
use crate::failure::Failure;
use crate::find;
use crate::locate::{self, Asked};
use crate::model::{Breakpoint, Launch, SessionState, Stdin, Target};
use crate::output::Ring;
use crate::process::{Plan, Supervised};
use crate::runner;
use crate::session::{Answer, Limits, Op, Session, Stream, Wait};
use crate::store::Journal;
use crate::translate;

/// Lines of a program's output that go with the failure to start it.
const LAST_WORDS: usize = 6;

/// What a session was asked for; enough to start it again.
#[derive(Debug, Clone, Default)]
pub struct Blueprint {
    /// The command line, or the process that was attached to.
    pub words: Vec<String>,
    pub aim: Aim,
    /// The program whose symbols are meant, where the target is not started here.
    pub symbols: Option<PathBuf>,
    /// Fields of a launch configuration, laid over the adapter's own arguments.
    pub extra: Map<String, Value>,
    pub adapter: Option<String>,
    pub cwd: PathBuf,
    pub env: Vec<(String, String)>,
    pub umask: Option<u32>,
    pub stdin: Option<PathBuf>,
    /// Its user's terminal is lent to it.
    pub lent: bool,
    /// The file was made for this alone.
    pub spooled: Option<Arc<Spooled>>,
    pub name: Option<String>,
    pub stop_on_entry: bool,
    /// Record it, so that one can go back.
    pub record: bool,
    /// Only its own breakpoints count, not those kept for the project.
    pub alone: bool,
    /// It is an agent that may control its own session.
    pub allow_self: bool,
    /// It is an agent whose session takes commands by file.
    pub inbox: bool,
    /// How long the launch itself may take, where that is not as configured.
    pub launch_limit: Option<Duration>,
    /// Breakpoints of this session alone, as typed.
    pub breaks: Vec<String>,
}

/// What to debug, once the files have been looked at.
pub(super) struct Choice {
    pub(super) target: Target,
    /// Empty where only the asked adapter tells.
    pub(super) language: &'static str,
    /// The adapter, where the target is plainly for one.
    pub(super) adapter: Option<&'static Adapter>,
    pub(super) notes: Vec<String>,
}

/// What a client read from its own standard input for a program; removed with the last that could read it.
#[derive(Debug)]
pub struct Spooled(pub PathBuf);

impl Drop for Spooled {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

impl Hub {
    /// Starts a session and waits until it is held, or with `run` until its first stop.
    pub async fn launch(
        self: &Arc<Self>,
        cx: &Context,
        blueprint: Blueprint,
        run: Option<Wait>,
    ) -> Result<(Arc<Live>, Answer), Failure> {
        let name = blueprint.name.clone();
        let _reserved = self.reserve(name.as_deref())?;
        let project = places::project_of(&blueprint.cwd);
        let alias = self.next_alias();
        // Breakpoints are checked before anything is started, so that a typing mistake costs nothing.
        self.set_breakpoints(&project, &alias, &blueprint)?;
        let live = match self.start_session(cx, &alias, &project, blueprint).await {
            Ok(live) => live,
            Err(failure) => {
                self.forget_own(&project, &alias);
                return Err(failure);
            }
        };
        cx.about(&live);
        let table = self.wishes(&project);
        let (mut wishes, mut catch) = (table.for_session(&alias), table.catch.clone());
        if live.blueprint.alone {
            wishes.retain(|wish| wish.session.as_deref() == Some(alias.as_str()));
            catch.clear();
        }
        let op = Op::Start { wishes, catch, run };
        let answer = live.handle.ask(op).await;
        cx.about(&live);
        match answer {
            Ok(answer) => Ok((live, answer)),
            Err(failure) => {
                let failure = attach::explained(failure, live.held_of.as_ref());
                // Nobody can end it any more: nothing is left of it when its failure is told.
                if !live.state().is_live() {
                    live.gone().await;
                }
                // What never was held is no session: the user sees why, and nothing else.
                if live.state() != SessionState::Lost {
                    self.remove(&alias);
                }
                self.forget_own(&project, &alias);
                Err(with_last_words(failure, &live))
            }
        }
    }

    /// Adds the session's own breakpoints, and finds the project's again in files that were edited.
    fn set_breakpoints(&self, project: &Path, alias: &str, blueprint: &Blueprint) -> Result<(), Failure> {
        let resolved: Vec<(String, places::Resolved)> = blueprint
            .breaks
            .iter()
            .map(|text| places::resolve(text, &blueprint.cwd).map(|resolved| (text.clone(), resolved)))
            .collect::<Result<_, _>>()?;
        if asked_adapter(blueprint)?.is_some_and(|adapter| adapter.quirks.agents) {
            // An agent that runs past a word that was mistyped can't be brought back.
            resolved.iter().try_for_each(|(_, resolved)| places::for_agent(&resolved.place, None))?;
        }
        self.edit_wishes(project, |table| {
            table.breakpoints.iter_mut().for_each(reanchor);
            for (asked, resolved) in resolved {
                let id = table.next_id();
                table.breakpoints.push(Breakpoint {
                    session: Some(alias.into()),
                    line_text: resolved.line_text,
                    ..Breakpoint::new(id, resolved.place, asked)
                });
            }
        })
    }

    fn forget_own(&self, project: &Path, alias: &str) {
        let _ = self.edit_wishes(project, |table| {
            table.breakpoints.retain(|wish| wish.session.as_deref() != Some(alias));
        });
    }

    async fn start_session(
        self: &Arc<Self>,
        cx: &Context,
        alias: &str,
        project: &Path,
        blueprint: Blueprint,
    ) -> Result<Arc<Live>, Failure> {
        let env_path = variable(&blueprint.env, "PATH").unwrap_or_default();
        let request = self.config.request_for(Some(&blueprint.env))?;
        asked_adapter(&blueprint)?;
        let mut choice = choose_target(cx, &blueprint, &env_path).await?;
        let adapter = self.choose_adapter(&blueprint, &choice, &env_path)?;
        let found = find::find_with(adapter, &self.paths, &self.config, &env_path)?;
        if let Target::Launch(launch) = &mut choice.target {
            launch.helper = helper(launch, &found.program);
            choice.notes.extend(prepare_recording(launch, adapter)?);
        }
        let home = self.paths.runtime.join("home");
        crate::paths::create_private(&home)?;
        let mut env = blueprint.env.clone();
        for (name, value) in (adapter.adapter_env)(&found, &home.to_string_lossy()) {
            env.retain(|(known, _)| *known != name);
            if !value.is_empty() {
                env.push((name, value));
            }
        }
        let attached = choice.target.is_attached();
        let launched = matches!(choice.target, Target::Launch(_));
        let stdio_dir = self.paths.runtime.join("sessions").join(alias);
        if let Target::Remote(remote) = &mut choice.target {
            // A short name: the path of a socket must be.
            remote.socket = stdio_dir.join("rsp");
        }
        // An agent that finds an open input waits for what is to come from there.
        let nothing = adapter.quirks.agents.then(|| PathBuf::from("/dev/null"));
        let stdin_file = blueprint.stdin.clone().or(nothing);
        let path = |name: &str| stdio_dir.join(name).to_string_lossy().into_owned();
        let stdin_path = stdin_file.as_ref().map_or_else(|| path("stdin"), |file| file.to_string_lossy().into_owned());
        let stdio = Stdio { stdin: path("stdin"), stdout: path("stdout"), stderr: path("stderr") };
        adapters::own::fill(adapter, &mut choice.target, &stdio).map_err(|lacks| {
            Failure::unsupported(format!("{} has no `{lacks}` in its table", adapter.id)).hint(format!(
                "add it below [adapters.{}] in {}",
                adapter.id,
                self.paths.config_file().display()
            ))
        })?;
        let exe = own_executable()?;
        let streams = launched.then(|| Stdio { stdin: stdin_path, ..stdio.clone() });
        let argv = translate::command_line(&found, &choice.target, streams.as_ref(), &exe);
        crate::log::payload(|| format!("$ {}", json!(argv)));
        let plan = Plan {
            exe,
            runtime: self.paths.runtime.clone(),
            session: alias.into(),
            argv,
            env,
            // Not the project's folder: a Python adapter would import what lies there.
            cwd: home.clone(),
            umask: blueprint.umask,
            stdio_dir: stdio_dir.clone(),
            fifos: launched,
            stdin_file: stdin_file.clone(),
            attached,
            stays: adapter.quirks.agents,
        };
        let (supervised, streams) = Supervised::spawn(&plan).await?;
        let limits = Limits {
            initialize: self.config.initialize(),
            launch: blueprint.launch_limit.unwrap_or_else(|| self.config.launch()),
            request,
            inspect: self.config.inspect(),
        };
        let (held_of, lent) = (Foreign::of(&choice.target), blueprint.lent);
        let mut session = Session::new(adapter, choice.target, stdio, limits);
        session.set_version(found.version.clone());
        let mut notes = choice.notes;
        let journal = self.record(cx, alias, project, &blueprint, &session).unwrap_or_else(|failure| {
            crate::log::warn(failure.to_string());
            notes.push(format!("this session is not recorded: {failure}"));
            None
        });
        let record = journal.as_ref().map(|journal| journal.id().to_string());
        if adapter.quirks.agents {
            if let Some(id) = &record {
                session.add_argument("record", json!(self.paths.state.join("sessions").join(id)));
            }
            session.add_argument("prices", json!(self.config.prices()));
        }
        let (spent, spends) = mpsc::unbounded_channel();
        let handle = runner::start(runner::Parts {
            session,
            supervised,
            streams,
            journal: journal.clone(),
            output: Ring::new(self.config.max_events(), self.config.max_bytes()),
            env: blueprint.env.clone(),
            attached,
            stderr_noise: adapter.quirks.stderr_noise,
            spent,
        });
        tokio::spawn(forget_spent(self.clone(), project.to_path_buf(), spends));
        let live = Arc::new(Live {
            alias: alias.into(),
            name: blueprint.name.clone(),
            record,
            journal,
            project: project.to_path_buf(),
            adapter,
            owner: cx.caller.owner(),
            started: crate::store::write::now_ms(),
            handle,
            stdin: (launched && stdin_file.is_none()).then(|| stdio_dir.join("stdin")),
            held_of,
            notes,
            // What was waited for is there: starting again means the same.
            blueprint: match blueprint.aim {
                Aim::WaitFor { name, .. } => Blueprint { aim: Aim::Named(name), ..blueprint },
                _ => blueprint,
            },
            read: Mutex::default(),
            // Whoever sits before the agent does not debug it.
            holder: Mutex::new(Live::first(&cx.caller).filter(|_| !lent)),
        });
        self.add(live.clone(), &cx.caller);
        Ok(live)
    }

    /// Begins the session's record with what it is about: never the environment.
    fn record(
        &self,
        cx: &Context,
        alias: &str,
        project: &Path,
        blueprint: &Blueprint,
        session: &Session,
    ) -> Result<Option<Journal>, Failure> {
        let daemon = std::process::id();
        let mut about = json!({
            "alias": alias,
            "name": blueprint.name,
            "adapter": session.adapter().id,
            "via": session.via(),
            "words": blueprint.words,
            "cwd": blueprint.cwd,
            "project": project,
            "who": cx.caller.who,
            "target": session.target_summary(),
            "daemon": { "pid": daemon, "start": crate::platform::start_time(daemon) },
        });
        let logged = Config::logs_events(Some(&blueprint.env));
        let Some(recorder) = &self.recorder else { return Ok(None) };
        recorder.set_redacts(self.config.redact());
        let journal = recorder.create(&about, logged)?;
        if let Some(about) = about.as_object_mut() {
            about.remove("daemon");
        }
        journal.append("session.start", None, about);
        Ok(Some(journal))
    }

    /// `--adapter`, then `BUGEYE_ADAPTER`, then the configured default if it serves the language, then by language: the
    /// first that is here.
    fn choose_adapter(
        &self,
        blueprint: &Blueprint,
        choice: &Choice,
        env_path: &str,
    ) -> Result<&'static Adapter, Failure> {
        let all = adapters::all();
        let target = &choice.target;
        let able = || all.iter().copied().filter(|adapter| attach::can(adapter, target));
        if let Some(adapter) = asked_adapter(blueprint)? {
            let others: Vec<&str> = able().map(|adapter| adapter.id).collect();
            let fits = attach::can(adapter, target);
            return if fits { Ok(adapter) } else { Err(attach::cannot(adapter, target, &others)) };
        }
        if let Some(adapter) = choice.adapter {
            return Ok(adapter);
        }
        let serving = || able().filter(|adapter| adapter.languages.contains(&choice.language));
        let default = self.config.default_adapter().and_then(|name| adapters::by_name(&name));
        let recorder = serving().find(|adapter| blueprint.record && adapter.natives.reverse.is_some());
        if let Some(recorder) = recorder {
            return Ok(recorder);
        }
        if let Some(default) = serving().find(|adapter| default.is_some_and(|wanted| std::ptr::eq(wanted, *adapter))) {
            return Ok(default);
        }
        let is_here =
            |adapter: &&'static Adapter| find::find_with(adapter, &self.paths, &self.config, env_path).is_ok();
        let mut candidates = serving();
        match (candidates.next(), candidates.next()) {
            (Some(only), None) => Ok(only),
            (Some(first), Some(_)) => Ok(serving().find(is_here).unwrap_or(first)),
            (None, _) => Err(match adapters::for_language(choice.language) {
                Some(adapter) => attach::cannot(adapter, target, &[]),
                None => {
                    Failure::unsupported(format!("no adapter here debugs {}", choice.language)).hint("bugeye doctor")
                }
            }),
        }
    }
}

/// The adapter that is asked for by name.
pub(super) fn asked_adapter(blueprint: &Blueprint) -> Result<Option<&'static Adapter>, Failure> {
    let asked = blueprint.adapter.clone().or_else(|| Config::asked_adapter(Some(&blueprint.env)));
    let Some(name) = asked else { return Ok(None) };
    adapters::by_name(&name).map(Some).ok_or_else(|| {
        let known: Vec<&str> = adapters::all().iter().map(|adapter| adapter.id).collect();
        Failure::usage(format!("there is no adapter `{name}`")).hint(format!("known: {}", known.join(", ")))
    })
}

/// A program that ended before it was held may have said why: its last lines go with the failure.
fn with_last_words(failure: Failure, live: &Live) -> Failure {
    let part = lock(&live.handle.output).since(0);
    let said: String =
        part.chunks.into_iter().filter(|chunk| chunk.stream != Stream::Console).map(|c| c.text).collect();
    let lines: Vec<&str> = said.lines().filter(|line| !line.trim().is_empty()).collect();
    let last = lines.iter().skip(lines.len().saturating_sub(LAST_WORDS));
    last.fold(failure, |failure, line| failure.cause(crate::render::quoted(line)))
}

/// A breakpoint that stopped once is no wish any more. Ends with the session.
async fn forget_spent(hub: Arc<Hub>, project: PathBuf, mut spends: mpsc::UnboundedReceiver<u32>) {
    while let Some(id) = spends.recv().await {
        let _ = hub.edit_wishes(&project, |table| table.breakpoints.retain(|wish| wish.id != id));
    }
}

/// What a recording needs of the program's surroundings; says so.
fn prepare_recording(launch: &mut Launch, adapter: &Adapter) -> Result<Option<String>, Failure> {
    if !launch.record {
        return Ok(None);
    }
    let Some(reverse) = adapter.natives.reverse else {
        return Err(Failure::unsupported(format!("{} can't record a program to go back in", adapter.id))
            .hint("gdb can, for C, C++ and Rust: --adapter gdb"));
    };
    let new: Vec<_> = reverse.env.iter().filter(|(name, _)| variable(&launch.env, name).is_none()).collect();
    launch.env.extend(new.iter().map(|(name, value)| ((*name).into(), (*value).into())));
    let names: Vec<&str> = new.iter().map(|(name, _)| *name).collect();
    Ok((!names.is_empty()).then(|| format!("set for the recording: {}", names.join(", "))))
}

async fn choose_target(cx: &Context, blueprint: &Blueprint, env_path: &str) -> Result<Choice, Failure> {
    if let Some(choice) = attach::target(cx, blueprint).await? {
        return Ok(choice);
    }
    if !blueprint.cwd.is_dir() {
        return Err(Failure::not_found(format!("there is no directory {}", blueprint.cwd.display()))
            .hint("--cwd is where the program is to run"));
    }
    if let Some(stdin) = &blueprint.stdin
        && !stdin.is_file()
    {
        return Err(Failure::not_found(format!("there is no file {} to read input from", stdin.display()))
            .hint("paths are relative to the current directory"));
    }
    if let Some(adapter) = asked_adapter(blueprint)?.filter(|adapter| adapter.quirks.agents) {
        let (program, args) = blueprint.words.split_first().ok_or_else(|| {
            Failure::usage("no agent was named").hint("bugeye start --agent -- claude -p 'fix the test'")
        })?;
        let found = own::file(program, &blueprint.cwd, env_path).map_err(|failure| match program {
            path if path.contains('/') => failure,
            name => Failure::not_found(format!("{name} is not on the PATH"))
                .hint("install it, or name its file: bugeye run --agent -- ./FILE"),
        })?;
        let launch = launch_of(blueprint, found, args.to_vec());
        return Ok(Choice { target: Target::Launch(launch), language: "", adapter: Some(adapter), notes: Vec::new() });
    }
    if let Some(program) = own::program(blueprint, asked_adapter(blueprint)?, env_path)? {
        let launch = Launch { interpreter: program.interpreter, ..launch_of(blueprint, program.program, program.args) };
        let language = program.adapter.languages.first().copied().unwrap_or_default();
        let adapter = Some(program.adapter);
        return Ok(Choice { target: Target::Launch(launch), language, adapter, notes: Vec::new() });
    }
    let program = program_of(cx, blueprint, env_path).await?;
    let cwd = program.cwd.unwrap_or_else(|| blueprint.cwd.clone());
    let mut env = blueprint.env.clone();
    for (name, value) in program.env {
        env.retain(|(known, _)| *known != name);
        env.push((name, value));
    }
    let is_rust = program.language == "rust";
    let mut formatters = None;
    if is_rust {
        formatters = rust_formatters(&blueprint.cwd, &blueprint.env, env_path).await;
    }
    let mut catch = program.catch;
    if is_rust && catch.is_empty() {
        catch.push("panic".into());
    }
    let launch = Launch {
        interpreter: program.interpreter,
        formatters,
        entry_in_source: is_rust && !program.notes.iter().any(|note| note == locate::NO_DEBUG_INFO),
        catch,
        cwd,
        env,
        ..launch_of(blueprint, program.program, program.args)
    };
    Ok(Choice { target: Target::Launch(launch), language: program.language, adapter: None, notes: program.notes })
}

/// What the blueprint itself says about a program to start.
fn launch_of(blueprint: &Blueprint, program: PathBuf, args: Vec<String>) -> Launch {
    Launch {
        program,
        interpreter: Vec::new(),
        helper: None,
        args,
        cwd: blueprint.cwd.clone(),
        env: blueprint.env.clone(),
        umask: blueprint.umask,
        stdin: blueprint.stdin.clone().map_or(Stdin::Interactive, Stdin::File),
        stop_on_entry: blueprint.stop_on_entry,
        record: blueprint.record,
        formatters: None,
        entry_in_source: false,
        catch: Vec::new(),
        extra: blueprint.extra.clone(),
    }
}

/// Looks at the command line, and runs what has to be run before its program is known.
async fn program_of(cx: &Context, blueprint: &Blueprint, env_path: &str) -> Result<locate::Program, Failure> {
    let mut plan =
        locate::locate(&Asked { words: &blueprint.words, cwd: &blueprint.cwd, env: &blueprint.env, env_path })?;
    loop {
        match plan {
            locate::Plan::Debug(program) => return Ok(program),
            locate::Plan::Build(wanted) => {
                plan = build::run(cx, blueprint, wanted, cx.hub.config.build()).await?;
            }
        }
    }
}

/// The folder of the toolchain's own formatters for LLDB, asked of the `rustc` the user would run.
async fn rust_formatters(cwd: &Path, env: &[(String, String)], env_path: &str) -> Option<PathBuf> {
    static KNOWN: Mutex<Option<(PathBuf, String, PathBuf)>> = Mutex::new(None);
    let rustc = find::on_path("rustc", env_path)?;
    let known = lock(&KNOWN).clone();
    if let Some((known_cwd, known_path, folder)) = known
        && known_cwd == cwd
        && known_path == env_path
        && folder.is_dir()
    {
        return Some(folder);
    }
    let mut command = tokio::process::Command::new(rustc);
    command.args(["--print", "sysroot"]).current_dir(cwd).env_clear().envs(env.iter().cloned());
    command.stdin(std::process::Stdio::null()).kill_on_drop(true);
    let output = tokio::time::timeout(Duration::from_secs(3), command.output()).await.ok()?.ok()?;
    let sysroot = String::from_utf8(output.stdout).ok()?;
    let folder = Path::new(sysroot.trim()).join("lib/rustlib/etc");
    folder.join("lldb_lookup.py").is_file().then(|| {
        *lock(&KNOWN) = Some((cwd.to_path_buf(), env_path.to_string(), folder.clone()));
        folder
    })
}

/// An interpreter that is a script looks for the real one each time it is run, which takes longer than the interpreter
/// itself. The program has to go through it, for the script may set things up; what only belongs to the adapter need not.
fn helper(launch: &Launch, of_adapter: &Path) -> Option<Box<Path>> {
    let is_script = |path: &Path| {
        let mut head = [0; 2];
        std::fs::File::open(path).and_then(|mut file| file.read_exact(&mut head)).is_ok_and(|()| &head == b"#!")
    };
    let slow = launch.interpreter.first().is_some_and(|interpreter| is_script(Path::new(interpreter)));
    // That variable is meant for one interpreter, and breaks any other.
    let bound = variable(&launch.env, "PYTHONHOME").is_some();
    (slow && !bound && !is_script(of_adapter)).then(|| of_adapter.into())
}

fn own_executable() -> Result<PathBuf, Failure> {
    // The file may have been replaced by a newer build while the daemon runs; the kernel still has the old one.
    let running = PathBuf::from("/proc/self/exe");
    if running.exists() {
        return Ok(PathBuf::from(format!("/proc/{}/exe", std::process::id())));
    }
    std::env::current_exe().map_err(|error| Failure::io("find its own executable", &error))
}

/// The value of a variable in an environment.
#[must_use]
pub fn variable(env: &[(String, String)], name: &str) -> Option<String> {
    env.iter().rev().find(|(known, _)| known == name).map(|(_, value)| value.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn python(interpreter: &Path, env: &[(&str, &str)]) -> Launch {
        Launch {
            program: "/p/app.py".into(),
            interpreter: vec![interpreter.to_string_lossy().into_owned()],
            helper: None,
            args: Vec::new(),
            cwd: "/p".into(),
            env: env.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect(),
            umask: None,
            stdin: Stdin::Interactive,
            stop_on_entry: false,
            record: false,
            formatters: None,
            entry_in_source: false,
            catch: Vec::new(),
            extra: serde_json::Map::new(),
        }
    }

    #[test]
    fn only_a_script_of_an_interpreter_is_helped() {
        let folder = tempfile::tempdir().unwrap();
        let (shim, real) = (folder.path().join("shim"), folder.path().join("real"));
        std::fs::write(&shim, "#!/bin/sh\n").unwrap();
        std::fs::write(&real, "\x7fELF").unwrap();
        assert_eq!(helper(&python(&shim, &[]), &real), Some(real.as_path().into()));
        assert_eq!(helper(&python(&real, &[]), &real), None);
        assert_eq!(helper(&python(&shim, &[]), &shim), None, "nothing is won");
        assert_eq!(helper(&python(&shim, &[("PYTHONHOME", "/opt")]), &real), None, "it would not start");
        assert_eq!(helper(&python(&folder.path().join("gone"), &[]), &real), None);
    }
}
