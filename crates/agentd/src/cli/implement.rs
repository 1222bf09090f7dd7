use std::collections::BTreeSet;
use std::process::ExitCode;

use agentd_core::ids::{ChangeId, TaskId};
use agentd_engine::workflow::begin::CodeStep;
use agentd_engine::workflow::{self, Report, TaskSelection, Workflow, WorkflowError};

use super::Context;
use super::agents_setup::CallArgs;
use super::planning::{self, run_workflow};
use crate::error::CommandError;

/// Have the implementer do the tasks of an approved plan.
///
/// Each layer gets a new session. A task is done when the implementer has checked it off and
/// its file confirms that. Tasks that are already checked off are skipped.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  agentd implement add-oauth\n  agentd implement add-oauth --tasks 1.1,2.1"
)]
pub(crate) struct Args {
    #[command(flatten)]
    work: Work,

    #[command(flatten)]
    pub(super) calls: CallArgs,
}

/// What is to be worked on.
#[derive(Debug, clap::Args)]
pub(super) struct Work {
    /// Change ID; optional if only one change is open.
    id: Option<String>,

    /// Do only these tasks, such as 1.1,2.1.
    #[arg(long, value_name = "IDS", value_delimiter = ',')]
    tasks: Vec<String>,
}

impl Work {
    /// Has it worked on, by a step or by the whole workflow.
    pub(super) fn run(
        &self,
        context: &Context,
        work: fn(&mut Workflow<'_>, &TaskSelection) -> Result<Report, WorkflowError>,
    ) -> Result<ExitCode, CommandError> {
        let wanted = wanted(&self.tasks)?;
        run_on(context, self.id.as_deref(), |workflow| work(workflow, &wanted))
    }
}

/// Takes an approved plan to approved code, as `agentd impl` does.
pub(super) fn run_all(context: &Context, id: &ChangeId) -> Result<ExitCode, CommandError> {
    let work = |w: &mut Workflow<'_>| workflow::implementation(w, &TaskSelection::Open);
    run_on(context, Some(id.as_str()), work)
}

fn run_on(
    context: &Context,
    id: Option<&str>,
    work: impl Fn(&mut Workflow<'_>) -> Result<Report, WorkflowError>,
) -> Result<ExitCode, CommandError> {
    let built = planning::building(context, id, CodeStep::Implement)?;
    loop {
        let report = run_workflow(context, &built.agents, &built.id, &work)?;
        match report.question.as_ref().filter(|_| context.ui.can_prompt()) {
            Some(question) => {
                planning::answer_agent(context, &built.agents, &built.id, question)?;
            }
            None => return built.finish(context, &report, false),
        }
    }
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    args.work.run(context, workflow::implement)
}

/// The tasks that are asked for.
fn wanted(tasks: &[String]) -> Result<TaskSelection, CommandError> {
    if tasks.is_empty() {
        return Ok(TaskSelection::Open);
    }
    let ids: Result<BTreeSet<TaskId>, CommandError> = tasks
        .iter()
        .map(|text| {
            text.trim().parse::<TaskId>().map_err(|error| {
                CommandError::usage(format!("--tasks: {error}")).hint("such as --tasks 1.1,2.1")
            })
        })
        .collect();
    Ok(TaskSelection::Some(ids?))
}
