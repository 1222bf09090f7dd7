//! A directory of our own among the temporary files.

use std::io;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::SystemTime;

use super::outside::{OutsideDir, PRIVATE};

/// How often another name for the directory is tried if one is taken.
const TRIES: u32 = 16;

/// A directory that only the user can look into, removed when this is dropped.
#[derive(Debug)]
pub(crate) struct TemporaryDir {
    parent: OutsideDir,
    name: String,
    dir: OutsideDir,
}

impl TemporaryDir {
    /// Creates one. `purpose` is part of its name.
    pub(crate) fn create(purpose: &str) -> io::Result<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let parent = OutsideDir::open(&std::env::temp_dir())?;
        let mut tries = 0;
        loop {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let time = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
            let time = time.map_or(0, |time| time.subsec_nanos());
            let name = format!("agentd-{purpose}-{}-{number}-{time:x}", std::process::id());
            // Fails if anything is there, even a dangling link.
            match parent.create_dir(&name, PRIVATE) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && tries < TRIES => {
                    tries += 1;
                }
                created => return created.map(|dir| Self { parent, name, dir }),
            }
        }
    }

    pub(crate) fn dir(&self) -> &OutsideDir {
        &self.dir
    }
}

impl Drop for TemporaryDir {
    fn drop(&mut self) {
        let _ = self.parent.remove(&self.name);
    }
}
