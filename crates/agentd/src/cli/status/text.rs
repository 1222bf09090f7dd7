//! What `agentd status` says about a change, for people.

use std::io::{self, Write as _};

use agentd_core::command_line::CommandLine;
use agentd_core::diagnostic::{Counts, Severity};
use agentd_core::document::issue_fate::EarlierIssue;
use agentd_core::figures::{clock, duration, tokens, usd};
use agentd_core::outcome::FailureKind;
use agentd_core::phase::Phase;
use agentd_core::state::LastAction;
use agentd_core::text::{Line, counted, printable};
use agentd_engine::change::position::Running;
use agentd_engine::change::staleness::Stale;
use agentd_engine::change::summary::{LayerProgress, Progress};
use anstyle::Style;

use super::{GitPlace, IssueReport, StatusReport, TestsReport, VerdictReport};
use crate::cli::list::counts;
use crate::ui::measure::wrap;
use crate::ui::table::{Cell, Column, Table};
use crate::ui::{BAD, BOLD, DIM, GOOD, Screen, WARN, diagnostics};

/// How many issues of a review are shown; `agentd show` has them all.
const SHOWN_ISSUES: usize = 8;

/// How many lines of tests that failed are shown.
const TAIL_LINES: usize = 6;

/// How many columns labels take.
const LABEL: usize = 10;

/// The way of a change, without a rejection.
const WAY: [Phase; 5] =
    [Phase::Proposed, Phase::Challenged, Phase::Implementing, Phase::Complete, Phase::Archived];

/// Writes a label and what belongs to it.
fn field(screen: &mut Screen<'_>, label: &str, text: &str) -> io::Result<()> {
    screen.labeled(&format!("{DIM}{label:<9}{DIM:#} "), text)
}

pub(super) fn write(report: &StatusReport, screen: &mut Screen<'_>) -> io::Result<()> {
    let phase = report.phase.map_or("new", Phase::name);
    match screen.columns() {
        Some(columns) => {
            writeln!(screen, "{BOLD}{}{BOLD:#}", report.change_id)?;
            if !report.title.is_empty() {
                screen.paragraph(&report.title, DIM)?;
            }
            writeln!(screen, "\n{}\n", rail(report, columns))?;
        }
        None => {
            writeln!(screen, "{}  {phase}", report.change_id)?;
            if !report.title.is_empty() {
                screen.paragraph(&report.title, DIM)?;
            }
            writeln!(screen)?;
        }
    }
    if let Some(running) = &report.running {
        field(screen, "running", &at_work(screen, running))?;
    }
    if let Some(carried) = &report.carried {
        field(screen, "fleet", &carried.words())?;
    }
    if let Some(question) = &report.question {
        field(screen, "question", &question.line())?;
        let choices: Vec<&str> = question.choices.iter().map(Line::as_str).collect();
        if !choices.is_empty() {
            field(screen, "", &choices.join(" · "))?;
        }
        if let Some(answer) = &question.answer {
            field(screen, "answer", &answer.as_str().replace('\n', " "))?;
        }
    }
    verdicts(report, screen)?;
    tests(report, screen)?;
    for review in &report.foreign_reviews {
        field(screen, "ignored", review)?;
    }
    for Stale { what, why } in &report.stale {
        field(screen, "stale", &format!("{what}: {why}"))?;
    }
    if let Some(problem) = &report.record {
        field(screen, "record", problem)?;
    }
    match &report.archived {
        Some(name) => field(screen, "archive", &format!("agentd/archive/{name}"))?,
        None => {
            let Counts { high, medium, low } = report.validation;
            let allowed = diagnostics::allowed_count(report.allowed);
            let found = match (screen.columns(), report.unwritten) {
                // What is missing is no mistake, and what is there may still be changed.
                (Some(_), Some(unwritten)) => unwritten.to_owned(),
                (Some(_), None) if report.validation.total() == 0 => {
                    format!("no findings{allowed}")
                }
                _ => format!("{high} HIGH, {medium} MEDIUM, {low} LOW findings{allowed}"),
            };
            field(screen, "documents", &found)?;
        }
    }
    work(report, screen)?;
    match screen.columns() {
        Some(_) => screen.next(&report.next_for_people),
        None => screen.next(&report.next),
    }
}

/// The phases that a change goes through, and where it is.
fn rail(report: &StatusReport, columns: usize) -> String {
    if report.was_dropped && report.archived.is_some() {
        return format!("{BAD}✗ dropped{BAD:#}");
    }
    let at = match (&report.archived, report.phase) {
        (Some(_), _) => Some(Phase::Archived),
        (None, Some(Phase::Rejected)) => Some(Phase::Challenged),
        (None, phase) => phase,
    };
    let here = at.and_then(|at| WAY.iter().position(|phase| *phase == at));
    let is_rejected = report.phase == Some(Phase::Rejected) && report.archived.is_none();
    let is_running = report.running.is_some();
    let mut stops = Vec::new();
    for (index, phase) in WAY.iter().enumerate() {
        let is_here = Some(index) == here;
        let was = here.is_some_and(|here| index < here);
        let (mark, style) = match (was, is_here) {
            (true, _) => ("●", GOOD),
            (_, true) if is_rejected => ("✗", BAD),
            (_, true) if is_running => ("◐", WARN.bold()),
            (_, true) => ("●", GOOD.bold()),
            _ => ("○", DIM),
        };
        let name = if is_here && is_rejected { "rejected" } else { phase.name() };
        stops.push((mark, name, style));
    }
    let whole: usize = stops.iter().map(|(_, name, _)| name.len() + 2).sum::<usize>() + 3 * 4;
    if whole <= columns {
        let stops: Vec<String> = stops
            .iter()
            .map(|(mark, name, style)| format!("{style}{mark} {name}{style:#}"))
            .collect();
        return stops.join(&format!("{DIM} ─ {DIM:#}"));
    }
    let marks: String =
        stops.iter().map(|(mark, _, style)| format!("{style}{mark}{style:#}")).collect();
    let name = here.map_or("new", |here| stops[here].1);
    format!("{marks}  {BOLD}{name}{BOLD:#}")
}

/// `review by codex, 0:11 (agentd impl add-oauth, since …)`
fn at_work(screen: &Screen<'_>, running: &Running) -> String {
    let Running { command, since, step, agent, step_since, .. } = running;
    let command = printable(command);
    let agent = agent.map(|agent| format!(" by {agent}")).unwrap_or_default();
    let began = step_since.unwrap_or(*since);
    match (step, screen.columns()) {
        (Some(step), Some(_)) => {
            format!("{step}{agent}, {} · {command}", clock(screen.since(began)))
        }
        (None, Some(_)) => format!("{command}, {}", clock(screen.since(began))),
        (step, None) => {
            let step = step.as_ref().map(|step| format!(", at {step}")).unwrap_or_default();
            format!("{command}{step}{agent}, since {}", since.strftime("%Y-%m-%d %H:%M:%S UTC"))
        }
    }
}

/// What was said of the plan, and of the code.
fn verdicts(report: &StatusReport, screen: &mut Screen<'_>) -> io::Result<()> {
    let is_stale = report.plan_changed_since_review == Some(true);
    for (label, verdict, stale) in [
        ("plan", &report.plan_review, is_stale.then_some("of an earlier plan")),
        ("code", &report.code_review, None),
    ] {
        let Some(verdict) = verdict else { continue };
        let VerdictReport { verdict: said, reviewer, iteration, at, issues, .. } = verdict;
        let by = printable(reviewer.as_str());
        let mut parts = vec![format!("by {by}, round {iteration}")];
        let Counts { high, medium, low } = Counts::of(issues.iter().map(|issue| issue.severity));
        parts[0].push_str(&match screen.columns() {
            Some(_) if issues.is_empty() => String::new(),
            Some(_) => format!(": {}", counts(Counts { high, medium, low })),
            None => format!(": {high} HIGH, {medium} MEDIUM, {low} LOW"),
        });
        parts.extend(stale.map(str::to_owned));
        if let Some(person) = report.accepted_by.as_ref().filter(|_| label == "plan") {
            parts.push(format!("accepted by {}", printable(person.as_str())));
        }
        parts.push(screen.when(*at));
        let separator = if screen.columns().is_some() { " · " } else { ", " };
        verdict_field(screen, label, said, &parts.join(separator))?;
        if label == "plan" {
            for EarlierIssue { id, status, title, .. } in &report.previous {
                field(screen, "", &format!("{id} {}: {title}", status.name()))?;
            }
        }
        write_issues(report, screen, issues)?;
    }
    Ok(())
}

/// A label, a verdict in its color, and who gave it.
fn verdict_field(
    screen: &mut Screen<'_>,
    label: &str,
    verdict: &str,
    rest: &str,
) -> io::Result<()> {
    let Some(columns) = screen.columns() else {
        return field(screen, label, &format!("{verdict} {rest}"));
    };
    let style = match verdict {
        "APPROVED" => GOOD,
        "REJECTED" | "MAJOR_ISSUES" => BAD,
        _ => WARN,
    };
    for (index, line) in
        wrap(&format!("{verdict} {rest}"), columns.saturating_sub(LABEL)).iter().enumerate()
    {
        let label = if index == 0 { label } else { "" };
        match line.strip_prefix(verdict).filter(|_| index == 0) {
            Some(rest) => {
                writeln!(screen, "{DIM}{label:<9}{DIM:#} {style}{verdict}{style:#}{rest}")?;
            }
            None => writeln!(screen, "{DIM}{label:<9}{DIM:#} {line}")?,
        }
    }
    Ok(())
}

/// The issues of a review, the heaviest first.
fn write_issues(
    report: &StatusReport,
    screen: &mut Screen<'_>,
    issues: &[IssueReport],
) -> io::Result<()> {
    let Some(columns) = screen.columns() else { return Ok(()) };
    let own = format!("agentd/changes/{}/", report.change_id);
    let mut table = Table::new([
        Column::new(""),
        Column::new(""),
        Column::new("").least(20),
        Column::new("").optional(0).least_end(12),
    ])
    .indented(LABEL);
    for issue in issues.iter().take(SHOWN_ISSUES) {
        table.row([
            Cell::styled(issue.severity.label(), severity_style(issue.severity)),
            Cell::styled(&issue.id, DIM),
            Cell::new(issue.title.as_str()),
            Cell::styled(issue.location.as_str().trim_start_matches(&own), DIM),
        ]);
    }
    table.write(screen, Some(columns))?;
    match issues.len().checked_sub(SHOWN_ISSUES) {
        Some(more @ 1..) => field(screen, "", &format!("… and {more} more")),
        _ => Ok(()),
    }
}

fn severity_style(severity: Severity) -> Style {
    match severity {
        Severity::High => BAD,
        Severity::Medium => WARN,
        Severity::Low => DIM,
    }
}

/// What the tests said last, and the end of it if they failed.
fn tests(report: &StatusReport, screen: &mut Screen<'_>) -> io::Result<()> {
    let Some(tests) = &report.tests else { return Ok(()) };
    let TestsReport { command, passed, exit_code, duration_ms, at, output_tail } = tests;
    let took = duration(*duration_ms);
    let result = match (passed, exit_code) {
        (true, _) => format!("passed in {took}"),
        (false, Some(code)) => format!("failed with exit code {code} after {took}"),
        (false, None) => format!("stopped after {took}"),
    };
    let separator = if screen.columns().is_some() { " · " } else { ", " };
    let when = screen.when(*at);
    field(screen, "tests", &[result, printable(command).into_owned(), when].join(separator))?;
    if !passed && screen.columns().is_some() {
        let lines: Vec<&str> = output_tail.lines().collect();
        for line in &lines[lines.len().saturating_sub(TAIL_LINES)..] {
            let columns = screen.columns().unwrap_or(usize::MAX).saturating_sub(LABEL);
            let line = crate::ui::fit(&line.replace('\t', "    "), columns);
            writeln!(screen, "          {DIM}{line}{DIM:#}")?;
        }
    }
    Ok(())
}

/// Tasks, cost, place, and what was done last.
fn work(report: &StatusReport, screen: &mut Screen<'_>) -> io::Result<()> {
    let Progress { completed, total } = report.tasks;
    if total > 0 || screen.columns().is_none() {
        field(screen, "tasks", &format!("{completed} of {total} done"))?;
    }
    let layers = report.layers.iter().map(|LayerProgress { layer, progress }| {
        format!("{} {}/{}", layer.name(), progress.completed, progress.total)
    });
    let layers: Vec<String> = layers.collect();
    if !layers.is_empty() {
        field(screen, "", &layers.join(", "))?;
    }
    let mut spent = vec![format!("{} for {}", usd(report.cost_usd), counted(report.calls, "call"))];
    if report.failed > 0 {
        spent[0].push_str(&format!(", {} failed", report.failed));
    }
    if report.estimated_usd > 0.0 && screen.columns().is_some() {
        spent.push(format!("{} of it estimated", usd(report.estimated_usd)));
    }
    let (tokens_in, tokens_out) = (tokens(report.tokens_in), tokens(report.tokens_out));
    if report.tokens_in > 0 {
        spent.push(format!("{tokens_in} tokens in, {tokens_out} out"));
    }
    if let Some(forecast) = report.forecast.filter(|_| screen.columns().is_some()) {
        spent.push(format!("forecast {}", forecast.cost_shown()));
    }
    if let Some(limit) = report.budget_usd.filter(|_| screen.columns().is_some()) {
        spent.push(format!("budget {}", usd(limit)));
    }
    let separator = if screen.columns().is_some() { " · " } else { ", " };
    field(screen, "cost", &spent.join(separator))?;
    if let Some(place @ GitPlace { branch: Some(branch), work_tree, .. }) = &report.git {
        let base = place.base().map(|base| format!(" from {base}")).unwrap_or_default();
        field(screen, "branch", &format!("{branch}{base}, in {work_tree}"))?;
    }
    let last = report.last_action.as_ref().map(LastAction::to_string);
    if let Some(action) = last {
        let when = report.updated_at.map(|at| format!(", {}", screen.when(at)));
        let failure = report.last_failure.filter(|_| screen.columns().is_some());
        let failed = match failure {
            None => String::new(),
            Some(FailureKind::Cancelled) => " was interrupted".to_owned(),
            Some(FailureKind::Other) => " failed".to_owned(),
            Some(failure) => format!(" failed: {}", failure.words()),
        };
        field(screen, "last", &format!("{action}{failed}{}", when.unwrap_or_default()))?;
        if failure.is_some_and(|failure| failure != FailureKind::Cancelled) {
            let id = report.change_id.as_str();
            let log = CommandLine::agentd(["log", id, "--run", "last"]);
            field(screen, "", &format!("what it said: {log}"))?;
        }
    }
    Ok(())
}
