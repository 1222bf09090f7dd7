//! What agentd commits, where the project wants that (`[git] commit`): the work of each layer and fix,
//! and the documents of a change on its branch.
//!
//! Nothing that was uncommitted before an implementer was called goes into a commit: it is the
//! user's. What is the user's is noted before each call, and after it what is the agent's, so that a
//! run that is killed or fails leaves work that a later run commits, and an edit in between is not
//! taken for work of the agent.

use std::collections::BTreeSet;
use std::path::Path;

use agentd_core::config::GitCommit;
use agentd_core::ids::{ChangeId, SpecId};
use agentd_core::layout::{self, ArchiveName};
use agentd_core::state::Placement;
use agentd_core::text::printable;

use super::{Action, Workflow, WorkflowError};
use crate::agents::step::{Agents, StepError};
use crate::change::uncommitted::Uncommitted;
use crate::git::{self, CommitScope, Git};
use crate::store::Bytes;

/// How many files are named.
const SHOWN: usize = 3;

/// The repository of the working tree.
pub(super) fn repository(workflow: &Workflow<'_>) -> Result<Option<Git>, WorkflowError> {
    let tool = workflow.agents.git_tool().map_err(StepError::from)?;
    Ok(Git::discover_with(&tool, &workflow.agents.work_tree)?)
}

fn commits(workflow: &Workflow<'_>) -> bool {
    workflow.agents.config.git.commit != GitCommit::None
}

/// To be called before an implementer works: what is uncommitted now is the user's, except for what
/// an earlier call has left.
pub(super) fn before_call(workflow: &mut Workflow<'_>) -> Result<(), WorkflowError> {
    if !commits(workflow) {
        return Ok(());
    }
    let Some(git) = repository(workflow)? else { return Ok(()) };
    let users = users_files(workflow, &git)?;
    if workflow.users_files.is_none() && !users.is_empty() {
        workflow.warn(&format!(
            "uncommitted before, so not part of agentd's commits: {}",
            listed(&users)
        ));
    }
    workflow.users_files = Some(users.clone());
    keep(workflow, &Uncommitted { users, agents: None })
}

/// To be called after an implementer has worked, also if it failed.
pub(super) fn after_call(workflow: &mut Workflow<'_>) -> Result<(), WorkflowError> {
    let Some(users) = workflow.users_files.clone() else { return Ok(()) };
    let Some(git) = repository(workflow)? else { return Ok(()) };
    let agents = Some(git.uncommitted()?.difference(&users).cloned().collect());
    keep(workflow, &Uncommitted { users, agents })
}

/// The files that the user has changed and not committed.
fn users_files(workflow: &Workflow<'_>, git: &Git) -> Result<BTreeSet<Bytes>, WorkflowError> {
    let now = git.uncommitted()?;
    if let Some(known) = &workflow.users_files {
        return Ok(known.intersection(&now).cloned().collect());
    }
    let noted = Uncommitted::read(&workflow.agents.project, &workflow.change);
    let Some(note) = noted else { return Ok(now) };
    let is_users = |file: &&Bytes| {
        // What came while an agent was at work is the agent's.
        let of_agent = |agents: &BTreeSet<Bytes>| agents.contains(*file);
        note.users.contains(*file) || !note.agents.as_ref().is_none_or(of_agent)
    };
    Ok(now.iter().filter(is_users).cloned().collect())
}

fn keep(workflow: &Workflow<'_>, note: &Uncommitted) -> Result<(), WorkflowError> {
    Ok(note.keep(&workflow.agents.project, &workflow.change)?)
}

fn listed(files: &BTreeSet<Bytes>) -> String {
    let named = files.iter().take(SHOWN).map(|file| file.path().display().to_string());
    let named: Vec<String> = named.map(|name| printable(&name).into_owned()).collect();
    match files.len().checked_sub(SHOWN) {
        Some(more @ 1..) => format!("{} and {more} more", named.join(", ")),
        _ => named.join(", "),
    }
}

/// Commits what has changed in the working tree, where the project wants that.
pub(super) fn commit_work(workflow: &mut Workflow<'_>, message: &str) -> Result<(), WorkflowError> {
    if !commits(workflow) {
        return Ok(());
    }
    let Some(git) = repository(workflow)? else {
        workflow.warn("git.commit is set, but there is no git repository");
        return Ok(());
    };
    let users = users_files(workflow, &git)?;
    let in_place = workflow.state()?.git.is_none_or(|git| git.workflow == Placement::InPlace);
    let scope = if in_place {
        CommitScope::Everything
    } else {
        let runs = workflow.agents.config.git.commit_runs;
        CommitScope::WithDocuments { change: &workflow.change, runs }
    };
    let commit = git.commit_without(scope, &users, message);
    // It runs hooks.
    workflow.forget();
    report(workflow, commit?.as_deref(), message);
    workflow.users_files = Some(users);
    after_call(workflow)
}

/// Commits the documents of a change, if its branch is checked out. A commit that is refused is no
/// reason to lose what was paid for: it is done with the next one.
pub(super) fn commit_documents(
    workflow: &mut Workflow<'_>,
    message: &str,
) -> Result<(), WorkflowError> {
    if !commits(workflow) {
        return Ok(());
    }
    let tool = workflow.agents.git_tool_outside();
    if git::change_of_branch(&tool, &workflow.agents.work_tree).as_ref() != Some(&workflow.change) {
        return Ok(());
    }
    let Some(git) = repository(workflow)? else { return Ok(()) };
    let runs = workflow.agents.config.git.commit_runs;
    let scope = CommitScope::Documents { change: &workflow.change, runs };
    let commit = git.commit(scope, message);
    workflow.forget();
    match commit {
        Ok(commit) => report(workflow, commit.as_deref(), message),
        Err(error) => workflow.warn(&format!("the documents are not committed: {error}")),
    }
    Ok(())
}

fn report(workflow: &mut Workflow<'_>, commit: Option<&str>, message: &str) {
    if let Some(commit) = commit {
        let subject = message.lines().next().unwrap_or_default();
        let short = commit.get(..10).unwrap_or(commit);
        workflow.note(&format!("committed {short} {subject}"));
    }
}

/// Commits what archiving a change has done, if the project wants that and the branch of the change
/// is checked out.
pub fn commit_archived(
    agents: &Agents,
    archived: &ArchiveName,
    specs: &[SpecId],
) -> Result<Option<String>, WorkflowError> {
    let change = &archived.change;
    let on_its_branch = git::change_of_branch(&agents.git_tool_outside(), &agents.work_tree)
        .as_ref()
        == Some(change);
    if agents.config.git.commit == GitCommit::None || !on_its_branch {
        return Ok(None);
    }
    let tool = agents.git_tool().map_err(StepError::from)?;
    let Some(git) = Git::discover_with(&tool, &agents.work_tree)? else { return Ok(None) };
    let runs = agents.config.git.commit_runs;
    let scope = CommitScope::Archived { change: archived, runs, specs };
    Ok(git.commit(scope, &format!("{change}: archive"))?)
}

/// Commits everything that is not committed, whatever the project wants otherwise: it is the result of
/// a change that was carried, and leaves this machine as a branch.
pub fn commit_rest(agents: &Agents, change: &ChangeId) -> Result<(), WorkflowError> {
    let tool = agents.git_tool().map_err(StepError::from)?;
    let Some(git) = Git::discover_with(&tool, &agents.work_tree)? else { return Ok(()) };
    let (project, runs) = (&agents.project, agents.config.git.commit_runs);
    // What is archived is committed below, without what is of one machine.
    let prefix = git.subdirectory().unwrap_or(Path::new(""));
    let archive = prefix.join(layout::archive_dir().as_path());
    let mut left = git.uncommitted()?;
    left.retain(|file| file.path().starts_with(&archive));
    git.commit_without(CommitScope::Everything, &left, &format!("{change}: finish the work"))?;
    if project.change_if_open(change)?.is_some() {
        let scope = CommitScope::Documents { change, runs };
        git.commit(scope, &format!("{change}: record the result"))?;
        return Ok(());
    }
    let archived = project.archived()?.ids;
    if let Some(name) = archived.iter().rfind(|name| name.change == *change) {
        let specs = &project.spec_ids()?.ids;
        let scope = CommitScope::Archived { change: name, runs, specs };
        git.commit(scope, &format!("{change}: archive"))?;
    }
    Ok(())
}

/// What a commit of documents is about, after a workflow or a step.
pub(super) fn subject(action: Action) -> &'static str {
    match action {
        Action::Proposed => "write the plan",
        Action::Challenged | Action::WaitingForDecision | Action::Rejected => "review the plan",
        Action::Reproposed | Action::StillNeedsRevision => "revise the plan",
        Action::AcceptedMinor | Action::AlreadyChallenged | Action::BeyondPlanning => {
            "accept the plan"
        }
        Action::Implemented => "record the implementation",
        Action::Reviewed | Action::StillNeedsFix | Action::AlreadyComplete => "review the code",
        Action::Fixed => "record the fix",
    }
}
