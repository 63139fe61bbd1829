//! Where things are kept, and the proof that nobody else can reach into it.
//!
//! The runtime directory holds the socket through which programs are started with the user's rights, so it is looked at
//! without following links before anything is trusted to it.

use std::ffi::OsString;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{DirBuilderExt as _, FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// The longest path a Unix socket's address can hold, without its closing zero.
const SOCKET_PATH_LIMIT: usize = 107;

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

impl Paths {
    /// The directories of this process's user, with a runtime directory that exists and is safe to use.
    pub fn resolve() -> Result<Self, Failure> {
        let paths = Self::locate()?;
        paths.prepare()?;
        Ok(paths)
    }

    /// Where a client puts what it read from its standard input for a program.
    #[must_use]
    pub fn spool(&self) -> PathBuf {
        self.runtime.join("spool")
    }

    /// The directories of this process's user; nothing is created or checked.
    pub fn locate() -> Result<Self, Failure> {
        Self::from_environment(&|name| std::env::var_os(name), uid())
    }

    fn from_environment(variable: &dyn Fn(&str) -> Option<OsString>, uid: u32) -> Result<Self, Failure> {
        // An empty or relative value is to be treated as unset (XDG base directory specification).
        let absolute = |name: &str| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let own = |name: &str| {
            let value = variable(name).filter(|value| !value.is_empty());
            value.map(std::path::absolute).transpose().map_err(|error| Failure::io(format!("resolve {name}"), &error))
        };
        let state = own("BUGEYE_STATE_DIR")?;
        if let Some(home) = own("BUGEYE_HOME")? {
            return Ok(Self {
                runtime: home.join("runtime"),
                state: state.unwrap_or_else(|| home.join("state")),
                data: home.join("data"),
                config: home.join("config"),
            });
        }
        let home = absolute("HOME");
        let below = |name: &str, fallback: &str| {
            absolute(name)
                .or_else(|| home.as_ref().map(|home| home.join(fallback)))
                .map(|base| base.join("bugeye"))
                .ok_or_else(|| {
                    Failure::refused(format!("neither {name} nor HOME names a directory"))
                        .hint("set HOME, or BUGEYE_HOME to a directory that Bugeye may keep its files in")
                })
        };
        let runtime = absolute("XDG_RUNTIME_DIR")
            .filter(|path| belongs_to(path, uid))
            .map(|path| path.join("bugeye"))
            .filter(|path| socket_of(path).as_os_str().len() <= SOCKET_PATH_LIMIT)
            .unwrap_or_else(|| PathBuf::from(format!("/tmp/bugeye-{uid}")));
        Ok(Self {
            runtime,
            state: state.map_or_else(|| below("XDG_STATE_HOME", ".local/state"), Ok)?,
            data: below("XDG_DATA_HOME", ".local/share")?,
            config: below("XDG_CONFIG_HOME", ".config")?,
        })
    }

    /// Creates the runtime directory if it is missing, and refuses one that others could have a hand in.
    pub fn prepare(&self) -> Result<(), Failure> {
        let socket = self.socket();
        if socket.as_os_str().len() > SOCKET_PATH_LIMIT {
            return Err(Failure::refused(format!(
                "the path of the daemon's socket is too long: {} of at most {SOCKET_PATH_LIMIT} bytes ({})",
                socket.as_os_str().as_bytes().len(),
                socket.display()
            ))
            .hint("set BUGEYE_HOME to a shorter path"));
        }
        // One look is all it costs when the directory is there and right, which is nearly always.
        if let Err(error) = fs::symlink_metadata(&self.runtime) {
            if error.kind() != io::ErrorKind::NotFound {
                return Err(Failure::io(format!("look at {}", self.runtime.display()), &error));
            }
            if let Some(parent) = self.runtime.parent() {
                create_private(parent)?;
            }
            match DirBuilder::new().mode(0o700).create(&self.runtime) {
                // A umask can take bits away from what was asked for.
                Ok(()) => fs::set_permissions(&self.runtime, fs::Permissions::from_mode(0o700))
                    .map_err(|error| Failure::io(format!("protect {}", self.runtime.display()), &error))?,
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(Failure::io(format!("create {}", self.runtime.display()), &error)),
            }
        }
        check_private(&self.runtime, uid())
    }

    /// Creates the state directory if it is missing.
    pub fn prepare_state(&self) -> Result<(), Failure> {
        create_private(&self.state)
    }

    #[must_use]
    pub fn socket(&self) -> PathBuf {
        socket_of(&self.runtime)
    }

    #[must_use]
    pub fn lock(&self) -> PathBuf {
        self.runtime.join("daemon.lock")
    }

    #[must_use]
    pub fn log(&self) -> PathBuf {
        Self::log_in(&self.state)
    }

    /// The log of a daemon that has this state directory.
    #[must_use]
    pub fn log_in(state: &Path) -> PathBuf {
        state.join("daemon.log")
    }

    #[must_use]
    pub fn config_file(&self) -> PathBuf {
        self.config.join("config.toml")
    }
}

fn socket_of(runtime: &Path) -> PathBuf {
    runtime.join("daemon.sock")
}

fn uid() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Whether `path` is a real directory of `uid` that nobody else may write to. After `su`, `XDG_RUNTIME_DIR` often still
/// names the other user's.
fn belongs_to(path: &Path, uid: u32) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.is_dir() && found.uid() == uid && found.mode() & 0o022 == 0)
}

/// Creates a directory and its missing parents, readable by nobody else.
pub fn create_private(path: &Path) -> Result<(), Failure> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
        .map_err(|error| Failure::io(format!("create {}", path.display()), &error))
}

/// Refuses `path` unless it is a directory (not a link to one) of `uid`, with mode 0700, that nobody else can replace.
fn check_private(path: &Path, uid: u32) -> Result<(), Failure> {
    let look = |path: &Path| {
        fs::symlink_metadata(path).map_err(|error| Failure::io(format!("look at {}", path.display()), &error))
    };
    let shown = path.display();
    let found = look(path)?;
    let kind = found.file_type();
    if !kind.is_dir() {
        let what = if kind.is_symlink() {
            "a symbolic link"
        } else if kind.is_socket() {
            "a socket"
        } else if kind.is_fifo() {
            "a FIFO"
        } else {
            "not a directory"
        };
        return Err(Failure::refused(format!("the runtime directory {shown} is {what}"))
            .hint(format!("remove it (`rm {shown}`), or set BUGEYE_HOME to a directory of yours")));
    }
    if found.uid() != uid {
        return Err(Failure::refused(format!(
            "the runtime directory {shown} belongs to user {}, not {uid}",
            found.uid()
        ))
        .hint("set BUGEYE_HOME to a directory of yours"));
    }
    let mode = found.mode() & 0o7777;
    if mode != 0o700 {
        return Err(Failure::refused(format!("the runtime directory {shown} has mode {mode:04o}, not 0700"))
            .hint(format!("if nobody else has written there: `chmod 0700 {shown}`")));
    }
    if let Some(parent) = path.parent() {
        let above = look(parent)?;
        let replaceable = above.is_dir() && above.mode() & 0o002 != 0 && above.mode() & 0o1000 == 0;
        if replaceable {
            return Err(Failure::refused(format!(
                "anybody may replace the runtime directory {shown}: {} is writable by all, without the sticky bit",
                parent.display()
            ))
            .hint(format!("`chmod o-w {}`, or set BUGEYE_HOME to a directory of yours", parent.display())));
        }
        // The owner of a directory may rename what is in it, whatever the sticky bit says.
        if above.uid() != uid && above.uid() != 0 {
            return Err(Failure::refused(format!(
                "user {} may replace the runtime directory {shown}: {} belongs to them",
                above.uid(),
                parent.display()
            ))
            .hint("set BUGEYE_HOME to a directory of yours"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::failure::Kind;

    fn paths_with(variables: &[(&str, &str)]) -> Result<Paths, Failure> {
        let map: HashMap<String, OsString> =
            variables.iter().map(|(name, value)| ((*name).to_string(), OsString::from(value))).collect();
        Paths::from_environment(&|name| map.get(name).cloned(), uid())
    }

    fn below(home: &Path) -> Paths {
        paths_with(&[("BUGEYE_HOME", home.to_str().unwrap())]).unwrap()
    }

    #[test]
    fn one_variable_moves_everything() {
        let paths = below(Path::new("/x/y"));
        assert_eq!(paths.socket(), Path::new("/x/y/runtime/daemon.sock"));
        assert_eq!(paths.log(), Path::new("/x/y/state/daemon.log"));
        assert_eq!(paths.data, Path::new("/x/y/data"));
        assert_eq!(paths.config_file(), Path::new("/x/y/config/config.toml"));
    }

    #[test]
    fn the_state_directory_can_be_moved_alone() {
        let paths = paths_with(&[("BUGEYE_HOME", "/x"), ("BUGEYE_STATE_DIR", "/s")]).unwrap();
        assert_eq!((paths.log().as_path(), paths.data.as_path()), (Path::new("/s/daemon.log"), Path::new("/x/data")));
        let paths = paths_with(&[("HOME", "/h"), ("XDG_STATE_HOME", "/o"), ("BUGEYE_STATE_DIR", "/s")]).unwrap();
        assert_eq!((paths.state.as_path(), paths.config.as_path()), (Path::new("/s"), Path::new("/h/.config/bugeye")));
        let paths = paths_with(&[("BUGEYE_HOME", "/x"), ("BUGEYE_STATE_DIR", "s")]).unwrap();
        assert_eq!(paths.state, std::env::current_dir().unwrap().join("s"));
    }

    #[test]
    fn the_base_directories_are_followed_and_relative_ones_ignored() {
        let paths = paths_with(&[("HOME", "/h"), ("XDG_STATE_HOME", "/s"), ("XDG_DATA_HOME", "d")]).unwrap();
        assert_eq!(paths.state, Path::new("/s/bugeye"));
        assert_eq!(paths.data, Path::new("/h/.local/share/bugeye"));
        assert_eq!(paths.config, Path::new("/h/.config/bugeye"));
        assert_eq!(paths.runtime, PathBuf::from(format!("/tmp/bugeye-{}", uid())));
        assert_eq!(paths_with(&[]).unwrap_err().kind, Kind::Refused);
    }

    #[test]
    fn the_runtime_directory_of_the_session_is_used_when_it_is_ours() {
        let dir = tempfile::tempdir().unwrap();
        let here = dir.path().to_str().unwrap();
        let fallback = PathBuf::from(format!("/tmp/bugeye-{}", uid()));
        assert_eq!(
            paths_with(&[("HOME", "/h"), ("XDG_RUNTIME_DIR", here)]).unwrap().runtime,
            dir.path().join("bugeye")
        );
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o777)).unwrap();
        assert!(paths_with(&[("HOME", "/h"), ("XDG_RUNTIME_DIR", here)]).unwrap().runtime == fallback);
        assert!(paths_with(&[("HOME", "/h"), ("XDG_RUNTIME_DIR", "/nowhere")]).unwrap().runtime == fallback);
    }

    #[test]
    fn a_missing_directory_is_created_private() {
        let dir = tempfile::tempdir().unwrap();
        let paths = below(&dir.path().join("a/b"));
        paths.prepare().unwrap();
        assert_eq!(fs::metadata(&paths.runtime).unwrap().mode() & 0o7777, 0o700);
        paths.prepare().unwrap();
    }

    #[test]
    fn a_directory_others_have_a_hand_in_is_refused() {
        type Layout = fn(&Path);
        let layouts: [(&str, Layout); 10] = [
            ("mode 0755", |at| mkdir(at, 0o755)),
            ("mode 0777", |at| mkdir(at, 0o777)),
            ("mode 0770", |at| mkdir(at, 0o770)),
            ("mode 0500", |at| mkdir(at, 0o500)),
            ("mode 1700", |at| mkdir(at, 0o1700)),
            ("not a directory", |at| fs::write(at, "").unwrap()),
            ("a symbolic link", |at| {
                let real = at.with_extension("real");
                mkdir(&real, 0o700);
                symlink(real, at).unwrap();
            }),
            ("a symbolic link", |at| symlink("/nowhere/at/all", at).unwrap()),
            ("a socket", |at| drop(std::os::unix::net::UnixListener::bind(at).unwrap())),
            ("sticky", |at| {
                mkdir(at, 0o700);
                fs::set_permissions(at.parent().unwrap(), fs::Permissions::from_mode(0o777)).unwrap();
            }),
        ];
        for (what, layout) in layouts {
            let dir = tempfile::tempdir().unwrap();
            let paths = below(dir.path());
            layout(&paths.runtime);
            let failure = paths.prepare().unwrap_err();
            assert_eq!(failure.kind, Kind::Refused);
            assert!(failure.message.contains(what), "{what}: {failure}");
            assert!(!failure.hints.is_empty(), "{what}");
        }
    }

    #[test]
    fn a_directory_of_somebody_else_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let runtime = dir.path().join("runtime");
        mkdir(&runtime, 0o700);
        let failure = check_private(&runtime, uid() + 1).unwrap_err();
        assert!(failure.message.contains("belongs to user"), "{failure}");
    }

    #[test]
    fn a_path_too_long_for_a_socket_is_said() {
        let dir = tempfile::tempdir().unwrap();
        let failure = below(&dir.path().join("x".repeat(120))).prepare().unwrap_err();
        assert!(failure.message.contains("too long"), "{failure}");
    }

    fn mkdir(path: &Path, mode: u32) {
        fs::create_dir(path).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }
}
