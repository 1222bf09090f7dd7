//! Where the branch of a new change starts.

use agentd_core::layout;

use super::Git;
use super::error::GitError;
use super::status::Head;

/// Where a new branch starts.
pub(super) struct Start {
    pub(super) commit: String,
    /// The branch that it is the tip of.
    pub(super) branch: Option<String>,
    /// The base branch from which it does not start, because agentd is not set up there.
    pub(super) not_set_up: Option<String>,
}

impl Start {
    pub(super) fn note(&self, branch: &str, head: &Head) -> String {
        let short = self.commit.get(..10).unwrap_or(&self.commit);
        if let (Some(base), Some(here)) = (&self.not_set_up, &self.branch) {
            return format!(
                "`{branch}` starts from `{here}`, which is checked out: `{base}` has no {}.",
                layout::config()
            );
        }
        match (&self.branch, head.branch()) {
            (Some(base), Some(here)) if base != here => {
                format!("`{branch}` starts from `{base}`, not from `{here}`, which is checked out.")
            }
            (Some(base), _) => format!("`{branch}` starts from `{base}`."),
            (None, _) => format!("HEAD was on no branch: `{branch}` starts from {short}."),
        }
    }
}

/// Where a new branch starts: from the base that was set; otherwise from the branch that the
/// repository is about, so that the commits of another change do not come along. A commit without a
/// branch was checked out for a reason, and so was a branch with settings that the base lacks:
/// without them, budgets, policies and tests of the project would not apply.
pub(super) fn start(
    git: &Git,
    head: &Head,
    tip: String,
    base: Option<&str>,
) -> Result<Start, GitError> {
    let (here, settings) = (head.branch().map(str::to_owned), &layout::config());
    let from = |commit, branch| Start { commit, branch, not_set_up: None };
    let found = match base {
        Some("HEAD") => None,
        Some(name) => match git.branch_or_remote(name)? {
            Some((name, commit)) => return Ok(from(commit, Some(name))),
            None => return Err(GitError::NoBaseBranch { base: name.to_owned() }),
        },
        None if here.is_none() => None,
        None => git.default_branch()?,
    };
    Ok(match found {
        Some((base, commit)) if git.has(&tip, settings) && !git.has(&commit, settings) => {
            Start { commit: tip, branch: here, not_set_up: Some(base) }
        }
        Some((name, commit)) => from(commit, Some(name)),
        None => from(tip, here),
    })
}

/// The base branch, if a commit is on it.
pub(super) fn branch_with(
    git: &Git,
    commit: &str,
    base: Option<&str>,
) -> Result<Option<String>, GitError> {
    let found = match base {
        Some(name) => git.branch_or_remote(name)?,
        None => git.default_branch()?,
    };
    let Some((name, tip)) = found else { return Ok(None) };
    let is_on = git.call("merge-base").args(["--is-ancestor", commit, &tip]).ask()?.code == 0;
    Ok(is_on.then_some(name))
}
