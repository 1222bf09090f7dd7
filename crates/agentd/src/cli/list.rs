use std::fmt::Display;
use std::io::{self, Write as _};
use std::process::ExitCode;

use agentd_core::ids::SpecId;
use agentd_core::text::printable;
use agentd_engine::change::summary::Summary;
use agentd_engine::store::{Project, StoreError, map_parallel};
use serde::Serialize;

use super::{Context, begin};
use crate::error::CommandError;
use crate::ui::{BAD, BOLD, DIM, Output, Screen, fit};

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

/// The open changes.
#[derive(Debug, Serialize)]
pub(super) struct ChangeList {
    changes: Vec<Summary>,
}

/// The main specs.
#[derive(Debug, Serialize)]
pub(super) struct SpecList {
    specs: Vec<SpecId>,
}

/// The archived changes.
#[derive(Debug, Serialize)]
pub(super) struct ArchivedList {
    archived: Vec<String>,
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    let project = context.project()?;
    if args.specs {
        context.ui.print(&SpecList { specs: project.spec_ids()?.ids })?;
    } else if args.archived {
        let archived = project.archived()?.ids.iter().map(ToString::to_string).collect();
        context.ui.print(&ArchivedList { archived })?;
    } else {
        context.ui.print(&open_changes(context, &project)?)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn open_changes(context: &Context, project: &Project) -> Result<ChangeList, StoreError> {
    let listed = project.change_ids()?;
    for odd in &listed.odd {
        context
            .ui
            .warn(&format!("agentd/changes/{} is not a change: its name is not an id", odd.name));
    }
    let summaries = map_parallel(&project.open_everywhere()?, |(id, home)| {
        let Some(change) = home.change_if_open(id)? else { return Ok(None) };
        let elsewhere = (home.root() != project.root()).then(|| home.root().display().to_string());
        Ok::<_, StoreError>(Some(Summary { work_tree: elsewhere, ..Summary::read(&change) }))
    });
    let changes: Vec<Summary> =
        summaries.into_iter().filter_map(Result::transpose).collect::<Result<_, _>>()?;
    for problem in changes.iter().filter_map(|summary| summary.problem.as_ref()) {
        context.ui.warn(problem);
    }
    Ok(ChangeList { changes })
}

impl Output for ChangeList {
    fn text(&self, screen: &mut Screen<'_>) -> io::Result<()> {
        if self.changes.is_empty() {
            screen.note("No change is open.");
            screen.note(&format!("Next: {}", begin()));
        }
        let width = self.changes.iter().map(|s| s.change_id.as_str().len()).max().unwrap_or(0);
        self.changes.iter().try_for_each(|summary| line(screen, summary, width))
    }

    #[cfg(test)]
    fn sample() -> Self {
        use agentd_core::ids::ChangeId;
        use agentd_core::phase::Phase;
        use agentd_core::state::LastAction;
        use agentd_engine::change::summary::Progress;
        let summary = Summary {
            change_id: ChangeId::new("add-oauth").unwrap(),
            phase: Some(Phase::Proposed),
            title: "Sign in with Google".to_owned(),
            tasks: Progress { total: 4, completed: 1 },
            cost_usd: 0.02,
            updated_at: Some("2026-11-04T10:00:00Z".to_owned()),
            last_action: Some(LastAction::Decide),
            branch: Some("agentd/add-oauth".to_owned()),
            base_branch: Some("main".to_owned()),
            work_tree: Some("/home/me/shop-agentd/add-oauth".to_owned()),
            problem: Some("cannot read STATE.yaml".to_owned()),
        };
        Self { changes: vec![summary] }
    }
}

/// A title may be a whole paragraph.
const TITLE_COLUMNS: usize = 80;

/// One change: id, phase, tasks, cost, what it is about.
fn line(screen: &mut Screen<'_>, summary: &Summary, width: usize) -> io::Result<()> {
    let id = summary.change_id.as_str();
    write!(screen, "{BOLD}{id:width$}{BOLD:#}  ")?;
    match summary.phase {
        Some(phase) => write!(screen, "{phase:12}")?,
        None if summary.problem.is_none() => write!(screen, "{:12}", "new")?,
        None => write!(screen, "{BAD}{:12}{BAD:#}", "unreadable")?,
    }
    let tasks = match summary.tasks.total {
        0 => "no tasks".to_owned(),
        total => format!("{}/{total} tasks", summary.tasks.completed),
    };
    write!(screen, "  {tasks:>12}  {:>8}", format!("${:.2}", summary.cost_usd))?;
    if !summary.title.is_empty() {
        write!(screen, "  {DIM}{}{DIM:#}", fit(&summary.title, TITLE_COLUMNS))?;
    }
    if let Some(branch) = &summary.branch {
        write!(screen, "  {DIM}on {}{DIM:#}", printable(branch))?;
    }
    if let Some(base) = &summary.base_branch {
        write!(screen, "{DIM} from {}{DIM:#}", printable(base))?;
    }
    if let Some(work_tree) = &summary.work_tree {
        write!(screen, "{DIM} in {}{DIM:#}", printable(work_tree))?;
    }
    writeln!(screen)
}

impl Output for SpecList {
    fn text(&self, screen: &mut Screen<'_>) -> io::Result<()> {
        let none = "There are no main specs yet; archiving a change makes them.";
        names(screen, &self.specs, none)
    }

    #[cfg(test)]
    fn sample() -> Self {
        Self { specs: vec![SpecId::new("auth-flow").unwrap()] }
    }
}

impl Output for ArchivedList {
    fn text(&self, screen: &mut Screen<'_>) -> io::Result<()> {
        names(screen, &self.archived, "Nothing is archived yet.")
    }

    #[cfg(test)]
    fn sample() -> Self {
        Self { archived: vec!["2026-11-04-add-oauth".to_owned()] }
    }
}

fn names(screen: &mut Screen<'_>, names: &[impl Display], none: &str) -> io::Result<()> {
    if names.is_empty() {
        screen.note(none);
    }
    names.iter().try_for_each(|name| writeln!(screen, "{name}"))
}
