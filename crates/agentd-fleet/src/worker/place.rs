//! Where a worker works: a directory that no other worker has, with a clone for each change.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use agentd_core::error_kind::Kind;
use agentd_core::ids::ChangeId;
use rustix::fs::{FlockOperation, flock};

use crate::error::{FleetError, Result};
use crate::program;
use crate::repository::Repository;

/// How many workers of one machine look for a place.
const MOST: u32 = 1000;

/// A directory that this worker has for itself.
#[derive(Debug)]
pub(super) struct Place {
    dir: PathBuf,
    /// Held for as long as the worker lives.
    _lock: File,
}

impl Place {
    /// The first free one below a directory: a worker that is started again finds its clones, at the same
    /// path, and two workers on one machine do not meet.
    pub(super) fn take(below: &Path) -> Result<Self> {
        let failed = |error| FleetError::unusable(below, &error);
        for number in 1..MOST {
            let dir = below.join(number.to_string());
            fs::create_dir_all(&dir).map_err(failed)?;
            let lock = File::options().create(true).append(true).open(dir.join("lock"));
            let lock = lock.map_err(failed)?;
            if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok() {
                return Ok(Self { dir, _lock: lock });
            }
        }
        Err(FleetError::usage(format!("no free place for a worker below {}", below.display())))
    }

    /// The clone of a change.
    pub(super) fn clone_of(&self, change: &ChangeId) -> PathBuf {
        self.dir.join("changes").join(change.as_str())
    }

    /// What makes the clone of a change.
    pub(super) fn preparing(&self, change: &ChangeId) -> Preparing {
        let dir = self.dir.join("changes");
        // No ID of a change begins like this.
        Preparing { making: dir.join(format!(".{change}")), dir }
    }

    /// Removes the clone of a change that is done.
    pub(super) async fn remove(&self, change: &ChangeId) {
        // What stays is replaced when the change comes back.
        let _ = remove_tree(self.clone_of(change)).await;
    }
}

/// Removes a directory, which may take long, while signs of life go on.
async fn remove_tree(dir: PathBuf) -> io::Result<()> {
    tokio::task::spawn_blocking(move || fs::remove_dir_all(dir)).await?
}

/// Makes the clone of a change.
#[derive(Debug)]
pub(super) struct Preparing {
    dir: PathBuf,
    making: PathBuf,
}

impl Preparing {
    /// Makes it, unless it is there.
    pub(super) async fn make(&self, repository: &Repository, clone: &Path) -> Result<()> {
        if clone.join(".git/HEAD").is_file() {
            return Ok(());
        }
        let failed = |error| FleetError::unusable(clone, &error);
        for left in [&clone.to_path_buf(), &self.making] {
            // By a worker that was killed meanwhile.
            if left.exists() {
                remove_tree(left.clone()).await.map_err(failed)?;
            }
        }
        fs::create_dir_all(&self.dir).map_err(failed)?;
        let words: [&OsStr; 5] = [
            "clone".as_ref(),
            "--quiet".as_ref(),
            "--".as_ref(),
            repository.url.as_ref(),
            self.making.as_os_str(),
        ];
        let made = program::git(&self.dir, &words, b"").await?;
        if !made.ok {
            let error = FleetError::new(Kind::RemoteUnreachable, "cannot clone the repository");
            return Err(error.cause(made.stderr));
        }
        fs::rename(&self.making, clone).map_err(failed)
    }
}
