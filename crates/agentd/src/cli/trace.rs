use std::io::{self, Write as _};
use std::process::ExitCode;

use agentd_core::command_line::CommandLine;
use agentd_core::error_kind::Kind;
#[cfg(test)]
use agentd_core::ids::ChangeId;
use agentd_core::ids::SpecRef;
use agentd_core::text::printable;
use agentd_engine::insight::trace::{self, Trace, TraceReport};
use agentd_engine::store::Project;

use super::Context;
use crate::error::CommandError;
use crate::ui::{BOLD, DIM, GOOD, Output, Screen, WARN, fit};

/// Trace a requirement to its tasks, files, commits, scenarios, and review.
///
/// For a requirement or a spec, shows every change that touched it, including archived ones.
/// For a change, shows each of its requirements.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  agentd trace auth-flow:R1\n  agentd trace auth-flow            all requirements of the spec\n  agentd trace add-oauth            all requirements of the change\n  agentd trace auth-flow:R1 --json"
)]
pub(crate) struct Args {
    /// Requirement, spec, or change ID.
    id: String,
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    let project = context.project_of(Some(&args.id))?;
    let traces = find(&project, &args.id)?;
    context.ui.print(&TraceReport { id: args.id.clone(), traces })?;
    Ok(ExitCode::SUCCESS)
}

/// A change goes before a spec of the same name: the spec has requirements to ask for.
fn find(project: &Project, id: &str) -> Result<Vec<Trace>, CommandError> {
    if let Some(traces) = trace::of_change(project, id)? {
        return Ok(traces);
    }
    let wanted: SpecRef = id.parse().map_err(|error: agentd_core::ids::IdError| {
        CommandError::usage(error.to_string())
            .hint("name a requirement as in `auth-flow:R1`, or a change by its ID")
    })?;
    let traces = trace::of_requirement(project, &wanted)?;
    if traces.is_empty() {
        let what = if wanted.requirement.is_some() { "requirement" } else { "change or spec" };
        return Err(CommandError::new(
            Kind::NothingToTrace,
            format!("no change touches a {what} `{id}`"),
        )
        .run("see which changes are open", CommandLine::agentd(["list"]))
        .run("see which specs there are", CommandLine::agentd(["list", "--specs"])));
    }
    Ok(traces)
}

impl Output for TraceReport {
    fn text(&self, screen: &mut Screen<'_>) -> io::Result<()> {
        self.traces.iter().enumerate().try_for_each(|(index, trace)| {
            if index > 0 {
                writeln!(screen)?;
            }
            print(screen, trace)
        })
    }

    #[cfg(test)]
    fn sample() -> Self {
        use agentd_core::document::tasks::{Action, Status};
        use agentd_core::phase::Phase;
        use agentd_core::text::Line;
        use agentd_engine::insight::overlap::Operation;
        use agentd_engine::insight::trace::{Commit, ReviewTrace, TaskTrace};
        let line = |text: &str| Line::new(text);
        let task = TaskTrace {
            id: "1.1".parse().unwrap(),
            title: line("Check the token"),
            status: Status::Done,
            action: Some(Action::Create),
            file: Some(line("src/token.rs")),
            commits: vec!["1f2e3d4c5b".to_owned()],
        };
        let commit = Commit {
            id: "1f2e3d4c5b".to_owned(),
            subject: line("add-oauth: check the token"),
            author: line("Ada"),
            date: line("2026-11-04T10:00:00Z"),
            tasks: [task.id].into(),
        };
        let review = ReviewTrace {
            verdict: "APPROVED",
            iteration: 1,
            reviewer: line("codex"),
            at: "2026-11-04T11:00:00Z".parse().unwrap(),
            tests_passed: Some(true),
        };
        let trace = Trace {
            requirement: "auth-flow:R1".to_owned(),
            title: line("A token is checked"),
            how: Operation::Adds,
            change_id: ChangeId::new("add-oauth").unwrap(),
            phase: Some(Phase::Archived),
            archived: Some("2026-11-04-add-oauth".to_owned()),
            tasks: vec![task],
            scenarios: vec![line("WHEN the token is old THEN it is refused")],
            commits: vec![commit],
            review: Some(review),
        };
        Self { id: trace.requirement.clone(), traces: vec![trace] }
    }
}

fn print(out: &mut Screen<'_>, trace: &Trace) -> io::Result<()> {
    const TITLE: usize = 60;
    let place = match (&trace.archived, trace.phase) {
        (Some(name), _) => format!("archived in agentd/archive/{name}"),
        (None, Some(phase)) => phase.to_string(),
        (None, None) => "new".to_owned(),
    };
    let title = fit(trace.title.as_str(), TITLE);
    writeln!(out, "{BOLD}{}{BOLD:#}  {title}", trace.requirement)?;
    let what = format!("{} {} it ({place})", trace.change_id, trace.how.name());
    out.labeled("  change    ", &what)?;
    for task in &trace.tasks {
        let status = task.status.name();
        let style = if status == "done" { GOOD } else { WARN };
        let action = task.action.map_or("", agentd_core::document::tasks::Action::label);
        let file = task.file.as_ref().map(|file| printable(file.as_str()).into_owned());
        let title = fit(task.title.as_str(), TITLE);
        writeln!(out, "  task      {:5} {style}{status:7}{style:#} {title}", task.id.to_string())?;
        if let Some(file) = file {
            writeln!(out, "  file      {:13} {action:6} {file}", "")?;
        }
    }
    for commit in &trace.commits {
        let tasks: Vec<String> = commit.tasks.iter().map(ToString::to_string).collect();
        let subject = fit(commit.subject.as_str(), TITLE);
        let label = format!("  commit    {DIM}{}{DIM:#} ", commit.id);
        out.labeled(&label, &format!("{} {subject}", tasks.join(", ")))?;
    }
    for scenario in &trace.scenarios {
        out.labeled("  scenario  ", &fit(scenario.as_str(), TITLE))?;
    }
    match &trace.review {
        Some(review) => {
            let tests = match review.tests_passed {
                Some(true) => ", tests passed",
                Some(false) => ", tests failed",
                None => "",
            };
            let by = printable(review.reviewer.as_str());
            let said = format!("{} by {by}, round {}{tests}", review.verdict, review.iteration);
            out.labeled("  review    ", &said)?;
        }
        None => writeln!(out, "  review    none of its code yet")?,
    }
    Ok(())
}
