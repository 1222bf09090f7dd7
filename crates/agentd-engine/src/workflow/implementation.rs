//! `impl`: from an approved plan to approved code.

use agentd_core::document::review::CodeVerdict;
use agentd_core::document::tasks::Status;
use agentd_core::ids::Layer;
use agentd_core::phase::Phase;
use agentd_core::step_name::StepName;
use agentd_core::text::counted;

use super::code_review::{judge, run_fix, run_tests, taken_review, tests_stand, unread};
use super::implement::{
    Asked, TaskSelection, Ticked, build, commit_done, is_work, next_layer, prove_ticks, read_tasks,
    start, wanted_tasks,
};
use super::report::Found;
use super::{Action, Report, Rounds, Workflow, WorkflowError, bug_test};
use crate::change::staleness;

/// What comes next for the code of a change. Each but the last is one call of an agent, or one run
/// of the tests.
#[derive(Debug)]
pub(super) enum CodeStep {
    /// The tests are run.
    Tests,
    /// The implementer writes a test that shows the bug.
    Reproduce(Asked),
    /// The implementer builds a layer.
    Implement(Layer, Asked),
    /// The code is reviewed, or a verdict that was given is taken.
    Review,
    /// The implementer fixes what the review has found.
    Fix,
    /// Nothing more can be done without a person, or what is wanted is done.
    Stop {
        /// How it is reported.
        action: Action,
        /// What a person should know about it.
        why: Option<String>,
    },
}

/// Implements, reviews and fixes until the code is approved, a person has to look, or the
/// rounds are used up.
pub fn implementation(
    workflow: &mut Workflow<'_>,
    wanted: &TaskSelection,
) -> Result<Report, WorkflowError> {
    workflow.history()?;
    if workflow.state()?.phase == Phase::Complete {
        return already_complete(workflow);
    }
    start(workflow)?;
    workflow.warn_of_overlaps()?;
    wanted_tasks(workflow, wanted)?;
    prove_ticks(workflow)?;
    commit_done(workflow, wanted, Ticked::Reported)?;
    let report = go_on(workflow, wanted);
    workflow.or_waiting(report)
}

fn go_on(workflow: &mut Workflow<'_>, wanted: &TaskSelection) -> Result<Report, WorkflowError> {
    let rounds = Rounds::of_this_command(workflow)?;
    loop {
        let step = next(workflow, wanted, rounds)?;
        if let Some(report) = perform(workflow, step, wanted)? {
            return Ok(report);
        }
    }
}

/// What is complete stays complete, no matter how often it is asked for: the caller may have been
/// killed before it saw the answer.
fn already_complete(workflow: &mut Workflow<'_>) -> Result<Report, WorkflowError> {
    workflow.check_record()?;
    let stale = staleness::stale(&workflow.agents.project, &workflow.snapshot()?)?;
    if stale.is_empty() {
        return workflow.report(Action::AlreadyComplete);
    }
    Err(WorkflowError::EditedSince { change: workflow.change.clone(), stale })
}

/// Does what comes next. Returns a report where the workflow ends with it.
pub(super) fn perform(
    workflow: &mut Workflow<'_>,
    step: CodeStep,
    wanted: &TaskSelection,
) -> Result<Option<Report>, WorkflowError> {
    match step {
        CodeStep::Tests => {
            run_tests(workflow)?;
            bug_test::take_result(workflow)?;
        }
        CodeStep::Reproduce(asked) => bug_test::write_test(workflow, asked)?,
        CodeStep::Implement(layer, asked) => build(workflow, layer, asked, wanted)?,
        CodeStep::Review => {
            let report = judge(workflow)?;
            return Ok(Some(report).filter(|report| report.phase == Phase::Complete));
        }
        CodeStep::Fix => {
            if let Some(review) = taken_review(workflow, &workflow.state()?)? {
                workflow.show_unless_shown(Found::in_code(&review));
            }
            run_fix(workflow)?;
        }
        CodeStep::Stop { action, why } => {
            if let Some(why) = why {
                workflow.warn(&why);
            }
            return workflow.report(action).map(Some);
        }
    }
    Ok(None)
}

/// What comes next for the code of a change that is being implemented, by its tasks and the latest
/// verdict.
pub(super) fn next(
    workflow: &Workflow<'_>,
    wanted: &TaskSelection,
    rounds: Rounds,
) -> Result<CodeStep, WorkflowError> {
    if let Some(step) = next_task(workflow, wanted, rounds)? {
        return Ok(step);
    }
    // A part of the tasks is a part of the work: it is reviewed when all of it is there.
    if read_tasks(workflow)?.iter().any(|task| task.status == Status::Pending) {
        return Ok(CodeStep::Stop { action: Action::Implemented, why: None });
    }
    let step = after_tasks(workflow, rounds)?;
    let untested = matches!(step, CodeStep::Review)
        && unread(workflow)?.is_none()
        && !tests_stand(workflow, rounds)?;
    Ok(if untested { CodeStep::Tests } else { step })
}

/// What comes next for the tasks that are wanted; nothing if they are done.
pub(super) fn next_task(
    workflow: &Workflow<'_>,
    wanted: &TaskSelection,
    rounds: Rounds,
) -> Result<Option<CodeStep>, WorkflowError> {
    workflow.unanswered()?;
    if let Some(step) = bug_test::next(workflow, rounds)? {
        return Ok(Some(step));
    }
    let layer = next_layer(workflow, wanted, rounds)?;
    Ok(layer.map(|(layer, asked)| CodeStep::Implement(layer, asked)))
}

/// What comes next when all tasks are done, from the latest verdict and from what was done since.
fn after_tasks(workflow: &Workflow<'_>, rounds: Rounds) -> Result<CodeStep, WorkflowError> {
    let (state, history) = (workflow.state()?, workflow.history()?);
    let stop = |why| Ok(CodeStep::Stop { action: Action::StillNeedsFix, why });
    let Some(standing) = taken_review(workflow, &state)? else { return Ok(CodeStep::Review) };
    // Repaired by hand: somebody has to look again (C35).
    let reviewed_tree = state.code_review.as_ref().and_then(|known| known.tree.clone());
    if reviewed_tree.is_some() && workflow.tree_now() != reviewed_tree {
        return Ok(CodeStep::Review);
    }
    // Not since the last review that was begun: that one may have been cut short.
    let reviewed = state.code_review.as_ref().and_then(|known| known.run).unwrap_or(0);
    let fix = StepName::Fix;
    if history.last_success(is_work) > reviewed {
        let fixed = history.last_success(|step| *step == fix) > reviewed.max(rounds.since);
        // A reviewer who gets the same code again finds the same in it.
        return if fixed && reviewed_tree.is_some() { stop(None) } else { Ok(CodeStep::Review) };
    }
    match standing.verdict {
        Some(CodeVerdict::MajorIssues) => {
            stop(Some("the review found major issues: a person has to look".to_owned()))
        }
        Some(CodeVerdict::NeedsFix) => {
            let limit = workflow.agents.config.workflow.implementation_iterations;
            let built = history.last_number(|step| is_work(step) && *step != fix);
            if history.succeeded_after(&fix, built) < limit as usize {
                return Ok(CodeStep::Fix);
            }
            let rounds = counted(limit as usize, "round");
            stop(Some(format!("the code still needs fixing after {rounds}")))
        }
        Some(CodeVerdict::Approved) | None => Ok(CodeStep::Review),
    }
}
