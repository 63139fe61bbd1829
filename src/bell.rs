//! Who rings when a file was written to: the system where it can, else a look at it now and then.

use std::path::Path;
use std::time::Duration;

use tokio::sync::watch;

/// How often a file is looked at that nobody rings for.
const LOOKING: Duration = Duration::from_millis(200);

/// Rings for all files that it was told of, and for all who wait.
#[derive(Debug)]
pub struct Bell {
    rings: watch::Receiver<u64>,
    #[cfg(target_os = "linux")]
    watcher: Option<std::sync::Arc<tokio::io::unix::AsyncFd<std::os::fd::OwnedFd>>>,
}

/// A wait for the bell that misses no ring since it was made.
#[derive(Debug)]
pub struct Wait(watch::Receiver<u64>);

impl Wait {
    /// Comes back at the next ring, or where nobody rings, a moment later.
    pub async fn rung(&mut self, rings: bool) {
        if rings {
            // The ringer lives as long as the runtime; without it nothing is to be heard.
            if self.0.changed().await.is_err() {
                tokio::time::sleep(LOOKING).await;
            }
        } else {
            tokio::time::sleep(LOOKING).await;
        }
    }
}

impl Bell {
    #[must_use]
    pub fn wait(&self) -> Wait {
        Wait(self.rings.clone())
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::mem::MaybeUninit;
    use std::os::fd::OwnedFd;
    use std::sync::Arc;

    use rustix::fs::inotify::{self, CreateFlags, Reader, WatchFlags};
    use tokio::io::Interest;
    use tokio::io::unix::AsyncFd;

    use super::{Bell, Path, watch};
    use crate::log;

    impl Bell {
        /// The task that listens blocks on the system's news alone, and ends with the runtime.
        #[must_use]
        pub fn start() -> Self {
            let (ring, rings) = watch::channel(0);
            let watcher = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).map_err(Into::into);
            #[expect(
                deprecated,
                reason = "an owned descriptor stays valid for as long as this holds it; its successor is unsafe"
            )]
            let watcher = watcher.and_then(|watcher| AsyncFd::with_interest(watcher, Interest::READABLE)).map(Arc::new);
            let watcher = watcher.map_err(|error| log::warn(format!("files are looked at, not watched: {error}"))).ok();
            if let Some(watcher) = watcher.clone() {
                tokio::spawn(listen(watcher, ring));
            }
            Self { rings, watcher }
        }

        /// Rings for this file from now on; false where that can't be. Telling of it again costs little, and is needed
        /// when it was replaced.
        pub fn add(&self, path: &Path) -> bool {
            let news = WatchFlags::MODIFY
                | WatchFlags::ATTRIB
                | WatchFlags::MOVE_SELF
                | WatchFlags::DELETE_SELF
                | WatchFlags::DONT_FOLLOW;
            self.watcher.as_ref().is_some_and(|watcher| inotify::add_watch(watcher.get_ref(), path, news).is_ok())
        }

        /// Rings no longer for it.
        pub fn remove(&self, path: &Path) {
            let Some(watcher) = &self.watcher else { return };
            // Adding tells the number by which it is removed.
            if let Ok(number) =
                inotify::add_watch(watcher.get_ref(), path, WatchFlags::ATTRIB | WatchFlags::DONT_FOLLOW)
            {
                let _ = inotify::remove_watch(watcher.get_ref(), number);
            }
        }
    }

    async fn listen(watcher: Arc<AsyncFd<OwnedFd>>, ring: watch::Sender<u64>) {
        let mut buffer = [MaybeUninit::uninit(); 4096];
        while let Ok(mut ready) = watcher.readable().await {
            let mut news = Reader::new(watcher.get_ref(), &mut buffer);
            while news.next().is_ok() {}
            ready.clear_ready();
            ring.send_modify(|count| *count += 1);
        }
    }
}

#[cfg(not(target_os = "linux"))]
impl Bell {
    #[must_use]
    pub fn start() -> Self {
        Self { rings: watch::channel(0).1 }
    }

    pub fn add(&self, _path: &Path) -> bool {
        false
    }

    pub fn remove(&self, _path: &Path) {}
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[tokio::test]
    async fn it_rings_when_a_file_is_written_to() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        let mut file = std::fs::File::create(&path).unwrap();
        let bell = Bell::start();
        let mut wait = bell.wait();
        assert!(!bell.add(&folder.path().join("none")));
        assert!(bell.add(&path));
        file.write_all(b"x").unwrap();
        tokio::time::timeout(Duration::from_secs(10), wait.rung(true)).await.unwrap();
        bell.remove(&path);
    }
}
