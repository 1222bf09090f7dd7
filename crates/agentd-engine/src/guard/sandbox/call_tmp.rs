//! The temporary directory of one call: its own `/tmp`, outside of the repository.

use std::fs::{self, DirBuilder, Permissions};
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::process::{Pid, test_kill_process};

use super::{SandboxError, at};
use crate::store::Project;
use crate::store::remove_tree::remove_tree;

/// A directory with what a sandbox sees as its own; gone with this value.
#[derive(Debug)]
pub(super) struct CallTmp(PathBuf);

impl CallTmp {
    pub(super) fn make(project: &Project) -> Result<Self, SandboxError> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        sweep(project);
        let calls = dir_of_calls(project)?;
        at(&calls, DirBuilder::new().recursive(true).mode(0o700).create(&calls))?;
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let dir = calls.join(format!("{}-{number}", std::process::id()));
        let _ = remove_tree(&dir);
        at(&dir, DirBuilder::new().mode(0o700).create(&dir))?;
        let made = Self(dir);
        for name in ["tmp", "shm"] {
            let path = made.0.join(name);
            at(&path, fs::create_dir(&path))?;
            // As everybody expects of `/tmp`; nobody else gets through the directory above.
            at(&path, fs::set_permissions(&path, Permissions::from_mode(0o1777)))?;
        }
        Ok(made)
    }

    /// What stands for `/tmp`.
    pub(super) fn dir(&self) -> PathBuf {
        self.0.join("tmp")
    }
}

impl Drop for CallTmp {
    fn drop(&mut self) {
        // What is left is removed by the next call, when this process is gone.
        let _ = remove_tree(&self.0);
    }
}

fn dir_of_calls(project: &Project) -> Result<PathBuf, SandboxError> {
    Ok(project.user().cache_path(project.root())?.join("calls"))
}

/// Removes what killed calls have left. It costs one look for a directory.
pub fn sweep(project: &Project) {
    let Ok(calls) = dir_of_calls(project) else { return };
    let entries = fs::read_dir(calls).into_iter().flatten().flatten();
    for entry in entries {
        let name = entry.file_name();
        let pid = name.to_str().and_then(|name| name.split('-').next()?.parse().ok());
        let lives = pid
            .and_then(Pid::from_raw)
            .is_some_and(|pid| !matches!(test_kill_process(pid), Err(rustix::io::Errno::SRCH)));
        if !lives {
            let _ = remove_tree(&entry.path());
        }
    }
}
