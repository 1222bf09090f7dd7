//! Temporary directories that no disk has to keep up with.
#![allow(clippy::unwrap_used, reason = "only tests call this")]

use std::path::Path;

use tempfile::TempDir;

/// What all tests that run at a time may write; containers have as little as 64 MB.
const ROOM: u64 = 512 * 1024 * 1024;

/// A temporary directory, in memory where there is room for it.
///
/// agentd flushes what it writes to the disk. Waiting for that is most of the time of a test
/// that writes much, and proves nothing: only a power cut would show the difference.
///
/// # Panics
///
/// If it cannot be made.
pub fn dir() -> TempDir {
    let memory = Path::new("/dev/shm");
    if has_room(memory) {
        tempfile::tempdir_in(memory).unwrap()
    } else {
        tempfile::tempdir().unwrap()
    }
}

fn has_room(path: &Path) -> bool {
    rustix::fs::statvfs(path).is_ok_and(|found| found.f_bavail * found.f_frsize >= ROOM)
}
