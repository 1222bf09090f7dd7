//! What a commit changes, as calls of Claude Code's edit tools.

use std::path::Path;

use real_agents::models::write;
use scripted_models::Reply;
use serde_json::json;
use test_project::git;

use crate::implementation::project::{bash, edit};

/// What a commit does to one file.
pub(super) struct Edit {
    pub(super) path: String,
    /// The text before; none if the file is new.
    pub(super) old: Option<String>,
    /// The text after; none if the file is removed.
    pub(super) new: Option<String>,
}

/// The files that a commit changes.
pub(super) fn edits(clone: &Path, commit: &str) -> Vec<Edit> {
    let parent = format!("{commit}^");
    let changed = git(clone, &["diff", "--name-only", "--no-renames", &parent, commit]);
    let text = |revision: &str, path: &str| {
        let tree = git(clone, &["ls-tree", "--name-only", revision, "--", path]);
        // `git` here trims the end, so the exact text is taken from the blob.
        (!tree.is_empty()).then(|| blob(clone, &format!("{revision}:{path}")))
    };
    let edit = |path: &str| Edit {
        path: path.to_owned(),
        old: text(&parent, path),
        new: text(commit, path),
    };
    changed.lines().map(edit).collect()
}

fn blob(clone: &Path, name: &str) -> String {
    let output = std::process::Command::new("git")
        .args(["cat-file", "blob", name])
        .current_dir(clone)
        .output()
        .unwrap();
    assert!(output.status.success(), "{name}");
    String::from_utf8(output.stdout).unwrap()
}

impl Edit {
    /// Whether it is code of the product rather than a test.
    pub(super) fn is_source(&self) -> bool {
        !self.path.split('/').any(|part| part.starts_with("test"))
    }

    pub(super) fn action(&self) -> &'static str {
        match (&self.old, &self.new) {
            (None, _) => "CREATE",
            (_, None) => "DELETE",
            _ => "MODIFY",
        }
    }

    /// The calls that do it: a read, then one edit for each piece that differs.
    pub(super) fn replies(&self) -> Vec<Reply> {
        match (&self.old, &self.new) {
            (Some(old), Some(new)) => {
                let pieces = pieces(old, new);
                let edits = pieces.iter().map(|(from, to)| edit(&self.path, from, to));
                [look_near(&self.path, old, &pieces)].into_iter().chain(edits).collect()
            }
            (None, Some(new)) => vec![write(&self.path, new)],
            (_, None) => vec![bash(&format!("rm '{}'", self.path))],
        }
    }
}

/// Reads around the first edit: Claude Code refuses to read large files as a whole.
fn look_near(path: &str, old: &str, pieces: &[(String, String)]) -> Reply {
    let place = pieces.first().and_then(|(from, _)| old.find(from)).unwrap_or_default();
    let line = old[..place].lines().count() + 1;
    let path = format!("${{cwd}}/{path}");
    Reply::call("Read", json!({"file_path": path, "offset": line, "limit": 200}))
}

/// Pieces of the old text and what replaces them, each of which occurs once when its turn comes.
fn pieces(old: &str, new: &str) -> Vec<(String, String)> {
    let (old_lines, new_lines) = (lines(old), lines(new));
    let start = old_lines.iter().zip(&new_lines).take_while(|(a, b)| a == b).count();
    let (old_rest, new_rest) = (&old_lines[start..], &new_lines[start..]);
    if old_rest.is_empty() && new_rest.is_empty() {
        return Vec::new();
    }
    // The next place at which both have the same three lines again.
    let (removed, added) = meeting(old_rest, new_rest);
    let mut before = start;
    loop {
        let from = old_lines[before..start + removed].concat();
        let unique = !from.is_empty() && old.matches(&from).count() == 1;
        if unique || before == 0 {
            let to = new_lines[before..start + added].concat();
            let done = old.replacen(&from, &to, 1);
            assert_ne!(done, old, "no progress");
            let mut all = vec![(from, to)];
            all.extend(pieces(&done, new));
            return all;
        }
        before -= 1;
    }
}

/// How many lines of both sides differ before they meet again; all of them if they never do.
fn meeting(old: &[&str], new: &[&str]) -> (usize, usize) {
    const SAME: usize = 3;
    for total in 1..old.len() + new.len() {
        for removed in 0..=total.min(old.len()) {
            let added = total - removed;
            let (Some(left), Some(right)) =
                (old.get(removed..removed + SAME), new.get(added..added + SAME))
            else {
                continue;
            };
            if left == right {
                return (removed, added);
            }
        }
    }
    (old.len(), new.len())
}

fn lines(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

#[test]
fn pieces_turn_one_text_into_the_other() {
    let old = "one\nb\nc\nx\ny\nz\na\nb\nc\nx\ny\nz\nend\n";
    let new = "one\nB\nc\nx\ny\nz\na\nb\nc\nx\nnew\ny\nz\nend\n";
    let pieces = pieces(old, new);
    assert!(pieces.len() > 1, "{pieces:?}");
    let mut text = old.to_owned();
    for (from, to) in pieces {
        assert_eq!(text.matches(&from).count(), 1, "{from:?}");
        text = text.replacen(&from, &to, 1);
    }
    assert_eq!(text, new);
}
