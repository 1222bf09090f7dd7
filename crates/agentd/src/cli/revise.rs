use std::io::{self, Write as _};
use std::process::ExitCode;

use agentd_core::ids::ChangeId;
#[cfg(test)]
use agentd_core::next_step::Command;
use agentd_core::next_step::NextStep;
use agentd_core::phase::Phase;
use agentd_engine::change::position;
use agentd_engine::workflow::decisions;
use serde::Serialize;

use super::{Context, user};
use crate::error::CommandError;
use crate::ui::{BOLD, Output, Screen};

/// Change the plan of a change, also if it is approved, rejected, being implemented or complete.
///
/// The change goes back to planning, if it is past that. Say what is different now, and the planner revises the plan
/// when you run `agentd plan`; or edit the documents yourself; or both. The plan is challenged
/// again. Code, ticks, verdicts and costs stay: after the approval, only tasks that have changed,
/// or whose requirement has, are implemented again.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  agentd revise add-oauth \"Sessions end after 30 minutes, not 60\"\n  agentd revise add-oauth && agentd plan add-oauth       after editing its documents"
)]
pub(crate) struct Args {
    /// The change.
    id: String,

    /// What is different now, for the planner.
    #[arg(value_name = "WHAT")]
    what: Option<String>,
}

/// A change that went back to planning.
#[derive(Debug, Serialize)]
pub(super) struct RevisionReport {
    /// `revised`
    action: &'static str,
    /// The change.
    change_id: ChangeId,
    /// Its phase now.
    phase: Phase,
    /// Whether it was in a later phase.
    #[serde(skip)]
    goes_back: bool,
    /// Commands that continue from here.
    next: Vec<NextStep>,
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    let project = context.project_of(Some(&args.id))?;
    let change = context.change(&project, Some(&args.id))?;
    let holder = context.holder();
    // Nobody may be implementing what is about to change.
    let _run = project.try_run_lock(change.id(), &holder)?;
    let what = args.what.as_deref().unwrap_or_default();
    let by = user(&project);
    let before = change.snapshot()?.state()?.phase;
    let state = decisions::revise(&project, change.id(), what, &by, &holder, context.now())?;
    context.ui.print(&RevisionReport {
        action: "revised",
        next: position::next_steps(&project, change.id())?,
        change_id: state.change_id,
        phase: state.phase,
        goes_back: before != state.phase,
    })?;
    Ok(ExitCode::SUCCESS)
}

impl Output for RevisionReport {
    fn text(&self, screen: &mut Screen<'_>) -> io::Result<()> {
        let Self { change_id, phase, .. } = self;
        if self.goes_back {
            writeln!(screen, "{change_id} is {phase} again; its code and its records stay")?;
        } else {
            writeln!(screen, "the plan of {change_id} will be revised as you say")?;
        }
        if let Some(next) = self.next.first() {
            writeln!(screen, "\nNext: {BOLD}{next}{BOLD:#}")?;
        }
        Ok(())
    }

    #[cfg(test)]
    fn sample() -> Self {
        let change_id = ChangeId::new("add-oauth").unwrap();
        let next = vec![Command::Plan.on(&change_id)];
        Self { action: "revised", change_id, phase: Phase::Proposed, goes_back: true, next }
    }
}
