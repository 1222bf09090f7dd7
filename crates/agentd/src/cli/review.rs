use std::process::ExitCode;

use agentd_engine::workflow;

use super::Context;
use super::planning::{self, run_workflow};
use super::trust::TrustArg;
use crate::error::CommandError;

/// Run the tests and let another agent review the code of a change.
///
/// agentd runs `implementation.test_command` itself and records what came of it. APPROVED
/// completes the change, and is impossible while tests fail; the review is in REVIEW.md.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  agentd review add-oauth\n  agentd review --json --exit-code")]
pub(crate) struct Args {
    /// The change; may be left out where exactly one is open.
    id: Option<String>,

    /// End with 1 for `NEEDS_FIX` too.
    #[arg(long)]
    exit_code: bool,

    #[command(flatten)]
    pub(super) trust: TrustArg,
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    let built = planning::building(context, args.id.as_deref())?;
    let report = run_workflow(context, &built.agents, &built.id, workflow::review)?;
    built.finish(context, &report, args.exit_code)
}
