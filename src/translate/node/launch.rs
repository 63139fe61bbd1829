//! Starting a program so that every Node process in it says where its inspector is; finding that of one that runs.

use std::fs::{File, OpenOptions};
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::Value;
use tokio::sync::mpsc;

use super::websocket;
use super::{super::Streams, Input};

/// The end of the name of the script that every process loads first.
pub const PRELOAD: &str = "bugeye-preload.cjs";
const TEXT: &str = include_str!("preload.cjs");

/// A process that waits for the debugger.
#[derive(Debug, Clone, Deserialize)]
pub struct Announcement {
    pub pid: u32,
    pub url: String,
}

/// What is left to clean up after a program.
#[derive(Debug)]
pub struct Started {
    pub pid: u32,
    channel: PathBuf,
}

impl Started {
    /// Processes that start from now on run as if there were no debugger.
    pub fn close(&self) {
        let _ = std::fs::remove_file(&self.channel);
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Arguments {
    program: String,
    interpreter: Vec<String>,
    args: Vec<String>,
    cwd: Option<PathBuf>,
    env: serde_json::Map<String, Value>,
}

/// Starts the program; what becomes of it is told to `inputs`.
pub fn start(
    arguments: &Value,
    node: &str,
    streams: Option<&Streams>,
    inputs: &mpsc::UnboundedSender<Input>,
) -> Result<Started, String> {
    let asked: Arguments = serde_json::from_value(arguments.clone()).map_err(|error| error.to_string())?;
    let folder = match streams.and_then(|streams| streams.stdout.parent()) {
        Some(folder) => folder.to_path_buf(),
        None => private_folder()?,
    };
    let failed = |what: &'static str| move |error: std::io::Error| format!("could not {what}: {error}");
    // Beyond this session's own folder: a program that is let go may start others later, which look for it.
    let lasting =
        folder.ancestors().nth(2).filter(|_| folder.parent().is_some_and(|above| above.ends_with("sessions")));
    let preload = lasting.unwrap_or(&folder).join(PRELOAD);
    let new = folder.join("preload.new");
    std::fs::write(&new, TEXT).and_then(|()| std::fs::rename(&new, &preload)).map_err(failed("write the preload"))?;
    let channel = folder.join("node");
    let _ = std::fs::remove_file(&channel);
    crate::platform::make_fifo(&channel).map_err(failed("make a channel"))?;
    listen(&channel, inputs.clone()).map_err(failed("open a channel"))?;

    let mut words = asked.interpreter.into_iter().filter(|word| !word.starts_with("--inspect"));
    let mut command = Command::new(words.next().unwrap_or_else(|| node.to_string()));
    command.args(words);
    if !asked.program.is_empty() {
        command.arg(&asked.program);
    }
    command.args(&asked.args).env_clear();
    command.envs(asked.env.iter().filter_map(|(name, value)| Some((name, value.as_str()?))));
    let inherited = asked.env.get("NODE_OPTIONS").and_then(Value::as_str).unwrap_or_default();
    command.env("NODE_OPTIONS", options(&preload, inherited)).env("BUGEYE_NODE", &channel);
    if let Some(cwd) = &asked.cwd {
        command.current_dir(cwd);
    }
    if let Some(streams) = streams {
        streams.give_to(&mut command).map_err(failed("open the program's streams"))?;
    }
    let mut child = command.spawn().map_err(failed("start the program"))?;
    let pid = child.id();
    let inputs = inputs.clone();
    std::thread::spawn(move || {
        // A signal is told as a negative code.
        let code =
            child.wait().map_or(-1, |status| status.code().or(status.signal().map(|signal| -signal)).unwrap_or(-1));
        let _ = inputs.send(Input::Exited(code.into()));
    });
    Ok(Started { pid, channel })
}

/// The options for every Node process, before those of the user. The address is not printed: it comes by the channel.
fn options(preload: &Path, inherited: &str) -> String {
    let path = preload.to_string_lossy();
    let is_plain = !path.contains([' ', '"', '\\']);
    let path = if is_plain { path.into() } else { format!("\"{}\"", path.replace('\\', "\\\\").replace('"', "\\\"")) };
    let kept: Vec<&str> = inherited.split(' ').filter(|word| !word.starts_with("--inspect")).collect();
    format!("--require={path} --inspect-publish-uid=http {}", kept.join(" ")).trim_end().to_string()
}

fn private_folder() -> Result<PathBuf, String> {
    use std::os::unix::fs::DirBuilderExt as _;
    let folder = std::env::temp_dir().join(format!("bugeye-node-{}", std::process::id()));
    let made = std::fs::DirBuilder::new().mode(0o700).create(&folder);
    made.map(|()| folder).map_err(|error| format!("could not make a folder: {error}"))
}

/// Reads announcements for as long as this process lives.
fn listen(channel: &Path, inputs: mpsc::UnboundedSender<Input>) -> std::io::Result<()> {
    // Open for writing too: so it does not end when the last process has spoken.
    let file: File = OpenOptions::new().read(true).write(true).custom_flags(0).open(channel)?;
    std::thread::spawn(move || {
        for line in BufReader::new(file).lines().map_while(Result::ok) {
            if let Ok(announcement) = serde_json::from_str(&line)
                && inputs.send(Input::Announced(announcement)).is_err()
            {
                return;
            }
        }
    });
    Ok(())
}

/// The address of the inspector of a process that runs; it is asked to open one where it has none.
pub fn inspector_of(pid: u32) -> Result<String, String> {
    if let Some(url) = ports_of(pid).into_iter().find_map(|port| listed(&format!("127.0.0.1:{port}"))) {
        return Ok(url);
    }
    let process = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw).ok_or("that is no process")?;
    rustix::process::kill_process(process, rustix::process::Signal::USR1)
        .map_err(|error| format!("the process can't be asked to open its inspector: {error}"))?;
    let deadline = Instant::now() + Duration::from_secs(5);
    while Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(10));
        let mut ports = ports_of(pid);
        if !Path::new("/proc/self/fd").exists() {
            ports.push(9229);
        }
        if let Some(url) = ports.into_iter().find_map(|port| listed(&format!("127.0.0.1:{port}"))) {
            return Ok(url);
        }
    }
    Err("the process opened no inspector: is it Node, and is port 9229 free?".into())
}

/// The address of the first target that an inspector lists.
pub fn listed(host: &str) -> Option<String> {
    let list: Value = serde_json::from_str(&websocket::get(host, "/json/list").ok()?).ok()?;
    let url = list.get(0)?.get("webSocketDebuggerUrl")?.as_str()?;
    // It names itself as it was asked for; the way there is the one that worked.
    let (_, path) = url.strip_prefix("ws://")?.split_once('/')?;
    Some(format!("ws://{host}/{path}"))
}

/// Ports that a process listens on, from the kernel.
fn ports_of(pid: u32) -> Vec<u16> {
    let Ok(entries) = std::fs::read_dir(format!("/proc/{pid}/fd")) else { return Vec::new() };
    let sockets: Vec<String> = entries
        .flatten()
        .filter_map(|entry| std::fs::read_link(entry.path()).ok()?.to_str().map(ToString::to_string))
        .filter_map(|link| Some(link.strip_prefix("socket:[")?.strip_suffix(']')?.to_string()))
        .collect();
    let table = std::fs::read_to_string(format!("/proc/{pid}/net/tcp")).unwrap_or_default();
    table
        .lines()
        .skip(1)
        .filter_map(|line| {
            let fields: Vec<&str> = line.split_whitespace().collect();
            let (address, state, inode) = (fields.get(1)?, fields.get(3)?, fields.get(9)?);
            let listens = *state == "0A" && sockets.iter().any(|socket| socket == inode);
            listens.then(|| u16::from_str_radix(address.rsplit(':').next()?, 16).ok())?
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listening_port_of_a_process_is_found() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        assert!(ports_of(std::process::id()).contains(&listener.local_addr().unwrap().port()));
    }

    #[test]
    fn options_of_the_user_stay() {
        let options = options(Path::new("/a b/x.cjs"), "--max-old-space-size=99 --inspect-brk");
        assert_eq!(options, "--require=\"/a b/x.cjs\" --inspect-publish-uid=http --max-old-space-size=99");
    }
}
