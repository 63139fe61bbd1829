//! What has to be run before there is a program to debug: compilers, package managers, test runners that list their tests.
//!
//! It runs as the caller would run it, in a process group of its own. That group ends with the command that wanted it: when
//! its client goes away or its time is over, nothing of it is left.

use std::collections::VecDeque;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitOptions};
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::Command;
use tokio::time::{Instant, timeout_at};

use super::launch::{Blueprint, variable};
use super::{Context, Part};
use crate::failure::Failure;
use crate::find;
use crate::locate::{Build, Plan};
use crate::process;
use crate::render::{cut, quoted};

/// A line about a build that is still at work comes this often, and first after one second.
const PROGRESS_EVERY: Duration = Duration::from_secs(5);
const PROGRESS_AFTER: Duration = Duration::from_secs(1);
/// The most of its standard output that is read; one that says more is no list of anything.
const MAX_STDOUT: usize = 64 * 1024 * 1024;
/// How much of its complaints is kept, and shown when it fails.
const KEPT: usize = 64 * 1024;
const SHOWN: usize = 3500;
/// What it has left open, such as a compiler's server, does not hold the answer up.
const LINGER: Duration = Duration::from_millis(300);

/// The processes of one build. Whatever is still in the group when this is dropped is ended.
struct Group(Option<Pid>);

impl Group {
    /// It ended by itself: what it left behind on purpose may stay.
    fn release(mut self) {
        self.0 = None;
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(group) = self.0 {
            let _ = rustix::process::kill_process_group(group, Signal::KILL);
            let _ = rustix::process::waitpgid(group, WaitOptions::NOHANG);
        }
    }
}

/// Runs one build to its end and answers what to do next. Blocks on the build, for no longer than `limit`.
pub async fn run(cx: &Context, blueprint: &Blueprint, build: Build, limit: Duration) -> Result<Plan, Failure> {
    let Build { argv, cwd, env: extra, then } = build;
    let shown = match argv.as_slice() {
        [shell, flag, line] if shell == "/bin/sh" && flag == "-c" => quoted(line),
        words => quoted(&words.join(" ")),
    };
    let mut env = blueprint.env.clone();
    for (name, value) in extra {
        env.retain(|(known, _)| *known != name);
        env.push((name, value));
    }
    let env_path = variable(&env, "PATH").unwrap_or_default();
    let mut command = command(&argv, &cwd, blueprint.umask, &env_path)?;
    command.env_clear().envs(process::marked_build(&cx.hub.paths.runtime, env)?);
    let failed = |error: std::io::Error| Failure::io(format!("run `{shown}`"), &error);
    let mut child = command.spawn().map_err(failed)?;
    let group = Group(child.id().and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?)));
    let deadline = Instant::now() + limit;
    let mut streams = Streams::default();
    let (mut stdout, mut stderr) = (child.stdout.take(), child.stderr.take());
    let mut tell_at = Instant::now() + PROGRESS_AFTER;
    let began = Instant::now();
    let mut buffers = (vec![0; 64 * 1024], vec![0; 8 * 1024]);
    let mut ended = None;
    let status = loop {
        if stdout.is_none() && stderr.is_none() {
            break match ended {
                Some(status) => status,
                None => match timeout_at(deadline, child.wait()).await {
                    Ok(status) => status.map_err(failed)?,
                    Err(_) => return Err(too_slow(&shown, limit)),
                },
            };
        }
        let wake = ended.map_or(tell_at.min(deadline), |_| Instant::now() + LINGER);
        tokio::select! {
            read = read(&mut stdout, &mut buffers.0) => match read {
                0 => stdout = None,
                size => streams.take_out(&buffers.0[..size], &shown)?,
            },
            read = read(&mut stderr, &mut buffers.1) => match read {
                0 => stderr = None,
                size => streams.take_err(&buffers.1[..size]),
            },
            status = child.wait(), if ended.is_none() => ended = Some(status.map_err(failed)?),
            () = tokio::time::sleep_until(wake) => match ended {
                Some(status) => break status,
                None if Instant::now() >= deadline => return Err(too_slow(&shown, limit)),
                None => {
                    tell(cx, &streams.progress(&shown, began.elapsed())).await;
                    tell_at = Instant::now() + PROGRESS_EVERY;
                }
            },
        }
    };
    group.release();
    if status.success() {
        return then(&String::from_utf8_lossy(&streams.out));
    }
    Err(Failure::refused(format!("`{shown}` failed ({status})\n{}", streams.complaint())))
}

/// Through a shell, which sets the caller's file mask: the daemon has one of its own.
fn command(argv: &[String], cwd: &Path, umask: Option<u32>, env_path: &str) -> Result<Command, Failure> {
    let first = argv.first().map_or("", String::as_str);
    let program = match first.contains('/') {
        true => Some(cwd.join(first)).filter(|path| path.is_file()),
        false => find::on_path(first, env_path),
    };
    let program = program.ok_or_else(|| {
        Failure::not_found(format!("there is no `{first}` on the PATH"))
            .hint(format!("install it, or check: which {first}"))
    })?;
    let mut command = Command::new("/bin/sh");
    command.args(["-c", r#"umask "$0"; exec "$@""#]).arg(format!("{:03o}", umask.unwrap_or(0o022) & 0o777));
    command.arg(program).args(&argv[1..]).current_dir(existing(cwd)?);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    Ok(command)
}

fn existing(folder: &Path) -> Result<&Path, Failure> {
    if folder.is_dir() {
        Ok(folder)
    } else {
        Err(Failure::not_found(format!("there is no directory {}", folder.display())))
    }
}

fn too_slow(shown: &str, limit: Duration) -> Failure {
    Failure::timed_out(format!("`{shown}` did not end within {} s and was ended", limit.as_secs()))
        .hint("run it by itself first; what it has built is not built again")
        .hint("or give it more time: timeouts.build_secs in config.toml")
}

/// Reads once; 0 at the end. A stream that is gone is never ready.
async fn read(stream: &mut Option<impl AsyncRead + Unpin>, buffer: &mut [u8]) -> usize {
    match stream {
        Some(stream) => stream.read(buffer).await.unwrap_or(0),
        None => std::future::pending().await,
    }
}

/// Says what is going on. A client that does not listen misses it.
async fn tell(cx: &Context, text: &str) {
    let _ = cx.stream.send(Part::Progress(text.to_string())).await;
}

/// What a build has said so far.
#[derive(Default)]
struct Streams {
    out: Vec<u8>,
    err: VecDeque<u8>,
}

impl Streams {
    fn take_out(&mut self, bytes: &[u8], shown: &str) -> Result<(), Failure> {
        self.out.extend(bytes);
        if self.out.len() > MAX_STDOUT {
            return Err(Failure::refused(format!("`{shown}` printed more than {MAX_STDOUT} bytes and was ended")));
        }
        Ok(())
    }

    fn take_err(&mut self, bytes: &[u8]) {
        self.err.extend(bytes);
        let surplus = self.err.len().saturating_sub(KEPT);
        self.err.drain(..surplus);
    }

    fn errors(&self) -> String {
        let bytes: Vec<u8> = self.err.iter().copied().collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    fn progress(&self, shown: &str, time: Duration) -> String {
        let errors = self.errors();
        let last = errors.lines().rev().find(|line| !line.trim().is_empty()).map(|line| quoted(line.trim()));
        let last = last.map(|line| format!(": {}", cut(&line, 100).0)).unwrap_or_default();
        format!("building: {}, {} s{last}", cut(shown, 160).0, time.as_secs())
    }

    /// The end of its complaints; of all it said where it has not complained.
    fn complaint(&self) -> String {
        let errors = self.errors();
        let text = if errors.trim().is_empty() { String::from_utf8_lossy(&self.out).into_owned() } else { errors };
        tail(text.trim_end(), SHOWN).to_string()
    }
}

/// The last whole lines of a text, no longer than `limit` bytes where there are lines at all.
fn tail(text: &str, limit: usize) -> &str {
    let Some(start) = text.len().checked_sub(limit) else { return text };
    let start = (start..text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    let rest = &text[start..];
    rest.split_once('\n').map_or(rest, |(_, lines)| lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_long_text_is_kept_in_whole_lines() {
        assert_eq!(tail("one\ntwo\nthree", 9), "three");
        assert_eq!(tail("one\ntwo", 100), "one\ntwo");
        assert_eq!(tail("ééééé", 5), "éé");
    }
}
