use std::process::ExitCode;

use agentd_engine::workflow;

use super::Context;
use super::agents_setup::{CallArgs, agents_for};
use super::planning::{self, Outcome, run_workflow};
use crate::error::CommandError;

/// Have another agent review a plan.
///
/// The challenger's verdict applies to the plan it has read: APPROVED moves the change to
/// challenged, `NEEDS_REVISION` leaves it proposed, and REJECTED stops it until the plan
/// changes.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  agentd challenge add-oauth\n  agentd challenge --json --exit-code     in CI: fails unless approved"
)]
pub(crate) struct Args {
    /// Change ID; optional if only one change is open.
    id: Option<String>,

    /// Also exit with 1 if the verdict is `NEEDS_REVISION`.
    #[arg(long)]
    exit_code: bool,

    #[command(flatten)]
    pub(super) calls: CallArgs,
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    let project = context.project_of(args.id.as_deref())?;
    let change = context.change(&project, args.id.as_deref())?.id().clone();
    let mut agents = agents_for(context, &project, &change)?;
    planning::find_planner(context, &mut agents)?;
    let report = run_workflow(context, &agents, &change, workflow::challenge)?;
    let exit_code = args.exit_code;
    planning::finish(context, &Outcome { exit_code, ..Outcome::new(&change, &report, &agents) })
}
