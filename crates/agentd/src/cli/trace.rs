use std::io::Write as _;
use std::process::ExitCode;

use agentd_core::ids::{ChangeId, SpecRef};
use agentd_core::text::printable;
use agentd_engine::insight::trace::{self, Trace};
use agentd_engine::store::Project;
use serde_json::json;

use super::Context;
use crate::error::CommandError;
use crate::ui::{BOLD, DIM, GOOD, WARN, fit};

/// Follow a requirement to its tasks, files, commits, scenarios and review.
///
/// Of a requirement, every change that has touched it, archived ones too; of a change,
/// each of its requirements.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  agentd trace auth-flow:R1\n  agentd trace auth-flow            every requirement of the spec\n  agentd trace add-oauth            every requirement of the change\n  agentd trace auth-flow:R1 --json"
)]
pub(crate) struct Args {
    /// A requirement, a spec, or a change.
    id: String,
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    let project = context.project()?;
    let traces = find(&project, &args.id)?;
    if context.ui.json {
        let document = json!({ "version": 1, "id": args.id, "traces": traces });
        context.ui.print_json(&document)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut out = context.ui.out();
    for trace in &traces {
        print(&mut out, trace)?;
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

/// A change goes before a spec of the same name: the spec has requirements to ask for.
fn find(project: &Project, id: &str) -> Result<Vec<Trace>, CommandError> {
    if let Ok(change) = ChangeId::new(id)
        && let Some(traces) = trace::of_change(project, &change)?
    {
        return Ok(traces);
    }
    let wanted: SpecRef = id.parse().map_err(|error: agentd_core::ids::IdError| {
        CommandError::usage(error.to_string())
            .hint("a requirement is named as in `auth-flow:R1`, a change by its id")
    })?;
    let traces = trace::of_requirement(project, &wanted)?;
    if traces.is_empty() {
        let what = if wanted.requirement.is_some() { "requirement" } else { "change or spec" };
        return Err(CommandError::new(
            "nothing_to_trace",
            format!("no change touches a {what} `{id}`"),
        )
        .hint("`agentd list` shows the changes that are open, `agentd list --specs` the specs"));
    }
    Ok(traces)
}

fn print(out: &mut impl std::io::Write, trace: &Trace) -> Result<(), CommandError> {
    const TITLE: usize = 60;
    let place = match (&trace.archived, trace.phase) {
        (Some(name), _) => format!("archived in agentd/archive/{name}"),
        (None, Some(phase)) => phase.to_string(),
        (None, None) => "new".to_owned(),
    };
    let title = fit(trace.title.as_str(), TITLE);
    writeln!(out, "{BOLD}{}{BOLD:#}  {title}", trace.requirement)?;
    writeln!(out, "  change    {} {} it {DIM}({place}){DIM:#}", trace.change_id, trace.how.name())?;
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
        writeln!(out, "  commit    {} {DIM}{}{DIM:#} {subject}", commit.id, tasks.join(", "))?;
    }
    for scenario in &trace.scenarios {
        writeln!(out, "  scenario  {}", fit(scenario.as_str(), TITLE))?;
    }
    match &trace.review {
        Some(review) => {
            let tests = match review.tests_passed {
                Some(true) => ", tests passed",
                Some(false) => ", tests failed",
                None => "",
            };
            let by = printable(review.reviewer.as_str());
            writeln!(
                out,
                "  review    {} by {by}, round {}{tests}",
                review.verdict, review.iteration
            )?;
        }
        None => writeln!(out, "  review    none yet")?,
    }
    writeln!(out)?;
    Ok(())
}
