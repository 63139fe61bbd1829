//! Live sessions, the breakpoint table and the recorder: what commands call.

use std::sync::Arc;

use serde_json::Value;
use tokio::sync::mpsc;

use crate::config::Config;
use crate::paths::Paths;
use crate::wire::Caller;

/// Everything the daemon keeps.
#[derive(Debug)]
pub struct Hub {
    pub paths: Paths,
    pub config: Config,
}

impl Hub {
    #[must_use]
    pub fn new(paths: Paths, config: Config) -> Arc<Self> {
        Arc::new(Self { paths, config })
    }

    /// Sessions with something under the debugger; the daemon stays while there are any.
    #[must_use]
    pub fn live_sessions(&self) -> usize {
        0
    }

    /// Ends every session; the daemon calls it before it goes.
    pub async fn end_all(&self) {}
}

/// One command's surroundings inside the daemon.
#[derive(Debug, Clone)]
pub struct Context {
    pub hub: Arc<Hub>,
    pub caller: Caller,
    /// Progress sentences and stream parts go out here.
    pub stream: mpsc::Sender<Part>,
    /// The session and adapter the answer is about, filled in when it is known.
    pub about: Arc<std::sync::Mutex<(Option<String>, Option<String>)>>,
}

/// Something sent before the final line.
#[derive(Debug, Clone)]
pub enum Part {
    Progress(String),
    Event(Value),
}
