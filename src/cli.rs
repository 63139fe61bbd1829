//! The command line: what was typed → a request; an answer → text or JSON and an exit code.

use crate::config::Config;
use crate::paths::Paths;

/// The surroundings of a command that runs in the client's own process.
#[derive(Debug, Clone)]
pub struct LocalContext {
    pub paths: Paths,
    pub config: Config,
    pub json: bool,
}
