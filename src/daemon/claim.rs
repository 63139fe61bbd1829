//! Who is the daemon: the lock, and the socket that only its holder may touch.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use tokio::net::UnixListener;

use crate::client;
use crate::failure::Failure;
use crate::paths::Paths;

/// As long as a client waits for a daemon it started.
const CLAIM_LIMIT: Duration = Duration::from_secs(5);
/// A starting daemon has its socket sooner than this; after it, the holder is asked to look at its socket.
const PATIENCE: Duration = Duration::from_millis(150);

pub enum Claim {
    /// This process is the daemon for as long as it keeps this open. Programs it starts don't inherit it.
    Ours(File),
    /// Another daemon answers already.
    Served,
}

/// Becomes the daemon, or finds the one there is. Waits for one that is on its way in or out.
pub fn claim(paths: &Paths) -> Result<Claim, Failure> {
    let path = paths.lock();
    let started = Instant::now();
    let mut asked = false;
    loop {
        let file = open_lock(&path)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            // A file that somebody removed or replaced meanwhile locks nobody out.
            Ok(()) if is_at(&file, &path) => return Ok(Claim::Ours(file)),
            Ok(()) if started.elapsed() > CLAIM_LIMIT => {
                return Err(Failure::refused(format!("{} does not stay the same file", path.display()))
                    .hint("end what keeps replacing it, then try again"));
            }
            Ok(()) => std::thread::sleep(Duration::from_millis(1)),
            Err(rustix::io::Errno::WOULDBLOCK) => {
                if client::reach(&paths.socket(), Duration::from_millis(100)).is_ok() {
                    return Ok(Claim::Served);
                }
                if !asked && started.elapsed() > PATIENCE {
                    asked = true;
                    ask_for_socket(&file);
                }
                if started.elapsed() > CLAIM_LIMIT {
                    let who = holder(&file).map_or(String::new(), |pid| format!(" (pid {})", pid.as_raw_nonzero()));
                    return Err(Failure::timed_out(format!("another daemon{who} holds the lock and does not answer"))
                        .hint("end that process, then try again"));
                }
                std::thread::sleep(Duration::from_millis(5));
            }
            Err(error) => return Err(Failure::io(format!("lock {}", path.display()), &error.into())),
        }
    }
}

/// Opens the lock, and makes it if it is missing: a plain file, never what a link leads to, never waiting for the other
/// end of a FIFO.
fn open_lock(path: &Path) -> Result<File, Failure> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let opened = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .mode(0o600)
        .custom_flags(flags.bits().cast_signed())
        .open(path);
    let in_the_way = fs::symlink_metadata(path).is_ok_and(|found| !found.is_file());
    match opened {
        Ok(file) if file.metadata().is_ok_and(|found| found.is_file()) => Ok(file),
        Err(error) if !in_the_way => Err(Failure::io(format!("open {}", path.display()), &error)),
        _ => Err(Failure::refused(format!("{} is in the way: it is not a plain file", path.display()))
            .hint(format!("`rm -r {}`, if nothing needs it", path.display()))),
    }
}

fn is_at(file: &File, path: &Path) -> bool {
    match (file.metadata(), fs::symlink_metadata(path)) {
        (Ok(open), Ok(there)) => identity(&open) == identity(&there),
        _ => false,
    }
}

fn identity(found: &fs::Metadata) -> (u64, u64) {
    (found.dev(), found.ino())
}

/// A daemon whose socket file was removed (by a cleaner of temporary directories, say) can't be reached, but it may hold
/// sessions. SIGHUP makes it look.
fn ask_for_socket(lock: &File) {
    let Some(pid) = holder(lock) else { return };
    // Between the two looks the number can't have come to mean another process: the first held the lock, and the
    // descriptor stays with the process it was opened for.
    if let Ok(process) = pidfd_open(pid, PidfdFlags::empty())
        && holder(lock) == Some(pid)
    {
        let _ = pidfd_send_signal(process, Signal::HUP);
    }
}

/// The process that holds the lock, as the kernel tells it.
fn holder(lock: &File) -> Option<Pid> {
    let wanted = lock.metadata().ok()?.ino().to_string();
    let table = fs::read_to_string("/proc/locks").ok()?;
    table.lines().find_map(|line| {
        // `1: FLOCK  ADVISORY  WRITE 4242 fd:01:131072 0 EOF`; one that only waits has `->` after the number.
        let fields: Vec<&str> = line.split_whitespace().collect();
        let ["FLOCK", _, "WRITE", pid, file, ..] = fields.get(1..)? else { return None };
        let same = file.rsplit(':').next() == Some(wanted.as_str());
        if same { Pid::from_raw(pid.parse().ok()?) } else { None }
    })
}

/// The listening socket, removed when this goes if it is still the one that was made.
#[derive(Debug)]
pub struct Socket {
    pub listener: UnixListener,
    path: PathBuf,
    identity: (u64, u64),
}

impl Socket {
    /// Binds the socket; `None` when somebody without the lock answers there, who is then left alone.
    pub fn bind(path: &Path) -> Result<Option<Self>, Failure> {
        if !remove_stale(path)? {
            return Ok(None);
        }
        let failed = |doing: &str| {
            let doing = format!("{doing} {}", path.display());
            move |error: std::io::Error| Failure::io(doing, &error)
        };
        let listener = std::os::unix::net::UnixListener::bind(path).map_err(failed("bind"))?;
        fs::set_permissions(path, fs::Permissions::from_mode(0o600)).map_err(failed("protect"))?;
        listener.set_nonblocking(true).map_err(failed("prepare"))?;
        let found = fs::symlink_metadata(path).map_err(failed("look at"))?;
        let listener = UnixListener::from_std(listener).map_err(failed("listen on"))?;
        Ok(Some(Self { listener, path: path.to_path_buf(), identity: identity(&found) }))
    }

    fn is_ours(&self) -> bool {
        fs::symlink_metadata(&self.path).is_ok_and(|found| identity(&found) == self.identity)
    }

    /// Binds again if the socket's file is gone; answers whether it was.
    pub fn repair(&mut self) -> Result<bool, Failure> {
        if self.is_ours() {
            return Ok(false);
        }
        match Self::bind(&self.path)? {
            Some(socket) => {
                *self = socket;
                Ok(true)
            }
            None => Err(Failure::refused("something else listens there")),
        }
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        if self.is_ours() {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Clears the way for a new socket; `false` when a live one is in it.
fn remove_stale(path: &Path) -> Result<bool, Failure> {
    let Ok(found) = fs::symlink_metadata(path) else { return Ok(true) };
    if !found.file_type().is_socket() {
        return Err(Failure::refused(format!("{} is in the way: it is not a socket", path.display()))
            .hint(format!("`rm -r {}`, if nothing needs it", path.display())));
    }
    match client::reach(path, Duration::from_millis(500)) {
        Ok(_) => return Ok(false),
        Err(error) if error.kind() == std::io::ErrorKind::ConnectionRefused => {}
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(true),
        Err(error) => return Err(Failure::io(format!("connect to {}", path.display()), &error)),
    }
    match fs::symlink_metadata(path) {
        Ok(again) if identity(&again) == identity(&found) => {
            fs::remove_file(path).map_err(|error| Failure::io(format!("remove {}", path.display()), &error))?;
            Ok(true)
        }
        Ok(_) => Err(Failure::refused(format!("{} changed while it was looked at", path.display())).hint("try again")),
        Err(_) => Ok(true),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_names_the_holder_of_a_lock() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        let file = File::create(&path).unwrap();
        assert_eq!(holder(&file), None);
        flock(&file, FlockOperation::NonBlockingLockExclusive).unwrap();
        if fs::read_to_string("/proc/locks").is_ok_and(|table| !table.is_empty()) {
            assert_eq!(holder(&file).map(|pid| pid.as_raw_nonzero().get().unsigned_abs()), Some(std::process::id()));
        }
        assert!(is_at(&file, &path));
        fs::remove_file(&path).unwrap();
        assert!(!is_at(&file, &path));
    }

    #[tokio::test]
    async fn a_dead_socket_is_replaced_and_a_live_one_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("sock");
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        let socket = Socket::bind(&path).unwrap().unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        assert!(Socket::bind(&path).unwrap().is_none());
        drop(socket);
        assert!(!path.exists());
    }

    #[tokio::test]
    async fn a_foreign_inode_is_not_removed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("sock");
        let socket = Socket::bind(&path).unwrap().unwrap();
        fs::remove_file(&path).unwrap();
        let other = std::os::unix::net::UnixListener::bind(&path).unwrap();
        drop(socket);
        assert!(path.exists());
        drop(other);
    }

    #[tokio::test]
    async fn a_lost_socket_comes_back() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("sock");
        let mut socket = Socket::bind(&path).unwrap().unwrap();
        assert!(!socket.repair().unwrap());
        fs::remove_file(&path).unwrap();
        assert!(socket.repair().unwrap());
        assert!(client::reach(&path, Duration::from_secs(1)).is_ok());
    }

    #[test]
    fn what_is_not_a_socket_is_not_removed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("sock");
        fs::write(&path, "keep").unwrap();
        assert!(Socket::bind(&path).unwrap_err().message.contains("not a socket"));
        assert_eq!(fs::read_to_string(&path).unwrap(), "keep");
    }
}
