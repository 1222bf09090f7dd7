use std::io::{self, Write as _};
use std::process::ExitCode;

use agentd_core::ids::ChangeId;
use agentd_core::phase::Phase;
use agentd_core::state::Choice;
use agentd_engine::workflow::decisions;
use serde::Serialize;

use super::{Context, user};
use crate::error::CommandError;
use crate::ui::{Output, Screen};

/// Decide what to do with a plan that needs revision.
///
/// The decision is recorded in STATE.yaml: who made it, when, why, and for which plan. You can
/// accept a plan only if no HIGH issue and at most one MEDIUM issue is open, and the plan has
/// not changed since the review.
#[derive(Debug, clap::Args)]
#[command(
    allow_missing_positional = true,
    after_help = "Examples:\n  agentd decide add-oauth fix\n  agentd decide add-oauth accept --note \"the LOW ones can wait\"\n  agentd decide add-oauth stop"
)]
pub(crate) struct Args {
    /// Change ID; optional if only one change is open.
    id: Option<String>,

    /// Decision to record.
    #[arg(value_enum)]
    choice: ChoiceArg,

    /// Reason for the decision.
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum ChoiceArg {
    /// Have the planner fix the issues, then challenge the plan again.
    Fix,
    /// Accept the plan with its minor issues.
    Accept,
    /// Stop working on the plan.
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
    context.ui.print(&DecisionReport {
        action: "decided",
        change_id: state.change_id,
        phase: state.phase,
        choice,
        decisions: state.decisions.len(),
    })?;
    Ok(ExitCode::SUCCESS)
}

/// A decision that was recorded.
#[derive(Debug, Serialize)]
pub(super) struct DecisionReport {
    /// `decided`
    action: &'static str,
    /// The change.
    change_id: ChangeId,
    /// Its phase after the decision.
    phase: Phase,
    /// What was decided.
    choice: Choice,
    /// How many decisions are recorded for the change.
    decisions: usize,
}

impl Output for DecisionReport {
    fn text(&self, screen: &mut Screen<'_>) -> io::Result<()> {
        writeln!(screen, "{} is {}; the decision is recorded", self.change_id, self.phase)
    }

    #[cfg(test)]
    fn sample() -> Self {
        Self {
            action: "decided",
            change_id: ChangeId::new("add-oauth").unwrap(),
            phase: Phase::Challenged,
            choice: Choice::Accept,
            decisions: 1,
        }
    }
}
