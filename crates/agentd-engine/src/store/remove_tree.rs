//! Removing a directory with everything in it, also what its maker has closed, as Go does with
//! its modules. No link is followed: each directory is opened by its name in the one above.

use std::ffi::OsStr;
use std::io;

use cap_fs_ext::DirExt as _;
use cap_std::fs::{Dir, Permissions, PermissionsExt as _};

/// Removes what a name in a directory stands for. Nothing there is fine.
pub(super) fn remove_tree(dir: &Dir, name: &OsStr) -> io::Result<()> {
    let removed = match dir.symlink_metadata(name) {
        Ok(metadata) if metadata.is_dir() => {
            if metadata.permissions().mode() & 0o700 != 0o700 {
                dir.set_permissions(name, Permissions::from_mode(0o700))?;
            }
            remove_entries(&dir.open_dir_nofollow(name)?).and_then(|()| dir.remove_dir(name))
        }
        Ok(_) => dir.remove_file(name),
        Err(error) => Err(error),
    };
    match removed {
        Err(error)
            if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) =>
        {
            Ok(())
        }
        removed => removed,
    }
}

fn remove_entries(dir: &Dir) -> io::Result<()> {
    dir.entries()?.try_for_each(|entry| remove_tree(dir, &entry?.file_name()))
}
