use std::process::ExitCode;

use agentd_core::ids::ChangeId;
use agentd_engine::store::Project;
use agentd_engine::workflow::{self, begin};

use super::Context;
use super::agents_setup::{CallArgs, agents_for};
use super::planning::{self, GitArg, Outcome, run_workflow};
use crate::error::CommandError;

/// Have the planner write the proposal, specs, and tasks of a new change.
///
/// If the ID is taken, the next free number is appended: add-oauth-1, add-oauth-2, … A proposal
/// that failed is continued by the same command. To resume any other change, use `agentd plan`,
/// which also challenges the plan.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  agentd proposal add-oauth \"Let people sign in with GitHub\"\n  agentd proposal add-oauth \"…\" --skip-clarify --json | jq -r .change_id"
)]
pub(crate) struct Args {
    /// ID of the new change.
    id: String,

    /// What you want.
    description: String,

    #[command(flatten)]
    clarify: planning::ClarifyArgs,

    /// Where to work: on a branch, in a worktree, or in the current checkout.
    #[arg(long, value_enum, value_name = "WORKFLOW")]
    git: Option<GitArg>,

    /// Don't ask if the forecast is above `budget.ask_above_usd`.
    #[arg(long, short = 'y')]
    yes: bool,

    #[command(flatten)]
    pub(super) calls: CallArgs,
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    let project = planning::project(context)?;
    let wanted = planning::new_id(&args.id)?;
    let (id, mut agents) = loop {
        let id = free_id(&project, &wanted, &args.description)?;
        let home = context.home_of(project.clone(), Some(id.as_str()))?;
        let agents = agents_for(context, &home, &id)?;
        // Another process may have taken the id before we had its lock.
        if free_id(&project, &wanted, &args.description)? == id {
            break (id, agents);
        }
    };
    planning::find_planner(context, &mut agents)?;
    if id != wanted {
        context.ui.note(&format!("`{wanted}` exists already; this change is `{id}`"));
    }
    let begun = planning::Begin {
        description: Some(&args.description),
        clarify: &args.clarify,
        track: None,
        git: args.git,
        yes: args.yes,
        person: planning::person(context),
    };
    let agents = planning::prepare(context, agents, &id, &begun)?;
    let report = run_workflow(context, &agents, &id, workflow::propose)?;
    planning::finish(context, &Outcome::new(&id, &report, &agents))
}

/// An id that no change has yet (C18).
fn free_id(
    project: &Project,
    wanted: &ChangeId,
    description: &str,
) -> Result<ChangeId, CommandError> {
    begin::free_id(project, wanted, description)?.ok_or_else(|| {
        CommandError::usage(format!("`{wanted}` exists already, and no longer id is possible"))
            .hint("choose a shorter id")
    })
}
