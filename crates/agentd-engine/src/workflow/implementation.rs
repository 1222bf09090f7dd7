//! `impl`: from an approved plan to approved code.

use agentd_core::document::review::CodeVerdict;
use agentd_core::document::tasks::Status;
use agentd_core::phase::Phase;
use agentd_core::step_name::StepName;
use agentd_core::text::counted;

use super::code_review::{FixOutcome, run_fix, taken_review};
use super::implement::{
    TaskSelection, commit_done, implement, is_work, prove_ticks, read_tasks, start, wanted_tasks,
};
use super::{Action, Report, Workflow, WorkflowError, bug_test, review};

/// Implements, reviews and fixes until the code is approved, a person has to look, or the
/// rounds are used up.
pub fn implementation(
    workflow: &mut Workflow<'_>,
    wanted: &TaskSelection,
) -> Result<Report, WorkflowError> {
    workflow.history()?;
    start(workflow)?;
    workflow.warn_of_overlaps()?;
    wanted_tasks(workflow, wanted)?;
    prove_ticks(workflow)?;
    bug_test::ensure(workflow)?;
    if has_open_tasks(workflow)? {
        let report = implement(workflow, wanted)?;
        // A part of the tasks is a part of the work: it is reviewed when all of it is there.
        if has_open_tasks(workflow)? {
            return Ok(report);
        }
    } else {
        commit_done(workflow, wanted)?;
    }
    loop {
        match next(workflow)? {
            Next::Review => {
                let report = review(workflow)?;
                if report.phase == Phase::Complete {
                    return Ok(report);
                }
            }
            // A reviewer who gets the same code again finds the same in it.
            Next::Fix if run_fix(workflow)? == FixOutcome::Nothing => break,
            Next::Fix => {}
            Next::Stop => break,
        }
    }
    workflow.report(Action::StillNeedsFix)
}

fn has_open_tasks(workflow: &Workflow<'_>) -> Result<bool, WorkflowError> {
    Ok(read_tasks(workflow)?.iter().any(|task| task.status == Status::Pending))
}

enum Next {
    Review,
    Fix,
    Stop,
}

/// What comes next, from the latest verdict and from what was done since.
fn next(workflow: &mut Workflow<'_>) -> Result<Next, WorkflowError> {
    let (state, history) = (workflow.state()?, workflow.history()?);
    let Some(standing) = taken_review(workflow, &state)? else { return Ok(Next::Review) };
    // Repaired by hand: somebody has to look again (C35).
    let reviewed_tree = state.code_review.as_ref().and_then(|known| known.tree.clone());
    if reviewed_tree.is_some() && workflow.tree() != reviewed_tree {
        return Ok(Next::Review);
    }
    // Not since the last review that was begun: that one may have been cut short.
    let reviewed = state.code_review.as_ref().and_then(|known| known.run).unwrap_or(0);
    if history.last_success(is_work) > reviewed {
        return Ok(Next::Review);
    }
    match standing.verdict {
        Some(CodeVerdict::MajorIssues) => {
            workflow.warn("the review found major issues: a person has to look");
            Ok(Next::Stop)
        }
        Some(CodeVerdict::NeedsFix) => {
            let limit = workflow.agents.config.workflow.implementation_iterations;
            let fix = StepName::Fix;
            let built = history.last_number(|step| is_work(step) && *step != fix);
            if history.succeeded_after(&fix, built) < limit as usize {
                return Ok(Next::Fix);
            }
            let rounds = counted(limit as usize, "round");
            workflow.warn(&format!("the code still needs fixing after {rounds}"));
            Ok(Next::Stop)
        }
        Some(CodeVerdict::Approved) | None => Ok(Next::Review),
    }
}
