//! Parsing what git reports about a checkout.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

use agentd_core::layout;
use agentd_core::rel_path::RelPath;

use super::error::GitError;
use super::tool::{Call, GitOutput};
use super::{Git, is_hash};
use crate::store::Bytes;

/// What is checked out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Head {
    /// On a branch.
    Branch {
        /// Its short name.
        name: String,
        /// Its commit.
        commit: String,
    },
    /// On a commit without a branch.
    Detached {
        /// The commit.
        commit: String,
    },
    /// On a branch without a commit.
    Unborn {
        /// Its short name.
        name: String,
    },
}

impl Head {
    /// The commit, if there is one.
    pub fn commit(&self) -> Option<&str> {
        match self {
            Self::Branch { commit, .. } | Self::Detached { commit } => Some(commit),
            Self::Unborn { .. } => None,
        }
    }

    /// The branch, if there is one.
    pub fn branch(&self) -> Option<&str> {
        match self {
            Self::Branch { name, .. } | Self::Unborn { name } => Some(name),
            Self::Detached { .. } => None,
        }
    }
}

/// What is not committed. What belongs to agentd's changes is not counted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Dirty {
    /// Files that git knows and that are changed, staged or not.
    pub changed: usize,
    /// Files that git does not know and does not ignore.
    pub untracked: usize,
    /// Files in conflict.
    pub conflicts: Vec<String>,
}

impl Dirty {
    /// Whether everything is committed.
    pub(crate) fn is_clean(&self) -> bool {
        self.count() == 0
    }

    /// How many files are not committed.
    pub fn count(&self) -> usize {
        self.changed + self.untracked + self.conflicts.len()
    }
}

/// A checkout of the repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Worktree {
    /// Where it is.
    pub path: PathBuf,
    /// The short name of its branch.
    pub branch: Option<String>,
    /// Whether it is the main one, which the repository came with.
    pub main: bool,
    /// Whether it is a bare repository.
    pub bare: bool,
    /// Whether its directory is gone.
    pub gone: bool,
}

/// A file that is not committed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Uncommitted {
    /// From the top of the checkout.
    pub(super) path: OsString,
    pub(super) kind: UncommittedKind,
}

impl Uncommitted {
    pub(super) fn bytes(&self) -> Bytes {
        Bytes::from(Path::new(&self.path))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UncommittedKind {
    Changed,
    Untracked,
    Conflict,
}

impl Git {
    /// What is checked out.
    pub fn head(&self) -> Result<Head, GitError> {
        let output = self
            .call("status")
            .args(["--porcelain=v2", "--branch", "-z", "-uno", "--ignore-submodules=all"])
            .run()?;
        let (mut commit, mut name) = (None, None);
        for record in records(&output.stdout) {
            let record = String::from_utf8_lossy(record);
            if let Some(oid) = record.strip_prefix("# branch.oid ") {
                commit = is_hash(oid).then(|| oid.to_owned());
            } else if let Some(head) = record.strip_prefix("# branch.head ") {
                name = (head != "(detached)").then(|| head.to_owned());
            }
        }
        // A branch may be called `(detached)`; only `git symbolic-ref` is reliable.
        if name.is_none() {
            let output = self.call("symbolic-ref").args(["--quiet", "--short", "HEAD"]).ask()?;
            name = (output.code == 0).then(|| output.text().trim_end().to_owned());
        }
        match (name, commit) {
            (Some(name), Some(commit)) => Ok(Head::Branch { name, commit }),
            (None, Some(commit)) => Ok(Head::Detached { commit }),
            (name, None) => Ok(Head::Unborn { name: name.unwrap_or_default() }),
        }
    }

    /// What is not committed, in the whole checkout.
    pub fn dirty(&self) -> Result<Dirty, GitError> {
        let [_, no_changes, _] = self.everything();
        self.dirty_except(no_changes)
    }

    /// The same without anything of agentd's.
    pub(super) fn dirty_outside_agentd(&self) -> Result<Dirty, GitError> {
        self.dirty_except(format!(":(exclude,literal){}", layout::agentd_dir()))
    }

    fn dirty_except(&self, except: String) -> Result<Dirty, GitError> {
        let output = self.status(&["--untracked-files=normal"], &[":/".to_owned(), except])?;
        let mut dirty = Dirty::default();
        for file in output {
            match file.kind {
                UncommittedKind::Changed => dirty.changed += 1,
                UncommittedKind::Untracked => dirty.untracked += 1,
                UncommittedKind::Conflict => {
                    dirty.conflicts.push(file.path.to_string_lossy().into_owned());
                }
            }
        }
        Ok(dirty)
    }

    /// Whether git knows a file at this path of the project, or below it.
    pub(crate) fn is_tracked(&self, path: &RelPath) -> Result<bool, GitError> {
        let call = self.call("ls-files").literal_paths().args(["-z", "--", path.as_str()]);
        Ok(!call.run()?.stdout.is_empty())
    }

    /// Whether everything at this path of the project is committed, except for what git ignores.
    pub(crate) fn is_committed(&self, path: &RelPath) -> Result<bool, GitError> {
        let path = format!(":(literal){path}");
        Ok(self.status(&["--untracked-files=normal"], &[path])?.is_empty())
    }

    /// The files of these paths that are not committed.
    pub(super) fn status(
        &self,
        options: &[&str],
        paths: &[String],
    ) -> Result<Vec<Uncommitted>, GitError> {
        let fixed = ["--porcelain=v2", "-z", "--no-renames", "--ignore-submodules=dirty"];
        let call = self.call("status").args(fixed).args(options).args(["--"]).args(paths);
        Ok(uncommitted(&call.run()?.stdout))
    }

    /// All checkouts of the repository.
    pub fn worktrees(&self) -> Result<Vec<Worktree>, GitError> {
        let output = self.call("worktree").args(["list", "--porcelain", "-z"]).run()?;
        Ok(worktrees(&output.stdout))
    }

    /// The commit of a local branch, if there is such a branch.
    pub fn branch_commit(&self, branch: &str) -> Result<Option<String>, GitError> {
        self.commit_of(&format!("refs/heads/{branch}"))
    }

    /// The commit that is checked out.
    pub(crate) fn head_commit(&self) -> Result<Option<String>, GitError> {
        self.commit_of("HEAD")
    }

    pub(super) fn commit_of(&self, name: &str) -> Result<Option<String>, GitError> {
        Ok(read_commit(&self.commit_call(name).ask()?))
    }

    /// Asks for a commit by a name; [`read_commit`] reads the answer.
    pub(super) fn commit_call(&self, name: &str) -> Call<'_> {
        let commit = format!("{name}^{{commit}}");
        let args = ["--verify", "--quiet", "--end-of-options", &commit];
        self.call("rev-parse").args(args)
    }

    /// The hash of the tree of a commit.
    pub(crate) fn tree_of(&self, commit: &str) -> Result<String, GitError> {
        let tree = format!("{commit}^{{tree}}");
        let output = self.call("rev-parse").args(["--verify", "--end-of-options", &tree]).run()?;
        Ok(output.text().trim().to_owned())
    }

    /// A commit by its hash, in full.
    pub(super) fn commit_by_hash(&self, hash: &str) -> Result<String, GitError> {
        let found = if is_hash(hash) { self.commit_of(hash)? } else { None };
        found.ok_or_else(|| no_such_commit(hash))
    }
}

pub(super) fn no_such_commit(hash: &str) -> GitError {
    GitError::NoSuchCommit { revision: hash.chars().take(80).collect() }
}

/// The commit that was asked for, if there is one.
pub(super) fn read_commit(output: &GitOutput) -> Option<String> {
    let hash = output.text().trim().to_owned();
    (output.code == 0 && is_hash(&hash)).then_some(hash)
}

/// Pieces that end with a NUL.
pub(super) fn records(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes.split(|byte| *byte == 0).filter(|record| !record.is_empty())
}

pub(super) fn os(bytes: &[u8]) -> OsString {
    OsString::from_vec(bytes.to_vec())
}

/// A single path that was printed with a line ending.
pub(super) fn path_line(bytes: &[u8]) -> Option<PathBuf> {
    let path = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    (!path.is_empty()).then(|| PathBuf::from(os(path)))
}

/// Reads `git status --porcelain=v2 -z --no-renames`.
fn uncommitted(bytes: &[u8]) -> Vec<Uncommitted> {
    let read = |record: &[u8]| {
        let (kind, fields) = match record.first()? {
            b'1' => (UncommittedKind::Changed, 8),
            b'u' => (UncommittedKind::Conflict, 10),
            b'?' => (UncommittedKind::Untracked, 1),
            _ => return None,
        };
        let path = record.splitn(fields + 1, |byte| *byte == b' ').nth(fields)?;
        Some(Uncommitted { path: os(path), kind })
    };
    records(bytes).filter_map(read).collect()
}

/// Reads `git worktree list --porcelain -z`.
fn worktrees(bytes: &[u8]) -> Vec<Worktree> {
    let mut list: Vec<Worktree> = Vec::new();
    for record in records(bytes) {
        if let Some(path) = record.strip_prefix(b"worktree ") {
            let (path, main) = (PathBuf::from(os(path)), list.is_empty());
            list.push(Worktree { path, branch: None, main, bare: false, gone: false });
        }
        let Some(last) = list.last_mut() else { continue };
        if let Some(branch) = record.strip_prefix(b"branch refs/heads/") {
            last.branch = Some(String::from_utf8_lossy(branch).into_owned());
        } else if record == b"bare" {
            last.bare = true;
        } else if record == b"prunable" || record.starts_with(b"prunable ") {
            last.gone = true;
        }
    }
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_is_read_whatever_the_names_are() {
        let text = b"# branch.oid (initial)\0\
            1 .M N... 100644 100644 100644 789 789 a name\nwith lines\0\
            1 D. N... 100644 000000 000000 789 000 -x\0\
            u UU N... 100644 100644 100644 100644 1 2 3 both sides\0\
            ? new file\0! ignored\0\x31 cut\0";
        let file = |path: &str, kind| Uncommitted { path: path.into(), kind };
        let expected = [
            file("a name\nwith lines", UncommittedKind::Changed),
            file("-x", UncommittedKind::Changed),
            file("both sides", UncommittedKind::Conflict),
            file("new file", UncommittedKind::Untracked),
        ];
        assert_eq!(uncommitted(text), expected);
    }

    #[test]
    fn work_trees_are_read() {
        let text = b"worktree /p\0HEAD 12\0branch refs/heads/main\0\0\
            worktree /p agentd/x\0HEAD 12\0branch refs/heads/agentd/x\0prunable gone\0\0\
            worktree /d\0HEAD 12\0detached\0\0";
        let tree = |path: &str, branch: Option<&str>, main, gone| Worktree {
            path: path.into(),
            branch: branch.map(str::to_owned),
            main,
            bare: false,
            gone,
        };
        let expected = [
            tree("/p", Some("main"), true, false),
            tree("/p agentd/x", Some("agentd/x"), false, true),
            tree("/d", None, false, false),
        ];
        assert_eq!(worktrees(text), expected);
    }
}
