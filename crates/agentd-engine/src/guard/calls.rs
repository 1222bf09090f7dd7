//! The data of calls that are running, in the user's state directory: a private directory for
//! each, and what is needed to restore files after it.
//!
//! Everything that belongs to a call carries its name. The process that makes the call holds the
//! claim to that name; data under a name that nobody claims was left by an agentd that was killed.

use std::collections::BTreeSet;
use std::fs::{File, TryLockError};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use agentd_core::rel_path::RelPath;

use crate::store::{ProjectDir, StoreError, own_dir};

/// The directory of calls, in the state of a project.
pub(crate) const CALLS: &str = "calls";
/// What git runs and agents obey, as it was before the call. The file keeps the name that
/// earlier versions gave it, so that an upgrade recovers their calls.
pub(crate) const SNAPSHOT: &str = "picture.json";
/// The state of the change, as it was before the call.
pub(crate) const STATE: &str = "state.json";
const LOCK: &str = "lock";
/// The largest snapshot that is read.
const LARGEST: u64 = 128 << 20;

/// The exclusive right to everything under the name of a call, until this is dropped.
#[derive(Debug)]
pub(crate) struct Claim {
    dir: ProjectDir,
    name: String,
    /// Locked.
    _lock: File,
}

impl Claim {
    /// Claims the name of a private directory, in the directory that contains it.
    pub(crate) fn of(private_dir: &Path) -> Result<Self, StoreError> {
        let dir = own_dir(private_dir.parent().unwrap_or(private_dir))?;
        let name = private_dir.file_name().unwrap_or_default().to_string_lossy();
        Self::take(&dir, &name)
    }

    /// Claims a name. One that is taken is free again in a moment: the same call never runs twice
    /// at a time, so another process is recovering what was left under it.
    pub(crate) fn take(dir: &ProjectDir, name: &str) -> Result<Self, StoreError> {
        let path = path(name, LOCK)?;
        loop {
            let file = dir.open_append(&path)?;
            // Where there are no locks, nobody recovers anything either.
            let _ = file.lock();
            if is_current(dir, &path, &file) {
                return Ok(Self { dir: dir.clone(), name: name.to_owned(), _lock: file });
            }
        }
    }

    /// Claims a name that is free.
    fn try_take(dir: &ProjectDir, name: &str) -> Result<Option<Self>, StoreError> {
        let path = path(name, LOCK)?;
        let file = dir.open_append(&path)?;
        match file.try_lock() {
            Ok(()) if is_current(dir, &path, &file) => {
                Ok(Some(Self { dir: dir.clone(), name: name.to_owned(), _lock: file }))
            }
            Ok(()) | Err(TryLockError::WouldBlock | TryLockError::Error(_)) => Ok(None),
        }
    }

    /// The name of the call.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Whether another call needs the keys of agentd in the settings of the project.
    pub(crate) fn settings_are_merged(&self) -> bool {
        let entries = self.dir.list_dir(&RelPath::root()).unwrap_or_default();
        entries.iter().any(|entry| entry.name.ends_with(".backup"))
    }

    /// Reads data under the name.
    pub(crate) fn read(&self, what: &str) -> Result<Option<Vec<u8>>, StoreError> {
        match self.dir.read_capped(&path(&self.name, what)?, LARGEST) {
            Err(error) if error.is_not_found() => Ok(None),
            read => read.map(Some),
        }
    }

    /// Saves data under the name, durably.
    pub(crate) fn keep(&self, what: &str, bytes: &[u8]) -> Result<(), StoreError> {
        self.dir.write_atomic(&path(&self.name, what)?, bytes)
    }

    /// Removes data under the name.
    pub(crate) fn forget(&self, what: &str) -> Result<(), StoreError> {
        match self.dir.remove_file(&path(&self.name, what)?) {
            Err(error) if error.is_not_found() => Ok(()),
            removed => removed,
        }
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        // While it is locked: a process that has opened it meanwhile sees that it is not current.
        if let Ok(path) = path(&self.name, LOCK) {
            let _ = self.dir.remove_file(&path);
        }
    }
}

fn path(name: &str, what: &str) -> Result<RelPath, StoreError> {
    Ok(RelPath::new(&format!("{name}.{what}"))?)
}

fn is_current(dir: &ProjectDir, path: &RelPath, file: &File) -> bool {
    let number =
        |file: &File| file.metadata().map(|metadata| (metadata.dev(), metadata.ino())).ok();
    dir.open_file(path).is_ok_and(|(there, _)| number(&there) == number(file))
}

/// Claims everything that abandoned calls left. Their private directories are removed; the rest is
/// for the caller to recover.
pub(crate) fn abandoned(state: &ProjectDir) -> Result<Vec<Claim>, StoreError> {
    let dir = match state.strict_subdir(&RelPath::new(CALLS)?) {
        Err(error) if error.is_not_found() => return Ok(Vec::new()),
        dir => dir?,
    };
    let entries = dir.list_dir(&RelPath::root())?;
    // The names of calls have no dots in them.
    let of_call = |name: &str| -> Option<String> {
        match name.split_once('.') {
            None => Some(name.to_owned()),
            Some((name, LOCK | SNAPSHOT | STATE)) => Some(name.to_owned()),
            Some(_) => None,
        }
    };
    let names: BTreeSet<String> = entries.iter().filter_map(|entry| of_call(&entry.name)).collect();
    let mut claims = Vec::new();
    for name in names {
        let Some(claim) = Claim::try_take(&dir, &name)? else { continue };
        // Nothing depends on it: the next call of this name empties it anyway.
        let _ = dir.remove_tree(&RelPath::new(&name)?);
        claims.push(claim);
    }
    Ok(claims)
}

/// The private directory of a call, in the state of its project.
pub(crate) fn private_dir(state: &Path, name: &str) -> PathBuf {
    state.join(CALLS).join(name)
}

/// Another directory of this kind, beside one.
pub(crate) fn beside(private_dir: &Path, name: &str) -> PathBuf {
    private_dir.with_file_name(name)
}
