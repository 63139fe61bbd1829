//! The private folder of an adapter: filled beside the old one and put in its place when it is complete, so that a run
//! that fails or is interrupted changes nothing.

use std::fs;
use std::path::Path;

use super::Installer;
use crate::failure::Failure;
use crate::find::{self, VERSION_FILE};

impl Installer<'_> {
    /// Lets `fill` put everything into a fresh folder, and that in the place of the adapter's own.
    pub(super) fn privately(
        &mut self,
        fill: impl FnOnce(&mut Self, &Path) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let folder = find::private_folder(self.adapter, self.paths);
        let parent = folder.parent().unwrap_or(&self.paths.data).to_path_buf();
        fs::create_dir_all(&parent).map_err(|error| Failure::io(format!("create {}", parent.display()), &error))?;
        let _lock = self.lock(&parent)?;
        let fresh = parent.join(format!(".{}.new", self.adapter.id));
        // Left by a run that was ended half-way; the lock says that nobody is at work there.
        remove(&fresh)?;
        fs::create_dir(&fresh).map_err(|error| Failure::io(format!("create {}", fresh.display()), &error))?;
        let installed = fill(self, &fresh).and_then(|()| put_in_place(&fresh, &folder));
        let _ = remove(&fresh);
        installed
    }

    /// Two installations at once would take each other's folders away.
    fn lock(&mut self, parent: &Path) -> Result<fs::File, Failure> {
        use rustix::fs::{FlockOperation, flock};
        let path = parent.join(".lock");
        let file = fs::File::create(&path).map_err(|error| Failure::io(format!("open {}", path.display()), &error))?;
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            (self.report)("another installation is at work; waiting for it");
            flock(&file, FlockOperation::LockExclusive)
                .map_err(|error| Failure::io(format!("lock {}", path.display()), &error.into()))?;
        }
        Ok(file)
    }
}

/// Writes down which version was installed, for what does not tell by itself.
pub(super) fn record_version(folder: &Path, version: &str) {
    // Without the file the version is only not shown.
    let _ = fs::write(folder.join(VERSION_FILE), format!("{}\n", version.trim_start_matches('v')));
}

/// Puts a complete folder where the old one is, if there is one; sessions that use the old one keep what they opened.
fn put_in_place(fresh: &Path, folder: &Path) -> Result<(), Failure> {
    let old = fresh.with_extension("old");
    remove(&old)?;
    if folder.exists() {
        fs::rename(folder, &old).map_err(|error| Failure::io(format!("move {}", folder.display()), &error))?;
    }
    fs::rename(fresh, folder).map_err(|error| Failure::io(format!("move {}", fresh.display()), &error))?;
    remove(&old)
}

pub(super) fn remove(folder: &Path) -> Result<(), Failure> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(Failure::io(format!("remove {}", folder.display()), &error))
        }
        _ => Ok(()),
    }
}
