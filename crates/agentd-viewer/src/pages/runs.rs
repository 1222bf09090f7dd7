//! The calls of agents: what runs now, what ran, and what it cost.

use std::io::{Read as _, Seek as _, SeekFrom};

use agentd_core::figures::{duration, tokens};
use agentd_core::layout::{ChangeFile, RunName};
use agentd_core::state::{LlmCall, State};
use maud::{Markup, html};

use super::change_page;
use crate::App;
use crate::charts;
use crate::html::{dollars, scroll_box, time};
use crate::live::Position;
use crate::problem::Problem;
use crate::subject::Subject;
use crate::transcript;

/// How much of the end of a run file is shown.
const TAIL: u64 = 2 << 20;
const MOST_ENTRIES: usize = 1500;
const PANEL_ENTRIES: usize = 60;

pub(crate) fn runs(app: &App, subject: &Subject) -> Result<Markup, Problem> {
    let here = format!("{}/runs", subject.address());
    let activity = if subject.is_open() { Some(live_panel(app, subject)?) } else { None };
    let state = subject.state().filter(|state| !state.llm_calls.is_empty());
    let names = subject.runs()?;
    let body = html! {
        h1 { "Runs and cost" }
        @if let Some(activity) = activity { (activity) }
        div data-live="charts" {
            @if let Some(state) = state { (figures(state)) }
            @if names.is_empty() && state.is_none() {
                p.empty { "No agent has been called yet." }
            }
            @if !names.is_empty() {
                section.panel {
                    h2 { "Transcripts" }
                    ul.names {
                        @for name in names.iter().rev() {
                            li { a href={ (here) "/" (name) } { (run_title(name)) } }
                        }
                    }
                }
            }
        }
    };
    Ok(change_page(app, subject, &here, "Runs and cost", &body))
}

fn run_title(run: &RunName) -> String {
    format!("{:04} {}", run.number(), run.step())
}

/// What the calls took, in total and one by one.
fn figures(state: &State) -> Markup {
    let calls = &state.llm_calls;
    let legend = html! {
        p.legend.quiet {
            span.dot.t-cached {} " in, cached " span.dot.t-in {} " in " span.dot.t-out {} " out"
        }
    };
    html! {
        p.facts {
            span { strong { (dollars(state.total_cost)) } " in total" }
            span { (tokens(state.total_tokens_in)) " tokens in" }
            span { (tokens(state.total_tokens_out)) " out" }
            span { (calls.len()) " calls" }
        }
        @if let Some(svg) = charts::timeline(calls) { (panel("Timeline", &svg, None)) }
        (panel("Tokens by step", &charts::token_chart(calls), Some(&legend)))
        (panel("Cost by step", &charts::cost_chart(calls), None))
        (table(calls))
    }
}

fn panel(title: &str, svg: &Markup, legend: Option<&Markup>) -> Markup {
    html! {
        section.panel {
            h2 { (title) }
            (scroll_box("scroll", title, svg))
            @if let Some(legend) = legend { (legend) }
        }
    }
}

/// The same figures, to read and to copy.
fn table(calls: &[LlmCall]) -> Markup {
    const COLUMNS: [&str; 8] = ["Step", "Model", "Ended", "Time", "In", "Cached", "Out", "Cost"];
    html! {
        details.panel {
            summary { "All figures" }
            div.table {
                table {
                    thead { tr { @for name in COLUMNS { th { (name) } } } }
                    tbody {
                        @for call in calls {
                            tr {
                                td { (call.step) }
                                td { (call.model) }
                                td { @if let Some(at) = call.timestamp { (time(at)) } }
                                td.n { (duration(call.duration_ms)) }
                                td.n { (tokens(call.tokens_in)) }
                                td.n { (tokens(call.tokens_cached)) }
                                td.n { (tokens(call.tokens_out)) }
                                td.n { (dollars(call.cost)) }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// The end of a run file, and how far that goes.
fn end_of(app: &App, subject: &Subject, run: &RunName) -> Result<(String, Position), Problem> {
    let path = ChangeFile::Run(run.clone()).path();
    let (mut file, length) = subject.change().dir().open_file(&path)?;
    let mut bytes = Vec::new();
    let read = file
        .seek(SeekFrom::Start(length.saturating_sub(TAIL)))
        .and_then(|_| file.take(TAIL).read_to_end(&mut bytes));
    read.map_err(|error| {
        Problem::new(axum::http::StatusCode::INTERNAL_SERVER_ERROR, error.to_string())
    })?;
    let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    let offset = length.saturating_sub(TAIL) + whole as u64;
    bytes.truncate(whole);
    let bytes = app.redactor.redact_run(&bytes).unwrap_or(bytes);
    Ok((String::from_utf8_lossy(&bytes).into_owned(), Position { run: run.number(), offset }))
}

/// A box of fixed size that shows what a running agent does.
pub(super) fn live_panel(app: &App, subject: &Subject) -> Result<Markup, Problem> {
    let (entries, position, name) = match subject.runs()?.last() {
        Some(run) => {
            let (text, position) = end_of(app, subject, run)?;
            (transcript::entries(&text, PANEL_ENTRIES), position, run.to_string())
        }
        // Whatever comes first is new.
        None => (Vec::new(), Position { run: 1, offset: 0 }, String::new()),
    };
    let follow = format!("{}/live?after={position}", subject.address());
    Ok(html! {
        section.panel.live.idle[subject.running.is_none()].empty-log[entries.is_empty()] {
            h2 {
                "Activity " span.badge.live { "live" } " "
                span.quiet #live-run { (name) }
            }
            ol.log #log tabindex="0" role="log" aria-label="Activity of the agents"
                data-follow=(follow) {
                @for entry in entries { (entry) }
            }
        }
    })
}

pub(crate) fn run(app: &App, subject: &Subject, run: &RunName) -> Result<Markup, Problem> {
    let (text, position) = end_of(app, subject, run)?;
    let here = format!("{}/runs", subject.address());
    let open = subject.is_open();
    let follow = open.then(|| format!("{}/live?after={position}", subject.address()));
    let body = html! {
        h1 { (run_title(run)) }
        p.facts { a href=(here) { "All runs" } }
        ol.log.whole #log tabindex="0" role="log" aria-label="Transcript" data-follow=[follow]
            data-only=[open.then_some(run)] {
            @for entry in transcript::entries(&text, MOST_ENTRIES) { (entry) }
        }
    };
    Ok(change_page(app, subject, &here, &run.step().to_string(), &body))
}
