//! What `fleet status` shows on a terminal.

use std::fmt::Write as _;

use agentd_core::text::{Line, excerpt, printable};

use crate::engine::{ListedAccount, ListedChange, Overview};

/// The widest column of text from outside.
const WIDEST: usize = 40;
/// The screen that everything fits.
const COLUMNS: usize = 80;

/// The whole fleet as text: what a person has to do first.
pub(crate) fn overview(list: &Overview) -> String {
    let mut text = String::new();
    let paused = if list.paused { ", paused" } else { "" };
    let name = excerpt(&shown(&list.repository), COLUMNS - 24);
    let _ = writeln!(text, "{name} ({}{paused})", list.engine);
    let _ = writeln!(text, "{}\n", totals(list));
    waiting(&mut text, list);
    let changes = list.changes.iter().map(|change| {
        let step = change.step.clone().unwrap_or_default();
        let agent = change.agent.as_ref().map(|agent| format!(" by {agent}")).unwrap_or_default();
        [
            change.change.clone(),
            change.state.replace('_', " "),
            format!("{step}{agent}"),
            change.worker.clone().unwrap_or_default(),
            format!("${:.2}", change.cost_usd),
        ]
    });
    table(&mut text, ["CHANGE", "STATE", "STEP", "WORKER", "COST"], changes);
    if list.changes.is_empty() {
        text.push_str("no changes; submit one: agentd fleet submit <id> \"what you want\"\n");
    }
    let workers = list.workers.iter().map(|worker| {
        [
            worker.name.clone(),
            match worker.slots {
                0 => worker.running.to_string(),
                slots => format!("{}/{slots}", worker.running),
            },
            worker.accounts.join(","),
            worker.state.to_owned(),
            format!("{:.0} s ago", worker.silent_secs),
        ]
    });
    section(&mut text, ["WORKER", "STEPS", "ACCOUNTS", "STATE", "SIGN OF LIFE"], workers);
    let accounts = list.accounts.iter().map(account);
    section(&mut text, ["ACCOUNT", "RUNNING", "QUEUED", "AT ONCE", "PER MINUTE"], accounts);
    for account in &list.accounts {
        if let Some(lowered) = lowered(account) {
            line(&mut text, &lowered);
        }
    }
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

/// How many changes are in which state, and how many steps could be done at once.
fn totals(list: &Overview) -> String {
    let states =
        ["running", "ready", "waiting", "failed", "over_budget", "paused", "taken", "done"];
    let count = |state: &str| list.changes.iter().filter(|change| change.state == state).count();
    let counted = states.map(|state| (count(state), state.replace('_', " ")));
    let mut parts: Vec<String> = counted
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, state)| format!("{count} {state}"))
        .collect();
    let live = list.workers.iter().filter(|worker| worker.state != "dead");
    let slots: i64 = live.clone().map(|worker| i64::from(worker.slots)).sum();
    if slots > 0 {
        let busy: i64 = live.map(|worker| worker.running).sum();
        parts.push(format!("{busy} of {slots} slots busy"));
    }
    if parts.is_empty() { "nothing to do".to_owned() } else { parts.join(", ") }
}

/// What waits for a person, why, and what to do.
fn waiting(text: &mut String, list: &Overview) {
    let needs =
        |change: &&ListedChange| matches!(&*change.state, "waiting" | "failed" | "over_budget");
    let waiting: Vec<&ListedChange> = list.changes.iter().filter(needs).collect();
    if waiting.is_empty() {
        return;
    }
    text.push_str("NEEDS YOU\n");
    for change in waiting {
        let id = &change.change;
        let what = match &*change.state {
            "waiting" => format!("agentd take {id}"),
            "failed" => format!("agentd fleet resume {id}"),
            _ => "agentd fleet budget".to_owned(),
        };
        line(text, &format!("{id}: {}", change.why.as_deref().unwrap_or(&change.state)));
        let _ = writeln!(text, "  {}", shown_in(&what, COLUMNS - 2));
    }
    text.push('\n');
}

fn account(account: &ListedAccount) -> [String; 5] {
    let limit = |limit: Option<u32>| limit.map_or_else(|| "-".to_owned(), |n| n.to_string());
    let at_once = match account.lowered_to {
        Some(now) => format!("{now} (of {})", limit(account.limit.concurrency)),
        None => limit(account.limit.concurrency),
    };
    [
        account.account.clone(),
        account.running.to_string(),
        account.queued.to_string(),
        at_once,
        limit(account.limit.rpm),
    ]
}

/// That an account is used less, until when, and why.
fn lowered(account: &ListedAccount) -> Option<String> {
    let now = account.lowered_to?;
    let until = account.lowered_until.as_deref().unwrap_or_default();
    let how = if now == 0 { "rests".to_owned() } else { format!("lowered to {now} at once") };
    let why = account.why.as_deref().unwrap_or_default();
    Some(format!("{} {how} until {until}: {why}", account.account))
}

fn shown(text: &str) -> String {
    shown_in(text, WIDEST)
}

fn shown_in(text: &str, most: usize) -> String {
    let text = Line::new(text);
    let text = printable(text.as_str());
    if text.chars().count() <= most { text.into_owned() } else { excerpt(&text, most - 1) }
}

/// A line of prose.
fn line(text: &mut String, what: &str) {
    let _ = writeln!(text, "{}", shown_in(what, COLUMNS));
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

/// Columns that fit the screen together: the widest ones give way.
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
    let mut widths: [usize; N] = std::array::from_fn(|column| {
        let cells = rows.iter().chain([&head]).map(|row| row[column].chars().count());
        cells.max().unwrap_or(0)
    });
    while widths.iter().sum::<usize>() + 2 * (N - 1) > COLUMNS {
        let Some(widest) = widths.iter_mut().max() else { return };
        *widest -= 1;
    }
    for row in [&head].into_iter().chain(&rows) {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(widths) {
            let _ = write!(line, "{:width$}  ", shown_in(cell, width));
        }
        let _ = writeln!(text, "{}", line.trim_end());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{Limit, ListedWorker};

    #[test]
    fn text_from_outside_stays_in_its_line_and_the_screen_in_eighty_columns() {
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
            "example.org/a/b (git)\n1 waiting\n\n\
             NEEDS YOU\nadd-oauth: a b [31m\n  agentd take add-oauth\n\n\
             CHANGE     STATE    STEP  WORKER  COST\n\
             add-oauth  waiting                $1.50\n"
        );
        let long = |text: &str| text.repeat(30);
        let change = ListedChange {
            change: long("add-"),
            state: "over_budget".to_owned(),
            step: Some(long("spec-")),
            agent: Some(long("claude ")),
            worker: Some(long("ünder")),
            why: Some(long("because ")),
            priority: 1,
            phase: None,
            cost_usd: 123_456.0,
        };
        let worker = ListedWorker {
            name: long("box-"),
            slots: 8,
            running: 3,
            accounts: vec![long("claude:team"), long("codex:team")],
            silent_secs: 12.3,
            drains: true,
            state: "frozen",
        };
        let account = ListedAccount {
            account: "claude:team1".to_owned(),
            running: 2,
            queued: 4,
            limit: Limit { concurrency: Some(6), rpm: None },
            lowered_to: Some(2),
            lowered_until: Some("2026-11-18T12:00:00Z".to_owned()),
            why: Some(long("429 ")),
        };
        let resting = ListedAccount { lowered_to: Some(0), ..account.clone() };
        let list = Overview {
            repository: long("host/"),
            changes: vec![change],
            workers: vec![worker],
            accounts: vec![account, resting],
            ..list
        };
        let screen = overview(&list);
        for line in screen.lines() {
            assert!(line.chars().count() <= 80, "{line}");
        }
        for part in [
            "1 over budget, 3 of 8 slots busy",
            "frozen",
            "12 s ago",
            "2 (of 6)",
            "claude:team1 lowered to 2 at once until 2026-11-18T12:00:00Z: 429 429",
            "claude:team1 rests until 2026-11-18T12:00:00Z",
        ] {
            assert!(screen.contains(part), "{part}: {screen}");
        }
    }
}
