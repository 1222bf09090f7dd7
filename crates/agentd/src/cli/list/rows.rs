//! Changes as rows of a table: what needs you first.

use std::cmp::Ordering;

use agentd_core::diagnostic::Counts;
use agentd_core::figures::{clock, usd};
use agentd_core::outcome::FailureKind;
use agentd_core::phase::Phase;
use agentd_core::stamp::Stamp;
use agentd_core::standing::Standing;
use agentd_core::state::LlmCall;
use agentd_engine::change::glance::Glance;
use anstyle::Style;

use crate::ui::table::{Cell, Column, Table};
use crate::ui::{BAD, BOLD, DIM, GOOD, Screen, WARN};

/// When something last happened to it.
pub(super) fn updated(glance: &Glance) -> Option<Stamp> {
    glance.summary.updated_at.as_ref()?.parse().ok()
}

/// Compares IDs as people count: `add-2` is before `add-10`.
pub(in crate::cli) fn natural(a: &str, b: &str) -> Ordering {
    let runs = |text: &'_ str| -> Vec<(bool, String)> {
        let chunks = text.as_bytes().chunk_by(|x, y| x.is_ascii_digit() == y.is_ascii_digit());
        let text = |run: &[u8]| String::from_utf8_lossy(run).into_owned();
        chunks.map(|run| (run[0].is_ascii_digit(), text(run))).collect()
    };
    for ((a_counts, x), (b_counts, y)) in runs(a).into_iter().zip(runs(b)) {
        let order = if a_counts && b_counts {
            let value = |run: &str| run.trim_start_matches('0').len();
            value(&x)
                .cmp(&value(&y))
                .then_with(|| x.trim_start_matches('0').cmp(y.trim_start_matches('0')))
        } else {
            x.cmp(&y)
        };
        if order != Ordering::Equal {
            return order;
        }
    }
    a.len().cmp(&b.len()).then_with(|| a.cmp(b))
}

/// Puts changes in the order in which people are shown them: what needs them first, then the latest.
pub(in crate::cli) fn sort(changes: &mut [Glance]) {
    changes.sort_by(|a, b| natural(a.summary.change_id.as_str(), b.summary.change_id.as_str()));
    changes.sort_by_key(|glance| {
        (Group::of(glance), std::cmp::Reverse(glance.summary.updated_at.clone()))
    });
}

/// What changes are listed under, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::cli) enum Group {
    NeedsYou,
    Running,
    Ready,
    Archived,
}

impl Group {
    pub(in crate::cli) const ALL: [Self; 4] =
        [Self::NeedsYou, Self::Running, Self::Ready, Self::Archived];

    pub(in crate::cli) fn of(glance: &Glance) -> Self {
        match glance.standing {
            _ if glance.archived.is_some() => Self::Archived,
            None | Some(Standing::Waiting | Standing::Stale) => Self::NeedsYou,
            Some(Standing::Running) => Self::Running,
            // Somebody has to see why before the next step can begin.
            _ if failed(glance).is_some_and(|call| !is_interrupted(call)) => Self::NeedsYou,
            Some(Standing::Ready | Standing::Unfinished) => Self::Ready,
            Some(Standing::Done) => Self::Archived,
        }
    }

    pub(in crate::cli) fn heading(self) -> Cell {
        match self {
            Self::NeedsYou => Cell::styled("Needs you", WARN.bold()),
            Self::Running => Cell::styled("Running", BOLD),
            Self::Ready => Cell::styled("Ready to continue", GOOD.bold()),
            Self::Archived => Cell::styled("Archived", BOLD),
        }
    }
}

/// Where a change stands, in a few words.
fn state_of(screen: &Screen<'_>, glance: &Glance) -> String {
    if let Some(running) = &glance.running {
        let step = running.step.as_ref().map_or_else(|| "starting".to_owned(), ToString::to_string);
        let agent = running.agent.map(|agent| format!(" by {agent}")).unwrap_or_default();
        let since = running.step_since.unwrap_or(running.since);
        return match screen.columns() {
            // If there is little room, the agent is what can be missed.
            Some(_) => format!("{step} {}{agent}", clock(screen.since(since))),
            None => format!("{step}{agent}"),
        };
    }
    let state = glance.state;
    match (glance.issues, failed(glance)) {
        (_, Some(call)) if is_interrupted(call) => format!("{} interrupted", call.step),
        (_, Some(call)) => format!("{} failed", call.step),
        (Some(issues), _) if glance.standing == Some(Standing::Waiting) && issues.total() > 0 => {
            match screen.columns() {
                Some(_) => format!("{state}: {}", heaviest(issues)),
                None => format!("{state}: {}", counts(issues)),
            }
        }
        _ => state.to_owned(),
    }
}

/// The call that failed, if that is why the change is where it is.
fn failed(glance: &Glance) -> Option<&LlmCall> {
    let can_go_on = matches!(glance.standing, Some(Standing::Ready | Standing::Unfinished));
    glance.failed.as_ref().filter(|_| can_go_on && glance.archived.is_none())
}

fn is_interrupted(call: &LlmCall) -> bool {
    call.failure == Some(FailureKind::Cancelled)
}

/// `2 HIGH`: the heaviest are what matters where there is little room.
fn heaviest(issues: Counts) -> String {
    let Counts { high, medium, low } = issues;
    let all = [(high, "HIGH"), (medium, "MEDIUM"), (low, "LOW")];
    let found = all.into_iter().find(|(count, _)| *count > 0);
    found.map(|(count, of)| format!("{count} {of}")).unwrap_or_default()
}

/// `2 HIGH, 1 LOW`
pub(in crate::cli) fn counts(issues: Counts) -> String {
    let Counts { high, medium, low } = issues;
    let all = [(high, "HIGH"), (medium, "MEDIUM"), (low, "LOW")];
    let found: Vec<String> = all
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, severity)| format!("{count} {severity}"))
        .collect();
    if found.is_empty() { "no issues".to_owned() } else { found.join(", ") }
}

/// The columns of a list of changes. The branch and the title go first when there is little room, and all
/// others before an ID or a state is cut. In 50 columns, those that stay fit.
pub(in crate::cli) fn table(screen: &Screen<'_>) -> Table {
    let mut columns = vec![
        Column::new("CHANGE").least(12).keeps(24, 4),
        Column::new("STATE").least(14).keeps(28, 4),
        Column::new("NEXT"),
        Column::figures("TASKS").optional(3),
        Column::figures("COST").optional(2),
        Column::figures("UPDATED").optional(4),
        Column::new("BRANCH").optional(1).least_end(14),
        Column::new("TITLE").optional(0).least(16),
    ];
    if screen.columns().is_none() {
        // People have the state, which says more.
        columns.insert(1, Column::new("PHASE"));
    }
    Table::new(columns)
}

fn row(screen: &Screen<'_>, glance: &Glance) -> Vec<Cell> {
    let summary = &glance.summary;
    let id = match (&glance.archived, screen.columns()) {
        // Another one may have had that ID.
        (Some(name), None) => name.clone(),
        _ => summary.change_id.to_string(),
    };
    // People have the whole command below the list.
    let next = match screen.columns() {
        Some(_) => glance.next_for_people.first().map(|next| next.command().name().to_owned()),
        None => glance.next.first().map(|next| next.short(&summary.change_id)),
    };
    let next = next.unwrap_or_default();
    let tasks = match summary.tasks.total {
        0 => String::new(),
        total => format!("{}/{total}", summary.tasks.completed),
    };
    let cost = if summary.cost_usd > 0.0 { usd(summary.cost_usd) } else { String::new() };
    let is_estimate = summary.estimated_usd > 0.0 && screen.columns().is_some();
    let cost = if is_estimate { format!("~{cost}") } else { cost };
    let state_style = match (glance.standing, Group::of(glance)) {
        (None, _) => BAD,
        (_, Group::NeedsYou) => WARN,
        _ => Style::new(),
    };
    let branch = match &summary.work_tree {
        Some(work_tree) => work_tree.clone(),
        None => summary.branch.clone().unwrap_or_default(),
    };
    let mut cells = vec![
        Cell::styled(id, BOLD),
        Cell::styled(state_of(screen, glance), state_style),
        Cell::new(next),
        Cell::new(tasks),
        Cell::new(cost),
        Cell::styled(updated(glance).map(|at| screen.when(at)).unwrap_or_default(), DIM),
        Cell::styled(branch, DIM),
        Cell::styled(&summary.title, DIM),
    ];
    if screen.columns().is_none() {
        cells.insert(1, Cell::new(summary.phase.map_or("new", Phase::name)));
    }
    cells
}

/// The first change that something can be done about.
pub(in crate::cli) fn first_to_continue(changes: &[Glance]) -> Option<&Glance> {
    let can_go_on = |glance: &&Glance| matches!(Group::of(glance), Group::NeedsYou | Group::Ready);
    changes.iter().filter(can_go_on).find(|glance| !glance.next.is_empty())
}

/// Adds changes to a table, at most so many of each group; says how many are left out.
pub(in crate::cli) fn add_groups(
    table: &mut Table,
    screen: &Screen<'_>,
    changes: &[Glance],
    most: usize,
) -> usize {
    let mut left = 0;
    for group in Group::ALL {
        let members: Vec<&Glance> =
            changes.iter().filter(|glance| Group::of(glance) == group).collect();
        if !members.is_empty() {
            table.group(group.heading());
        }
        for glance in members.iter().take(most) {
            table.row(row(screen, glance));
        }
        left += members.len().saturating_sub(most);
    }
    left
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::ChangeList;
    use super::*;
    use crate::ui::output::shown;

    #[test]
    fn ids_are_sorted_as_people_count() {
        let mut ids = ["add-10", "add-2", "add", "add-02", "b", "add-1-b", "add-1", "2-x", "10-x"];
        ids.sort_by(|a, b| natural(a, b));
        assert_eq!(
            ids,
            ["2-x", "10-x", "add", "add-1", "add-1-b", "add-2", "add-02", "add-10", "b"]
        );
    }

    /// Issue 19: what an agent has failed at needs somebody; what was stopped can go on.
    #[test]
    fn a_failed_call_is_named() {
        let seen = |failure: &str| {
            let call = json!({"step": "challenge", "agent": "codex", "failure": failure});
            let glance = Glance {
                archived: None,
                running: None,
                standing: Some(Standing::Ready),
                state: "not challenged",
                failed: serde_json::from_value(call).unwrap(),
                ..super::super::sample_glance()
            };
            let list = ChangeList { changes: vec![glance], archived: 0, filtered: false };
            let text = shown(&list, Some(80), jiff::Timestamp::UNIX_EPOCH);
            anstream::adapter::strip_str(&text).to_string()
        };
        let failed = seen("crashed");
        assert!(failed.contains("\nNeeds you\n  add-oauth  challenge failed "), "{failed}");
        let stopped = seen("cancelled");
        assert!(
            stopped.contains("\nReady to continue\n  add-oauth  challenge interrupted "),
            "{stopped}"
        );
    }
}
