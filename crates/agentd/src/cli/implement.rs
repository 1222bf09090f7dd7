use std::collections::BTreeSet;
use std::process::ExitCode;

use agentd_core::ids::TaskId;
use agentd_engine::workflow::{self, Wanted};

use super::Context;
use super::planning::{self, run_workflow};
use crate::error::CommandError;

/// Let the implementer do the tasks of an approved plan.
///
/// Each layer gets a fresh session; a task counts as done when the implementer has ticked it
/// and its file shows that. Tasks that are ticked already are not done again.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  agentd implement add-oauth\n  agentd implement add-oauth --tasks 1.1,2.1"
)]
pub(crate) struct Args {
    /// The change; may be left out where exactly one is open.
    id: Option<String>,

    /// Only these tasks, such as 1.1,2.1.
    #[arg(long, value_name = "IDS", value_delimiter = ',')]
    tasks: Vec<String>,
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    let wanted = wanted(&args.tasks)?;
    let built = planning::building(context, args.id.as_deref())?;
    let report = run_workflow(context, &built.agents, &built.id, |workflow| {
        workflow::implement(workflow, &wanted)
    })?;
    built.finish(context, &report, false)
}

/// The tasks that are asked for.
pub(super) fn wanted(tasks: &[String]) -> Result<Wanted, CommandError> {
    if tasks.is_empty() {
        return Ok(Wanted::Open);
    }
    let ids: Result<BTreeSet<TaskId>, CommandError> = tasks
        .iter()
        .map(|text| {
            text.trim().parse::<TaskId>().map_err(|error| {
                CommandError::usage(format!("--tasks: {error}")).hint("such as --tasks 1.1,2.1")
            })
        })
        .collect();
    Ok(Wanted::Some(ids?))
}
