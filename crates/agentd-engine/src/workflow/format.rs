//! The local check of a plan, and its repair by the planner (P18 – P20, P25).

use agentd_core::agent::Role;
use agentd_core::check::{self, FileReport};
use agentd_core::diagnostic::Counts;
use agentd_core::step_name::StepName;

use super::{Call, Mode, Rounds, Workflow, WorkflowError, prompts};
use crate::agents::step::Artifact;

/// What the check found.
pub(super) struct Checked {
    pub(super) reports: Vec<FileReport>,
    pub(super) counts: Counts,
}

/// Checks the plan and says what was found.
pub(super) fn check(workflow: &mut Workflow<'_>) -> Result<Checked, WorkflowError> {
    let extras = workflow.agents.config.extras();
    let reports = workflow.snapshot()?.findings(&workflow.agents.project, &extras);
    let counts = check::counts(&reports);
    let verdict = if counts.high == 0 { "passed" } else { "failed" };
    workflow.note(&format!(
        "Format validation {verdict}: {} HIGH, {} MEDIUM, {} LOW",
        counts.high, counts.medium, counts.low
    ));
    Ok(Checked { reports, counts })
}

/// What the check of a plan leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    /// It is valid.
    Valid,
    /// The planner repairs it, in this round.
    Repair(u32),
    /// A person has to: nobody else does, or the rounds are used up.
    Invalid,
}

/// What comes of the check of a plan. A person is shown what is wrong (P20); without one the planner
/// fixes it, up to the configured number of rounds, each time that the plan has changed otherwise.
pub(super) fn look(
    workflow: &Workflow<'_>,
    mode: Mode,
    rounds: Rounds,
) -> Result<Format, WorkflowError> {
    let extras = workflow.agents.config.extras();
    let reports = workflow.snapshot()?.findings(&workflow.agents.project, &extras);
    if check::counts(&reports).high == 0 {
        return Ok(Format::Valid);
    }
    let limit = allowed(workflow, mode);
    let done = workflow.history()?.in_a_row(&StepName::FormatFix, rounds.since);
    Ok(if done < limit { Format::Repair(done + 1) } else { Format::Invalid })
}

fn allowed(workflow: &Workflow<'_>, mode: Mode) -> u32 {
    match mode {
        Mode::HumanInLoop => 0,
        Mode::Automatic => workflow.agents.config.workflow.format_iterations,
    }
}

/// Has the planner repair a plan.
pub(super) fn repair(workflow: &mut Workflow<'_>, round: u32) -> Result<(), WorkflowError> {
    let checked = check(workflow)?;
    let rounds = workflow.agents.config.workflow.format_iterations;
    let resume = workflow.state()?.session_id;
    let prompt = prompts::format_fix(workflow, &checked.reports);
    workflow.run(
        Call {
            step: StepName::FormatFix,
            role: Role::Planner,
            label: format!("Format repair {round}/{rounds}"),
            prompt,
            resume,
            artifact: Artifact::Nothing,
        },
        |_| String::new(),
    )?;
    Ok(())
}

/// Fails if the plan is not valid, and says what was found.
pub(super) fn must_be_valid(workflow: &mut Workflow<'_>, mode: Mode) -> Result<(), WorkflowError> {
    let checked = check(workflow)?;
    if checked.counts.high == 0 {
        return Ok(());
    }
    let rounds = allowed(workflow, mode);
    let (change, reports) = (workflow.change.clone(), checked.reports);
    Err(WorkflowError::Format { change, reports, rounds })
}
