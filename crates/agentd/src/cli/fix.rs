use std::process::ExitCode;

use agentd_engine::workflow::{self, begin::CodeStep};

use super::Context;
use super::agents_setup::CallArgs;
use super::planning::{self, run_workflow};
use crate::error::CommandError;

/// Have the implementer fix the issues from the latest code review.
///
/// Open comments on the code, made in the viewer, are passed on as well. If there are any,
/// approved code can be fixed too; it is reviewed again afterwards.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  agentd fix add-oauth\n  agentd fix && agentd review")]
pub(crate) struct Args {
    /// Change ID; optional if only one change is open.
    id: Option<String>,

    #[command(flatten)]
    pub(super) calls: CallArgs,
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    let built = planning::building(context, args.id.as_deref(), CodeStep::Fix)?;
    let report = run_workflow(context, &built.agents, &built.id, workflow::fix)?;
    built.finish(context, &report, false)
}
