//! What the ranking of files keeps between two commands, in the user's cache directory.
//!
//! Nothing depends on it: what cannot be read is not there, and what cannot be written is found
//! out again. It is bounded: the files of projects that were not asked about for the longest time go
//! first.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use agentd_core::rel_path::RelPath;

use super::confined::ProjectDir;
use super::outside::{OutsideDir, SHARED};
use super::user_dirs::{UserDirs, own_dir};

/// The largest file that is read or written.
const LARGEST: u64 = 64 << 20;
/// What all files have together at the most.
const ALL_BYTES: u64 = 256 << 20;

/// The cache of one project.
#[derive(Debug)]
pub(crate) struct RankCache {
    dir: ProjectDir,
    index: RelPath,
    log: RelPath,
}

impl RankCache {
    /// Opens it; none if the user has no place for it outside of the project.
    pub(crate) fn open(user: &UserDirs, root: &Path) -> Option<Self> {
        let (path, name) = user.rank_place(root)?;
        OutsideDir::open_or_create(path.parent()?, SHARED).ok()?;
        let named = |ending: &str| RelPath::new(&format!("{name}.{ending}")).ok();
        Some(Self { dir: own_dir(&path).ok()?, index: named("index")?, log: named("log")? })
    }

    /// What is known of the files of the project.
    pub(crate) fn index(&self) -> Option<Vec<u8>> {
        self.dir.read_capped(&self.index, LARGEST).ok()
    }

    pub(crate) fn write_index(&self, bytes: &[u8]) {
        self.write(&self.index, bytes);
    }

    /// The list of commits up to a commit, if it was kept.
    pub(crate) fn log(&self, head: &str) -> Option<String> {
        let bytes = self.dir.read_capped(&self.log, LARGEST).ok()?;
        let text = String::from_utf8(bytes).ok()?;
        let rest = text.strip_prefix(head)?.strip_prefix('\n')?;
        Some(rest.to_owned())
    }

    pub(crate) fn write_log(&self, head: &str, text: &str) {
        self.write(&self.log, format!("{head}\n{text}").as_bytes());
    }

    fn write(&self, path: &RelPath, bytes: &[u8]) {
        if bytes.len() as u64 <= LARGEST && self.dir.write_atomic(path, bytes).is_ok() {
            self.evict();
        }
    }

    /// Removes the oldest files until the others are small enough together.
    fn evict(&self) {
        let Ok(entries) = self.dir.list_dir(&RelPath::root()) else { return };
        let aged = |name: String| {
            let path = RelPath::new(&name).ok()?;
            let (size, modified) = self.dir.stamp(&path).ok()??.size_and_time();
            Some((modified.unwrap_or(SystemTime::UNIX_EPOCH), size, path))
        };
        let mut files: Vec<_> = entries.into_iter().filter_map(|entry| aged(entry.name)).collect();
        files.sort_by_key(|(modified, _, _)| std::cmp::Reverse(*modified));
        let mut sum = 0;
        for (_, size, path) in files {
            sum += size;
            if sum > ALL_BYTES {
                // Another process may have removed it.
                let _ = self.dir.remove_file(&path);
            }
        }
    }
}

/// The files of a project's cache, to be removed with the project.
pub(super) fn files(dir: &Path, name: &str) -> [PathBuf; 2] {
    ["index", "log"].map(|ending| dir.join(format!("{name}.{ending}")))
}
