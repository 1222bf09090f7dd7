//! The local check of a plan, and its repair by the planner (P18 – P20, P25).

use agentd_core::agent::Role;
use agentd_core::check::{self, FileReport};
use agentd_core::diagnostic::Counts;
use agentd_core::step_name::StepName;

use super::{Call, Mode, Workflow, WorkflowError, prompts};
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

/// Makes sure that the plan is valid. A person is shown what is wrong (P20); without one
/// the planner fixes it, up to the configured number of rounds.
pub(super) fn ensure(workflow: &mut Workflow<'_>, mode: Mode) -> Result<(), WorkflowError> {
    let rounds = match mode {
        Mode::HumanInLoop => 0,
        Mode::Automatic => workflow.agents.config.workflow.format_iterations,
    };
    let mut checked = check(workflow)?;
    let mut done = 0;
    while checked.counts.high > 0 {
        if done == rounds {
            let (change, reports) = (workflow.change.clone(), checked.reports);
            return Err(WorkflowError::Format { change, reports, rounds });
        }
        done += 1;
        let resume = workflow.state()?.session_id;
        let prompt = prompts::format_fix(workflow, &checked.reports);
        workflow.run(
            Call {
                step: StepName::FormatFix,
                role: Role::Planner,
                label: format!("Format repair {done}/{rounds}"),
                prompt,
                resume,
                artifact: Artifact::Nothing,
            },
            |_| String::new(),
        )?;
        checked = check(workflow)?;
    }
    Ok(())
}
