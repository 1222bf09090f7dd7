//! Branches that get another name.

use super::{Git, GitError};

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

    /// The branch of this name in a remote repository, as far as git knows.
    pub(crate) fn remote_of(&self, branch: &str) -> Result<Option<String>, GitError> {
        let pattern = format!("refs/remotes/*/{branch}");
        let output =
            self.call("for-each-ref").args(["--format=%(refname:short)", "--", &pattern]).run()?;
        Ok(output.text().lines().next().map(str::to_owned))
    }
}
