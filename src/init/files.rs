//! Files of other programs, read and written with care: links are followed to where the text really is, never out of a
//! project, and a file is whole at any moment.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, fchown};
use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// A longer file is no configuration.
const LARGEST: u64 = 32 << 20;

/// A file as it is now.
#[derive(Debug, Clone)]
pub struct Found {
    /// As it is named.
    pub path: PathBuf,
    /// Where it really is, or would be.
    pub real: PathBuf,
    pub text: Option<String>,
}

/// Reads a file that may not be there. With a root, nothing outside of it is touched.
///
/// # Errors
/// Refused, when it is no text file, or is not where it should be.
pub fn read(path: &Path, root: Option<&Path>) -> Result<Found, Failure> {
    let real = real_path(path)?;
    if let Some(root) = root {
        let root = root.canonicalize().map_err(|error| Failure::io(format!("find {}", root.display()), &error))?;
        if !real.starts_with(&root) {
            return Err(Failure::refused(format!(
                "{} leads out of the project, to {}",
                path.display(),
                real.display()
            ))
            .hint("for the user instead of the project: --user"));
        }
    }
    let doing = || format!("read {}", path.display());
    let text = match fs::metadata(&real) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(Failure::io(doing(), &error)),
        Ok(data) if !data.is_file() => return Err(Failure::refused(format!("{} is no file", path.display()))),
        Ok(data) if data.len() > LARGEST => return Err(Failure::refused(format!("{} is too long", path.display()))),
        Ok(_) => {
            let bytes = fs::read(&real).map_err(|error| Failure::io(doing(), &error))?;
            let text = String::from_utf8(bytes);
            Some(text.map_err(|_| Failure::refused(format!("{} is not UTF-8 text", path.display())))?)
        }
    };
    Ok(Found { path: path.to_path_buf(), real, text })
}

/// Where a path leads, though its end may not be there yet.
fn real_path(path: &Path) -> Result<PathBuf, Failure> {
    for there in path.ancestors() {
        if fs::symlink_metadata(there).is_ok() {
            let real = there
                .canonicalize()
                .map_err(|error| Failure::io(format!("follow {}, a link or folder", there.display()), &error))?;
            let rest = path.strip_prefix(there).unwrap_or(Path::new(""));
            return Ok(if rest.as_os_str().is_empty() { real } else { real.join(rest) });
        }
    }
    Ok(path.to_path_buf())
}

/// Puts a text in a file's place: a new file beside it that then takes its name, with the same mode and owner.
///
/// # Errors
/// Refused, when the file is not as it was read, or can't be written.
pub fn write(file: &Found, text: &str) -> Result<(), Failure> {
    unchanged(file)?;
    let failed = |error: io::Error| Failure::io(format!("write {}", file.path.display()), &error);
    let folder = file.real.parent().unwrap_or(Path::new("/"));
    fs::create_dir_all(folder).map_err(failed)?;
    let name = file.real.file_name().unwrap_or_default().to_string_lossy();
    let new = folder.join(format!(".{name}.bugeye-{}", std::process::id()));
    let written = put(&new, text, fs::metadata(&file.real).ok().as_ref()).and_then(|()| {
        unchanged(file).map_err(|failure| io::Error::other(failure.to_string()))?;
        fs::rename(&new, &file.real)
    });
    written.map_err(|error| {
        let _ = fs::remove_file(&new);
        failed(error)
    })
}

fn put(path: &Path, text: &str, like: Option<&fs::Metadata>) -> io::Result<()> {
    let mode = like.map_or(0o666, |data| data.permissions().mode() & 0o7777);
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(mode).open(path)?;
    if let Some(like) = like {
        let own = file.metadata()?;
        if (own.uid(), own.gid()) != (like.uid(), like.gid()) {
            // Root may, others may not: then the file is the writer's, as with any editor.
            let _ = fchown(&file, Some(like.uid()), Some(like.gid()));
        }
        file.set_permissions(fs::Permissions::from_mode(mode))?;
    }
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

/// Removes a file. A link to it goes with it.
///
/// # Errors
/// As [`write`].
pub fn remove(file: &Found) -> Result<(), Failure> {
    unchanged(file)?;
    let failed = |error: io::Error| Failure::io(format!("remove {}", file.path.display()), &error);
    fs::remove_file(&file.real).map_err(failed)?;
    match fs::remove_file(&file.path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed(error)),
        _ => Ok(()),
    }
}

/// Agents write their files while we look at them.
fn unchanged(file: &Found) -> Result<(), Failure> {
    let now = match fs::read(&file.real) {
        Ok(bytes) => Some(bytes),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(Failure::io(format!("read {}", file.path.display()), &error)),
    };
    if now.as_deref() == file.text.as_deref().map(str::as_bytes) {
        return Ok(());
    }
    Err(Failure::refused(format!("{} was changed by another program meanwhile", file.path.display()))
        .hint("the same command again"))
}

/// The outermost folder that would have to be made for a file.
#[must_use]
pub fn outermost_missing(path: &Path) -> Option<PathBuf> {
    path.ancestors().skip(1).take_while(|folder| !folder.exists()).last().map(Path::to_path_buf)
}
