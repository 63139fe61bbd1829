//! Targets that are not started here: a running process, a program that waits at an address, a core file.

use std::net::{IpAddr, ToSocketAddrs as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::launch::{Blueprint, Choice};
use super::processes::{self, Ground, Listener};
use super::{Context, Part};
use crate::adapters::Adapter;
use crate::elf;
use crate::failure::{Failure, Kind};
pub use crate::model::Aim;
use crate::model::{Remote, Target};
use crate::render::quoted;

/// The target, for a blueprint whose program is not started here.
pub(super) async fn target(cx: &Context, blueprint: &Blueprint) -> Result<Option<Choice>, Failure> {
    let caller = cx.caller.who.rsplit(':').next().and_then(|pid| pid.parse().ok());
    let pid = match &blueprint.aim {
        Aim::Program => return Ok(None),
        Aim::Core(core) => return core_target(core, blueprint.symbols.as_deref()).map(Some),
        Aim::Address { host, port } => return remote_target(host, *port, blueprint).map(Some),
        Aim::Process(pid) => *pid,
        Aim::Named(name) => processes::named(name, &processes::of_user(caller))?,
        Aim::WaitFor { name, limit } => {
            let _ = cx.stream.try_send(Part::Progress(format!("waiting for a process called {name}")));
            wait_for(name, *limit, caller).await?
        }
    };
    process_target(pid, blueprint).map(Some)
}

fn process_target(pid: u32, blueprint: &Blueprint) -> Result<Choice, Failure> {
    let running = processes::program_of(pid)?;
    let program = blueprint.symbols.clone().unwrap_or(running);
    let target = Target::Attach { pid, program: Some(program), extra: blueprint.extra.clone() };
    Ok(Choice { target, language: processes::language_of(pid), adapter: None, notes: Vec::new() })
}

/// Looks at what is new until something goes by that name. A process has its parent's name until it is another program,
/// so each is looked at again; those that are old less often.
async fn wait_for(name: &str, limit: Duration, caller: Option<u32>) -> Result<u32, Failure> {
    const PAUSE: Duration = Duration::from_millis(2);
    const OLD_ONES_EVERY: u32 = 10;
    let deadline = Instant::now() + limit;
    let called = |pid: &u32| processes::look(*pid).is_some_and(|seen| seen.names.iter().any(|known| known == name));
    let old = pids();
    let had_it: Vec<u32> = old.iter().copied().filter(called).collect();
    for round in 0u32.. {
        let due = |pid: &u32| round % OLD_ONES_EVERY == 0 || !old.contains(pid);
        let found: Vec<u32> =
            pids().into_iter().filter(|pid| due(pid) && !had_it.contains(pid) && called(pid)).collect();
        // Only now the costly question, whose it is.
        if !found.is_empty()
            && let Some(seen) = processes::of_user(caller).into_iter().find(|seen| found.contains(&seen.pid))
        {
            return Ok(seen.pid);
        }
        if Instant::now() >= deadline {
            break;
        }
        tokio::time::sleep(PAUSE).await;
    }
    Err(Failure::timed_out(format!("no process called `{name}` was started in {} s", limit.as_secs_f64()))
        .hint("wait longer: --wait 5m")
        .hint(format!("one that runs already: bugeye attach {name}")))
}

fn pids() -> Vec<u32> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

fn remote_target(host: &str, port: u16, blueprint: &Blueprint) -> Result<Choice, Failure> {
    let choice = |language, program: Option<PathBuf>| Choice {
        target: Target::Remote(Remote {
            host: host.into(),
            port,
            socket: PathBuf::new(),
            program,
            extra: blueprint.extra.clone(),
        }),
        language,
        adapter: None,
        notes: Vec::new(),
    };
    let symbols = blueprint.symbols.clone();
    if super::launch::asked_adapter(blueprint)?.is_some() {
        return Ok(choice("", symbols));
    }
    let which = "say which debugger waits there: --adapter NAME";
    let addresses: Vec<IpAddr> = (host, port)
        .to_socket_addrs()
        .map_err(|error| Failure::not_found(format!("there is no host `{host}`: {error}")))?
        .map(|address| address.ip())
        .collect();
    if !addresses.iter().any(IpAddr::is_loopback) {
        // Asking the server itself would be its one client's visit.
        return Err(Failure::usage(format!("what waits at {host}:{port} can't be seen from here")).hint(which));
    }
    match processes::listener(&addresses, port) {
        Listener::Debugger { pid, language } => Ok(choice(language, symbols.or_else(|| processes::traced_by(pid)))),
        Listener::None => Err(Failure::not_found(format!("nothing listens at {host}:{port}"))
            .hint("is it started, and is that its port? look: ss -ltnp")),
        Listener::Hidden => {
            Err(Failure::usage(format!("what listens at {host}:{port} is hidden from you")).hint(which))
        }
        Listener::Other { pid, command } => {
            let command = quoted(&command);
            Err(Failure::usage(format!("process {pid} listens at {host}:{port}, no debugger that is known: {command}"))
                .hint(which))
        }
    }
}

fn core_target(core: &Path, program: Option<&Path>) -> Result<Choice, Failure> {
    let shown = core.display();
    if !core.exists() {
        return Err(Failure::not_found(format!("there is no core file {shown}"))
            .hint("where the system puts them: cat /proc/sys/kernel/core_pattern")
            .hint("with systemd: coredumpctl dump --output=core PID"));
    }
    let read = elf::core(core).map_err(|error| Failure::io(format!("read {shown}"), &error))?;
    let Some(about) = read else {
        return Err(Failure::refused(format!("{shown} is no core file")).hint("bugeye start --core CORE PROGRAM"));
    };
    let command = about.command.as_deref().map(quoted).unwrap_or_default();
    let mut notes = Vec::new();
    if let (Some(named), Some(own)) = (program, &about.program)
        && named.file_name() != own.file_name()
    {
        notes.push(format!(
            "the core file says that it is of {}: with another program what is shown is wrong",
            own.display()
        ));
    }
    let named = program.map(Path::to_path_buf);
    let program = match named.or(about.program) {
        Some(program) if program.is_file() => program,
        Some(program) => {
            return Err(Failure::not_found(format!("the core file is of {}, which is not there", program.display()))
                .hint(format!("name the program it is of ({command}): bugeye start --core {shown} PROGRAM")));
        }
        None => {
            return Err(Failure::usage(format!("{shown} does not say which program it is of ({command})"))
                .hint(format!("name it: bugeye start --core {shown} PROGRAM")));
        }
    };
    let sections =
        elf::sections(&program).map_err(|error| Failure::io(format!("read {}", program.display()), &error))?;
    let newer = |path: &Path| std::fs::metadata(path).and_then(|data| data.modified()).ok();
    if newer(&program) > newer(core) {
        notes.push("the program was built after the core file: what is shown may be wrong".into());
    }
    if !sections.has_debug_info {
        notes.push(crate::locate::NO_DEBUG_INFO.into());
    }
    let target = Target::Core { core: core.to_path_buf(), program: Some(program) };
    Ok(Choice { target, language: sections.language, adapter: None, notes })
}

/// Whether an adapter can be asked for a target at all.
pub(super) const fn can(adapter: &Adapter, target: &Target) -> bool {
    match target {
        Target::Launch(_) | Target::Attach { .. } => true,
        Target::Remote(_) => adapter.remote.is_some(),
        Target::Core { .. } => adapter.core.is_some(),
    }
}

/// What an adapter lacks, in a sentence.
pub(super) fn cannot(adapter: &Adapter, target: &Target, others: &[&str]) -> Failure {
    let what = match target {
        Target::Core { .. } => "open core files",
        _ => "reach a program at an address",
    };
    let failure = Failure::unsupported(format!("{} can't {what}", adapter.id));
    if others.is_empty() { failure } else { failure.hint(format!("these can: {}", others.join(", "))) }
}

/// A program of the user's, that a session took hold of and lets go at its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Foreign {
    Process(u32),
    Address(String),
}

impl Foreign {
    pub(super) fn of(target: &Target) -> Option<Self> {
        match target {
            Target::Attach { pid, .. } => Some(Self::Process(*pid)),
            Target::Remote(remote) => Some(Self::Address(remote.address())),
            Target::Launch(_) | Target::Core { .. } => None,
        }
    }
}

/// A refusal, with what stands in the way on this machine.
pub(super) fn explained(failure: Failure, of: Option<&Foreign>) -> Failure {
    let Some(Foreign::Process(pid)) = of.filter(|_| failure.kind != Kind::Unsupported) else { return failure };
    match Ground::of(*pid).hints(*pid) {
        hints if hints.is_empty() => failure.hint(format!("is it yours, and does it run? look: ps -fp {pid}")),
        hints => hints.into_iter().fold(failure, Failure::hint),
    }
}
