//! Continuing a change that another clone began, and that the remote repository has: otherwise the same
//! command in a fresh clone would plan it once more, and pay for it once more.

use std::path::PathBuf;

use agentd_core::layout::ChangeFile;
use agentd_core::state::{self, Placement};

use super::Request;
use super::placement::enter_checkout;
use crate::git::{self, Git, GitError, SetupResult};
use crate::workflow::relocation::settle;
use crate::workflow::{Workflow, WorkflowError};

/// Where a change is that was taken from the remote repository.
pub(super) enum Adopted {
    /// In this checkout, on its branch.
    Here,
    /// In its worktree, the project at this path.
    Moved(PathBuf),
}

/// Takes up a change that is not here, if its branch in a remote repository has it. What the documents
/// claim is checked later, as after any `git switch`.
pub(super) fn adopt(
    workflow: &mut Workflow<'_>,
    git: &Git,
    request: &Request<'_>,
) -> Result<Option<Adopted>, WorkflowError> {
    let (agents, id) = (workflow.agents, workflow.change.clone());
    let Some(remote) = git.on_remote_branch(&id)? else { return Ok(None) };
    let file = ChangeFile::State.path_in_project(&id);
    let text = git.text_in(&format!("refs/remotes/{remote}"), &file)?;
    let known = state::parse(&text, &id).ok().and_then(|state| state.git);
    let asked = request.placement.or(agents.config.git.workflow);
    let placement = match asked.or(known.map(|known| known.workflow)) {
        Some(Placement::Worktree) => Placement::Worktree,
        Some(Placement::InPlace) if request.placement.is_some() => {
            return Err(GitError::OnItsBranch { branch: git::branch_of(&id), change: id }.into());
        }
        // Its documents are on a branch.
        Some(Placement::Branch | Placement::InPlace) | None => Placement::Branch,
    };
    git.track(&id, &remote)?;
    workflow.note(&format!("`{id}` was begun elsewhere: continuing with `{remote}`"));
    let (tool, root) = (agents.git_tool_outside(), agents.project.root());
    let base = agents.config.git.base.as_deref();
    let begin = || git::begin(&tool, root, &id, Some(placement), None, base);
    enter_checkout(agents, workflow.lock)?;
    let begun = match placement {
        Placement::Branch => workflow.lock.alone(&agents.project, begin)?,
        Placement::Worktree | Placement::InPlace => begin(),
    };
    let SetupResult::Ready(setup) = begun? else { return Ok(None) };
    if setup.work_tree == git::canonical(root)? {
        return Ok(Some(Adopted::Here));
    }
    for note in settle(&agents.project, &id, &setup.work_tree)? {
        workflow.note(&note);
    }
    Ok(Some(Adopted::Moved(setup.work_tree)))
}
