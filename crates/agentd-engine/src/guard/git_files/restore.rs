//! Making a place of the disk look as it did.

use std::fs::{self, File, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _, symlink};
use std::path::Path;

use super::picture::Thing;
use super::way::{Missing, Way};
use crate::store::remove_tree::remove_tree;

/// The name of a file that is being written, beside the one that it becomes.
const TEMPORARY: &str = "agentd-restores";

/// Makes a place look as it did. No link is followed on the way to it.
pub(super) fn restore(path: &Path, now: &Thing, was: &Thing) -> io::Result<()> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    if (now, was) == (&Thing::Nothing, &Thing::Nothing) {
        return Ok(());
    }
    let way =
        Way::open(parent, if *was == Thing::Nothing { Missing::Fail } else { Missing::Make })?;
    let path = &way.to(name);
    match (now, was) {
        (Thing::Directory { .. }, Thing::Directory { mode }) => {
            return fs::set_permissions(path, Permissions::from_mode(*mode));
        }
        (Thing::Nothing, _) => {}
        (Thing::Directory { .. }, _) => remove_tree(path)?,
        // Until the new file is there the old one is: a file replaces a file at once.
        (Thing::File { .. } | Thing::Link { .. } | Thing::Other, Thing::File { .. }) => {}
        (Thing::File { .. } | Thing::Link { .. } | Thing::Other, _) => fs::remove_file(path)?,
    }
    match was {
        Thing::Nothing | Thing::Other => Ok(()),
        Thing::Link { target } => symlink(target.path(), path),
        Thing::Directory { mode } => {
            fs::create_dir(path)?;
            fs::set_permissions(path, Permissions::from_mode(*mode))
        }
        Thing::File { mode, bytes } => {
            let temporary = way.to(TEMPORARY.as_ref());
            remove_tree(&temporary)?;
            let mut file =
                File::options().write(true).create_new(true).mode(0o600).open(&temporary)?;
            file.write_all(&bytes.0)?;
            file.set_permissions(Permissions::from_mode(*mode))?;
            file.sync_data()?;
            fs::rename(&temporary, path)
        }
    }
}
