//! Where a change is worked on, in git.

use std::path::PathBuf;

use agentd_core::ids::ChangeId;
use agentd_core::phase::Phase;
use agentd_core::state::{Placement, State};
use agentd_core::text::counted;

use super::Person;
use crate::agents::step::Agents;
use crate::change::comments;
use crate::change::documents::DocumentError;
use crate::git::{self, Git, GitError, GitTool, SetupResult};
use crate::store::{RunLock, StoreError};
use crate::workflow::relocation::relocate;
use crate::workflow::{Workflow, WorkflowError};

/// What a person is asked about git (P6).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacementQuestion {
    /// The question.
    pub text: String,
    /// What to know before one answers; may be empty.
    pub remark: String,
    /// What can be answered, the recommended way first.
    pub offers: Vec<PlacementOffer>,
}

/// A way to work on a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacementOffer {
    /// The answer.
    pub placement: Placement,
    /// What it says to a person.
    pub label: String,
    /// What it means.
    pub meaning: &'static str,
}

/// Words a [`Question::Placement`](super::Question::Placement).
pub fn placement_question(git: &Git, change: &ChangeId) -> Result<PlacementQuestion, GitError> {
    let branch = git::branch_of(change);
    let here = git.head()?;
    let here = here.branch().unwrap_or("no branch");
    let remark = match git.dirty()?.count() {
        0 => String::new(),
        files => format!("{} will move to the branch", counted(files, "uncommitted file")),
    };
    let offer = |placement, label, meaning| PlacementOffer { placement, label, meaning };
    let mut offers = vec![offer(
        Placement::Branch,
        format!("On the branch {branch} (recommended)"),
        "This checkout switches to it. Merge it when the change is archived.",
    )];
    // A submodule gets none.
    if git.superproject()?.is_none() {
        offers.push(offer(
            Placement::Worktree,
            "In a worktree of its own beside the project, on that branch".to_owned(),
            "This checkout stays as it is, so that you can go on working here.",
        ));
    }
    offers.push(offer(
        Placement::InPlace,
        format!("In place, on {here}"),
        "No branch is made: the code is written where you are.",
    ));
    let text = format!("Where should `{change}` be worked on?");
    Ok(PlacementQuestion { text, remark, offers })
}

/// The repository in which a person can choose where a change is worked on; none where that is
/// chosen, or where there is no choice.
pub(crate) fn unplaced(agents: &Agents, state: &State) -> Result<Option<Git>, WorkflowError> {
    let comes = matches!(state.phase, Phase::Proposed | Phase::Challenged);
    if !comes || state.git.is_some() || agents.config.git.workflow.is_some() {
        return Ok(None);
    }
    let (tool, root) = (agents.git_tool_outside(), agents.project.root());
    match git::begin(&tool, root, &state.change_id, None, None, None)? {
        SetupResult::Ask(repository) => Ok(Some(repository)),
        SetupResult::Ready(_) => Ok(None),
    }
}

/// Sets a change up where a person has chosen to work on it, outside of a plan. Returns the project
/// that it has moved to, if it has.
pub(crate) fn place(
    workflow: &mut Workflow<'_>,
    placement: Placement,
) -> Result<Option<PathBuf>, WorkflowError> {
    let state = workflow.state()?;
    if unplaced(workflow.agents, &state)?.is_none() {
        let change = workflow.change.clone();
        return Err(DocumentError::NotAskedAnyMore { change }.into());
    }
    match set_up_git(workflow, &state, Some(placement), Recheck::No, Person::Present)? {
        GitReady::Moved(root) => Ok(Some(root)),
        GitReady::Here | GitReady::Before | GitReady::Ask(_) => Ok(None),
    }
}

/// Whether a change that is set up in git is set up once more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Recheck {
    /// Before code is written: the right branch must be checked out.
    Yes,
    /// Before a plan is written: somebody who works elsewhere may have reasons.
    No,
}

/// How far git is.
pub(super) enum GitReady {
    /// The code is worked on in the project.
    Here,
    /// The change has moved into its worktree, the project at this path.
    Moved(PathBuf),
    /// It was set up before, and was not checked again.
    Before,
    /// A person has to choose.
    Ask(Git),
}

/// Keeps others from switching the branch of the checkout that a change is worked on in, for as long
/// as its run lasts.
pub fn enter_checkout(agents: &Agents, lock: &RunLock) -> Result<(), WorkflowError> {
    if lock.has_entered() {
        return Ok(());
    }
    let root = agents.project.root();
    let git = Git::discover_with(&agents.git_tool_outside(), root).ok().flatten();
    let top = git.map_or_else(|| root.to_owned(), |git| git.top().to_owned());
    Ok(lock.enter(&agents.project, &top, &agents.holder)?)
}

fn register_merge_driver(workflow: &mut Workflow<'_>, tool: &GitTool) {
    if let Some(warning) = git::register_merge_driver(tool, workflow.agents.project.root()) {
        workflow.warn(&warning);
    }
}

/// Sets the change up in git.
pub(super) fn set_up_git(
    workflow: &mut Workflow<'_>,
    state: &State,
    asked: Option<Placement>,
    recheck: Recheck,
    person: Person,
) -> Result<GitReady, WorkflowError> {
    let (agents, id) = (workflow.agents, workflow.change.clone());
    let (tool, root) = (agents.git_tool_outside(), agents.project.root());
    if state.git.is_some() && asked.is_none() && recheck == Recheck::No {
        // It may have been set up in another clone.
        register_merge_driver(workflow, &tool);
        return Ok(GitReady::Before);
    }
    let known = state.git.as_ref();
    // What was chosen for this change outweighs what is chosen for most.
    let configured = || agents.config.git.workflow;
    let asked = asked.or(known.map(|known| known.workflow)).or_else(configured);
    let base = agents.config.git.base.as_deref();
    let switches = asked == Some(Placement::Branch)
        && git::change_of_branch(&tool, root).as_ref() != Some(&id);
    let begin = || git::begin(&tool, root, &id, asked, known, base);
    enter_checkout(agents, workflow.lock)?;
    let begun = if switches { workflow.lock.alone(&agents.project, begin)? } else { begin() };
    let setup = match begun? {
        SetupResult::Ready(setup) => setup,
        SetupResult::Ask(repository) if person == Person::Present => {
            return Ok(GitReady::Ask(repository));
        }
        SetupResult::Ask(repository) => {
            workflow.note("working in place; use --git branch or --git worktree to isolate it");
            git::set_up(&repository, &id, Placement::InPlace, known, base)?
        }
    };
    for note in &setup.notes {
        workflow.note(note);
    }
    register_merge_driver(workflow, &tool);
    match agents.project.note_created(&id, state.created_at, setup.created) {
        // Then nothing is known to be deletable.
        Err(StoreError::NoUserDir | StoreError::StateInProject { .. }) => {}
        noted => noted?,
    }
    if setup.work_tree != git::canonical(root)? {
        let notes = relocate(&agents.project, &id, &setup.work_tree, &tool, &agents.holder)?;
        for note in &notes {
            workflow.note(note);
        }
        return Ok(GitReady::Moved(setup.work_tree));
    }
    let recorded = setup.to_state(root);
    workflow.update(|state| {
        state.git = Some(recorded);
        Ok(())
    })?;
    Ok(GitReady::Here)
}

/// Where the code of a change is worked on.
#[derive(Debug)]
pub enum CodeAt {
    /// Nowhere: the change is in a phase in which no code is written.
    Nowhere,
    /// In the project, with the right branch checked out.
    Here,
    /// In its worktree, the project at this path, into which the change has moved. Go on there.
    Moved(PathBuf),
    /// A person has to choose first; the answer is a [`Placement`].
    Ask(Git),
}

/// What is to be done with the code of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CodeStep {
    /// It is written.
    Implement,
    /// What was written is reviewed.
    Review,
    /// What was written is fixed. Approved code is taken up again if people have commented on it.
    Fix,
}

/// Gets the directory ready in which the code of a change is worked on. For a step that will be
/// refused nothing is set up, and so nothing recorded.
pub fn place_code(
    workflow: &mut Workflow<'_>,
    step: CodeStep,
    placement: Option<Placement>,
    person: Person,
) -> Result<CodeAt, WorkflowError> {
    let state = workflow.state()?;
    let begins = match step {
        CodeStep::Implement => state.phase == Phase::Challenged,
        CodeStep::Review => false,
        CodeStep::Fix => {
            state.phase == Phase::Complete
                && !comments::open_on_code(&workflow.change()?)?.is_empty()
        }
    };
    if !begins && state.phase != Phase::Implementing {
        return Ok(CodeAt::Nowhere);
    }
    Ok(match set_up_git(workflow, &state, placement, Recheck::Yes, person)? {
        GitReady::Here => {
            workflow.lock.hold_code()?;
            CodeAt::Here
        }
        GitReady::Moved(root) => CodeAt::Moved(root),
        GitReady::Ask(repository) => CodeAt::Ask(repository),
        GitReady::Before => CodeAt::Nowhere,
    })
}
