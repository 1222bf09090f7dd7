//! Deleting the branch and the worktree of a change that is given up (W3).
//!
//! Only what agentd has created is deleted, by a note in the user's state directory, not by a file of
//! the repository. What would be lost is counted first, for a person to agree to it, and
//! counted again before it is deleted: what came since is left.

use std::path::{Path, PathBuf};

use agentd_core::ids::ChangeId;
use agentd_core::layout;
use agentd_core::state::{Placement, State};
use agentd_core::text::counted;

use super::WorkflowError;
use super::relocation;
use crate::change::documents::load_state_if_begun;
use crate::explain::Explain as _;
use crate::git::{Git, GitError, GitTool, branch_of, canonical};
use crate::store::{Change, Created, Holder, Project};

/// What would be deleted, and what would be lost with it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Deletion {
    branch: Option<Branch>,
    work_tree: Option<WorkTree>,
    /// Why something of the change stays.
    pub left: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Branch {
    name: String,
    /// Its last commit: with another one, it is not the branch that somebody agreed to delete.
    tip: String,
    /// How many of its commits are on no other branch, and in no tag.
    unmerged: usize,
    /// The branch to switch to, where it is checked out in the project.
    switch_to: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct WorkTree {
    path: PathBuf,
    uncommitted: usize,
}

/// What was deleted.
#[derive(Debug, Default)]
pub struct Deleted {
    /// The branch.
    pub branch: Option<String>,
    /// The worktree.
    pub work_tree: Option<PathBuf>,
    /// Why something stays, and what else was done.
    pub notes: Vec<String>,
}

impl Deletion {
    /// What would be deleted, for people.
    pub fn lines(&self) -> Vec<String> {
        let work_tree = self.work_tree.iter().map(|WorkTree { path, uncommitted }| {
            let lost = match uncommitted {
                0 => "nothing in it is uncommitted".to_owned(),
                count => format!("{} would be lost", counted(*count, "uncommitted file")),
            };
            format!("deletes the worktree {}: {lost}", path.display())
        });
        let branch = self.branch.iter().map(|Branch { name, unmerged, .. }| {
            let lost = match unmerged {
                0 => "its commits are on other branches".to_owned(),
                count => {
                    format!("{} on no other branch would be lost", counted(*count, "commit"))
                }
            };
            format!("deletes the branch `{name}`: {lost}")
        });
        work_tree.chain(branch).collect()
    }
}

/// Works out what can be deleted of a change. Nothing is changed.
pub fn plan(project: &Project, change: &Change) -> Result<Deletion, WorkflowError> {
    let Some(state) = load_state_if_begun(change)? else { return Ok(Deletion::default()) };
    let Some(setup) = state.git.as_ref() else { return Ok(Deletion::default()) };
    let created = project.created(change.id(), state.created_at);
    let Some(branch) = setup.branch.as_ref().filter(|name| **name == branch_of(change.id())) else {
        return Ok(Deletion::default());
    };
    let tool = GitTool::default();
    let Some(git) = Git::discover_with(&tool, project.root())? else {
        return Ok(Deletion::default());
    };
    let mut deletion = Deletion::default();
    if setup.workflow == Placement::Worktree {
        match work_tree(project, change.id(), &git, branch, created)? {
            Ok(found) => deletion.work_tree = found,
            Err(why) => deletion.left.push(why),
        }
    }
    match branch_of_change(&git, branch, created, &state, deletion.work_tree.as_ref())? {
        Ok(found) => deletion.branch = found,
        Err(why) => deletion.left.push(why),
    }
    Ok(deletion)
}

/// The worktree, if it is there, or why it stays.
fn work_tree(
    project: &Project,
    id: &ChangeId,
    git: &Git,
    branch: &str,
    created: Created,
) -> Result<Result<Option<WorkTree>, String>, WorkflowError> {
    let trees = git.worktrees()?;
    let on_branch = |tree: &&crate::git::Worktree| tree.branch.as_deref() == Some(branch);
    let Some(tree) = trees.iter().find(on_branch).filter(|tree| !tree.gone) else {
        return Ok(Ok(None));
    };
    let path = canonical(&tree.path)?;
    let shown = path.display();
    if tree.main || !created.work_tree {
        return Ok(Err(format!("the worktree {shown} stays: agentd did not create it")));
    }
    if !canonical(project.root())?.starts_with(&path) || project.began_in(id).is_none() {
        return Ok(Err(format!("the worktree {shown} stays: the change is not in it")));
    }
    let others = project.change_ids()?.ids.into_iter().filter(|other| other != id);
    let others = others.map(|other| layout::change_dir(&other));
    let archived = project.archived()?.ids;
    let archived = archived.iter().map(layout::archived_change);
    for other in others.chain(archived) {
        if !git.is_tracked(&other)? || !git.is_committed(&other)? {
            return Ok(Err(format!("the worktree {shown} stays: {other} is not committed")));
        }
    }
    let uncommitted = uncommitted(&path)?;
    Ok(Ok(Some(WorkTree { path, uncommitted })))
}

fn uncommitted(top: &Path) -> Result<usize, GitError> {
    match Git::discover_with(&GitTool::default(), top)? {
        Some(git) => Ok(git.dirty()?.count()),
        None => Ok(0),
    }
}

/// The branch, if it is there, or why it stays.
fn branch_of_change(
    git: &Git,
    name: &str,
    created: Created,
    state: &State,
    work_tree: Option<&WorkTree>,
) -> Result<Result<Option<Branch>, String>, WorkflowError> {
    let Some(tip) = git.branch_commit(name)? else { return Ok(Ok(None)) };
    if !created.branch {
        return Ok(Err(format!("the branch `{name}` stays: agentd did not create it")));
    }
    let mut switch_to = None;
    for tree in git.worktrees()?.iter().filter(|tree| tree.branch.as_deref() == Some(name)) {
        if work_tree
            .is_some_and(|deleted| canonical(&tree.path).ok().as_ref() == Some(&deleted.path))
        {
            continue;
        }
        let is_here = state.git.as_ref().is_some_and(|git| git.workflow == Placement::Branch)
            && git.head()?.branch() == Some(name);
        switch_to = git.previous_branch()?.filter(|previous| is_here && previous != name);
        if switch_to.is_none() {
            let path = tree.path.display();
            return Ok(Err(format!("the branch `{name}` stays: it is checked out in {path}")));
        }
    }
    let unmerged = git.commits_only_on(name)?;
    Ok(Ok(Some(Branch { name: name.to_owned(), tip, unmerged, switch_to })))
}

/// Brings a change whose worktree is to be deleted back to the checkout where it began, which is
/// returned; otherwise the project that it is in.
pub fn bring_home(
    project: &Project,
    id: &ChangeId,
    deletion: &Deletion,
    holder: &Holder,
) -> Result<Project, WorkflowError> {
    match project.began_in(id).filter(|_| deletion.work_tree.is_some()) {
        Some(origin) => {
            relocation::bring_back(project, &origin, id, &GitTool::default(), holder)?;
            Ok(origin)
        }
        None => Ok(project.clone()),
    }
}

/// Deletes what was agreed to. The change is put away by now; whatever git refuses stays.
pub fn delete(
    project: &Project,
    deletion: &Deletion,
    holder: &Holder,
) -> Result<Deleted, WorkflowError> {
    let mut deleted = Deleted { notes: deletion.left.clone(), ..Deleted::default() };
    let Some(git) = Git::discover_with(&GitTool::default(), project.root())? else {
        return Ok(deleted);
    };
    if let Some(WorkTree { path, uncommitted: agreed }) = &deletion.work_tree {
        let refused = if uncommitted(path)? > *agreed {
            Some("there are more uncommitted files by now".to_owned())
        } else {
            git.remove_worktree(path).err().map(|error| said(&error))
        };
        match refused {
            Some(why) => {
                deleted.notes.push(format!("the worktree {} stays: {why}", path.display()));
            }
            None => deleted.work_tree = Some(path.clone()),
        }
    }
    if let Some(branch) = &deletion.branch {
        match delete_branch(project, &git, branch, holder) {
            Ok(note) => {
                deleted.notes.extend(note);
                deleted.branch = Some(branch.name.clone());
            }
            Err(why) => deleted.notes.push(format!("the branch `{}` stays: {why}", branch.name)),
        }
    }
    Ok(deleted)
}

fn delete_branch(
    project: &Project,
    git: &Git,
    branch: &Branch,
    holder: &Holder,
) -> Result<Option<String>, String> {
    let tip = git.branch_commit(&branch.name).map_err(|error| said(&error))?;
    if tip.as_ref() != Some(&branch.tip) {
        return Err("it has other commits by now".to_owned());
    }
    let mut note = None;
    if let Some(other) = &branch.switch_to {
        let switched = project.alone_in(git.top(), holder, || git.switch_to(other));
        switched.map_err(|error| error.to_string())?.map_err(|error| said(&error))?;
        note = Some(format!("Switched to `{other}`."));
    }
    git.delete_branch(&branch.name).map_err(|error| said(&error))?;
    Ok(note)
}

fn said(error: &GitError) -> String {
    error.explain().cause.unwrap_or_else(|| error.to_string())
}
