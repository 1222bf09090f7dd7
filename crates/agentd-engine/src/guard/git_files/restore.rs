//! Restoring a path to what it was.

use std::io;
use std::path::Path;

use super::snapshot::PathState;
use crate::store::{Missing, OutsideDir, SHARED};

/// Restores a path to what it was. No link is followed on the way to it.
pub(super) fn restore(path: &Path, now: &PathState, was: &PathState) -> io::Result<()> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    if (now, was) == (&PathState::Absent, &PathState::Absent) {
        return Ok(());
    }
    let missing = if *was == PathState::Absent { Missing::Fail } else { Missing::Create };
    let dir = OutsideDir::reach(parent, missing)?;
    match (now, was) {
        (PathState::Directory { .. }, PathState::Directory { mode }) => {
            return dir.set_mode(name, *mode);
        }
        (PathState::Absent, _) => {}
        // A file replaces a file in one step: until the new one is there, the old one is.
        (
            PathState::File { .. } | PathState::Link { .. } | PathState::Other,
            PathState::File { .. },
        ) => {}
        _ => dir.remove(name)?,
    }
    match was {
        PathState::Absent | PathState::Other => Ok(()),
        PathState::Link { target } => dir.symlink(&target.path(), name),
        PathState::Directory { mode } => {
            dir.create_dir(name, SHARED)?;
            dir.set_mode(name, *mode)
        }
        PathState::File { mode, bytes } => dir.write_atomic(name, &bytes.0, *mode),
    }
}
