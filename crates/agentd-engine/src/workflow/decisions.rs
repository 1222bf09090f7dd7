//! What people decide at the gates of a plan: one function for every front end.

use agentd_core::diagnostic::{Counts, Diagnostic};
use agentd_core::document::review_block::PlanVerdict;
use agentd_core::documents::Documents;
use agentd_core::ids::ChangeId;
use agentd_core::phase::{Phase, Refused, Transition};
use agentd_core::rules;
use agentd_core::stamp::Stamp;
use agentd_core::state::LastAction;
use agentd_core::state::{Choice, Decision, State};
use agentd_core::text::Line;

use super::{Mode, Report, Verdict};
use crate::change::documents::{DocumentError, update_state};
use crate::store::{Holder, Project};

/// After so many rounds a person is asked whether it is the right plan at all (C12).
const MANY_ROUNDS: u32 = 3;

/// The question with which a plan that needs revision waits for a person (P24).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlanQuestion {
    /// Whether the plan may be accepted with its minor issues (C11).
    pub acceptable: bool,
    /// The rounds so far, if they are so many that the plan itself is in doubt.
    pub many_rounds: Option<u32>,
}

/// The question that a plan waits with after a run of the workflow, if it does.
pub fn question(
    project: &Project,
    id: &ChangeId,
    report: &Report,
    mode: Mode,
) -> Result<Option<PlanQuestion>, DocumentError> {
    let revise = report.verdict == Some(Verdict::Plan(PlanVerdict::NeedsRevision));
    if mode != Mode::HumanInLoop || report.phase != Phase::Proposed || !revise {
        return Ok(None);
    }
    let snapshot = project.change(id)?.snapshot()?;
    let state = snapshot.state()?;
    Ok(Some(PlanQuestion {
        acceptable: accepted(state, &snapshot.documents).is_ok(),
        many_rounds: Some(report.iteration).filter(|rounds| *rounds >= MANY_ROUNDS),
    }))
}

/// Records a decision: who, when, why, and for which plan. Accepting a plan
/// with minor issues also moves its phase, where C11 allows it.
pub fn decide(
    project: &Project,
    id: &ChangeId,
    choice: Choice,
    note: &str,
    by: &str,
    holder: &Holder,
    now: Stamp,
) -> Result<State, DocumentError> {
    update_state(project, id, holder, now, |state| {
        let documents = project.change(id)?.snapshot()?.documents;
        let plan = documents.proposal.text().map(|_| documents.digest());
        match choice {
            Choice::Accept => *state = accepted(state, &documents)?,
            Choice::Fix if state.phase != Phase::Proposed => {
                let reason = "its plan is not waiting for a decision";
                return Err(state.refuse("be revised", Some(reason)).into());
            }
            Choice::Fix | Choice::Stop | Choice::Archive | Choice::AcceptStale => {}
        }
        let (note, by) = (Line::new(note), Line::new(by));
        state.decisions.push(Decision { choice, note, by, at: now, plan_hash: plan });
        state.last_action = Some(LastAction::Decide);
        Ok(state.clone())
    })
}

/// The state in which accepting this plan with its minor issues would leave it, or why
/// that cannot be. Writes nothing.
pub fn accepted(state: &State, documents: &Documents) -> Result<State, Refused> {
    let left = issues_left(state, documents);
    let plan = documents.digest();
    let accepted = Transition::MinorIssuesAccepted { plan, left: left.unwrap_or_default() };
    let next = state.apply(&accepted)?;
    if left.is_none() { Err(no_review(state)) } else { Ok(next) }
}

/// The issues of the latest review of this very plan. A review that is gone,
/// cannot be read or was edited says nothing of what is left.
fn issues_left(state: &State, documents: &Documents) -> Option<Counts> {
    let review = documents.counted_review(state)?;
    let edited =
        |d: &Diagnostic| d.rule == &rules::REVIEW_EDITED && d.span.start == review.place.0.start;
    (!documents.proposal.diagnostics().iter().any(edited)).then(|| review.counts())
}

fn no_review(state: &State) -> Refused {
    state.refuse(
        "be accepted with minor issues",
        Some("proposal.md holds no untouched review of this plan"),
    )
}
