//! How a step looks: pure functions from what is known to a line of text.

use std::time::Duration;

use agentd_core::outcome::Usage;
use agentd_core::text::{Line, reveal};
use anstyle::Style;
use unicode_width::UnicodeWidthStr as _;

use crate::ui::{BAD, BOLD, DIM, GOOD, WARN, fit};
use agentd_core::figures::{clock, duration, tokens};

/// The frames of the spinner.
const SPINNER: [char; 10] = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];

/// With fewer columns, what the agent does is not worth showing.
const ENOUGH_FOR_WORDS: usize = 10;

/// A step that is running.
#[derive(Debug, Clone, Default)]
pub(super) struct Running {
    pub(super) label: String,
    pub(super) agent: &'static str,
    pub(super) resumed: bool,
    pub(super) usage: Option<Usage>,
    pub(super) cost_usd: Option<f64>,
    /// What the agent is doing, in its own words.
    pub(super) doing: String,
    /// Whether those are words that more may be added to.
    pub(super) in_text: bool,
}

/// A line, and how many columns it takes.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct RenderedLine {
    pub(super) text: String,
    pub(super) columns: usize,
}

/// The line of a running step, in so many columns. What does not fit is left out:
/// first what the agent does, then who it is, the cost, the tokens; the label is cut last.
pub(super) fn running(
    step: &Running,
    time: Duration,
    frame: usize,
    columns: usize,
    color: bool,
) -> RenderedLine {
    let time = clock(time);
    // The spinner and a space, two spaces, the time.
    let label = fit(one_line(&step.label).as_str(), columns.saturating_sub(4 + time.width()));
    let mut used = 2 + label.width() + 2 + time.width();
    let mut parts = Vec::new();
    let figures = [
        step.usage.map(|usage| format!("{} tokens", tokens(usage.total()))),
        step.cost_usd.map(cost),
        Some(format!("{}{}", step.agent, if step.resumed { ", resumed" } else { "" })),
    ];
    for part in figures.into_iter().flatten() {
        if used + 3 + part.width() > columns {
            break;
        }
        used += 3 + part.width();
        parts.push(part);
    }
    let doing = one_line(&step.doing);
    let room = columns.saturating_sub(used + 3);
    if !doing.is_empty() && room >= ENOUGH_FOR_WORDS {
        let doing = fit(doing.as_str(), room);
        used += 3 + doing.width();
        parts.push(doing);
    }
    if used > columns {
        // Not even the time has room.
        let columns = columns.max(1);
        let text = fit(&format!("{} {time}", SPINNER[frame % SPINNER.len()]), columns);
        return RenderedLine { columns: text.width(), text };
    }
    let paint = Paint(color);
    let spinner = paint.in_style(WARN, &SPINNER[frame % SPINNER.len()].to_string());
    let rest: String = std::iter::once(time).chain(parts).collect::<Vec<_>>().join(" · ");
    let text =
        format!("{spinner} {}  {}", paint.in_style(BOLD, &label), paint.in_style(DIM, &rest));
    RenderedLine { text, columns: used }
}

/// How a step has ended.
#[derive(Debug, Clone, Copy)]
pub(super) enum StepEnd<'a> {
    Done { summary: &'a str, usage: Usage, cost_usd: f64, time: Duration },
    Failed { message: &'a str, time: Duration },
    Skipped { why: &'a str },
}

/// The line of a step that has ended, for a terminal.
pub(super) fn ended(label: &str, end: StepEnd<'_>, color: bool) -> String {
    let paint = Paint(color);
    let (style, mark) = match end {
        StepEnd::Done { .. } => (GOOD, "✓"),
        StepEnd::Failed { .. } => (BAD, "✗"),
        StepEnd::Skipped { .. } => (DIM, "–"),
    };
    let (mark, label) =
        (paint.in_style(style, mark), paint.in_style(BOLD, one_line(label).as_str()));
    format!("{mark} {label}  {}", paint.in_style(DIM, &figures(end).join(" · ")))
}

/// The line with which a step begins, without a terminal.
pub(super) fn plain_start(label: &str, agent: &str, resumed: bool) -> String {
    let resumed = if resumed { ", resumed" } else { "" };
    format!("{}: started ({agent}{resumed})", one_line(label))
}

/// The line with which a step ends, without a terminal.
pub(super) fn plain_end(label: &str, end: StepEnd<'_>) -> String {
    let how = match end {
        StepEnd::Done { .. } => "done",
        StepEnd::Failed { .. } => "failed",
        StepEnd::Skipped { .. } => "skipped",
    };
    format!("{}: {how}, {}", one_line(label), figures(end).join(", "))
}

fn figures(end: StepEnd<'_>) -> Vec<String> {
    let time = |time: Duration| duration(u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
    let words = |text| Some(one_line(text).to_string()).filter(|text| !text.is_empty());
    let mut parts = Vec::new();
    match end {
        StepEnd::Done { summary, usage, cost_usd, time: took } => {
            parts.push(time(took));
            if usage != Usage::default() {
                parts.push(format!("{} in, {} out", tokens(usage.input), tokens(usage.output)));
            }
            if cost_usd > 0.0 {
                parts.push(cost(cost_usd));
            }
            parts.extend(words(summary));
        }
        StepEnd::Failed { message, time: took } => {
            parts.push(time(took));
            parts.extend(words(message));
        }
        StepEnd::Skipped { why } => parts.extend(words(why)),
    }
    parts
}

/// Text from outside on one line, without anything that steers a terminal: neither control
/// characters nor those that turn the direction of writing.
fn one_line(text: &str) -> Line {
    Line::new(&reveal(text))
}

fn cost(usd: f64) -> String {
    format!("${usd:.4}")
}

struct Paint(bool);

impl Paint {
    fn in_style(&self, style: Style, text: &str) -> String {
        if self.0 { format!("{style}{text}{style:#}") } else { text.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step() -> Running {
        Running {
            label: "Spec 1/3: auth-flow".into(),
            agent: "gemini",
            resumed: false,
            usage: Some(Usage { input: 12_000, output: 345, ..Usage::default() }),
            cost_usd: Some(0.0123),
            doing: "create_spec auth-flow".into(),
            in_text: false,
        }
    }

    fn at(step: &Running, columns: usize) -> String {
        let shown = running(step, Duration::from_secs(83), 1, columns, false);
        assert_eq!(shown.text.width(), shown.columns, "{shown:?}");
        assert!(shown.columns <= columns, "{columns}: {shown:?}");
        shown.text
    }

    /// P15, and issue 5: label, time, tokens, cost, and what the agent does now.
    #[test]
    fn a_running_step_says_what_there_is_room_for() {
        let all =
            "⠙ Spec 1/3: auth-flow  1:23 · 12.3k tokens · $0.0123 · gemini · create_spec auth-flow";
        for (columns, expected) in [
            (200, all),
            (85, all),
            (
                80,
                "⠙ Spec 1/3: auth-flow  1:23 · 12.3k tokens · $0.0123 · gemini · create_spec aut…",
            ),
            (70, "⠙ Spec 1/3: auth-flow  1:23 · 12.3k tokens · $0.0123 · gemini"),
            (55, "⠙ Spec 1/3: auth-flow  1:23 · 12.3k tokens · $0.0123"),
            (45, "⠙ Spec 1/3: auth-flow  1:23 · 12.3k tokens"),
            (27, "⠙ Spec 1/3: auth-flow  1:23"),
            (20, "⠙ Spec 1/3: a…  1:23"),
            (9, "⠙ …  1:23"),
            (8, "⠙ 1:23"),
            (6, "⠙ 1:23"),
            (3, "⠙…"),
        ] {
            assert_eq!(at(&step(), columns), expected, "{columns}");
        }
        let fresh =
            Running { usage: None, cost_usd: None, doing: String::new(), resumed: true, ..step() };
        assert_eq!(at(&fresh, 80), "⠙ Spec 1/3: auth-flow  1:23 · gemini, resumed");
    }

    #[test]
    fn no_width_and_no_text_break_the_line() {
        let nasty =
            "\u{1b}[2J\u{7}日本語 \r\n\tüber\u{202e}txt.exe\u{9b}31m \u{1F469}\u{200d}\u{1F4BB}";
        let step = Running { label: nasty.into(), doing: nasty.repeat(3), ..step() };
        for columns in 1..120 {
            let line = at(&step, columns);
            assert!(!line.contains(|c: char| c.is_control() || c == '\u{202e}'), "{line:?}");
        }
    }

    #[test]
    fn ends_have_their_figures() {
        let usage = Usage { input: 12_000, output: 345, ..Usage::default() };
        let time = Duration::from_millis(4_521);
        let done = StepEnd::Done { summary: "4 requirements", usage, cost_usd: 0.0123, time };
        let failed = StepEnd::Failed { message: "no artifact\n\u{1b}[31m", time };
        let skipped = StepEnd::Skipped { why: "done already" };
        let label = "Spec 1/3: auth-flow";
        let line = |end| (ended(label, end, false), plain_end(label, end));
        assert_eq!(
            line(done).0,
            "✓ Spec 1/3: auth-flow  4.5 s · 12.0k in, 345 out · $0.0123 · 4 requirements"
        );
        assert_eq!(
            line(done).1,
            "Spec 1/3: auth-flow: done, 4.5 s, 12.0k in, 345 out, $0.0123, 4 requirements"
        );
        assert_eq!(line(failed).0, "✗ Spec 1/3: auth-flow  4.5 s · no artifact [31m");
        assert_eq!(line(failed).1, "Spec 1/3: auth-flow: failed, 4.5 s, no artifact [31m");
        assert_eq!(line(skipped).0, "– Spec 1/3: auth-flow  done already");
        assert_eq!(line(skipped).1, "Spec 1/3: auth-flow: skipped, done already");
        assert_eq!(
            plain_start(label, "gemini", true),
            "Spec 1/3: auth-flow: started (gemini, resumed)"
        );
        assert!(ended(label, done, true).contains("\u{1b}[32m✓\u{1b}[0m"));
    }
}
