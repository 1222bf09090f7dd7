use std::process::ExitCode;

use agentd_engine::workflow;

use super::Context;
use super::implement::wanted;
use super::planning::{self, run_workflow};
use crate::error::CommandError;

/// Take an approved plan to approved code: implement, review, fix.
///
/// The implementer does the tasks layer by layer, agentd runs the tests, another agent
/// reviews the code; what it finds is mended up to `workflow.implementation_iterations`
/// times. Interrupted, it goes on where it stopped.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  agentd impl add-oauth\n  agentd impl add-oauth --tasks 1.1,2.1     a part of it; reviewed once all is done"
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
        workflow::implementation(workflow, &wanted)
    })?;
    built.finish(context, &report, false)
}
