use std::process::ExitCode;

use agentd_core::state::Track;

use super::Context;
use super::agents_setup::CallArgs;
use super::plan::{Ending, take_to_plan};
use super::planning::{self, ClarifyArgs, GitArg};
use crate::error::CommandError;

/// Fix a bug, starting with a test that fails because of it.
///
/// Plans the fix in one call and has the plan challenged, as `agentd plan --quick` does. Then
/// `agentd impl` has the implementer write a test, and goes on only if agentd has seen the tests
/// fail with it. The fix can be approved only once they pass. Set `test_command` under
/// `[implementation]` in agentd/config.toml first.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  agentd bug empty-cart \"Checkout of an empty cart fails with a 500\"\n  agentd bug empty-cart \"…\" --auto --git branch --json     in CI"
)]
pub(crate) struct Args {
    /// Change ID.
    id: String,

    /// What is wrong; required for a new change.
    description: Option<String>,

    /// Don't ask: revise and re-challenge until the plan is approved.
    #[arg(long)]
    auto: bool,

    /// Where to work: on a branch, in a worktree, or in the current checkout.
    #[arg(long, value_enum, value_name = "WORKFLOW")]
    git: Option<GitArg>,

    /// Don't ask if the forecast is above `budget.ask_above_usd`.
    #[arg(long, short = 'y')]
    yes: bool,

    /// Also exit with 1 if the plan is waiting for a decision.
    #[arg(long)]
    exit_code: bool,

    #[command(flatten)]
    pub(super) calls: CallArgs,
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    let begin = planning::Begin {
        description: args.description.as_deref(),
        clarify: &ClarifyArgs { skip_clarify: true, answers: None },
        track: Some(Track::Bug),
        git: args.git,
        yes: args.yes,
        person: planning::person(context),
    };
    let (auto, exit_code) = (args.auto, args.exit_code);
    take_to_plan(context, Some(&args.id), &begin, &Ending { auto, exit_code })
}
