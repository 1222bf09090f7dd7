//! The tab of runs: one table that is timeline, cost and the way to the transcripts; and what runs now.

use agentd_core::figures::{duration, tokens};
use agentd_core::layout::RunName;
use agentd_core::run_format::RunHeader;
use agentd_core::state::LlmCall;
use agentd_core::step_name::StepName;
use agentd_core::text::counted;
use agentd_engine::insight::cost::{self, Share};
use jiff::Timestamp;
use maud::{Markup, html};

use super::frame::{ChangePage, Tab};
use crate::App;
use crate::html::{dollars, elapsed, scroll_box, time};
use crate::live::Position;
use crate::problem::Problem;
use crate::run_file::{self, head_of};
use crate::subject::Subject;
use crate::timeline::{Bar, Timeline};
use crate::transcript::{self, Earlier};

const MOST_ENTRIES: usize = 1500;
const PANEL_ENTRIES: usize = 60;

/// A call of an agent, from its record and from the ledger.
struct Call<'s> {
    name: Option<&'s RunName>,
    number: Option<u32>,
    step: StepName,
    header: Option<RunHeader>,
    ledger: Option<&'s LlmCall>,
    is_running: bool,
}

impl Call<'_> {
    fn started(&self) -> Option<Timestamp> {
        let noted = self.header.as_ref().and_then(|header| header.started_at.parse().ok());
        // The ledger has only the end, in whole seconds.
        noted.or_else(|| {
            let call = self.ledger?;
            let took = jiff::SignedDuration::from_millis(i64::try_from(call.duration_ms).ok()?);
            call.timestamp?.moment().checked_sub(took).ok()
        })
    }

    fn ended(&self) -> Option<Timestamp> {
        let took = self.ledger.map(|call| call.duration_ms)?;
        let took = jiff::SignedDuration::from_millis(i64::try_from(took).ok()?);
        self.started()?.checked_add(took).ok()
    }

    /// How it ended: a class and words.
    fn outcome(&self) -> (&'static str, String) {
        match self.ledger {
            _ if self.is_running => ("live", "running".to_owned()),
            Some(call) => match call.failure {
                Some(failure) => ("high", failure.words().to_owned()),
                None => ("good", "done".to_owned()),
            },
            None => ("medium", "interrupted".to_owned()),
        }
    }
}

/// All calls, in the order of their numbers.
fn calls(subject: &Subject) -> Result<Vec<Call<'_>>, Problem> {
    let names = subject.runs()?;
    let ledger = subject.state().map_or(&[][..], |state| &state.llm_calls);
    let last = names.last();
    let mut calls: Vec<Call<'_>> = names
        .iter()
        .map(|name| {
            let number = name.number();
            let known = ledger.iter().find(|call| call.run == Some(number));
            let is_running = known.is_none() && subject.is_running() && Some(name) == last;
            Call {
                name: Some(name),
                number: Some(number),
                step: name.step(),
                header: head_of(subject.change(), name),
                ledger: known,
                is_running,
            }
        })
        .collect();
    // Records are not in git as a rule: of other machines only the ledger is here.
    let recorded = |call: &LlmCall| names.iter().any(|name| Some(name.number()) == call.run);
    calls.extend(ledger.iter().filter(|call| !recorded(call)).map(|call| Call {
        name: None,
        number: call.run,
        step: call.step.clone(),
        header: None,
        ledger: Some(call),
        is_running: false,
    }));
    calls.sort_by_key(|call| (call.number.unwrap_or(0), call.started()));
    Ok(calls)
}

pub(crate) fn runs(app: &App, subject: &Subject) -> Result<Markup, Problem> {
    let here = format!("{}/runs", subject.address());
    let calls = calls(subject)?;
    let (panel, shown) = live_panel(app, subject)?;
    let body = html! {
        @if subject.is_open() { (panel) }
        div data-live="runs" {
            @if calls.is_empty() {
                p.empty { "No agent has been called yet." }
            } @else {
                (table(subject, &calls))
                (totals(app, subject))
            }
        }
    };
    let page = ChangePage { tab: Tab::Runs, title: "Runs", here: Some(&here), body };
    Ok(page.render_from(app, subject, shown))
}

fn table(subject: &Subject, calls: &[Call<'_>]) -> Markup {
    let bars = calls.iter().filter_map(|call| {
        let start = call.started()?;
        let end = if call.is_running { Timestamp::now() } else { call.ended()? };
        Some(Bar { start: start.as_millisecond(), end: end.as_millisecond() })
    });
    let timeline = Timeline::new(bars.collect());
    let content = html! {
        table.runs {
            thead {
                tr {
                    th.n scope="col" { "#" }
                    th scope="col" { "Step" }
                    th scope="col" { "Agent" }
                    th.time scope="col" { (timeline.axis()) }
                    th.n scope="col" { "Took" }
                    th.n scope="col" { "Tokens" }
                    th.n scope="col" { "Cost" }
                    th scope="col" { "Outcome" }
                }
            }
            tbody { @for call in calls { (row(subject, call, &timeline)) } }
        }
    };
    html! {
        (scroll_box("table", "Agent calls", &content))
        p.legend.quiet {
            span { span.dot.k-plan {} " plan" } span { span.dot.k-review {} " review" }
            span { span.dot.k-code {} " code" } span { span.dot.k-failed {} " failed" }
            @if timeline.is_cut() { span { "⋯ waiting is drawn short" } }
        }
    }
}

/// The color of a call.
fn kind(call: &Call<'_>) -> &'static str {
    if call.ledger.is_some_and(|call| call.failure.is_some()) {
        return "k-failed";
    }
    match call.step {
        StepName::Challenge | StepName::Review => "k-review",
        StepName::Reproduce | StepName::Implement(_) | StepName::Fix => "k-code",
        _ => "k-plan",
    }
}

fn row(subject: &Subject, call: &Call<'_>, timeline: &Timeline) -> Markup {
    let (class, outcome) = call.outcome();
    let agent = call.header.as_ref().map(|header| header.agent);
    let agent = agent.or(call.ledger.and_then(|call| call.agent));
    let start = call.started();
    let end = if call.is_running { Some(Timestamp::now()) } else { call.ended() };
    html! {
        tr data-stop {
            td.n { @if let Some(number) = call.number { (number) } }
            th scope="row" {
                @match call.name {
                    Some(name) => { a href={ (subject.address()) "/runs/" (name) } { (call.step) } }
                    None => { (call.step) }
                }
            }
            td {
                @if let Some(agent) = agent { (agent) }
                @if let Some(call) = call.ledger { " " span.quiet.model { (call.model) } }
            }
            td.time {
                @if let (Some(start), Some(end)) = (start, end) {
                    (timeline.bar(start.as_millisecond(), end.as_millisecond(), kind(call)))
                }
            }
            td.n {
                @match (call.ledger, start) {
                    (Some(call), _) => { (duration(call.duration_ms)) }
                    (None, Some(start)) if call.is_running => { (elapsed(start)) }
                    _ => {}
                }
            }
            td.n {
                @if let Some(call) = call.ledger {
                    span title={ (tokens(call.tokens_cached)) " of them cached" } { (tokens(call.tokens_in)) }
                    " / " (tokens(call.tokens_out))
                }
            }
            td.n { @if let Some(call) = call.ledger { (dollars(call.cost)) } }
            td {
                span.badge.(class) { (outcome) }
                @if let Some(at) = call.ledger.and_then(|call| call.timestamp) { " " (time(at)) }
            }
        }
    }
}

/// What was used in all, and by whom.
fn totals(app: &App, subject: &Subject) -> Markup {
    let Some(state) = subject.state() else { return html! {} };
    let report = cost::report(subject.change(), state, app.budget());
    if report.calls == 0 {
        return html! {};
    }
    html! {
        section.totals {
            h2 { "In all" }
            p.facts {
                span { strong { (dollars(report.total_cost_usd)) } }
                span { (tokens(report.tokens_in)) " tokens in, " (tokens(report.tokens_cached)) " of them cached" }
                span { (tokens(report.tokens_out)) " out" }
                span { (counted(report.calls, "call")) @if report.failed > 0 { ", " (report.failed) " failed" } }
                span { (duration(report.duration_ms)) }
            }
            @if let Some(most) = report.budget.max_cost_usd {
                p { (budget(report.total_cost_usd, most)) }
            }
            @if let Some(forecast) = &report.forecast {
                p.quiet {
                    "Forecast when it began: " (dollars(forecast.cost_usd[0])) " to "
                    (dollars(forecast.cost_usd[1])) ", " (forecast.calls[0]) " to " (forecast.calls[1]) " calls"
                }
            }
            div.shares {
                (shares("By model", &report.models, report.total_cost_usd))
                (shares("By role", &report.roles, report.total_cost_usd))
            }
        }
    }
}

/// What was spent of a budget.
pub(super) fn budget(spent: f64, most: f64) -> Markup {
    html! {
        label.budget {
            "Budget: " (dollars(spent)) " of " (dollars(most)) " "
            meter min="0" max=(format!("{most:.4}")) high=(format!("{:.4}", most * 0.8))
                value=(format!("{:.4}", spent.min(most))) { (dollars(spent)) }
        }
    }
}

/// Shares of a cost, as a table with bars.
pub(super) fn shares(title: &str, shares: &[Share], total: f64) -> Markup {
    html! {
        table.share {
            caption { (title) }
            tbody {
                @for share in shares {
                    tr {
                        th scope="row" { (share.name) }
                        td.n { (dollars(share.spent.cost_usd)) }
                        td {
                            meter min="0" max=(format!("{:.6}", total.max(0.000_001)))
                                value=(format!("{:.6}", share.spent.cost_usd))
                                aria-label={ (share.name) } {}
                        }
                        td.n.quiet { (counted(share.spent.calls, "call")) }
                        td.n.quiet { (tokens(share.spent.tokens_in.saturating_add(share.spent.tokens_out))) " tokens" }
                    }
                }
            }
        }
    }
}

/// A box of fixed size that shows what a running agent does, small while none does; and how far that is.
fn live_panel(app: &App, subject: &Subject) -> Result<(Markup, Option<Position>), Problem> {
    let running = subject.is_running();
    let mut shown = subject.seen;
    let (entries, name) = match subject.runs()?.last().filter(|_| running) {
        Some(run) => {
            let (text, end) = run_file::tail(subject.change(), run, &app.redactor)?;
            shown = shown.map(|seen| Position { mark: seen.mark, ..end });
            (transcript::entries(&text, PANEL_ENTRIES, &Earlier::new()), run.to_string())
        }
        None => (Vec::new(), String::new()),
    };
    let panel = html! {
        section.panel.live-panel #live .idle[!running] {
            h2 {
                span.badge.live { "live" } " Activity "
                span.quiet #live-run { (name) }
            }
            div.log #log tabindex="0" role="log" aria-label="Activity of the agents" {
                @for entry in entries { (entry) }
            }
        }
    };
    Ok((panel, shown))
}

pub(crate) fn run(app: &App, subject: &Subject, run: &RunName) -> Result<Markup, Problem> {
    let (text, end) = run_file::tail(subject.change(), run, &app.redactor)?;
    let shown = subject.seen.map(|seen| Position { mark: seen.mark, ..end });
    let header = head_of(subject.change(), run).map(|header| app.redactor.header(&header));
    let earlier = run_file::earlier(subject, run, &app.redactor);
    let here = format!("{}/runs/{run}", subject.address());
    let open = subject.is_open();
    let ledger = subject.state().map_or(&[][..], |state| &state.llm_calls);
    let call = ledger.iter().find(|call| call.run == Some(run.number()));
    let title = format!("{} {}", run.number(), run.step());
    let body = html! {
        h2.page-title { (title) }
        p.facts {
            a href={ (subject.address()) "/runs" } { "All runs" }
            @if let Some(header) = &header {
                span { (header.agent) " as " (header.role) }
                @if let Some(call) = call { span { (call.model) } }
                @if header.attempt > 1 { span { "attempt " (header.attempt) } }
            }
            @if let Some(call) = call {
                span { (duration(call.duration_ms)) }
                span { (tokens(call.tokens_in)) " / " (tokens(call.tokens_out)) " tokens" }
                span { (dollars(call.cost)) }
                @if let Some(failure) = call.failure { span.badge.high { (failure.words()) } }
            }
        }
        @if let Some(header) = &header { (transcript::prompt(header)) }
        div.filters.log-filter hidden role="group" aria-label="What is shown" {
            @for (name, label) in [("", "everything"), ("text", "text"), ("tools", "tools"), ("bad", "errors")] {
                button.small type="button" data-show=(name) aria-pressed=(if name.is_empty() { "true" } else { "false" }) { (label) }
            }
        }
        div.log.whole #log tabindex="0" role="log" aria-label="Transcript"
            data-only=[open.then_some(run)] {
            @for entry in transcript::entries(&text, MOST_ENTRIES, &earlier) { (entry) }
        }
    };
    let page = ChangePage { tab: Tab::Runs, title: &title, here: Some(&here), body };
    Ok(page.render_from(app, subject, shown))
}
