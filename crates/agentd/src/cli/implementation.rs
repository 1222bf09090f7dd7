use std::process::ExitCode;

use agentd_engine::workflow;

use super::Context;
use super::agents_setup::CallArgs;
use super::implement::Work;
use crate::error::CommandError;

/// Take an approved plan to approved code: implement, review, fix.
///
/// The implementer does the tasks layer by layer, agentd runs the tests, and another agent
/// reviews the code. Issues are fixed and reviewed again, up to
/// `workflow.implementation_iterations` times. If interrupted, run the command again to
/// resume.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  agentd impl add-oauth\n  agentd impl add-oauth --tasks 1.1,2.1     only some tasks; reviewed once all are done"
)]
pub(crate) struct Args {
    #[command(flatten)]
    work: Work,

    #[command(flatten)]
    pub(super) calls: CallArgs,
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    args.work.run(context, workflow::implementation)
}
