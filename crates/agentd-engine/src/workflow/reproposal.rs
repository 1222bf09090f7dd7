//! Fixing a plan after a review: the planner goes on in the session in which it wrote
//! the proposal, with the issues in its prompt (RP).

use agentd_core::agent::Role;
use agentd_core::document::review_block::{PlanVerdict, ReviewBlock};
use agentd_core::next_step::Command;
use agentd_core::phase::Phase;
use agentd_core::provider::sessions::SessionError;
use agentd_core::step_name::StepName;
use agentd_core::text::counted;

use super::generate::write_context;
use super::{Action, Call, Report, Workflow, WorkflowError, prompts};
use crate::agents::context::ContextKind;
use crate::agents::step::Artifact;

/// Has the planner fix what the latest review found.
pub fn repropose(workflow: &mut Workflow<'_>) -> Result<Report, WorkflowError> {
    workflow.check_record()?;
    workflow.history()?;
    let state = workflow.state()?;
    if state.phase != Phase::Proposed {
        return Err(state.refuse("be revised", None).into());
    }
    let before = workflow.documents()?;
    let review =
        before.reviews().last().filter(|review| asks_for_revision(review)).ok_or_else(|| {
            WorkflowError::NoReview { change: workflow.change.clone(), review: Command::Challenge }
        })?;
    let session = state.session_id.ok_or(SessionError::NotCaptured)?;
    write_context(workflow, ContextKind::Planner)?;
    let prompt = prompts::reproposal(workflow, review)?;
    // A reproposal that was cut short may have done all of it, or a person has: then there
    // may be nothing left to change.
    let is_as_reviewed = review.plan.as_ref() == Some(&before.digest());
    let artifact = if is_as_reviewed { Artifact::Plan } else { Artifact::Nothing };
    let report = workflow.run(
        Call {
            step: StepName::Reproposal,
            role: Role::Planner,
            label: format!("Reproposal {}", state.iteration + 1),
            prompt,
            resume: Some(session),
            artifact,
        },
        |report| {
            let changed = report.after.documents.changed_since(&before).len();
            let issues = counted(review.issues.len(), "issue");
            format!("{issues}, {} changed", counted(changed, "file"))
        },
    )?;
    for file in report.after.documents.changed_since(&before) {
        workflow.note(&format!("fixed: {}", file.path()));
    }
    workflow.note("Proposal updated based on challenge feedback");
    workflow.report(Action::Reproposed)
}

fn asks_for_revision(review: &ReviewBlock) -> bool {
    match review.verdict {
        PlanVerdict::NeedsRevision | PlanVerdict::Rejected => true,
        // Minor issues of an approved plan can still be fixed until it is implemented.
        PlanVerdict::Approved => !review.issues.is_empty(),
    }
}
