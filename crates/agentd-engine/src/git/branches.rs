//! Branches that get another name, and branches and worktrees that are deleted.

use std::path::Path;

use agentd_core::ids::ChangeId;
use agentd_core::layout::{self, ChangeFile};
use agentd_core::rel_path::RelPath;

use super::{Git, GitError, branch_of};

/// The most that is read of a text in a commit.
const MOST_TEXT: usize = 16 << 20;

impl Git {
    /// Whether there is a branch to be renamed; an error where the new name is not free.
    pub(crate) fn can_rename_branch(&self, from: &str, to: &str) -> Result<bool, GitError> {
        if self.branch_commit(from)?.is_none() {
            return Ok(false);
        }
        if self.branch_commit(to)?.is_some() {
            return Err(GitError::NameTaken { branch: to.to_owned(), blocking: to.to_owned() });
        }
        super::set_up::name_is_free(self, to)?;
        Ok(true)
    }

    /// Renames a branch, in every checkout that is on it, unless that was done before.
    pub(crate) fn rename_branch(&self, from: &str, to: &str) -> Result<(), GitError> {
        if self.branch_commit(from)?.is_none() && self.branch_commit(to)?.is_some() {
            return Ok(());
        }
        self.call("branch").long().args(["-m", from, to]).run().map(drop)
    }

    /// The branch that was checked out before, if it is still there.
    pub(crate) fn previous_branch(&self) -> Result<Option<String>, GitError> {
        let args = ["--quiet", "--verify", "--symbolic-full-name", "@{-1}"];
        let output = self.call("rev-parse").args(args).ask()?;
        Ok(output.text().trim_end().strip_prefix("refs/heads/").map(str::to_owned))
    }

    /// How many commits of a branch are on no other branch, here or in a remote repository, and in no
    /// tag.
    pub(crate) fn commits_only_on(&self, branch: &str) -> Result<usize, GitError> {
        let (its, others) = (format!("refs/heads/{branch}"), format!("--exclude={branch}"));
        let args = ["--count", &its, "--not", &others, "--branches", "--remotes", "--tags", "--"];
        Ok(self.call("rev-list").patient().args(args).run()?.text().trim().parse().unwrap_or(0))
    }

    /// Switches to a branch. Git refuses if a file that is not committed would be overwritten.
    pub(crate) fn switch_to(&self, branch: &str) -> Result<(), GitError> {
        let call = self.call("switch").long().args(["--quiet", "--no-guess", branch]);
        let output = call.ask()?;
        // Git also fails if it has switched and a hook failed afterwards.
        if output.code == 0 || self.head()?.branch() == Some(branch) {
            return Ok(());
        }
        Err(GitError::SwitchRefused { branch: branch.to_owned(), output: output.combined() })
    }

    /// Deletes a branch, merged or not. Git refuses if it is checked out.
    pub(crate) fn delete_branch(&self, branch: &str) -> Result<(), GitError> {
        self.call("branch").long().args(["--quiet", "-D", "--", branch]).run().map(drop)
    }

    /// Deletes a worktree with everything in it. Git refuses if it is locked.
    pub(crate) fn remove_worktree(&self, path: &Path) -> Result<(), GitError> {
        self.call("worktree").long().args(["remove", "--force", "--"]).args([path]).run().map(drop)
    }

    /// Whether the branch of a change has its documents, while another one is checked out.
    pub fn is_on_its_branch(&self, change: &ChangeId) -> bool {
        let dir = layout::change_dir(change);
        self.has(&format!("refs/heads/{}", branch_of(change)), &dir)
    }

    /// The branch of a change in a remote repository, as far as git knows, if the change was begun
    /// there and has no branch here.
    pub fn on_remote_branch(&self, change: &ChangeId) -> Result<Option<String>, GitError> {
        let branch = branch_of(change);
        if self.branch_commit(&branch)?.is_some() {
            return Ok(None);
        }
        let state = ChangeFile::State.path_in_project(change);
        let remote = self.remote_of(&branch)?;
        Ok(remote.filter(|remote| self.has(&format!("refs/remotes/{remote}"), &state)))
    }

    /// Whether a commit has something at this path of the project.
    pub(super) fn has(&self, commit: &str, path: &RelPath) -> bool {
        let name = format!("{commit}:{}", self.prefix.join(path.as_path()).display());
        let found = self.call("rev-parse").args(["--quiet", "--verify", &name]).ask();
        found.is_ok_and(|output| output.code == 0)
    }

    /// The text of a file of the project in a commit.
    pub(crate) fn text_in(&self, commit: &str, path: &RelPath) -> Result<String, GitError> {
        let name = format!("{commit}:{}", self.prefix.join(path.as_path()).display());
        Ok(self.call("cat-file").args(["blob", &name]).at_most(MOST_TEXT).run()?.text())
    }

    /// Creates the branch of a change where its branch in a remote repository is.
    pub(crate) fn track(&self, change: &ChangeId, remote: &str) -> Result<(), GitError> {
        let branch = branch_of(change);
        super::set_up::name_is_free(self, &branch)?;
        let call = self.call("branch").long().args(["--quiet", "--track", &branch]);
        call.args([format!("refs/remotes/{remote}")]).run().map(drop)
    }

    /// Makes `git pull` and `git push` on a new branch mean the branch of the same name in the
    /// remote repository, if there is one.
    pub(super) fn set_upstream(&self, branch: &str) -> Result<(), GitError> {
        let Some(remote) = self.main_remote()? else { return Ok(()) };
        for (key, value) in [("remote", &*remote), ("merge", &*format!("refs/heads/{branch}"))] {
            let key = format!("branch.{branch}.{key}");
            self.call("config").writing().args(["--local", &key, value]).run()?;
        }
        Ok(())
    }

    /// The remote repository that is meant where none is named.
    pub(crate) fn main_remote(&self) -> Result<Option<String>, GitError> {
        let remotes = self.call("remote").run()?.text();
        let remotes: Vec<&str> = remotes.lines().filter(|name| !name.starts_with('-')).collect();
        Ok(match remotes[..] {
            [only] => Some(only.to_owned()),
            _ => remotes.contains(&"origin").then(|| "origin".to_owned()),
        })
    }

    /// The branch that the repository is about, and its commit: the one that a clone checks out, or
    /// one with a usual name.
    pub(crate) fn default_branch(&self) -> Result<Option<(String, String)>, GitError> {
        let args = ["--quiet", "refs/remotes/origin/HEAD"];
        let head = self.call("symbolic-ref").args(args).ask()?;
        let of_remote =
            head.text().trim_end().strip_prefix("refs/remotes/origin/").map(str::to_owned);
        for name in of_remote.iter().map(String::as_str).chain(["main", "master"]) {
            if let Some(found) = self.branch_or_remote(name)? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// The branch of this name, here or in a remote repository, and its commit.
    pub(crate) fn branch_or_remote(
        &self,
        name: &str,
    ) -> Result<Option<(String, String)>, GitError> {
        if let Some(commit) = self.branch_commit(name)? {
            return Ok(Some((name.to_owned(), commit)));
        }
        for remote in [name.to_owned(), format!("origin/{name}")] {
            if let Some(commit) = self.commit_of(&format!("refs/remotes/{remote}"))? {
                return Ok(Some((remote, commit)));
            }
        }
        Ok(None)
    }

    /// The branch of this name in a remote repository, as far as git knows.
    pub(crate) fn remote_of(&self, branch: &str) -> Result<Option<String>, GitError> {
        let pattern = format!("refs/remotes/*/{branch}");
        let output =
            self.call("for-each-ref").args(["--format=%(refname:short)", "--", &pattern]).run()?;
        Ok(output.text().lines().next().map(str::to_owned))
    }
}
