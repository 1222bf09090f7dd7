use std::io::Write as _;
use std::process::ExitCode;

use agentd_core::state::Choice;
use agentd_engine::workflow::decisions;
use serde_json::json;

use super::{Context, user};
use crate::error::CommandError;

/// Answer the question that a plan waits with.
///
/// Who decided, when, why and for which plan is recorded in STATE.yaml.
/// Accepting is possible while no HIGH and at most one MEDIUM issue is left,
/// and the plan is the one that was reviewed.
#[derive(Debug, clap::Args)]
#[command(
    allow_missing_positional = true,
    after_help = "Examples:\n  agentd decide add-oauth fix\n  agentd decide add-oauth accept --note \"the LOW ones can wait\"\n  agentd decide add-oauth stop"
)]
pub(crate) struct Args {
    /// The change; may be left out where exactly one is open.
    id: Option<String>,

    /// What is decided.
    #[arg(value_enum)]
    choice: ChoiceArg,

    /// Why.
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum ChoiceArg {
    /// Let the planner mend the issues, then challenge again.
    Fix,
    /// Take the plan with its minor issues.
    Accept,
    /// Leave it here.
    Stop,
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    let project = context.project()?;
    let change = context.change(&project, args.id.as_deref())?;
    let choice = match args.choice {
        ChoiceArg::Fix => Choice::Fix,
        ChoiceArg::Accept => Choice::Accept,
        ChoiceArg::Stop => Choice::Stop,
    };
    let state = decisions::decide(
        &project,
        change.id(),
        choice,
        args.note.as_deref().unwrap_or_default(),
        &user(),
        &context.holder(),
        context.now(),
    )?;
    if context.ui.json {
        let document = json!({
            "version": 1,
            "action": "decided",
            "change_id": state.change_id,
            "phase": state.phase,
            "choice": choice,
            "decisions": state.decisions.len(),
        });
        context.ui.print_json(&document)?;
    } else {
        let mut out = context.ui.out();
        writeln!(out, "{} is {}; the decision is recorded", state.change_id, state.phase)?;
        out.flush()?;
    }
    Ok(ExitCode::SUCCESS)
}
