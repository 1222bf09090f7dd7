use std::io::{self, Write as _};
use std::process::ExitCode;

use agentd_core::figures::{duration, tokens, usd};
use agentd_core::text::counted;
use agentd_engine::change::{documents, settling};
#[cfg(test)]
use agentd_engine::insight::cost::StepCost;
use agentd_engine::insight::cost::{self, CostReport, Month, ProjectCost, Share, Spent};

use super::Context;
use crate::error::CommandError;
use crate::ui::table::{Cell, Column, Table};
use crate::ui::{BOLD, DIM, Output, Screen, WARN};

/// Show what changes have cost: by step, model, role, change and month.
///
/// Without an ID, shows the only open change, or all changes if there are several. Archived
/// changes count, and can be named. Input tokens include cached ones, which cost less. Models
/// without a known price count as free; set their prices in `[prices]` in agentd/config.toml. A
/// call that was cut short is unsettled: it counts with what it was expected to cost until you say
/// what it did cost.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  agentd cost add-oauth\n  agentd cost --all\n  agentd cost --month 2026-11\n  agentd cost --json | jq '.total_cost_usd'\n  agentd cost add-oauth --settle 3=0.12    run 3 was billed with $0.12"
)]
pub(crate) struct Args {
    /// Change ID, or the name of an archived change.
    id: Option<String>,

    /// Show all changes, archived ones included.
    #[arg(long, conflicts_with = "id")]
    all: bool,

    /// Show all changes in one month (UTC), such as 2026-11.
    #[arg(long, value_name = "MONTH", conflicts_with = "id")]
    month: Option<Month>,

    /// Record what a call has cost that was cut short, by the number of its run.
    #[arg(long, value_name = "RUN=USD", value_parser = settled)]
    settle: Vec<(u32, f64)>,
}

fn settled(text: &str) -> Result<(u32, f64), String> {
    let parsed = text.split_once('=').and_then(|(run, cost)| {
        let cost = cost.strip_prefix('$').unwrap_or(cost).parse::<f64>().ok()?;
        Some((run.parse().ok()?, cost)).filter(|_| cost.is_finite() && cost >= 0.0)
    });
    parsed.ok_or_else(|| "it is the number of a run and an amount, such as 3=0.12".to_owned())
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    let id = args.id.as_deref();
    let whole = args.all || args.month.is_some();
    if whole || (id.is_none() && context.meant(&context.project()?)?.is_none()) {
        let report = cost::of_project(&context.project()?, args.month.as_ref())?;
        for problem in &report.unreadable {
            context.ui.warn(problem);
        }
        context.ui.print(&report)?;
        return Ok(ExitCode::SUCCESS);
    }
    let project = context.project_of(id)?;
    let change = context.change_to_read(&project, id)?;
    let state = if args.settle.is_empty() {
        documents::load_state(&change)?
    } else {
        let costs = args.settle.iter().copied().collect();
        settling::settle(&project, change.id(), &costs, &context.holder(), context.now())?
    };
    let budget = documents::load_config(&project)?.budget;
    let report = cost::report(&change, &state, budget);
    context.ui.print(&report)?;
    Ok(ExitCode::SUCCESS)
}

/// The columns of figures that every table here has.
fn table(name: &'static str, least: usize) -> Table {
    Table::new([
        Column::new(name).least(least).keeps(32, 0),
        Column::figures("CALLS").optional(4),
        Column::figures("FAILED").optional(5),
        Column::figures("IN").optional(3),
        Column::figures("OUT").optional(2),
        Column::figures("TIME").optional(6),
        Column::figures("COST"),
        Column::new("").optional(0),
        Column::new("MODEL").optional(1).least(12).keeps(24, 0),
    ])
}

/// What calls have used, as cells below these columns.
fn cells(name: Cell, spent: &Spent, most: f64, model: &str) -> Vec<Cell> {
    let failed = if spent.failed > 0 { spent.failed.to_string() } else { String::new() };
    vec![
        name,
        Cell::new(spent.calls.to_string()),
        Cell::styled(failed, WARN),
        Cell::new(if spent.tokens_in > 0 { tokens(spent.tokens_in) } else { String::new() }),
        Cell::new(if spent.tokens_out > 0 { tokens(spent.tokens_out) } else { String::new() }),
        Cell::new(duration(spent.duration_ms)),
        Cell::styled(dollars(spent.cost_usd), BOLD),
        Cell::styled(bar(spent.cost_usd, most), DIM),
        Cell::styled(model, DIM),
    ]
}

/// To a hundredth of a cent: most calls cost less than a cent.
fn dollars(usd: f64) -> String {
    if usd > 0.0 { format!("${usd:.4}") } else { "$0".to_owned() }
}

fn dearest<'s>(spent: impl Iterator<Item = &'s Spent>) -> f64 {
    spent.map(|spent| spent.cost_usd).fold(0.0, f64::max)
}

/// A table of shares below a heading.
fn section(screen: &mut Screen<'_>, heading: &'static str, shares: &[Share]) -> io::Result<()> {
    if shares.is_empty() {
        return Ok(());
    }
    let most = dearest(shares.iter().map(|share| &share.spent));
    let mut table = table(heading, 12);
    for share in shares {
        table.row(cells(Cell::new(&share.name), &share.spent, most, ""));
    }
    writeln!(screen)?;
    if screen.columns().is_none() {
        // Tables have no headings there.
        writeln!(screen, "{heading}")?;
    }
    screen.table(&table)
}

/// `8 calls, 1 failed, 36.0k tokens in, 2.1k out, 4.5 s, $0.0123`
fn total(screen: &mut Screen<'_>, spent: &Spent) -> io::Result<()> {
    let mut parts = vec![counted(spent.calls, "call")];
    if spent.failed > 0 {
        parts.push(format!("{} failed", spent.failed));
    }
    if spent.tokens_in > 0 {
        parts.push(format!("{} tokens in", tokens(spent.tokens_in)));
        parts.push(format!("{} out", tokens(spent.tokens_out)));
    }
    parts.push(duration(spent.duration_ms));
    writeln!(screen)?;
    let label = format!("{BOLD}{}{BOLD:#}  ", dollars(spent.cost_usd));
    screen.labeled(&label, &parts.join(", "))
}

impl Output for CostReport {
    fn text(&self, screen: &mut Screen<'_>) -> io::Result<()> {
        if self.steps.is_empty() {
            let id = &self.change_id;
            screen.note(&format!("`{id}` has cost nothing yet: no agent was called."));
            return Ok(());
        }
        let most = dearest(self.steps.iter().map(|step| &step.spent));
        let mut steps = table("STEP", 14);
        for step in &self.steps {
            let name = Cell::new(step.step.to_string());
            steps.row(cells(name, &step.spent, most, &step.model));
        }
        screen.table(&steps)?;
        if screen.columns().is_some() {
            // For pipes, the steps have all of it.
            section(screen, "MODEL", &self.models)?;
            section(screen, "ROLE", &self.roles)?;
        }
        let Self { calls, failed, tokens_in, tokens_cached, tokens_out, duration_ms, .. } = *self;
        let cost_usd = self.total_cost_usd;
        let spent =
            Spent { calls, failed, tokens_in, tokens_cached, tokens_out, duration_ms, cost_usd };
        total(screen, &spent)?;
        if !self.unsettled.is_empty() {
            let sum: f64 = self.unsettled.iter().map(|call| call.cost_usd).sum();
            let runs = self.unsettled.iter().map(|call| format!("{} {}", call.run, call.step));
            let runs = runs.collect::<Vec<_>>().join(", ");
            let says = format!("{} for calls that were cut short: {runs}", dollars(sum));
            screen.labeled("estimated ", &says)?;
        }
        if let Some(forecast) = &self.forecast {
            screen.labeled("forecast  ", &forecast.cost_shown())?;
        }
        if let Some(limit) = self.budget.max_cost_usd {
            screen.labeled("budget    ", &usd(limit))?;
        }
        Ok(())
    }

    #[cfg(test)]
    fn sample() -> Self {
        use agentd_core::config::Budget;
        use agentd_core::ids::ChangeId;
        let step = StepCost {
            step: agentd_core::step_name::StepName::ProposalGen,
            model: "gemini".to_owned(),
            spent: spent(),
        };
        let (run, cost_usd) = (3, 0.1);
        let unsettled = vec![settling::UnsettledCall { run, step: step.step.clone(), cost_usd }];
        Self {
            change_id: ChangeId::new("add-oauth").unwrap(),
            total_cost_usd: step.spent.cost_usd,
            tokens_in: step.spent.tokens_in,
            tokens_cached: step.spent.tokens_cached,
            tokens_out: step.spent.tokens_out,
            duration_ms: step.spent.duration_ms,
            calls: step.spent.calls,
            failed: step.spent.failed,
            budget: Budget {
                max_cost_usd: Some(5.0),
                max_tokens: Some(1_000_000),
                ask_above_usd: Some(10.0),
            },
            forecast: Some(agentd_core::state::Ranges::default()),
            archived: Some("2026-11-04-add-oauth".to_owned()),
            steps: vec![step],
            models: vec![share("gemini-3.8-flash")],
            roles: vec![share("planner")],
            unsettled,
        }
    }
}

#[cfg(test)]
fn spent() -> Spent {
    Spent {
        calls: 1,
        failed: 0,
        tokens_in: 12_000,
        tokens_cached: 9_000,
        tokens_out: 800,
        duration_ms: 4_500,
        cost_usd: 0.02,
    }
}

#[cfg(test)]
fn share(name: &str) -> Share {
    Share { name: name.to_owned(), spent: spent() }
}

impl Output for ProjectCost {
    fn text(&self, screen: &mut Screen<'_>) -> io::Result<()> {
        if self.changes.is_empty() {
            let when = self.month.as_ref().map(|month| format!(" in {month}")).unwrap_or_default();
            screen.note(&format!("No agent was called{when}, so nothing was spent."));
            return Ok(());
        }
        let most = dearest(self.changes.iter().map(|change| &change.spent));
        let mut changes = table("CHANGE", 16);
        for change in &self.changes {
            let name = match &change.archived {
                Some(name) => Cell::styled(name, DIM),
                None => Cell::new(change.change_id.as_str()),
            };
            changes.row(cells(name, &change.spent, most, ""));
        }
        screen.table(&changes)?;
        section(screen, "STEP", &self.steps)?;
        section(screen, "MODEL", &self.models)?;
        section(screen, "ROLE", &self.roles)?;
        if self.month.is_none() {
            section(screen, "MONTH", &self.months)?;
        }
        total(screen, &self.spent)
    }

    #[cfg(test)]
    fn sample() -> Self {
        use agentd_core::ids::ChangeId;
        let change = cost::ChangeCost {
            change_id: ChangeId::new("add-oauth").unwrap(),
            archived: Some("2026-11-04-add-oauth".to_owned()),
            last_call: "2026-11-04T10:00:00Z".parse().ok(),
            spent: spent(),
        };
        Self {
            total_cost_usd: 0.02,
            month: "2026-11".parse().ok(),
            spent: spent(),
            changes: vec![change],
            steps: vec![share("proposal-gen")],
            models: vec![share("gemini-3.8-flash")],
            roles: vec![share("planner")],
            months: vec![share("2026-11")],
            unreadable: vec!["cannot use the STATE.yaml of `x`".to_owned()],
        }
    }
}

const BAR_WIDTH: usize = 12;

/// A bar as long as its share of the dearest step; whatever costs something shows.
fn bar(cost: f64, most: f64) -> String {
    if most <= 0.0 || cost <= 0.0 {
        return String::new();
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "between 1 and the width of the bar"
    )]
    let length = ((cost / most * BAR_WIDTH as f64).round() as usize).clamp(1, BAR_WIDTH);
    "█".repeat(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_a_share_of_the_dearest() {
        assert_eq!(bar(2.0, 2.0).chars().count(), BAR_WIDTH);
        assert_eq!(bar(0.001, 2.0).chars().count(), 1);
        assert_eq!(bar(0.0, 2.0), "");
        assert_eq!(bar(0.0, 0.0), "");
    }
}
