//! Removing a directory with everything in it, also what was closed by its maker, as Go does with
//! its modules. No link is followed.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// Removes what is at a path; nothing there is fine.
pub(crate) fn remove_tree(path: &Path) -> io::Result<()> {
    let removed = match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_dir() => {
            fs::set_permissions(path, Permissions::from_mode(0o700))?;
            fs::read_dir(path)?.try_for_each(|entry| remove_tree(&entry?.path()))?;
            fs::remove_dir(path)
        }
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    let is_absent = |error: &io::Error| {
        matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
    };
    removed.or_else(|error| if is_absent(&error) { Ok(()) } else { Err(error) })
}
