//! What to debug.

use std::path::{Path, PathBuf};
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::failure::Failure;

/// The thing under the debugger.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    Launch(Launch),
    Attach {
        pid: u32,
        program: Option<PathBuf>,
        /// Fields of a launch configuration or of the user's own adapter, laid over the adapter's own arguments.
        extra: Map<String, Value>,
    },
    /// A program that waits at an address for a debugger.
    Remote(Remote),
    /// What is left of a program that crashed.
    Core {
        core: PathBuf,
        program: Option<PathBuf>,
    },
}

impl Target {
    /// Whether it was there before us, and is to be let go rather than ended.
    #[must_use]
    pub const fn is_attached(&self) -> bool {
        matches!(self, Self::Attach { .. } | Self::Remote(_))
    }
}

/// The address where a program waits for a debugger.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remote {
    pub host: String,
    pub port: u16,
    /// A socket of ours that may lead there.
    pub socket: PathBuf,
    /// The program there, for its symbols, where that is known.
    pub program: Option<PathBuf>,
    /// Fields of a launch configuration, laid over the adapter's own arguments.
    pub extra: Map<String, Value>,
}

impl Remote {
    /// `HOST:PORT`; an address with colons of its own is put in brackets.
    #[must_use]
    pub fn address(&self) -> String {
        match self.host.contains(':') {
            true => format!("[{}]:{}", self.host, self.port),
            false => format!("{}:{}", self.host, self.port),
        }
    }
}

/// A program to start, complete: nothing of the daemon's own surroundings is added to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Launch {
    /// An executable, or the script that `interpreter` runs.
    pub program: PathBuf,
    /// The interpreter's command line before the script (`["/usr/bin/python3", "-u"]`); empty for an executable.
    pub interpreter: Vec<String>,
    /// Runs what the adapter starts between itself and the program, where `interpreter` is a slow way to do so.
    pub helper: Option<Box<Path>>,
    pub args: Vec<String>,
    pub cwd: PathBuf,
    /// The whole environment, in the client's order.
    pub env: Vec<(String, String)>,
    pub umask: Option<u32>,
    pub stdin: Stdin,
    pub stop_on_entry: bool,
    /// A recording to go back in is to begin at the program's beginning.
    pub record: bool,
    /// A folder of the language toolchain's own value formatters, where it ships them apart.
    pub formatters: Option<PathBuf>,
    /// The program's own first function has source lines; one of the same name before it is the runtime's.
    pub entry_in_source: bool,
    /// What is caught when nothing was said: the language's own way to crash.
    pub catch: Vec<String>,
    /// Fields of a launch configuration or of the user's own adapter, laid over the adapter's own arguments.
    pub extra: Map<String, Value>,
}

/// Where the program's standard input comes from.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Stdin {
    /// Kept open; `bugeye input` writes to it.
    #[default]
    Interactive,
    File(PathBuf),
}

/// What a session is to be about, as it was asked for.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum Aim {
    /// The program that the blueprint's words start.
    #[default]
    Program,
    Process(u32),
    /// A process by its name.
    Named(String),
    /// The next process of this name.
    WaitFor {
        name: String,
        limit: Duration,
    },
    Address {
        host: String,
        port: u16,
    },
    Core(PathBuf),
}

impl Aim {
    /// Reads `PID`, `HOST:PORT` or `NAME`.
    pub fn parse(text: &str) -> Result<Self, Failure> {
        if text.is_empty() {
            return Err(Failure::usage("nothing to attach to was named").hint("bugeye attach PID"));
        }
        if text.bytes().all(|byte| byte.is_ascii_digit()) {
            let pid = text.parse().ok().filter(|pid| *pid > 0);
            return pid
                .map(Self::Process)
                .ok_or_else(|| Failure::not_found(format!("there is no process {text}")).hint("look: ps -e"));
        }
        let Some((host, port)) = text.rsplit_once(':') else { return Ok(Self::Named(text.into())) };
        if host.contains('/') || port.is_empty() || !port.bytes().all(|byte| byte.is_ascii_digit()) {
            return Ok(Self::Named(text.into()));
        }
        let port = port
            .parse()
            .ok()
            .filter(|port| *port > 0)
            .ok_or_else(|| Failure::usage(format!("`{text}` has no port; one is a number from 1 to 65535")))?;
        let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        let host = if host.is_empty() || host == "*" { "127.0.0.1" } else { host };
        Ok(Self::Address { host: host.into(), port })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_a_process_an_address_or_a_name() {
        let address = |host: &str, port| Aim::Address { host: host.into(), port };
        let named = |name: &str| Aim::Named(name.into());
        let cases = [
            ("1234", Aim::Process(1234)),
            ("localhost:5678", address("localhost", 5678)),
            (":5678", address("127.0.0.1", 5678)),
            ("*:5678", address("127.0.0.1", 5678)),
            ("[::1]:5678", address("::1", 5678)),
            ("web", named("web")),
            ("web:worker", named("web:worker")),
            ("/srv/a:1", named("/srv/a:1")),
        ];
        for (text, aim) in cases {
            assert_eq!(Aim::parse(text).unwrap(), aim, "{text}");
        }
        for wrong in ["", "0", "99999999999", "host:0", "host:65536"] {
            assert!(Aim::parse(wrong).is_err(), "{wrong}");
        }
    }
}
