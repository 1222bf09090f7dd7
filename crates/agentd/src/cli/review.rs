use std::process::ExitCode;

use agentd_engine::workflow::{self, begin::CodeStep};

use super::Context;
use super::agents_setup::CallArgs;
use super::planning::{self, run_workflow};
use crate::error::CommandError;

/// Run the tests and have another agent review the code of a change.
///
/// agentd runs `implementation.test_command` itself and records the result. APPROVED completes
/// the change, but is not possible while tests fail. The review is written to REVIEW.md.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  agentd review add-oauth\n  agentd review --json --exit-code")]
pub(crate) struct Args {
    /// Change ID; optional if only one change is open.
    id: Option<String>,

    /// Also exit with 1 if the verdict is `NEEDS_FIX`.
    #[arg(long)]
    exit_code: bool,

    #[command(flatten)]
    pub(super) calls: CallArgs,
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    let built = planning::building(context, args.id.as_deref(), CodeStep::Review)?;
    let report = run_workflow(context, &built.agents, &built.id, workflow::review)?;
    built.finish(context, &report, args.exit_code)
}
