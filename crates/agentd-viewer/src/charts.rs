//! When the steps of a change ran and what they took, drawn as SVG. Colors come from the
//! style sheet, by class, so that one drawing serves light and dark.

use agentd_core::state::LlmCall;

use super::html::{dollars, esc};
use agentd_core::figures::{duration, tokens};

const LABELS: f64 = 190.0;
const WIDTH: f64 = 900.0;
const ROW: f64 = 26.0;
/// Room for figures behind a bar.
const FIGURES: f64 = 130.0;

/// A call with its place in time, in milliseconds.
struct Bar<'c> {
    call: &'c LlmCall,
    start: f64,
    end: f64,
}

#[expect(clippy::cast_precision_loss, reason = "a drawing has no use for the last of 52 bits")]
fn float(number: u64) -> f64 {
    number as f64
}

#[expect(clippy::cast_precision_loss, reason = "milliseconds since 1970 fit into 52 bits")]
fn moment(call: &LlmCall) -> Option<f64> {
    call.timestamp.map(|at| at.moment().as_millisecond() as f64)
}

/// The steps over time. Waiting, which may be days, is drawn short.
pub(super) fn timeline(calls: &[LlmCall]) -> String {
    let mut bars: Vec<Bar<'_>> = calls
        .iter()
        .filter_map(|call| {
            let end = moment(call)?;
            Some(Bar { call, start: end - float(call.duration_ms), end })
        })
        .collect();
    bars.sort_by(|a, b| a.start.total_cmp(&b.start));
    if bars.is_empty() {
        return String::new();
    }
    let busy: f64 = bars.iter().map(|bar| bar.end - bar.start).sum();
    let longest_wait = (busy / 12.0).max(1.0);
    // Where each bar begins once long waits are cut, and where they were cut.
    let (mut removed, mut latest) = (0.0, bars[0].start);
    let first = bars[0].start;
    let mut cuts = Vec::new();
    let mut placed = Vec::new();
    for bar in &bars {
        let wait = bar.start - latest;
        if wait > longest_wait {
            removed += wait - longest_wait;
            cuts.push(latest - first - (removed - (wait - longest_wait)) + longest_wait / 2.0);
        }
        latest = latest.max(bar.end);
        placed.push((bar.start - first - removed, bar.end - first - removed));
    }
    let total = placed.iter().map(|(_, end)| *end).fold(1.0, f64::max);
    let scale = (WIDTH - LABELS - FIGURES) / total;
    let mut out = open("Timeline of the steps", bars.len());
    let bottom = height(bars.len());
    for cut in cuts {
        let x = LABELS + cut * scale;
        out.push_str(&format!(
            "<line class=\"cut\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"0\" y2=\"{bottom:.0}\"/>"
        ));
    }
    for (row, (bar, (start, end))) in bars.iter().zip(placed).enumerate() {
        let (x, width) = (LABELS + start * scale, ((end - start) * scale).max(2.0));
        label(&mut out, row, &bar.call.step);
        let kind = kind(&bar.call.step);
        rect(
            &mut out,
            row,
            x,
            width,
            kind,
            &format!("{}: {}", bar.call.step, duration(bar.call.duration_ms)),
        );
        figure(&mut out, row, x + width, &duration(bar.call.duration_ms));
    }
    out + "</svg>"
}

/// The color of a step.
fn kind(step: &str) -> &'static str {
    match step.split('-').next().unwrap_or_default() {
        "challenge" | "review" => "k-review",
        "implement" | "fix" => "k-code",
        _ => "k-plan",
    }
}

/// Tokens of each step: cached and fresh ones that went in, and those that came out.
pub(super) fn token_chart(calls: &[LlmCall]) -> String {
    let most =
        calls.iter().map(|c| float(c.tokens_in.saturating_add(c.tokens_out))).fold(1.0, f64::max);
    let scale = (WIDTH - LABELS - FIGURES) / most;
    let mut out = open("Tokens by step", calls.len());
    for (row, call) in calls.iter().enumerate() {
        label(&mut out, row, &call.step);
        let cached = call.tokens_cached.min(call.tokens_in);
        let parts = [
            (cached, "t-cached", "in, cached"),
            (call.tokens_in - cached, "t-in", "in"),
            (call.tokens_out, "t-out", "out"),
        ];
        let mut x = LABELS;
        for (count, class, what) in parts {
            let width = float(count) * scale;
            if width > 0.0 {
                rect(
                    &mut out,
                    row,
                    x,
                    width,
                    class,
                    &format!("{}: {} {what}", call.step, tokens(count)),
                );
            }
            x += width;
        }
        figure(
            &mut out,
            row,
            x,
            &format!("{} / {}", tokens(call.tokens_in), tokens(call.tokens_out)),
        );
    }
    out + "</svg>"
}

/// What each step has cost.
pub(super) fn cost_chart(calls: &[LlmCall]) -> String {
    let most = calls.iter().map(|call| call.cost).fold(f64::MIN_POSITIVE, f64::max);
    let scale = (WIDTH - LABELS - FIGURES) / most;
    let mut out = open("Cost by step", calls.len());
    for (row, call) in calls.iter().enumerate() {
        label(&mut out, row, &call.step);
        let width = (call.cost * scale).max(1.0);
        rect(
            &mut out,
            row,
            LABELS,
            width,
            "c-cost",
            &format!("{}: {}", call.step, dollars(call.cost)),
        );
        figure(&mut out, row, LABELS + width, &dollars(call.cost));
    }
    out + "</svg>"
}

fn height(rows: usize) -> f64 {
    f64::from(u32::try_from(rows).unwrap_or(u32::MAX)) * ROW + 4.0
}

fn open(title: &str, rows: usize) -> String {
    format!(
        "<svg class=\"chart\" role=\"img\" aria-label=\"{}\" viewBox=\"0 0 {WIDTH} {:.0}\" \
         width=\"{WIDTH}\" height=\"{:.0}\">",
        esc(title),
        height(rows),
        height(rows)
    )
}

fn top(row: usize) -> f64 {
    height(row) - 4.0
}

fn label(out: &mut String, row: usize, text: &str) {
    const SHOWN: usize = 26;
    let shown: String = text.chars().take(SHOWN).collect();
    let more = if text.chars().count() > SHOWN { "…" } else { "" };
    out.push_str(&format!(
        "<text class=\"label\" x=\"{:.0}\" y=\"{:.0}\" text-anchor=\"end\">{}{more}<title>{}</title></text>",
        LABELS - 10.0,
        top(row) + 17.0,
        esc(&shown),
        esc(text)
    ));
}

fn rect(out: &mut String, row: usize, x: f64, width: f64, class: &str, title: &str) {
    out.push_str(&format!(
        "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{:.0}\" width=\"{width:.1}\" height=\"16\" rx=\"3\">\
         <title>{}</title></rect>",
        top(row) + 5.0,
        esc(title)
    ));
}

fn figure(out: &mut String, row: usize, x: f64, text: &str) {
    out.push_str(&format!(
        "<text class=\"figure\" x=\"{:.1}\" y=\"{:.0}\">{}</text>",
        x + 6.0,
        top(row) + 17.0,
        esc(text)
    ));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(step: &str, ends: &str, duration_ms: u64) -> LlmCall {
        LlmCall {
            step: step.to_owned(),
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
        let svg = timeline(&calls);
        let widths: Vec<f64> = svg
            .split("width=\"")
            .skip(2)
            .filter_map(|rest| rest.split('"').next()?.parse().ok())
            .collect();
        assert!(widths.iter().all(|width| *width > 200.0), "{svg}");
        assert!(svg.contains("class=\"cut\"") && svg.contains("&lt;b&gt;") && !svg.contains("<b>"));
    }

    #[test]
    fn odd_figures_are_drawn_all_the_same() {
        for svg in
            [token_chart(&[call("a", "x", 1)]), cost_chart(&[call("a", "x", 1)]), timeline(&[])]
        {
            assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        }
    }
}
