//! A folder that only its user can reach into: what is in it lets somebody speak for an agent, or to it.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::Path;

/// Makes the folder where there is none, and sees without following a link that it is a folder, ours, and closed.
pub fn folder(path: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let found = fs::symlink_metadata(path)?;
    let refuse = |why: String| Err(io::Error::other(format!("{} is not used: {why}", path.display())));
    if !found.is_dir() {
        return refuse("it is not a folder".into());
    }
    if found.uid() != rustix::process::geteuid().as_raw() {
        return refuse(format!("it belongs to user {}", found.uid()));
    }
    if found.mode() & 0o077 != 0 {
        return refuse(format!("others can reach into it (mode {:o})", found.mode() & 0o777));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    #[test]
    fn only_a_closed_folder_of_ours_will_do() {
        let base = tempfile::tempdir().unwrap();
        let path = base.path().join("x");
        folder(&path).unwrap();
        folder(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o700);
        symlink(&path, base.path().join("link")).unwrap();
        assert!(folder(&base.path().join("link")).unwrap_err().to_string().contains("not a folder"));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o750)).unwrap();
        assert!(folder(&path).unwrap_err().to_string().contains("mode 750"));
        assert!(folder(&base.path().join("none/x")).is_err());
    }
}
