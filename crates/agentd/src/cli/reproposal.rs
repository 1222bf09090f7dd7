use std::process::ExitCode;

use agentd_engine::workflow::{self, PlannerSession};

use super::Context;
use super::agents_setup::{CallArgs, agents_for};
use super::planning::{self, Outcome, run_workflow};
use crate::error::CommandError;

/// Have the planner fix the issues from the latest plan review.
///
/// The planner resumes the session in which it wrote the proposal. If that session is gone,
/// `--fresh` begins a new one, which is given the plan and the review. The phase does not change;
/// only `agentd challenge` changes it.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  agentd reproposal add-oauth\n  agentd reproposal && agentd challenge"
)]
pub(crate) struct Args {
    /// Change ID; optional if only one change is open.
    id: Option<String>,

    /// Begin a new session instead of resuming the one that wrote the proposal.
    #[arg(long)]
    fresh: bool,

    #[command(flatten)]
    pub(super) calls: CallArgs,
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    let project = context.project_of(args.id.as_deref())?;
    let change = context.change(&project, args.id.as_deref())?.id().clone();
    let mut agents = agents_for(context, &project, &change)?;
    planning::find_planner(context, &mut agents)?;
    let session = if args.fresh { PlannerSession::Fresh } else { PlannerSession::Resume };
    let report = run_workflow(context, &agents, &change, |w| workflow::repropose(w, session))?;
    planning::finish(context, &Outcome::new(&change, &report, &agents))
}
