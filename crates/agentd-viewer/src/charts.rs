//! When the steps of a change ran and what they cost, drawn as SVG. Colors come from the style
//! sheet, by class, so that one drawing works in light and dark mode.

use agentd_core::figures::{duration, tokens};
use agentd_core::state::LlmCall;
use agentd_core::step_name::StepName;
use maud::{Markup, html};

use super::html::dollars;

const LABELS: f64 = 190.0;
const WIDTH: f64 = 900.0;
const ROW: f64 = 26.0;
/// Space for the figures after a bar.
const FIGURES: f64 = 130.0;

/// A call with its place in time, in milliseconds since 1970.
struct Bar<'c> {
    call: &'c LlmCall,
    start: f64,
    end: f64,
}

#[expect(clippy::cast_precision_loss, reason = "a drawing does not need the last of 52 bits")]
fn float(number: u64) -> f64 {
    number as f64
}

#[expect(clippy::cast_precision_loss, reason = "milliseconds since 1970 fit into 52 bits")]
fn moment(call: &LlmCall) -> Option<f64> {
    call.timestamp.map(|at| at.moment().as_millisecond() as f64)
}

/// A step at its place in a row: from where to where, in milliseconds since the first began.
struct StepSpan {
    start: f64,
    end: f64,
}

/// Where each bar goes once long waits are cut short, and where they were cut.
fn without_waits(bars: &[Bar<'_>]) -> (Vec<StepSpan>, Vec<f64>) {
    let busy: f64 = bars.iter().map(|bar| bar.end - bar.start).sum();
    let longest_wait = (busy / 12.0).max(1.0);
    let first = bars.first().map_or(0.0, |bar| bar.start);
    let (mut removed, mut latest) = (0.0, first);
    let (mut placed, mut cuts) = (Vec::new(), Vec::new());
    for bar in bars {
        let wait = bar.start - latest;
        if wait > longest_wait {
            cuts.push(latest - first - removed + longest_wait / 2.0);
            removed += wait - longest_wait;
        }
        latest = latest.max(bar.end);
        placed
            .push(StepSpan { start: bar.start - first - removed, end: bar.end - first - removed });
    }
    (placed, cuts)
}

/// The steps over time; nothing if no time is known. Waiting, which may take days, is drawn
/// short.
pub(super) fn timeline(calls: &[LlmCall]) -> Option<Markup> {
    let mut bars: Vec<Bar<'_>> = calls
        .iter()
        .filter_map(|call| {
            let end = moment(call)?;
            Some(Bar { call, start: end - float(call.duration_ms), end })
        })
        .collect();
    if bars.is_empty() {
        return None;
    }
    bars.sort_by(|a, b| a.start.total_cmp(&b.start));
    let (placed, cuts) = without_waits(&bars);
    let total = placed.iter().map(|place| place.end).fold(1.0, f64::max);
    let scale = (WIDTH - LABELS - FIGURES) / total;
    let bottom = format!("{:.0}", height(bars.len()));
    let rows = html! {
        @for cut in cuts {
            @let x = format!("{:.1}", LABELS + cut * scale);
            line.cut x1=(x) x2=(x) y1="0" y2=(bottom) {}
        }
        @for (row, (bar, place)) in bars.iter().zip(placed).enumerate() {
            @let step = &bar.call.step;
            @let took = duration(bar.call.duration_ms);
            @let x = LABELS + place.start * scale;
            @let width = ((place.end - place.start) * scale).max(2.0);
            (label(row, &step.to_string()))
            (rect(row, x, width, kind(step), &format!("{step}: {took}")))
            (figure(row, x + width, &took))
        }
    };
    Some(chart("Timeline of the steps", bars.len(), &rows))
}

/// The color of a step.
fn kind(step: &StepName) -> &'static str {
    match step {
        StepName::Challenge | StepName::Review => "k-review",
        StepName::Reproduce | StepName::Implement(_) | StepName::Fix => "k-code",
        _ => "k-plan",
    }
}

/// Tokens of each step: cached and fresh input, and output.
pub(super) fn token_chart(calls: &[LlmCall]) -> Markup {
    let most =
        calls.iter().map(|c| float(c.tokens_in.saturating_add(c.tokens_out))).fold(1.0, f64::max);
    let scale = (WIDTH - LABELS - FIGURES) / most;
    let rows = html! {
        @for (row, call) in calls.iter().enumerate() {
            (label(row, &call.step.to_string()))
            (token_bar(row, call, scale))
        }
    };
    chart("Tokens by step", calls.len(), &rows)
}

/// The tokens of one step, side by side.
fn token_bar(row: usize, call: &LlmCall, scale: f64) -> Markup {
    let cached = call.tokens_cached.min(call.tokens_in);
    let parts = [
        (cached, "t-cached", "in, cached"),
        (call.tokens_in - cached, "t-in", "in"),
        (call.tokens_out, "t-out", "out"),
    ];
    let mut end = LABELS;
    let placed = parts.map(|(count, class, what)| {
        let (start, width) = (end, float(count) * scale);
        end += width;
        (start, width, class, format!("{}: {} {what}", call.step, tokens(count)))
    });
    html! {
        @for (x, width, class, title) in placed {
            @if width > 0.0 {
                (rect(row, x, width, class, &title))
            }
        }
        (figure(row, end, &format!("{} / {}", tokens(call.tokens_in), tokens(call.tokens_out))))
    }
}

/// The cost of each step.
pub(super) fn cost_chart(calls: &[LlmCall]) -> Markup {
    let most = calls.iter().map(|call| call.cost).fold(f64::MIN_POSITIVE, f64::max);
    let scale = (WIDTH - LABELS - FIGURES) / most;
    let rows = html! {
        @for (row, call) in calls.iter().enumerate() {
            @let width = (call.cost * scale).max(1.0);
            @let cost = dollars(call.cost);
            (label(row, &call.step.to_string()))
            (rect(row, LABELS, width, "c-cost", &format!("{}: {cost}", call.step)))
            (figure(row, LABELS + width, &cost))
        }
    };
    chart("Cost by step", calls.len(), &rows)
}

fn height(rows: usize) -> f64 {
    f64::from(u32::try_from(rows).unwrap_or(u32::MAX)) * ROW + 4.0
}

fn chart(title: &str, rows: usize, content: &Markup) -> Markup {
    let height = format!("{:.0}", height(rows));
    html! {
        svg.chart role="img" aria-label=(title) viewBox={ "0 0 " (WIDTH) " " (height) }
            width=(WIDTH) height=(height) { (content) }
    }
}

fn top(row: usize) -> f64 {
    height(row) - 4.0
}

fn label(row: usize, text: &str) -> Markup {
    const SHOWN: usize = 26;
    let shown: String = text.chars().take(SHOWN).collect();
    let more = if text.chars().count() > SHOWN { "…" } else { "" };
    html! {
        text.label x=(format!("{:.0}", LABELS - 10.0)) y=(format!("{:.0}", top(row) + 17.0))
            text-anchor="end" { (shown) (more) title { (text) } }
    }
}

fn rect(row: usize, x: f64, width: f64, class: &str, title: &str) -> Markup {
    html! {
        rect.(class) x=(format!("{x:.1}")) y=(format!("{:.0}", top(row) + 5.0))
            width=(format!("{width:.1}")) height="16" rx="3" { title { (title) } }
    }
}

fn figure(row: usize, x: f64, text: &str) -> Markup {
    html! {
        text.figure x=(format!("{:.1}", x + 6.0)) y=(format!("{:.0}", top(row) + 17.0)) { (text) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(step: &str, ends: &str, duration_ms: u64) -> LlmCall {
        LlmCall {
            agent: None,
            step: step.into(),
            model: String::new(),
            tokens_in: u64::MAX,
            tokens_out: u64::MAX,
            tokens_cached: 0,
            duration_ms,
            cost: 0.0,
            timestamp: ends.parse().ok(),
            session_id: None,
            run: None,
        }
    }

    #[test]
    fn a_week_of_waiting_does_not_hide_the_work() {
        let calls = [
            call("proposal-gen", "2026-11-04T10:00:10Z", 10_000),
            call("<b>", "2026-11-11T10:00:10Z", 10_000),
        ];
        let svg = timeline(&calls).unwrap().into_string();
        let widths: Vec<f64> = svg
            .split("width=\"")
            .skip(2)
            .filter_map(|rest| rest.split('"').next()?.parse().ok())
            .collect();
        assert!(widths.iter().all(|width| *width > 200.0), "{svg}");
        assert!(svg.contains("class=\"cut\"") && svg.contains("&lt;b&gt;") && !svg.contains("<b>"));
    }

    #[test]
    fn odd_figures_are_still_drawn() {
        let calls = [call("a", "x", 1)];
        for svg in [token_chart(&calls), cost_chart(&calls)] {
            let svg = svg.into_string();
            assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        }
        assert!(timeline(&[]).is_none());
    }
}
