//! The records of all sessions, as the daemon looks after them: those of dead daemons are ended, old ones removed.
//!
//! All of it reads and writes files, so it runs on threads of its own; the daemon's thread only waits for them.

use std::sync::Arc;
use std::time::Duration;

use super::Hub;
use crate::failure::Failure;
use crate::log;
use crate::store::Recorder;
use crate::store::prune::{self, Limits, in_words};

/// How long whoever looks at records waits for what is to be written.
const FLUSHING: Duration = Duration::from_millis(500);
/// How often records are looked after.
const KEEPING: Duration = Duration::from_secs(3600);

impl Hub {
    /// The limits of the configuration.
    #[must_use]
    pub fn limits(&self) -> Limits {
        Limits { age: self.config.max_age(), size: self.config.max_size() }
    }

    /// Does something with the records, off the daemon's thread.
    pub async fn with_records<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Recorder) -> T + Send + 'static,
    ) -> Result<T, Failure> {
        let recorder = self.recorder.clone().ok_or_else(|| Failure::refused("nothing is recorded here"))?;
        // What was recorded so far is in the folders, unless the disk takes very long.
        let _ = tokio::time::timeout(FLUSHING, recorder.flush()).await;
        let done = tokio::task::spawn_blocking(move || work(&recorder)).await;
        done.map_err(|error| Failure::internal(format!("looking at the records failed: {error}")))
    }

    /// Looks after the records now and once an hour, for as long as the daemon lives.
    pub async fn look_after_records(self: Arc<Self>) {
        loop {
            let limits = self.limits();
            let done = self.with_records(move |recorder| {
                recorder.recover();
                let outcome = prune::prune(recorder.state(), limits, false);
                recorder.list_again();
                if !outcome.removed.is_empty() {
                    let (count, freed) = (outcome.removed.len(), in_words(outcome.freed));
                    log::info(format!("recordings removed that were beyond the limits: {count}, {freed} freed"));
                }
            });
            if let Err(failure) = done.await {
                log::warn(failure.to_string());
            }
            tokio::time::sleep(KEEPING).await;
        }
    }
}
