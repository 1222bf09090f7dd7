//! Going on after somebody went back to planning: what the planner is still to be told, and which
//! finished tasks are open again (W1, W2).

use agentd_core::document::review_block::PlanVerdict;
use agentd_core::document::round;
use agentd_core::hash::Digest;
use agentd_core::layout::ChangeFile;
use agentd_core::revision::PlanChanges;
use agentd_core::state::State;
use agentd_core::step_name::StepName;
use agentd_core::text::Line;

use super::history::History;
use super::implement::take_back;
use super::{Workflow, WorkflowError};
use crate::change::Snapshot;

/// What the planner was asked for and has not done yet.
pub(super) fn asked<'s>(state: &'s State, history: &History) -> Option<&'s str> {
    let revision = state.revision.as_ref().filter(|revision| !revision.note.is_empty())?;
    let is_done = history.succeeded_after(&StepName::Reproposal, revision.after_run) > 0;
    (!is_done).then(|| revision.note.as_str())
}

/// Records that the planner has done what was asked. Runs alone do not say so to others: git ignores
/// them.
pub(super) fn answered(workflow: &mut Workflow<'_>) -> Result<(), WorkflowError> {
    let last = workflow.history()?.last_number(|step| *step == StepName::Reproposal);
    workflow.update(|state| {
        if let Some(revision) = &mut state.revision {
            revision.note = Line::default();
            revision.after_run = last;
        }
        Ok(())
    })
}

/// How many rounds of revision there were since a person last said what they want.
pub(super) fn rounds(state: &State, history: &History) -> u32 {
    let Some(revision) = &state.revision else { return state.iteration };
    let rounds = history.succeeded_after(&StepName::Reproposal, revision.after_run);
    let asked = usize::from(!revision.note.is_empty());
    u32::try_from(rounds.saturating_sub(asked)).unwrap_or(u32::MAX)
}

/// What has changed in the plan since code was written for it; nothing if that is not known.
pub(crate) fn changes(snapshot: &Snapshot, state: &State) -> Option<PlanChanges> {
    let revision = state.revision.as_ref()?;
    since(snapshot, revision.built?, revision.built_hash.as_ref())
}

/// What has changed in the plan since a challenger has judged it, where the verdict stands for the
/// rest: it was approved, or a person went back to planning after it.
pub(super) fn since_verdict(snapshot: &Snapshot, state: &State) -> Option<PlanChanges> {
    let review = state.plan_review.as_ref()?;
    if review.verdict != PlanVerdict::Approved && state.revision.is_none() {
        return None;
    }
    let block = snapshot.documents.reviews().iter().rfind(|block| review.is_of(block))?;
    since(snapshot, block.iteration, Some(review.round_hash.as_ref()?))
}

/// Compares the plan with the record of a round. A record that is not the one that agentd wrote
/// says nothing.
fn since(snapshot: &Snapshot, round: u32, hash: Option<&Digest>) -> Option<PlanChanges> {
    let text = snapshot.change().read_if_exists(&ChangeFile::Round(round)).ok().flatten()?;
    if hash.is_some_and(|hash| Digest::of(&text) != *hash) {
        return None;
    }
    Some(PlanChanges::between(&round::parse(&text)?, &snapshot.documents))
}

/// Takes back the ticks of tasks that were done for another plan: what they ask for has changed, or
/// a requirement behind them.
pub(super) fn reopen_tasks(workflow: &mut Workflow<'_>) -> Result<(), WorkflowError> {
    let snapshot = workflow.snapshot()?;
    let state = snapshot.state()?;
    let Some(built) = state.revision.as_ref().and_then(|revision| revision.built) else {
        return Ok(());
    };
    let Some(changes) = changes(&snapshot, state) else {
        workflow.warn(&format!(
            "the plan that the code was written for is not known ({} is not as agentd wrote it): \
             finished tasks stay finished",
            ChangeFile::Round(built).path()
        ));
        return Ok(());
    };
    let ticks = take_back(workflow, |task, _| changes.reopens(task))?;
    for (id, why) in ticks.taken_back {
        workflow.note(&format!("task {id} is open again: {why}"));
    }
    Ok(())
}
