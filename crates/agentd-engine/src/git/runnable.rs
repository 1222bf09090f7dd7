//! The files that git runs by itself: hooks, and settings that name programs.
//!
//! Only places that an implementer may write to are of interest, below its worktree and in
//! the directories of the repository: what git runs from elsewhere it cannot have changed.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use super::status::{os, path_line, records};
use super::{Git, GitError, GitTool};

/// The names under which git runs a file of a directory of hooks.
pub(crate) const HOOKS: [&str; 28] = [
    "applypatch-msg",
    "commit-msg",
    "fsmonitor-watchman",
    "p4-changelist",
    "p4-post-changelist",
    "p4-pre-submit",
    "p4-prepare-changelist",
    "post-applypatch",
    "post-checkout",
    "post-commit",
    "post-index-change",
    "post-merge",
    "post-receive",
    "post-rewrite",
    "post-update",
    "pre-applypatch",
    "pre-auto-gc",
    "pre-commit",
    "pre-merge-commit",
    "pre-push",
    "pre-rebase",
    "pre-receive",
    "prepare-commit-msg",
    "proc-receive",
    "push-to-checkout",
    "reference-transaction",
    "sendemail-validate",
    "update",
];

/// How many submodules, and how many other worktrees, are checked.
const MOST_NEIGHBORS: usize = 256;
/// How many slashes the name of a submodule may have.
const MODULE_DEPTH: usize = 4;

/// The paths; none need exist.
#[derive(Debug, Default)]
pub(crate) struct Runnable {
    /// An implementer may write below these.
    pub(crate) roots: Vec<PathBuf>,
    /// The directories of the repository: of this checkout, and of all of them.
    pub(crate) repositories: BTreeSet<PathBuf>,
    /// Single files.
    pub(crate) files: BTreeSet<PathBuf>,
    /// Directories of hooks that hold nothing else.
    pub(crate) hooks: BTreeSet<PathBuf>,
    /// Directories of the working tree in which git finds hooks by name, among other files.
    pub(crate) mixed_hooks: BTreeSet<PathBuf>,
}

impl Runnable {
    /// Asks git, which must not have been tampered with yet. If there is no repository, or no
    /// git, these are the files that would make one.
    pub(crate) fn of(tool: &GitTool, work_tree: &Path) -> Result<Self, GitError> {
        let work_tree = super::canonical(work_tree)?;
        let mut found = Self { roots: vec![work_tree.clone()], ..Self::default() };
        match Git::discover_with(tool, &work_tree) {
            Ok(Some(git)) => found.ask(&git)?,
            Ok(None) | Err(GitError::NotInstalled | GitError::NoWorkTree { .. }) => {
                found.doors(&work_tree, &work_tree);
            }
            Err(error) => return Err(error),
        }
        Ok(found)
    }

    fn ask(&mut self, git: &Git) -> Result<(), GitError> {
        self.doors(&git.root, &git.top);
        let [own, shared] = git.directories()?;
        for dir in [&own, &shared] {
            if self.repositories.insert(dir.clone()) {
                self.roots.push(dir.clone());
                self.repository(dir);
            }
        }
        self.neighbors(&shared.join("worktrees"), 1);
        self.neighbors(&shared.join("modules"), MODULE_DEPTH);
        let hooks = git.tool.call(&git.top, "rev-parse").args(["--git-path", "hooks"]).run()?;
        let hooks = plain(&git.top.join(path_line(&hooks.stdout).unwrap_or_default()));
        let in_repository = self.repositories.iter().any(|dir| hooks.starts_with(dir));
        match (self.is_inside(&hooks), in_repository) {
            (true, true) => self.hooks.insert(hooks),
            (true, false) => self.mixed_hooks.insert(hooks),
            (false, _) => false,
        };
        let output = git
            .tool
            .call(&git.top, "config")
            .args(["--list", "--show-origin", "-z", "--includes"])
            .run()?;
        for file in settings_files(&output.stdout, &git.top) {
            if self.is_inside(&file) {
                self.files.insert(file);
            }
        }
        Ok(())
    }

    /// The files by which git detects a repository, from the working tree up to its top: a new one
    /// further down would be used instead, even a bare one.
    fn doors(&mut self, work_tree: &Path, top: &Path) {
        for dir in work_tree.ancestors().take_while(|dir| dir.starts_with(top)) {
            self.files.insert(dir.join(".git"));
            if dir != top {
                self.files.insert(dir.join("HEAD"));
            }
        }
    }

    fn repository(&mut self, dir: &Path) {
        for file in ["config", "config.worktree", "commondir", "info/attributes"] {
            self.files.insert(dir.join(file));
        }
        self.hooks.insert(dir.join("hooks"));
    }

    /// Other checkouts and submodules: git enters the latter by itself.
    fn neighbors(&mut self, dir: &Path, depth: usize) {
        let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
        for entry in entries.take(MOST_NEIGHBORS) {
            if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                continue;
            }
            let path = entry.path();
            if path.join("HEAD").is_file() {
                self.repository(&path);
                self.neighbors(&path.join("modules"), depth.saturating_sub(1));
            } else if depth > 1 {
                // The name of a submodule may have slashes in it.
                self.neighbors(&path, depth - 1);
            }
        }
    }

    pub(crate) fn is_inside(&self, path: &Path) -> bool {
        self.roots.iter().any(|root| path.starts_with(root))
    }
}

/// The files that git reads settings from, and those that it would read if they existed:
/// reads `git config --list --show-origin -z`.
fn settings_files(bytes: &[u8], top: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut records = records(bytes);
    while let (Some(origin), Some(entry)) = (records.next(), records.next()) {
        let Some(origin) = origin.strip_prefix(b"file:") else { continue };
        let origin = plain(&top.join(os(origin)));
        let mut parts = entry.splitn(2, |byte| *byte == b'\n');
        let (key, value) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        let is_include =
            key == b"include.path" || (key.starts_with(b"includeif.") && key.ends_with(b".path"));
        if is_include {
            files.push(plain(&origin.parent().unwrap_or(top).join(os(value))));
        }
        files.push(origin);
    }
    files.dedup();
    files
}

/// A path without `.` and `..`, by its text alone.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                plain.pop();
            }
            Component::Normal(_) | Component::RootDir | Component::Prefix(_) => {
                plain.push(component);
            }
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_found_with_what_they_include() {
        let bytes = b"file:/home/u/.gitconfig\0user.name\nU\0file:.git/config\0core.bare\nfalse\0\
            file:.git/config\0include.path\n../.gitconfig\0\
            file:.git/config\0includeif.onbranch:x.path\nmore\0file:.git/../.gitconfig\0alias.x\n!y\0\
            command line:\0core.quotepath\noff\0";
        let found = settings_files(bytes, Path::new("/p"));
        insta::assert_debug_snapshot!(found, @r#"
        [
            "/home/u/.gitconfig",
            "/p/.git/config",
            "/p/.gitconfig",
            "/p/.git/config",
            "/p/.git/more",
            "/p/.git/config",
            "/p/.gitconfig",
        ]
        "#);
        assert_eq!(settings_files(b"file:x", Path::new("/p")), Vec::<PathBuf>::new());
    }
}
