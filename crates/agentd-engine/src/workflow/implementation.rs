//! `impl`: from an approved plan to approved code.

use agentd_core::document::review::CodeVerdict;
use agentd_core::document::tasks::Status;
use agentd_core::phase::Phase;
use agentd_core::step_name::StepName;

use super::code_review::latest;
use super::implement::{Wanted, implement, read_tasks, start};
use super::{Action, Report, Workflow, WorkflowError, fix, review};

/// Implements, reviews and fixes until the code is approved, a person has to look, or the
/// rounds are used up.
pub fn implementation(
    workflow: &mut Workflow<'_>,
    wanted: &Wanted,
) -> Result<Report, WorkflowError> {
    workflow.history()?;
    start(workflow)?;
    let open = read_tasks(workflow)?.iter().any(|task| task.status == Status::Pending);
    if open {
        let report = implement(workflow, wanted)?;
        // A part of the tasks is a part of the work: it is reviewed when all of it is there.
        if read_tasks(workflow)?.iter().any(|task| task.status == Status::Pending) {
            return Ok(report);
        }
    }
    let limit = workflow.agents.config.workflow.implementation_iterations;
    loop {
        match next(workflow, limit)? {
            Next::Review => {
                let report = review(workflow)?;
                if report.phase == Phase::Complete {
                    return Ok(report);
                }
            }
            Next::Fix => {
                fix(workflow)?;
            }
            Next::Stop => return workflow.report(Action::StillNeedsFix),
        }
    }
}

enum Next {
    Review,
    Fix,
    Stop,
}

/// What comes next, from the latest verdict and from what was done since.
fn next(workflow: &mut Workflow<'_>, limit: u32) -> Result<Next, WorkflowError> {
    let state = workflow.state()?;
    let known = state.code_review.as_ref();
    let standing = latest(workflow)?.filter(|review| {
        review.verdict.is_some() && known.is_some_and(|known| Some(known.at) == review.created_at)
    });
    let Some(standing) = standing else { return Ok(Next::Review) };
    let history = workflow.history()?;
    let (fix, review) = (StepName::Fix.to_string(), StepName::Review.to_string());
    if !history.succeeded_since(&fix, &review).is_empty() {
        return Ok(Next::Review);
    }
    match standing.verdict {
        Some(CodeVerdict::MajorIssues) => {
            workflow.warn("the review found major issues: a person has to look");
            Ok(Next::Stop)
        }
        Some(CodeVerdict::NeedsFix) if standing.iteration > limit => {
            workflow.warn(&format!("the code still needs fixing after {limit} rounds"));
            Ok(Next::Stop)
        }
        Some(CodeVerdict::NeedsFix) => Ok(Next::Fix),
        Some(CodeVerdict::Approved) | None => Ok(Next::Review),
    }
}
