//! What `fleet status` shows on a terminal.

use std::fmt::Write as _;

use agentd_core::text::{Line, excerpt, printable};

use crate::engine::{ListedAccount, Overview};

/// The widest column of text from outside.
const WIDEST: usize = 60;

/// The whole fleet as text.
pub(crate) fn overview(list: &Overview) -> String {
    let mut text = String::new();
    let paused = if list.paused { ", paused" } else { "" };
    let _ = writeln!(text, "{} ({}{paused})\n", shown(&list.repository), list.engine);
    let changes = list.changes.iter().map(|change| {
        let step = change.step.clone().unwrap_or_default();
        let agent = change.agent.as_ref().map(|agent| format!(" by {agent}")).unwrap_or_default();
        [
            change.change.clone(),
            change.state.clone(),
            format!("{step}{agent}"),
            change.worker.clone().unwrap_or_default(),
            format!("${:.2}", change.cost_usd),
            change.why.clone().unwrap_or_default(),
        ]
    });
    table(&mut text, ["CHANGE", "STATE", "STEP", "WORKER", "COST", "WHY"], changes);
    if list.changes.is_empty() {
        text.push_str("no changes; submit one: agentd fleet submit <id> \"what you want\"\n");
    }
    let workers = list.workers.iter().map(|worker| {
        let drains = if worker.drains { "drains" } else { "" };
        [
            worker.name.clone(),
            format!("{}/{}", worker.running, worker.slots),
            worker.accounts.join(","),
            format!("{:.0} s", worker.silent_secs),
            drains.to_owned(),
        ]
    });
    section(&mut text, ["WORKER", "STEPS", "ACCOUNTS", "SILENT", ""], workers);
    let accounts = list.accounts.iter().map(account);
    section(&mut text, ["ACCOUNT", "RUNNING", "QUEUED", "AT ONCE", "PER MINUTE"], accounts);
    let budgets = list.budgets.iter().map(|budget| {
        let cap = budget.cap_usd.map_or_else(|| "-".to_owned(), |cap| format!("${cap:.2}"));
        let (spent, reserved) = (budget.spent_usd, budget.reserved_usd);
        [budget.scope.clone(), format!("${spent:.2}"), format!("${reserved:.2}"), cap]
    });
    section(&mut text, ["BUDGET", "SPENT", "RESERVED", "AT MOST"], budgets);
    let unsettled = list.unsettled.iter().map(|call| {
        let estimate = format!("${:.4}", call.estimate_usd);
        [call.call.clone(), call.step.clone(), call.worker.clone(), estimate]
    });
    section(&mut text, ["CUT SHORT", "STEP", "WORKER", "COUNTS AS"], unsettled);
    if !list.unsettled.is_empty() {
        text.push_str("settle one: agentd fleet settle <call> <usd>\n");
    }
    text
}

fn account(account: &ListedAccount) -> [String; 5] {
    let limit = |limit: Option<u32>| limit.map_or_else(|| "-".to_owned(), |n| n.to_string());
    [
        account.account.clone(),
        account.running.to_string(),
        account.queued.to_string(),
        limit(account.limit.concurrency),
        limit(account.limit.rpm),
    ]
}

fn shown(text: &str) -> String {
    excerpt(&printable(Line::new(text).as_str()), WIDEST)
}

fn section<const N: usize>(
    text: &mut String,
    head: [&str; N],
    rows: impl Iterator<Item = [String; N]> + Clone,
) {
    if rows.clone().next().is_some() {
        text.push('\n');
        table(text, head, rows);
    }
}

fn table<const N: usize>(
    text: &mut String,
    head: [&str; N],
    rows: impl Iterator<Item = [String; N]>,
) {
    let rows: Vec<[String; N]> = rows.map(|row| row.map(|cell| shown(&cell))).collect();
    if rows.is_empty() {
        return;
    }
    let head = head.map(str::to_owned);
    let width = |column: usize| {
        let cells = rows.iter().chain([&head]).map(|row| row[column].chars().count());
        cells.max().unwrap_or(0)
    };
    for row in [&head].into_iter().chain(&rows) {
        let mut line = String::new();
        for (column, cell) in row.iter().enumerate() {
            let _ = write!(line, "{cell:width$}  ", width = width(column));
        }
        let _ = writeln!(text, "{}", line.trim_end());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::ListedChange;

    #[test]
    fn text_from_outside_stays_in_its_line() {
        let change = ListedChange {
            change: "add-oauth".to_owned(),
            state: "waiting".to_owned(),
            why: Some("a\nb\u{1b}[31m".to_owned()),
            cost_usd: 1.5,
            ..ListedChange::default()
        };
        let list = Overview {
            engine: "git",
            repository: "example.org/a/b".to_owned(),
            changes: vec![change],
            ..Overview::default()
        };
        assert_eq!(
            overview(&list),
            "example.org/a/b (git)\n\n\
             CHANGE     STATE    STEP  WORKER  COST   WHY\n\
             add-oauth  waiting                $1.50  a b [31m\n"
        );
    }
}
