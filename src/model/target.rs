//! What to debug.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

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
