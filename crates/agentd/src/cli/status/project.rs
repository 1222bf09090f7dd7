//! The project at a glance: `agentd status` where no change is meant.

use std::io::{self, Write as _};

use agentd_core::figures::usd;
use agentd_core::next_step::NextStep;
use agentd_core::text::counted;
use agentd_engine::change::glance::{self, Glance};
use agentd_engine::insight::cost::{self, Month};
use agentd_engine::store::Project;
use serde::Serialize;

use crate::cli::list::{add_groups, first_to_continue, sort, table};
use crate::cli::{Context, begin};
use crate::error::CommandError;
use crate::ui::{BOLD, DIM, Output, Screen};

/// How many changes of a group are shown; `agentd list` shows all of them.
const SHOWN: usize = 8;

/// The project at a glance.
#[derive(Debug, Serialize)]
pub(in crate::cli) struct ProjectStatus {
    /// Its directory.
    root: String,
    /// How many changes are open.
    open: usize,
    /// How many are archived.
    archived: usize,
    /// How many main specs there are.
    specs: usize,
    /// What all changes have cost, in US dollars.
    cost_usd: f64,
    /// What they have cost this month.
    month_cost_usd: f64,
    /// The open changes, those that wait for a person first.
    changes: Vec<Glance>,
    /// The command that takes the first of them on.
    next: Vec<NextStep>,
    /// The same for a person at a terminal, who can be asked.
    #[serde(skip)]
    next_for_people: Vec<NextStep>,
}

pub(super) fn report(context: &Context, project: &Project) -> Result<ProjectStatus, CommandError> {
    let mut changes = glance::open(project)?;
    sort(&mut changes);
    let spent = cost::of_project(project, None)?;
    let this_month = Month::of(context.now()).to_string();
    let first = first_to_continue(&changes);
    let month = spent.months.iter().find(|month| month.name == this_month);
    Ok(ProjectStatus {
        root: project.root().display().to_string(),
        open: changes.len(),
        archived: project.archived_everywhere()?.len(),
        specs: project.spec_ids()?.ids.len(),
        cost_usd: spent.total_cost_usd,
        month_cost_usd: month.map_or(0.0, |month| month.spent.cost_usd),
        next: first.and_then(|first| first.next.first()).into_iter().cloned().collect(),
        next_for_people: first
            .and_then(|first| first.next_for_people.first())
            .into_iter()
            .cloned()
            .collect(),
        changes,
    })
}

impl Output for ProjectStatus {
    fn text(&self, screen: &mut Screen<'_>) -> io::Result<()> {
        let name = self.root.rsplit('/').find(|part| !part.is_empty()).unwrap_or(&self.root);
        let mut facts = vec![
            format!("{} open", counted(self.open, "change")),
            format!("{} archived", self.archived),
            counted(self.specs, "main spec"),
        ];
        if self.cost_usd > 0.0 {
            let month = usd(self.month_cost_usd);
            facts.push(format!("{} spent, {month} this month", usd(self.cost_usd)));
        }
        let label = format!("{BOLD}{name}{BOLD:#}  ");
        screen.labeled(&label, &facts.join(" · "))?;
        if self.changes.is_empty() {
            writeln!(screen, "\nNext: {BOLD}{}{BOLD:#}", begin())?;
            return Ok(());
        }
        writeln!(screen)?;
        let mut table = table(screen);
        let shown = screen.columns().map_or(usize::MAX, |_| SHOWN);
        let left = add_groups(&mut table, screen, &self.changes, shown);
        screen.table(&table)?;
        if left > 0 {
            writeln!(screen, "{DIM}… {left} more: agentd list{DIM:#}")?;
        }
        match screen.columns() {
            Some(_) => screen.next(&self.next_for_people),
            None => screen.next(&self.next),
        }
    }

    #[cfg(test)]
    fn sample() -> Self {
        let glance = crate::cli::list::sample_glance();
        Self {
            root: "/home/me/shop".to_owned(),
            open: 1,
            archived: 3,
            specs: 4,
            cost_usd: 1.25,
            month_cost_usd: 0.25,
            next: glance.next.clone(),
            next_for_people: glance.next_for_people.clone(),
            changes: vec![glance],
        }
    }
}
