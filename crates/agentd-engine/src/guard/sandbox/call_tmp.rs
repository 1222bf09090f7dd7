//! The temporary directory of one call: its own `/tmp`, outside of the repository.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::process::{Pid, test_kill_process};

use super::{SandboxError, at};
use crate::store::{OutsideDir, PRIVATE, Project, SHARED};

/// A directory with what a sandbox has for itself; removed with this value.
#[derive(Debug)]
pub(super) struct CallTmp {
    calls: OutsideDir,
    name: String,
}

impl CallTmp {
    pub(super) fn make(project: &Project) -> Result<Self, SandboxError> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        sweep(project);
        let path = dir_of_calls(project)?;
        let calls = at(&path, OutsideDir::open_or_create(&path, PRIVATE))?;
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("{}-{number}", std::process::id());
        let _ = calls.remove(&name);
        let dir = at(&path.join(&name), calls.create_dir(&name, PRIVATE))?;
        let made = Self { calls, name };
        for name in ["tmp", "shm"] {
            at(&dir.path().join(name), dir.create_dir(name, SHARED))?;
            // The usual mode of `/tmp`; other users cannot get through the directory above.
            at(&dir.path().join(name), dir.set_mode(name, 0o1777))?;
        }
        Ok(made)
    }

    /// What stands for `/tmp`.
    pub(super) fn dir(&self) -> PathBuf {
        self.calls.path().join(&self.name).join("tmp")
    }
}

impl Drop for CallTmp {
    fn drop(&mut self) {
        // What is left is removed by the next call, when this process is gone.
        let _ = self.calls.remove(&self.name);
    }
}

fn dir_of_calls(project: &Project) -> Result<PathBuf, SandboxError> {
    Ok(project.user().cache_path(project.root())?.join("calls"))
}

/// Removes what killed calls have left. It costs one lookup of a directory.
pub(crate) fn sweep(project: &Project) {
    let Ok(path) = dir_of_calls(project) else { return };
    let Ok(calls) = OutsideDir::open(&path) else { return };
    for name in calls.names().unwrap_or_default() {
        let pid = name.to_str().and_then(|name| name.split('-').next()?.parse().ok());
        let lives = pid
            .and_then(Pid::from_raw)
            .is_some_and(|pid| !matches!(test_kill_process(pid), Err(rustix::io::Errno::SRCH)));
        if !lives {
            let _ = calls.remove(&name);
        }
    }
}
