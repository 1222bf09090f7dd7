use std::io::Write as _;
use std::process::ExitCode;

use agentd_core::ids::SpecId;
use agentd_engine::change::summary::Summary;
use agentd_engine::store::{StoreError, map_parallel};
use serde_json::json;

use super::{BEGIN, Context};
use crate::error::CommandError;
use crate::ui::{BAD, BOLD, DIM, fit};

/// List the open changes, or the main specs, or what is archived.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  agentd list\n  agentd list --specs\n  agentd list --json | jq -r '.changes[].change_id'"
)]
pub(crate) struct Args {
    /// List the main specs.
    #[arg(long, conflicts_with = "archived")]
    specs: bool,

    /// List the archived changes.
    #[arg(long)]
    archived: bool,
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    let project = context.project()?;
    if args.specs {
        let ids = project.spec_ids()?.ids;
        let names: Vec<&str> = ids.iter().map(SpecId::as_str).collect();
        return names_only(
            context,
            "specs",
            &names,
            "There are no main specs yet; archiving a change makes them.",
        );
    }
    if args.archived {
        let names: Vec<String> = project.archived()?.ids.iter().map(ToString::to_string).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        return names_only(context, "archived", &names, "Nothing is archived yet.");
    }
    let listed = project.change_ids()?;
    for odd in &listed.odd {
        context
            .ui
            .warn(&format!("agentd/changes/{} is not a change: its name is not an id", odd.name));
    }
    let summaries = map_parallel(&listed.ids, |id| -> Result<_, StoreError> {
        Ok(project.change_if_open(id)?.as_ref().map(Summary::read))
    });
    let summaries: Vec<Summary> =
        summaries.into_iter().filter_map(Result::transpose).collect::<Result<_, _>>()?;
    for problem in summaries.iter().filter_map(|summary| summary.problem.as_ref()) {
        context.ui.warn(problem);
    }
    if context.ui.json {
        context.ui.print_json(&json!({ "version": 1, "changes": summaries }))?;
        return Ok(ExitCode::SUCCESS);
    }
    if summaries.is_empty() {
        context.ui.note("No change is open.");
        context.ui.note(&format!("Next: {BEGIN}"));
        return Ok(ExitCode::SUCCESS);
    }
    let mut out = context.ui.out();
    let width = summaries.iter().map(|s| s.change_id.as_str().len()).max().unwrap_or(0);
    for summary in &summaries {
        line(&mut out, summary, width)?;
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

/// A title may be a whole paragraph.
const TITLE_COLUMNS: usize = 80;

/// One change: id, phase, tasks, cost, what it is about.
fn line(
    out: &mut impl std::io::Write,
    summary: &Summary,
    width: usize,
) -> Result<(), CommandError> {
    let id = summary.change_id.as_str();
    write!(out, "{BOLD}{id:width$}{BOLD:#}  ")?;
    match summary.phase {
        Some(phase) => write!(out, "{phase:12}")?,
        None if summary.problem.is_none() => write!(out, "{:12}", "new")?,
        None => write!(out, "{BAD}{:12}{BAD:#}", "unreadable")?,
    }
    let tasks = match summary.tasks.total {
        0 => "no tasks".to_owned(),
        total => format!("{}/{total} tasks", summary.tasks.completed),
    };
    write!(out, "  {tasks:>12}  {:>8}", format!("${:.2}", summary.cost_usd))?;
    if !summary.title.is_empty() {
        write!(out, "  {DIM}{}{DIM:#}", fit(&summary.title, TITLE_COLUMNS))?;
    }
    writeln!(out)?;
    Ok(())
}

fn names_only(
    context: &Context,
    key: &str,
    names: &[&str],
    none: &str,
) -> Result<ExitCode, CommandError> {
    if context.ui.json {
        context.ui.print_json(&json!({ "version": 1, key: names }))?;
    } else if names.is_empty() {
        context.ui.note(none);
    } else {
        let mut out = context.ui.out();
        for name in names {
            writeln!(out, "{name}")?;
        }
        out.flush()?;
    }
    Ok(ExitCode::SUCCESS)
}
