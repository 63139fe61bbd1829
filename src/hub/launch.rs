//! From a command line to a session: choose the adapter, start it under a supervisor, hand the session its first
//! operation.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use serde_json::json;
use tokio::sync::mpsc;

use super::wishes::reanchor;
use super::{Context, Hub, Live, build, lock, places};
use crate::adapters::{self, Adapter, Stdio};
use crate::config::Config;
use crate::failure::Failure;
use crate::find;
use crate::locate::{self, Asked};
use crate::model::{Breakpoint, Launch, SessionState, Stdin, Target};
use crate::output::Ring;
use crate::process::{Plan, Supervised};
use crate::runner;
use crate::session::{Answer, Limits, Op, Session, Wait};
use crate::translate;

/// What a session was asked for; enough to start it again.
#[derive(Debug, Clone)]
pub struct Blueprint {
    /// The command line, or the process that was attached to.
    pub words: Vec<String>,
    pub attach: Option<u32>,
    pub adapter: Option<String>,
    pub cwd: PathBuf,
    pub env: Vec<(String, String)>,
    pub umask: Option<u32>,
    pub stdin: Option<PathBuf>,
    pub name: Option<String>,
    pub stop_on_entry: bool,
    /// Breakpoints of this session alone, as typed.
    pub breaks: Vec<String>,
}

/// What to debug, once the files have been looked at.
struct Choice {
    target: Target,
    language: &'static str,
    notes: Vec<String>,
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
        let op = Op::Start { wishes: table.for_session(&alias), catch: table.catch.clone(), run };
        let answer = live.handle.ask(op).await;
        cx.about(&live);
        match answer {
            Ok(answer) => Ok((live, answer)),
            Err(failure) => {
                // What never was held is no session: the user sees why, and nothing else.
                if live.state() != SessionState::Lost {
                    self.remove(&alias);
                }
                self.forget_own(&project, &alias);
                Err(failure)
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
        let mut choice = choose_target(cx, &blueprint, &env_path).await?;
        let adapter = self.choose_adapter(&blueprint, choice.language)?;
        let settings = self.config.adapter(&names(adapter));
        let configured = settings
            .as_ref()
            .and_then(|settings| settings.path.as_deref().map(|path| (path, settings.args.as_slice())));
        let found = find::find(adapter, &self.paths, configured, &env_path)?;
        if let Target::Launch(launch) = &mut choice.target {
            launch.helper = helper(launch, &found.program);
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
        let stdin_file = blueprint.stdin.clone();
        let path = |name: &str| stdio_dir.join(name).to_string_lossy().into_owned();
        let stdin_path = stdin_file.as_ref().map_or_else(|| path("stdin"), |file| file.to_string_lossy().into_owned());
        let stdio = Stdio { stdin: path("stdin"), stdout: path("stdout"), stderr: path("stderr") };
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
        };
        let (supervised, streams) = Supervised::spawn(&plan).await?;
        let limits = Limits {
            initialize: self.config.initialize(),
            launch: self.config.launch(),
            request: self.config.request_for(Some(&blueprint.env)),
            inspect: self.config.inspect(),
        };
        let mut session = Session::new(adapter, choice.target, stdio, limits);
        session.set_version(found.version.clone());
        let about =
            json!({ "adapter": adapter.id, "words": blueprint.words, "cwd": blueprint.cwd, "name": blueprint.name });
        let journal = self
            .recorder
            .as_ref()
            .and_then(|recorder| recorder.create(&about).map_err(|failure| crate::log::warn(failure.to_string())).ok());
        let record = journal.as_ref().map(|journal| journal.id.clone());
        let (spent, spends) = mpsc::unbounded_channel();
        let handle = runner::start(runner::Parts {
            session,
            supervised,
            streams,
            journal,
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
            project: project.to_path_buf(),
            adapter,
            started: crate::store::write::now_ms(),
            handle,
            stdin: (launched && stdin_file.is_none()).then(|| stdio_dir.join("stdin")),
            notes: choice.notes,
            blueprint,
            read: Mutex::default(),
        });
        self.add(live.clone());
        Ok(live)
    }

    /// `--adapter`, then `BUGEYE_ADAPTER`, then the configured default if it serves the language, then by language.
    fn choose_adapter(&self, blueprint: &Blueprint, language: &str) -> Result<&'static Adapter, Failure> {
        let asked = blueprint.adapter.clone().or_else(|| Config::asked_adapter(Some(&blueprint.env)));
        if let Some(name) = asked {
            return adapters::by_name(&name).ok_or_else(|| {
                let known: Vec<&str> = adapters::ADAPTERS.iter().map(|adapter| adapter.id).collect();
                Failure::usage(format!("there is no adapter `{name}`")).hint(format!("known: {}", known.join(", ")))
            });
        }
        let default = self.config.default_adapter().and_then(|name| adapters::by_name(&name));
        default
            .filter(|adapter| adapter.languages.contains(&language))
            .or_else(|| adapters::for_language(language))
            .ok_or_else(|| Failure::unsupported(format!("no adapter here debugs {language}")).hint("bugeye doctor"))
    }
}

/// A breakpoint that stopped once is no wish any more. Ends with the session.
async fn forget_spent(hub: Arc<Hub>, project: PathBuf, mut spends: mpsc::UnboundedReceiver<u32>) {
    while let Some(id) = spends.recv().await {
        let _ = hub.edit_wishes(&project, |table| table.breakpoints.retain(|wish| wish.id != id));
    }
}

async fn choose_target(cx: &Context, blueprint: &Blueprint, env_path: &str) -> Result<Choice, Failure> {
    if let Some(pid) = blueprint.attach {
        return attach_target(pid);
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
        program: program.program,
        interpreter: program.interpreter,
        helper: None,
        args: program.args,
        cwd,
        env,
        umask: blueprint.umask,
        stdin: blueprint.stdin.clone().map_or(Stdin::Interactive, Stdin::File),
        stop_on_entry: blueprint.stop_on_entry,
        formatters,
        entry_in_source: is_rust && !program.notes.iter().any(|note| note == locate::NO_DEBUG_INFO),
        catch,
        extra: serde_json::Map::new(),
    };
    Ok(Choice { target: Target::Launch(launch), language: program.language, notes: program.notes })
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

fn attach_target(pid: u32) -> Result<Choice, Failure> {
    let exe = std::fs::read_link(format!("/proc/{pid}/exe"));
    if !Path::new(&format!("/proc/{pid}")).exists() {
        return Err(Failure::not_found(format!("there is no process {pid}")).hint("look: ps -e"));
    }
    let program = exe.map_err(|error| {
        Failure::refused(format!("process {pid} can't be attached to: {error}"))
            .hint("it belongs to another user, or is part of the kernel")
    })?;
    let name = program.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let language = match name.as_str() {
        python if python.starts_with("python") => "python",
        "node" | "nodejs" => "javascript",
        _ => "c",
    };
    Ok(Choice { target: Target::Attach { pid, program: Some(program) }, language, notes: Vec::new() })
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
    let output = tokio::time::timeout(std::time::Duration::from_secs(3), command.output()).await.ok()?.ok()?;
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

fn names(adapter: &Adapter) -> Vec<&'static str> {
    let mut names = vec![adapter.id];
    names.extend(adapter.aliases);
    names
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
