//! The code of the working tree, which the built-in agent reads as every CLI does: as plain files,
//! where it was started. That is the change's own worktree, if it has one; over MCP it would see
//! the project's.

use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use agentd_core::layout::AGENTD_DIR;
use agentd_rank::{File, kind};

use crate::draft::Survey;

/// Files beyond this many are not looked at.
const MOST_FILES: usize = 200_000;
/// How much is read of one file, and of all of them.
const FILE_BYTES: u64 = 512 << 10;
const ALL_BYTES: u64 = 512 << 20;

/// What the source files of a project define, and which words are in them.
pub(crate) fn survey(root: &Path) -> Survey {
    let mut left = ALL_BYTES;
    let files = agentd_walk::files(root, AGENTD_DIR).take(MOST_FILES);
    Survey::new(files.filter_map(|(path, place, metadata)| {
        let kind = kind(&path, metadata.len())?;
        let mut bytes = Vec::new();
        if let Ok(file) = agentd_walk::open_regular(&place) {
            // What was read before an error is good enough to rank.
            let _ = file.take(FILE_BYTES.min(left)).read_to_end(&mut bytes);
        }
        left -= bytes.len() as u64;
        let file = File { path, size: metadata.len(), mtime: metadata.mtime(), kind };
        Some((file, String::from_utf8_lossy(&bytes).into_owned()))
    }))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_survey_sees_source_files_only() {
        let dir = tempfile::tempdir().unwrap();
        for (path, text) in [
            ("src/a.rs", "fn sale() {}\n"),
            ("src/b.rs", "x"),
            (".gitignore", "target/\n"),
            ("target/out.rs", "fn out() {}\n"),
            ("agentd/changes/c/tasks.md", "x"),
            (".git/HEAD", "x"),
        ] {
            let place = dir.path().join(path);
            fs::create_dir_all(place.parent().unwrap()).unwrap();
            fs::write(place, text).unwrap();
        }
        let found = survey(dir.path());
        let known = ["src/a.rs", "src/b.rs", "target/out.rs", "agentd/changes/c/tasks.md"];
        assert_eq!(known.map(|path| found.has(path)), [true, true, false, false]);
        assert_eq!(found.about("call sale")[0].names, ["sale"]);
    }
}
