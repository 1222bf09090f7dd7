mod call;
mod events;

use std::io;
use std::process::ExitCode;
use std::str::FromStr;

use agentd_core::ids::ChangeId;
use agentd_engine::insight::code_rounds::code_rounds;
use anstyle::Style;
use serde::Serialize;

#[cfg(test)]
pub(super) use self::call::CallReport;
use self::events::{Event, EventKind};
use super::Context;
use crate::error::CommandError;
use crate::ui::{BAD, BOLD, DIM, Output, Screen};

/// Show what has happened to a change, oldest first.
///
/// Questions and answers, where it is worked on, calls of agents with their tokens, cost and time,
/// calls that failed and why, all reviews of the plan and of the code, runs of the tests, commits,
/// and what people have decided. `--run` shows one call in full: its prompt, and what the agent said
/// and did.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  agentd log add-oauth\n  agentd log add-oauth --kind call,tests\n  agentd log add-oauth --run last       what happened in one call\n  agentd log --json | jq '.events[] | select(.kind == \"decision\")'"
)]
pub(crate) struct Args {
    /// Change ID, or the name of an archived change; optional if only one change is open.
    id: Option<String>,

    /// Show only events of these kinds.
    #[arg(long, value_name = "KINDS", value_delimiter = ',', conflicts_with = "run")]
    kind: Vec<EventKind>,

    /// Show what happened in the call with this number, or in the last one.
    #[arg(long, value_name = "NUMBER|last")]
    run: Option<WhichRun>,
}

/// What `--run` takes.
#[derive(Debug, Clone, Copy)]
enum WhichRun {
    Number(u32),
    Last,
}

impl FromStr for WhichRun {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "last" => Ok(Self::Last),
            number => number.parse().map(Self::Number).map_err(|_| "a number, or `last`"),
        }
    }
}

/// What has happened to a change, oldest first.
#[derive(Debug, Serialize)]
pub(super) struct LogReport {
    change_id: ChangeId,
    events: Vec<Event>,
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    let project = context.project_of(args.id.as_deref())?;
    let snapshot = context.change_to_read(&project, args.id.as_deref())?.snapshot()?;
    if let Some(run) = args.run {
        let report = call::report(&snapshot, run)?;
        context.ui.print_paged(&report, project.root())?;
        return Ok(ExitCode::SUCCESS);
    }
    let state = snapshot.state()?;
    let mut events = events::all(&project, &snapshot, state, &code_rounds(&snapshot)?);
    events.retain(|event| args.kind.is_empty() || args.kind.contains(&event.kind));
    let report = LogReport { change_id: snapshot.id().clone(), events };
    context.ui.print_paged(&report, project.root())?;
    Ok(ExitCode::SUCCESS)
}

impl Output for LogReport {
    fn text(&self, screen: &mut Screen<'_>) -> io::Result<()> {
        let whens: Vec<String> = self
            .events
            .iter()
            .map(|event| event.at.map(|at| screen.when(at)).unwrap_or_default())
            .collect();
        let width = whens.iter().map(String::len).max().unwrap_or(0);
        for (Event { kind, text, is_bad, run, .. }, when) in self.events.iter().zip(whens) {
            let style = if *is_bad { BAD } else { BOLD };
            let kind = kind.name();
            let label = format!("{DIM}{when:>width$}{DIM:#}  {style}{kind:9}{style:#}  ");
            let run = run.map(|run| format!(" #{run}")).filter(|_| screen.columns().is_some());
            screen.labeled(&label, &format!("{text}{}", run.unwrap_or_default()))?;
        }
        // What the numbers behind calls are for; one that failed is what people want to see.
        let failed =
            self.events.iter().rfind(|event| event.failure.is_some() && event.run.is_some());
        let call = failed.or_else(|| self.events.iter().rfind(|event| event.run.is_some()));
        if let (Some(run), Some(_)) = (call.and_then(|event| event.run), screen.columns()) {
            let id = &self.change_id;
            let text = format!("\nwhat happened in call #{run}: agentd log {id} --run {run}");
            screen.paragraph(&text, Style::new().dimmed())?;
        }
        Ok(())
    }

    #[cfg(test)]
    fn sample() -> Self {
        let event = Event {
            at: "2026-11-04T10:00:00Z".parse().ok(),
            kind: EventKind::Review,
            text: "APPROVED by codex, round 2: 0 HIGH, 0 MEDIUM, 0 LOW; fixed: I1".to_owned(),
            previous: vec![crate::cli::planning::earlier_issue()],
            run: Some(3),
            failure: Some(agentd_core::outcome::FailureKind::TimedOut),
            is_bad: false,
        };
        Self { change_id: ChangeId::new("add-oauth").unwrap(), events: vec![event] }
    }
}
