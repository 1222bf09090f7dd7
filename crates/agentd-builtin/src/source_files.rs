//! The code of the working tree, which the built-in agent reads as every CLI does: as plain files,
//! where it was started. That is the change's own worktree, if it has one; over MCP it would see
//! the project's.

use std::fs;
use std::path::Path;

use agentd_core::layout::AGENTD_DIR;

use crate::draft::{SourceFile, Survey};

/// Files beyond this many are not looked at.
const MOST_FILES: usize = 100_000;
/// How many source files are looked through, and how much of them.
const SURVEYED_FILES: usize = 5000;
const SURVEYED_BYTES: u64 = 32 << 20;
const SURVEYED_FILE: u64 = 256 << 10;

/// What the source files of a project define. Bounded: a huge project is surveyed in part.
pub(crate) fn survey(root: &Path) -> Survey {
    let mut survey = Survey::default();
    let mut left = SURVEYED_BYTES;
    for (path, place, metadata) in agentd_walk::files(root, AGENTD_DIR).take(MOST_FILES) {
        // Cheap: the name alone shows whether it is source code.
        if SourceFile::scan(&path, "").is_none() {
            continue;
        }
        if survey.files.len() == SURVEYED_FILES || left == 0 {
            survey.cut = true;
            break;
        }
        let read = metadata.len() <= SURVEYED_FILE;
        let text =
            if read { fs::read_to_string(&place).unwrap_or_default() } else { String::new() };
        left = left.saturating_sub(text.len() as u64);
        survey.files.extend(SourceFile::scan(&path, &text));
    }
    survey
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_survey_sees_source_files_only() {
        let dir = tempfile::tempdir().unwrap();
        for (path, text) in [
            ("src/a.rs", "fn a() {}\n"),
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
        let paths: Vec<&str> = found.files.iter().map(|file| file.path.as_str()).collect();
        assert_eq!(paths, ["src/a.rs", "src/b.rs"]);
        assert_eq!(found.files[0].names, ["a"]);
    }
}
