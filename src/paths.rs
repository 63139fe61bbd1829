//! Where things are kept.

use std::path::PathBuf;

/// The directories of one user, resolved once.
#[derive(Debug, Clone)]
pub struct Paths {
    /// The socket, the lock and the sessions' FIFOs; 0700, ours.
    pub runtime: PathBuf,
    /// Recordings, breakpoints, the daemon's log.
    pub state: PathBuf,
    /// Adapters that `setup` installed.
    pub data: PathBuf,
    /// `config.toml`.
    pub config: PathBuf,
}
