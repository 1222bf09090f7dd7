mod rows;

use std::cmp::Ordering;
use std::io;
use std::process::ExitCode;

use agentd_core::figures::usd;
use agentd_core::ids::SpecId;
use agentd_core::phase::Phase;
use agentd_core::stamp::Stamp;
use agentd_core::text::counted;
use agentd_engine::change::glance::{self, Glance};
use agentd_engine::insight::main_specs::{self, SpecSummary};
use agentd_engine::store::Project;
use anstyle::Style;
use serde::Serialize;

use self::rows::updated;
pub(super) use self::rows::{Group, add_groups, counts, first_to_continue, natural, sort, table};
use super::{Context, begin};
use crate::error::CommandError;
use crate::ui::table::{Cell, Column, Table};
use crate::ui::{BOLD, DIM, Output, Screen};

/// List changes: what waits for you, what runs, and what comes next.
///
/// Changes that wait for you are listed first, then those that a command is working on, then those
/// whose next step can begin; each with the command that takes it on. A pipe gets one line for each
/// change, with all columns.
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own")]
#[command(
    after_help = "Examples:\n  agentd list\n  agentd list --all --sort cost\n  agentd list --waiting\n  agentd list --specs\n  agentd list --json | jq -r '.changes[].change_id'"
)]
pub(crate) struct Args {
    /// List archived changes too.
    #[arg(long, short = 'a', conflicts_with = "specs")]
    all: bool,

    /// List only the archived changes.
    #[arg(long, conflicts_with_all = ["specs", "all"])]
    archived: bool,

    /// List the main specs.
    #[arg(long)]
    specs: bool,

    /// List only the changes that wait for you.
    #[arg(long, conflicts_with = "specs")]
    waiting: bool,

    /// List only the changes in this phase; may be given several times.
    #[arg(long, value_name = "PHASE", conflicts_with = "specs")]
    phase: Vec<PhaseArg>,

    /// List only what has this text in its ID or title.
    #[arg(long = "match", value_name = "TEXT")]
    matching: Option<String>,

    /// Order within a group.
    #[arg(long, value_name = "KEY", value_enum, default_value_t = Sort::Updated)]
    sort: Sort,
}

/// What `--phase` takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum PhaseArg {
    New,
    Proposed,
    Challenged,
    Rejected,
    Implementing,
    Complete,
    Archived,
}

impl PhaseArg {
    fn of(glance: &Glance) -> Self {
        match glance.summary.phase {
            _ if glance.archived.is_some() => Self::Archived,
            None => Self::New,
            Some(Phase::Proposed) => Self::Proposed,
            Some(Phase::Challenged) => Self::Challenged,
            Some(Phase::Rejected) => Self::Rejected,
            Some(Phase::Implementing) => Self::Implementing,
            Some(Phase::Complete) => Self::Complete,
            Some(Phase::Archived) => Self::Archived,
        }
    }
}

/// What `--sort` takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Sort {
    /// The last update first.
    Updated,
    /// The newest first.
    Created,
    /// The dearest first.
    Cost,
    /// By ID, with numbers in their order.
    Id,
}

/// Changes.
#[derive(Debug, Serialize)]
pub(super) struct ChangeList {
    changes: Vec<Glance>,
    /// How many changes are archived and not listed.
    #[serde(skip)]
    archived: usize,
    /// Whether only some of the changes were asked for.
    #[serde(skip)]
    filtered: bool,
}

/// The main specs.
#[derive(Debug, Serialize)]
pub(super) struct SpecList {
    specs: Vec<SpecId>,
    /// What is in them.
    details: Vec<SpecSummary>,
}

/// The archived changes.
#[derive(Debug, Serialize)]
pub(super) struct ArchivedList {
    archived: Vec<String>,
    /// What they were.
    changes: Vec<Glance>,
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    let project = context.project()?;
    if args.specs {
        let mut details = main_specs::summaries(&project)?;
        details.retain(|spec| args.matches(spec.spec_id.as_str(), spec.title.as_str()));
        if args.sort == Sort::Updated {
            details.sort_by_key(|spec| std::cmp::Reverse(spec.updated_at));
        }
        let specs = details.iter().map(|spec| spec.spec_id.clone()).collect();
        context.ui.print(&SpecList { specs, details })?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut archived = Vec::new();
    if args.archived || args.all {
        archived = glance::archived(&project)?;
        args.select(&mut archived);
    }
    if args.archived {
        let names = archived.iter().filter_map(|glance| glance.archived.clone()).collect();
        context.ui.print(&ArchivedList { archived: names, changes: archived })?;
    } else {
        context.ui.print(&changes(context, &project, args, archived)?)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn changes(
    context: &Context,
    project: &Project,
    args: &Args,
    archived: Vec<Glance>,
) -> Result<ChangeList, CommandError> {
    for odd in &project.change_ids()?.odd {
        context
            .ui
            .warn(&format!("agentd/changes/{} is not a change: its name is not an id", odd.name));
    }
    let mut changes = glance::open(project)?;
    for problem in changes.iter().filter_map(|glance| glance.summary.problem.as_ref()) {
        context.ui.warn(problem);
    }
    args.select(&mut changes);
    // What waits stands first for programs, too, unless they ask for an order of their own.
    changes.sort_by_key(Group::of);
    let unlisted = if args.all { 0 } else { project.archived()?.ids.len() };
    changes.extend(archived);
    let filtered = args.waiting || !args.phase.is_empty() || args.matching.is_some();
    Ok(ChangeList { changes, archived: unlisted, filtered })
}

impl Args {
    fn matches(&self, id: &str, title: &str) -> bool {
        let Some(wanted) = &self.matching else { return true };
        let wanted = wanted.to_lowercase();
        id.contains(&wanted) || title.to_lowercase().contains(&wanted)
    }

    /// Keeps the changes that were asked for, in the order that was asked for.
    fn select(&self, changes: &mut Vec<Glance>) {
        changes.retain(|glance| {
            let phase = PhaseArg::of(glance);
            self.matches(glance.summary.change_id.as_str(), &glance.summary.title)
                && (self.phase.is_empty() || self.phase.contains(&phase))
                && (!self.waiting || Group::of(glance) == Group::NeedsYou)
        });
        let newest = |at: Option<Stamp>| std::cmp::Reverse(at);
        changes.sort_by(|a, b| {
            let by_id = || natural(a.summary.change_id.as_str(), b.summary.change_id.as_str());
            let order = match self.sort {
                Sort::Updated => newest(updated(a)).cmp(&newest(updated(b))),
                Sort::Created => newest(a.created_at).cmp(&newest(b.created_at)),
                Sort::Cost => b.summary.cost_usd.total_cmp(&a.summary.cost_usd),
                Sort::Id => Ordering::Equal,
            };
            order.then_with(by_id)
        });
    }
}

impl Output for ChangeList {
    fn text(&self, screen: &mut Screen<'_>) -> io::Result<()> {
        if self.changes.is_empty() {
            if self.filtered {
                screen.note("No change matches.");
                return Ok(());
            }
            screen.note("No change is open.");
            if self.archived > 0 {
                let archived = counted(self.archived, "change");
                screen.note(&format!("{archived} archived: agentd list --archived"));
            }
            screen.note(&format!("\nNext: {}", begin()));
            return Ok(());
        }
        let mut table = table(screen);
        add_groups(&mut table, screen, &self.changes, usize::MAX);
        screen.table(&table)?;
        match (first_to_continue(&self.changes), screen.columns()) {
            (Some(first), Some(_)) => {
                screen.next(first.next_for_people.get(..1).unwrap_or_default())
            }
            _ => Ok(()),
        }
    }

    #[cfg(test)]
    fn sample() -> Self {
        Self { changes: vec![sample_glance()], archived: 0, filtered: false }
    }
}

/// One with everything that can be known.
#[cfg(test)]
pub(super) fn sample_glance() -> Glance {
    use agentd_core::diagnostic::Counts;
    use agentd_core::ids::ChangeId;
    use agentd_core::next_step::Command;
    use agentd_core::standing::Standing;
    use agentd_core::state::LastAction;
    use agentd_engine::change::summary::{Progress, Summary};
    let change_id = ChangeId::new("add-oauth").unwrap();
    Glance {
        next: vec![Command::Reproposal.on(&change_id)],
        next_for_people: vec![Command::Plan.on(&change_id)],
        summary: Summary {
            change_id,
            phase: Some(Phase::Proposed),
            title: "Sign in with Google".to_owned(),
            tasks: Progress { total: 4, completed: 1 },
            cost_usd: 0.02,
            estimated_usd: 0.0,
            updated_at: Some("2026-11-04T10:00:00Z".to_owned()),
            last_action: Some(LastAction::Decide),
            branch: Some("agentd/add-oauth".to_owned()),
            base_branch: Some("main".to_owned()),
            work_tree: Some("/home/me/shop-agentd/add-oauth".to_owned()),
            problem: Some("cannot read STATE.yaml".to_owned()),
        },
        created_at: "2026-11-04T09:00:00Z".parse().ok(),
        archived: Some("2026-11-04-add-oauth".to_owned()),
        standing: Some(Standing::Waiting),
        state: "needs revision",
        why: "its plan needs revision",
        running: Some(super::status::running()),
        specs: Vec::new(),
        failed: None,
        open_comments: 0,
        verdict: Some("NEEDS_REVISION"),
        issues: Some(Counts { high: 2, medium: 0, low: 1 }),
    }
}

impl Output for SpecList {
    fn text(&self, screen: &mut Screen<'_>) -> io::Result<()> {
        if self.details.is_empty() {
            screen.note("There are no main specs yet; archiving a change makes them.");
            return Ok(());
        }
        let mut table = Table::new([
            Column::new("SPEC").least(16),
            Column::figures("REQUIREMENTS"),
            Column::figures("SCENARIOS").optional(1),
            Column::figures("UPDATED").optional(2),
            Column::new("TITLE").optional(0).least(16),
        ]);
        for spec in &self.details {
            table.row([
                Cell::styled(spec.spec_id.as_str(), BOLD),
                Cell::new(spec.requirements.to_string()),
                Cell::new(spec.scenarios.to_string()),
                Cell::styled(spec.updated_at.map(|at| screen.when(at)).unwrap_or_default(), DIM),
                Cell::styled(spec.title.as_str(), DIM),
            ]);
        }
        screen.table(&table)
    }

    #[cfg(test)]
    fn sample() -> Self {
        let spec_id = SpecId::new("auth-flow").unwrap();
        let summary = SpecSummary {
            spec_id: spec_id.clone(),
            title: "Sign-in".into(),
            requirements: 4,
            scenarios: 7,
            updated_at: "2026-11-04T10:00:00Z".parse().ok(),
        };
        Self { specs: vec![spec_id], details: vec![summary] }
    }
}

impl Output for ArchivedList {
    fn text(&self, screen: &mut Screen<'_>) -> io::Result<()> {
        if self.changes.is_empty() {
            screen.note("Nothing is archived yet.");
            return Ok(());
        }
        let mut table = Table::new([
            Column::new("CHANGE").least(16),
            Column::new("DATE"),
            Column::new("VERDICT").optional(2).least(8),
            Column::figures("COST").optional(1),
            Column::new("TITLE").optional(0).least(20),
        ]);
        for glance in &self.changes {
            let name = glance.archived.clone().unwrap_or_default();
            // In a pipe the name of the directory: others may have had that ID.
            let id = match screen.columns() {
                Some(_) => glance.summary.change_id.as_str(),
                None => &name,
            };
            // The directory has the date in its name.
            let date = name.get(.."2026-11-04".len()).filter(|_| screen.columns().is_some());
            let date = date.unwrap_or_default();
            let dropped = glance.state == "dropped";
            let verdict = if dropped { "dropped" } else { glance.verdict.unwrap_or_default() };
            let cost = glance.summary.cost_usd;
            table.row([
                Cell::styled(id, BOLD),
                Cell::new(date),
                Cell::styled(verdict, if dropped { DIM } else { Style::new() }),
                Cell::new(if cost > 0.0 { usd(cost) } else { String::new() }),
                Cell::styled(&glance.summary.title, DIM),
            ]);
        }
        screen.table(&table)
    }

    #[cfg(test)]
    fn sample() -> Self {
        Self { archived: vec!["2026-11-04-add-oauth".to_owned()], changes: vec![sample_glance()] }
    }
}
