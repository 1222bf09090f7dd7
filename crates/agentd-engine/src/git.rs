//! The repository that a project is in, by way of the `git` program: where a change is
//! worked on, what it has changed, and its commits.
//!
//! Git itself does the work, not a library: it refuses to overwrite what is not committed,
//! and it honors every setting and hook that the user has. No text of a repository or of
//! STATE.yaml becomes an option: revisions are checked to be hashes, and paths come after
//! `--` or by standard input.

mod branches;
mod caged;
mod changes;
mod commit;
mod compare;
mod convert;
mod create;
mod entries;
mod error;
mod merge_driver;
mod object_name;
mod person;
mod private;
pub(crate) mod runnable;
mod seen;
mod set_up;
mod shorten;
mod start;
mod status;
mod tool;
mod walk;

use std::path::{Path, PathBuf};

use agentd_core::layout;

pub use caged::GitSandbox;
pub use changes::{ChangedFile, Commit, Diff, FileChange, OmitReason, OmittedFile};
pub use commit::CommitScope;
pub use error::GitError;
pub use merge_driver::{MERGE_DRIVER, merge_driver, register_merge_driver};
pub use person::person;
pub(crate) use private::quoted;
pub(crate) use seen::Seen;
pub use set_up::{Setup, SetupResult, begin, branch_of, change_of_branch, set_up, work_tree};
pub use status::{Dirty, Head, Worktree};
pub(crate) use tool::Call as GitToolCall;
pub use tool::GitTool;

/// The repository of a project.
#[derive(Debug, Clone)]
pub struct Git {
    tool: GitTool,
    /// The directory of the project, as the system knows it.
    root: PathBuf,
    /// The top of the checkout.
    top: PathBuf,
    /// From `top` to `root`; empty where they are the same.
    prefix: PathBuf,
}

impl Git {
    /// The repository that a project is in, if any.
    pub fn discover(root: &Path) -> Result<Option<Self>, GitError> {
        Self::discover_with(&GitTool::default(), root)
    }

    /// The same, with a certain git.
    pub fn discover_with(tool: &GitTool, root: &Path) -> Result<Option<Self>, GitError> {
        let root = canonical(root)?;
        let questions = ["--is-inside-work-tree", "--show-toplevel"];
        let output = tool.call(&root, "rev-parse").args(questions).ask()?;
        // A link to a repository that is gone has another message, and is an error.
        if output.code != 0 && output.stderr.contains("not a git repository (or any") {
            return Ok(None);
        }
        if output.stdout.starts_with(b"false") {
            return Err(GitError::NoWorkTree { root });
        }
        if output.code != 0 {
            let what = "git rev-parse".to_owned();
            return Err(GitError::Failed { what, code: output.code, output: output.combined() });
        }
        let top = output.stdout.strip_prefix(b"true\n").and_then(status::path_line);
        let top = canonical(&top.ok_or_else(|| GitError::NoWorkTree { root: root.clone() })?)?;
        let prefix = root.strip_prefix(&top).unwrap_or(Path::new("")).to_owned();
        Ok(Some(Self { tool: tool.clone(), root, top, prefix }))
    }

    /// The directory of the project.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The top of the checkout that the project is in.
    pub fn top(&self) -> &Path {
        &self.top
    }

    /// From the top of the checkout to the project, unless it is the top.
    pub fn subdirectory(&self) -> Option<&Path> {
        (!self.prefix.as_os_str().is_empty()).then_some(&*self.prefix)
    }

    /// The repository that this one is a submodule of.
    pub fn superproject(&self) -> Result<Option<PathBuf>, GitError> {
        let output = self.call("rev-parse").args(["--show-superproject-working-tree"]).run()?;
        Ok(status::path_line(&output.stdout))
    }

    /// Where git keeps what it knows: of this checkout, and of all of them. Below the top of
    /// the checkout only in the simplest case.
    pub fn directories(&self) -> Result<[PathBuf; 2], GitError> {
        let ask = |question| -> Result<PathBuf, GitError> {
            let output = self.call("rev-parse").args([question]).run()?;
            canonical(&self.root.join(status::path_line(&output.stdout).unwrap_or_default()))
        };
        Ok([ask("--absolute-git-dir")?, ask("--git-common-dir")?])
    }

    /// A call of git in the project.
    fn call(&self, subcommand: &'static str) -> tool::Call<'_> {
        self.tool.call(&self.root, subcommand)
    }

    /// The pathspecs for everything in the project, except what belongs to agentd.
    fn everything(&self) -> [String; 3] {
        // Relative to the project, where git runs.
        let without = |dir| format!(":(exclude,literal){dir}");
        [".".to_owned(), without(layout::changes_dir()), without(layout::locks_dir())]
    }
}

/// Whether a text can be the hash of a commit; it then is neither an option nor a range.
pub(crate) fn is_hash(text: &str) -> bool {
    (7..=64).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_hexdigit())
}

pub(crate) fn canonical(path: &Path) -> Result<PathBuf, GitError> {
    std::fs::canonicalize(path).map_err(|source| GitError::Path { path: path.to_owned(), source })
}
