//! The calls of agents: what runs now, what ran, what it took.

use std::io::{Read as _, Seek as _, SeekFrom};

use agentd_core::figures::{duration, tokens};
use agentd_core::layout::{ChangeFile, RunName};
use agentd_core::state::LlmCall;

use super::change_page;
use crate::App;
use crate::charts;
use crate::html::{dollars, esc, time};
use crate::live::Position;
use crate::problem::Problem;
use crate::subject::Subject;
use crate::transcript;

/// How much of the end of a run file is shown.
const TAIL: u64 = 2 << 20;
const MOST_ITEMS: usize = 1500;
const PANEL_ITEMS: usize = 60;

pub(crate) fn runs(app: &App, subject: &Subject) -> Result<String, Problem> {
    let here = format!("{}/runs", subject.address());
    let mut out = String::from("<h1>Runs and cost</h1>");
    if subject.is_open() {
        live_panel(app, &mut out, subject)?;
    }
    let calls: &[LlmCall] = subject.state.as_ref().map_or(&[], |state| &state.llm_calls);
    out.push_str("<div data-live=\"charts\">");
    if let Some(state) = subject.state.as_ref().filter(|_| !calls.is_empty()) {
        out.push_str(&format!(
            "<p class=\"facts\"><span><strong>{}</strong> in total</span><span>{} tokens in</span><span>{} out</span><span>{} calls</span></p>",
            dollars(state.total_cost),
            tokens(state.total_tokens_in),
            tokens(state.total_tokens_out),
            calls.len()
        ));
        panel(&mut out, "Timeline", &charts::timeline(calls), "");
        let legend = "<p class=\"legend quiet\"><span class=\"dot t-cached\"></span> in, cached \
            <span class=\"dot t-in\"></span> in <span class=\"dot t-out\"></span> out</p>";
        panel(&mut out, "Tokens by step", &charts::token_chart(calls), legend);
        panel(&mut out, "Cost by step", &charts::cost_chart(calls), "");
        table(&mut out, calls);
    }
    let names = subject.change.runs()?.ids;
    if names.is_empty() && calls.is_empty() {
        out.push_str("<p class=\"empty\">No agent has been called yet.</p>");
    }
    if !names.is_empty() {
        out.push_str("<section class=\"panel\"><h2>Transcripts</h2><ul class=\"names\">");
        for name in names.iter().rev() {
            out.push_str(&format!(
                "<li><a href=\"{}/runs/{name}\">{:04} {}</a></li>",
                subject.address(),
                name.number(),
                esc(name.step())
            ));
        }
        out.push_str("</ul></section>");
    }
    out.push_str("</div>");
    Ok(change_page(app, subject, &here, "Runs and cost", &out))
}

fn panel(out: &mut String, title: &str, svg: &str, legend: &str) {
    if svg.is_empty() {
        return;
    }
    out.push_str(&format!(
        "<section class=\"panel\"><h2>{title}</h2><div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{title}\">{svg}</div>{legend}</section>"
    ));
}

/// The same figures, to read and to copy.
fn table(out: &mut String, calls: &[LlmCall]) {
    out.push_str("<details class=\"panel\"><summary>All figures</summary><div class=\"table\"><table><thead><tr><th>Step</th><th>Model</th><th>Ended</th><th>Time</th><th>In</th><th>Cached</th><th>Out</th><th>Cost</th></tr></thead><tbody>");
    for call in calls {
        out.push_str(&format!(
            "<tr><td>{}</td><td>{}</td><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td></tr>",
            esc(&call.step),
            esc(&call.model),
            call.timestamp.map(time).unwrap_or_default(),
            duration(call.duration_ms),
            tokens(call.tokens_in),
            tokens(call.tokens_cached),
            tokens(call.tokens_out),
            dollars(call.cost)
        ));
    }
    out.push_str("</tbody></table></div></details>");
}

/// The end of a run file, and how far that goes.
fn end_of(app: &App, subject: &Subject, run: &RunName) -> Result<(String, Position), Problem> {
    let path = ChangeFile::Run(run.clone()).path();
    let (mut file, length) = subject.change.dir().open_file(&path)?;
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

/// A box of fixed size in which a running agent can be watched.
pub(super) fn live_panel(app: &App, out: &mut String, subject: &Subject) -> Result<(), Problem> {
    let last = subject.change.runs()?.ids.pop();
    let (items, position, name) = match &last {
        Some(run) => {
            let (text, position) = end_of(app, subject, run)?;
            (transcript::list(&text, PANEL_ITEMS), position, run.to_string())
        }
        // Whatever comes first is new.
        None => (String::new(), Position { run: 1, offset: 0 }, String::new()),
    };
    let idle = if subject.running.is_none() { " idle" } else { "" };
    let empty = if items.is_empty() { " empty-log" } else { "" };
    out.push_str(&format!(
        "<section class=\"panel live{idle}{empty}\"><h2>Activity <span class=\"badge live\">live</span> <span class=\"quiet\" id=\"live-run\">{}</span></h2>\
         <ol class=\"log\" id=\"log\" tabindex=\"0\" role=\"log\" aria-label=\"Activity of the agents\" data-follow=\"{}/live?after={position}\">{items}</ol></section>",
        esc(&name),
        subject.address()
    ));
    Ok(())
}

pub(crate) fn run(app: &App, subject: &Subject, run: &RunName) -> Result<String, Problem> {
    let (text, position) = end_of(app, subject, run)?;
    let here = format!("{}/runs", subject.address());
    let items = transcript::list(&text, MOST_ITEMS);
    let follow = if subject.is_open() {
        format!(" data-follow=\"{}/live?after={position}\" data-only=\"{run}\"", subject.address())
    } else {
        String::new()
    };
    let body = format!(
        "<h1>{:04} {}</h1><p class=\"facts\"><a href=\"{here}\">All runs</a></p>\
         <ol class=\"log whole\" id=\"log\" tabindex=\"0\" role=\"log\" aria-label=\"Transcript\"{follow}>{items}</ol>",
        run.number(),
        esc(run.step())
    );
    Ok(change_page(app, subject, &here, run.step(), &body))
}
