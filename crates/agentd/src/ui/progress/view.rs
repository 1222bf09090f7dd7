//! How progress looks: pure functions from what is known to lines of text.

use std::time::Duration;

use agentd_core::document::review::CodeVerdict;
use agentd_core::document::review_block::{Issue, PlanVerdict};
use agentd_core::figures::{clock, duration, tokens, usd};
use agentd_core::outcome::Usage;
use agentd_core::state::TestRun;
use agentd_core::text::{head, printable, tail};
use agentd_engine::workflow::{Outlook, Verdict};
use anstyle::Style;

use crate::ui::measure::{NO_BREAK, fit, fit_end, one_line, width, wrap};
use crate::ui::region::Frame;
use crate::ui::{BAD, BOLD, DIM, GOOD, USUAL_COLUMNS, WARN, issues};

/// The frames of the spinner.
const SPINNER: [char; 10] = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];

/// With fewer columns, what the agent does is not worth showing.
const ENOUGH_FOR_WORDS: usize = 10;

/// More bytes than a column of text usually has.
const BYTES_PER_COLUMN: usize = 8;

/// With fewer rows, the live view is one line.
const ENOUGH_ROWS: usize = 8;

/// With fewer columns, too.
const ENOUGH_COLUMNS: usize = 20;

/// How many lines of tests that failed are shown.
const TAIL_LINES: usize = 15;

/// How much of a message of an error a pipe gets where a step ends: the error itself comes below.
const MESSAGE_BYTES: usize = 160;

/// The message of a step that Ctrl-C has stopped.
const INTERRUPTED: &str = "interrupted";

/// A step that is running.
#[derive(Debug, Clone, Default)]
pub(super) struct Running {
    pub(super) label: String,
    /// Who does it; empty for the tests.
    pub(super) agent: String,
    pub(super) resumed: bool,
    pub(super) usage: Option<Usage>,
    pub(super) cost_usd: Option<f64>,
    /// What the agent is doing, in its own words.
    pub(super) doing: String,
    /// Whether those are words that more may be added to.
    pub(super) in_text: bool,
    pub(super) outlook: Outlook,
    /// Somebody has pressed Ctrl-C.
    pub(super) stopping: bool,
}

/// The size of a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) columns: usize,
    pub(super) rows: usize,
}

/// The live view of a running step: what it is, what the agent does, what is to come, and what the
/// change has cost. In few rows, the first line alone.
pub(super) fn live(
    step: &Running,
    time: Duration,
    frame: usize,
    size: Size,
    paint: Paint,
) -> Frame {
    let is_small = size.rows < ENOUGH_ROWS || size.columns < ENOUGH_COLUMNS;
    let mut lines = vec![first_line(step, time, frame, size.columns, paint, is_small)];
    if !is_small {
        let room = size.columns.saturating_sub(2);
        let below = [doing(step, room), to_come(step, room), spent(step, room)];
        for line in below.into_iter().flatten() {
            let took = 2 + width(&line);
            lines.push((format!("  {}", paint.in_style(DIM, &line)), took));
        }
    }
    Frame { lines, cursor: None }
}

/// The step and its figures. What does not fit is left out: first what the agent does, then who it
/// is, the cost, the tokens; the label is cut last.
fn first_line(
    step: &Running,
    time: Duration,
    frame: usize,
    columns: usize,
    paint: Paint,
    with_doing: bool,
) -> (String, usize) {
    let time = clock(time);
    let spinner = SPINNER[frame % SPINNER.len()];
    // The spinner and a space, two spaces, the time.
    let label = fit(&one_line(&step.label), columns.saturating_sub(4 + time.len()));
    let mut used = 2 + width(&label) + 2 + time.len();
    let mut parts = Vec::new();
    let Outlook { number, of, .. } = step.outlook;
    let figures = [
        step.stopping.then(|| "stopping; Ctrl-C again kills it".to_owned()),
        (of > 1).then(|| format!("step {number} of {of}")),
        step.usage.map(|usage| format!("{} tokens", tokens(usage.total()))),
        step.cost_usd.filter(|cost| *cost > 0.0).map(usd),
        who(step),
    ];
    for part in figures.into_iter().flatten() {
        if used + 3 + width(&part) > columns {
            break;
        }
        used += 3 + width(&part);
        parts.push(part);
    }
    let room = columns.saturating_sub(used + 3);
    if let Some(doing) = doing(step, room).filter(|_| with_doing && room >= ENOUGH_FOR_WORDS) {
        used += 3 + width(&doing);
        parts.push(doing);
    }
    if used > columns {
        // Not even the time has room.
        let text = fit(&format!("{spinner} {time}"), columns.max(1));
        return (text.clone(), width(&text));
    }
    let spinner = paint.in_style(WARN, &spinner.to_string());
    let rest: String = std::iter::once(time).chain(parts).collect::<Vec<_>>().join(" · ");
    let text =
        format!("{spinner} {}  {}", paint.in_style(BOLD, &label), paint.in_style(DIM, &rest));
    (text, used)
}

/// `gemini (gemini-3.8-flash), resumed`
fn who(step: &Running) -> Option<String> {
    if step.agent.is_empty() {
        return None;
    }
    let model = step.outlook.model.as_deref().filter(|model| !model.is_empty());
    let model = model.map(|model| format!(" ({})", one_line(model))).unwrap_or_default();
    let resumed = if step.resumed { ", resumed" } else { "" };
    Some(format!("{}{model}{resumed}", step.agent))
}

/// What the agent does: of a text the end, which is new; of a tool the beginning.
fn doing(step: &Running, room: usize) -> Option<String> {
    let last = step.doing.lines().rfind(|line| !line.trim().is_empty())?;
    // Of a long text, no more than can be shown is measured at every frame.
    let most = room.saturating_mul(BYTES_PER_COLUMN);
    let fitting = if step.in_text && last.len() > most {
        fit_end(&format!("…{}", one_line(tail(last, most))), room)
    } else if step.in_text {
        fit_end(&one_line(last), room)
    } else {
        fit_tool(&one_line(last), room)
    };
    Some(fitting).filter(|text| !text.is_empty())
}

/// A tool and what it works on: of a path the end is kept, of a command the beginning.
fn fit_tool(text: &str, room: usize) -> String {
    match text.split_once(' ') {
        Some((tool, path)) if path.contains('/') && !path.contains(' ') => {
            let left = room.saturating_sub(width(tool) + 1);
            if left < ENOUGH_FOR_WORDS {
                fit(text, room)
            } else {
                format!("{tool} {}", fit_end(path, left))
            }
        }
        _ => fit(text, room),
    }
}

fn to_come(step: &Running, room: usize) -> Option<String> {
    let to_come = &step.outlook.to_come;
    (!to_come.is_empty()).then(|| fit(&one_line(&format!("then: {}", to_come.join(" · "))), room))
}

/// What the change has cost, and may cost.
fn spent(step: &Running, room: usize) -> Option<String> {
    let Outlook { spent_usd, budget_usd, forecast_usd, .. } = step.outlook;
    let so_far = spent_usd + step.cost_usd.unwrap_or(0.0);
    if so_far <= 0.0 && budget_usd.is_none() && forecast_usd.is_none() {
        return None;
    }
    let mut parts = vec![format!("{} so far", usd(so_far))];
    parts
        .extend(forecast_usd.map(|[least, most]| format!("forecast {}–{}", usd(least), usd(most))));
    parts.extend(budget_usd.map(|limit| format!("budget {}", usd(limit))));
    Some(fit(&parts.join(" · "), room))
}

/// How a step has ended.
#[derive(Debug, Clone, Copy)]
pub(super) enum StepEnd<'a> {
    Done { summary: &'a str, verdict: Option<Verdict>, usage: Usage, cost_usd: f64, time: Duration },
    Failed { message: &'a str, time: Duration },
    Skipped { why: &'a str },
}

impl StepEnd<'_> {
    /// The mark in front of it. A verdict that asks for more work is no success.
    fn mark(self) -> (&'static str, Style) {
        match self {
            Self::Done { verdict, .. } => match verdict {
                Some(
                    Verdict::Plan(PlanVerdict::NeedsRevision)
                    | Verdict::Code(CodeVerdict::NeedsFix),
                ) => ("!", WARN.bold()),
                Some(
                    Verdict::Plan(PlanVerdict::Rejected) | Verdict::Code(CodeVerdict::MajorIssues),
                ) => ("✗", BAD),
                Some(
                    Verdict::Plan(PlanVerdict::Approved) | Verdict::Code(CodeVerdict::Approved),
                )
                | None => ("✓", GOOD),
            },
            Self::Failed { .. } => ("✗", BAD),
            Self::Skipped { .. } => ("–", DIM),
        }
    }
}

/// The lines of a step that has ended, for a terminal.
pub(super) fn ended(label: &str, end: StepEnd<'_>, columns: usize, paint: Paint) -> String {
    let (mark, style) = end.mark();
    let end = match end {
        // That it is ready is said once, at the end.
        StepEnd::Done { summary, verdict, usage, cost_usd, time } => {
            let ready = [" - Ready for implementation!", " - Ready for the archive!"];
            let said = ready.iter().find_map(|ready| summary.strip_suffix(ready));
            let summary = said.unwrap_or(summary);
            StepEnd::Done { summary, verdict, usage, cost_usd, time }
        }
        end => end,
    };
    let mut figures = figures(end);
    if let StepEnd::Failed { message, .. } = end {
        // Why is below, with the error; a person who has pressed Ctrl-C knows.
        let how = if message == INTERRUPTED { INTERRUPTED } else { "failed" };
        figures.push(how.to_owned());
    }
    marked(mark, style, &one_line(label), &figures.join(" · "), columns, paint)
}

/// A mark, what it is about, and more, in lines that fit.
fn marked(
    mark: &str,
    style: Style,
    label: &str,
    rest: &str,
    columns: usize,
    paint: Paint,
) -> String {
    // Two spaces are behind the label if something follows it on the same line.
    let all = format!("{label}{NO_BREAK} {rest}");
    let lines = wrap(&all, columns.saturating_sub(2).max(ENOUGH_FOR_WORDS));
    let mut out = String::new();
    for (index, line) in lines.iter().enumerate() {
        let line = line.trim_end();
        let text = match line.strip_prefix(label).filter(|_| index == 0) {
            Some(rest) => {
                format!("{}{}", paint.in_style(BOLD, label), paint.in_style(DIM, rest))
            }
            None => paint.in_style(if index == 0 { BOLD } else { DIM }, line),
        };
        let before = if index == 0 { paint.in_style(style, mark) } else { " ".to_owned() };
        let end = if index + 1 < lines.len() { "\n" } else { "" };
        out.push_str(format!("{before} {text}").trim_end());
        out.push_str(end);
    }
    out
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
    let mut figures = figures(end);
    if let StepEnd::Failed { message, .. } = end {
        // Its other lines are below, with the error.
        let first = message.lines().next().unwrap_or_default();
        let cut = head(first, MESSAGE_BYTES);
        let more = if cut.len() < first.len() { "…" } else { "" };
        figures.extend(words(&format!("{cut}{more}")));
    }
    format!("{}: {how}, {}", one_line(label), figures.join(", "))
}

fn words(text: &str) -> Option<String> {
    Some(one_line(text)).filter(|text| !text.is_empty())
}

fn figures(end: StepEnd<'_>) -> Vec<String> {
    let time = |time: Duration| duration(u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
    let mut parts = Vec::new();
    match end {
        StepEnd::Done { summary, usage, cost_usd, time: took, .. } => {
            parts.push(time(took));
            if usage != Usage::default() {
                parts.push(format!("{} in, {} out", tokens(usage.input), tokens(usage.output)));
            }
            if cost_usd > 0.0 {
                parts.push(format!("${cost_usd:.4}"));
            }
            parts.extend(words(summary));
        }
        StepEnd::Failed { time: took, .. } => parts.push(time(took)),
        StepEnd::Skipped { why } => parts.extend(words(why)),
    }
    parts
}

/// The lines of several steps that need not be done, for the same reason.
pub(super) fn skipped(labels: &[String], why: &str, columns: usize, paint: Paint) -> String {
    marked("–", DIM, &one_line(&labels.join(", ")), &one_line(why), columns, paint)
}

/// What the tests said, and the end of what they printed if they failed.
pub(super) fn tests(run: &TestRun, columns: Option<usize>, paint: Paint) -> String {
    let seconds = Duration::from_millis(run.duration_ms).as_secs_f64();
    let result = match (run.passed(), run.exit_code) {
        (true, _) => "the tests passed".to_owned(),
        (false, Some(code)) => format!("the tests failed with exit code {code}"),
        (false, None) => "the tests were stopped".to_owned(),
    };
    let text = format!("{result} after {seconds:.1} s");
    let mut out = match columns {
        Some(columns) => {
            let (mark, style) = if run.passed() { ("✓", GOOD) } else { ("✗", BAD) };
            marked(mark, style, "Tests", &text, columns, paint)
        }
        None => text,
    };
    if run.passed() {
        return out;
    }
    let lines: Vec<&str> = run.output_tail.as_str().lines().collect();
    let tail = &lines[lines.len().saturating_sub(TAIL_LINES)..];
    if tail.len() < lines.len() {
        out.push_str(&format!("\n    {}", paint.in_style(DIM, "…")));
    }
    for line in tail {
        let line = line.replace('\t', "    ");
        let line = match columns {
            Some(columns) => fit(&line, columns.saturating_sub(4)),
            None => printable(&line).into_owned(),
        };
        out.push_str(&format!("\n    {}", paint.in_style(DIM, line.trim_end())));
    }
    out
}

/// What a review found: its summary and its issues, in full, since the end of the command does not
/// repeat them.
pub(super) fn findings(
    summary: &str,
    issues: &[Issue],
    columns: Option<usize>,
    paint: Paint,
) -> String {
    let summary = match columns {
        Some(columns) => wrap(summary, columns).join("\n"),
        None => printable(summary).into_owned(),
    };
    let list = issues::list(issues, columns.unwrap_or(USUAL_COLUMNS));
    let list = if paint.0 { list } else { anstream::adapter::strip_str(&list).to_string() };
    [summary.trim_end(), list.trim_end()]
        .into_iter()
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join("\n")
}

/// Whether there are colors.
#[derive(Debug, Clone, Copy)]
pub(super) struct Paint(pub(super) bool);

impl Paint {
    pub(super) fn in_style(self, style: Style, text: &str) -> String {
        if self.0 && !text.trim().is_empty() {
            format!("{style}{text}{style:#}")
        } else {
            text.to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use agentd_core::text::Prose;

    use super::*;

    const PLAIN: Paint = Paint(false);

    fn step() -> Running {
        Running {
            label: "Spec 1/3: auth-flow".into(),
            agent: "gemini".into(),
            usage: Some(Usage { input: 12_000, output: 345, ..Usage::default() }),
            cost_usd: Some(0.0123),
            doing: "create_spec auth-flow".into(),
            outlook: Outlook {
                number: 3,
                of: 9,
                to_come: ["Spec 2/3: session-store", "Tasks", "Challenge"]
                    .map(str::to_owned)
                    .into(),
                model: Some("gemini-3.8-flash".to_owned()),
                spent_usd: 0.04,
                budget_usd: Some(5.0),
                forecast_usd: Some([0.1, 0.4]),
            },
            ..Running::default()
        }
    }

    fn at(step: &Running, columns: usize, rows: usize) -> String {
        let size = Size { columns, rows };
        let frame = live(step, Duration::from_secs(83), 1, size, PLAIN);
        for (line, took) in &frame.lines {
            assert_eq!(width(line), *took, "{line:?}");
            assert!(*took <= columns, "{columns}: {line:?}");
        }
        frame.lines.into_iter().map(|(line, _)| line).collect::<Vec<_>>().join("\n")
    }

    /// P15, issue 19: what runs, what is to come, who does it, for how long and how much.
    #[test]
    fn a_running_step_says_what_there_is_room_for() {
        assert_eq!(
            at(&step(), 120, 40),
            "⠙ Spec 1/3: auth-flow  1:23 · step 3 of 9 · 12.3k tokens · $0.01 · gemini (gemini-3.8-flash)\n  \
             create_spec auth-flow\n  \
             then: Spec 2/3: session-store · Tasks · Challenge\n  \
             $0.05 so far · forecast $0.10–$0.40 · budget $5.00"
        );
        for (columns, expected) in [
            (80, "⠙ Spec 1/3: auth-flow  1:23 · step 3 of 9 · 12.3k tokens · $0.01"),
            (60, "⠙ Spec 1/3: auth-flow  1:23 · step 3 of 9 · 12.3k tokens"),
            (45, "⠙ Spec 1/3: auth-flow  1:23 · step 3 of 9"),
            (20, "⠙ Spec 1/3: a…  1:23"),
            (9, "⠙ …  1:23"),
            (6, "⠙ 1:23"),
            (3, "⠙…"),
        ] {
            assert_eq!(at(&step(), columns, 40).lines().next().unwrap(), expected, "{columns}");
        }
        let small = "⠙ Spec 1/3: auth-flow  1:23 · step 3 of 9 · 12.3k tokens · $0.01 · gemini (gemini-3.8-flash) · create_spec auth-flow";
        assert_eq!(at(&step(), 120, 5), small);
        let fresh =
            Running { label: "Tests".into(), doing: "cargo test".into(), ..Running::default() };
        assert_eq!(at(&fresh, 80, 40), "⠙ Tests  1:23\n  cargo test");
        let stopping = Running { stopping: true, ..fresh };
        assert_eq!(
            at(&stopping, 80, 40),
            "⠙ Tests  1:23 · stopping; Ctrl-C again kills it\n  cargo test"
        );
    }

    #[test]
    fn of_paths_the_end_and_of_words_the_newest_are_shown() {
        let doing = |doing: &str, in_text| {
            let step = Running { doing: doing.to_owned(), in_text, ..Running::default() };
            super::doing(&step, 30).unwrap_or_default()
        };
        assert_eq!(
            doing("Write src/very/long/path/to/auth_flow.rs", false),
            "Write …/path/to/auth_flow.rs"
        );
        assert_eq!(doing("I have read the plan.\nNow I write it.\n", true), "Now I write it.");
        assert_eq!(
            doing("I have read all of the plan and of the code", true),
            "… of the plan and of the code"
        );
        assert_eq!(
            doing("Bash cargo test --workspace --locked", false),
            "Bash cargo test --workspace -…"
        );
        assert_eq!(doing("", true), "");
        let long = format!("{}the end of it", "a long story, ".repeat(1000));
        assert_eq!(doing(&long, true), "… a long story, the end of it");
    }

    #[test]
    fn no_width_and_no_text_break_the_line() {
        let nasty =
            "\u{1b}[2J\u{7}日本語 \r\n\tüber\u{202e}txt.exe\u{9b}31m \u{1F469}\u{200d}\u{1F4BB}";
        let outlook = Outlook {
            to_come: vec![nasty.to_owned()],
            model: Some(nasty.to_owned()),
            ..step().outlook
        };
        let step = Running { label: nasty.into(), doing: nasty.repeat(3), outlook, ..step() };
        for columns in 1..120 {
            let frame = at(&step, columns, 40);
            let bad = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
            assert!(!frame.contains(bad), "{frame:?}");
        }
    }

    fn done(summary: &str, verdict: Option<Verdict>) -> StepEnd<'_> {
        let usage = Usage { input: 12_000, output: 345, ..Usage::default() };
        let time = Duration::from_millis(4_521);
        StepEnd::Done { summary, verdict, usage, cost_usd: 0.0123, time }
    }

    #[test]
    fn ends_have_their_figures() {
        let label = "Spec 1/3: auth-flow";
        let line = |end| (ended(label, end, 200, PLAIN), plain_end(label, end));
        let fine = done("4 requirements", None);
        assert_eq!(
            line(fine).0,
            "✓ Spec 1/3: auth-flow  4.5 s · 12.0k in, 345 out · $0.0123 · 4 requirements"
        );
        assert_eq!(
            line(fine).1,
            "Spec 1/3: auth-flow: done, 4.5 s, 12.0k in, 345 out, $0.0123, 4 requirements"
        );
        let time = Duration::from_millis(4_521);
        // Issue 19, m6: what the error says below is not said here.
        let failed = StepEnd::Failed { message: "no artifact \u{1b}[31m\nTraceback", time };
        assert_eq!(line(failed).0, "✗ Spec 1/3: auth-flow  4.5 s · failed");
        assert_eq!(line(failed).1, "Spec 1/3: auth-flow: failed, 4.5 s, no artifact [31m");
        let skip = StepEnd::Skipped { why: "done already" };
        assert_eq!(line(skip).1, "Spec 1/3: auth-flow: skipped, done already");
        let labels = ["Proposal", "Tasks"].map(str::to_owned);
        assert_eq!(skipped(&labels, "done already", 80, PLAIN), "– Proposal, Tasks  done already");
        assert_eq!(
            plain_start(label, "gemini", true),
            "Spec 1/3: auth-flow: started (gemini, resumed)"
        );
        assert!(ended(label, fine, 80, Paint(true)).contains("\u{1b}[32m✓\u{1b}[0m"));
        assert_eq!(
            ended(label, fine, 50, PLAIN),
            "✓ Spec 1/3: auth-flow  4.5 s · 12.0k in, 345 out ·\n  $0.0123 · 4 requirements"
        );
    }

    /// Issue 19: at every width from 50, lines fit, and what is cut says so.
    #[test]
    fn no_width_cuts_a_word() {
        let text = "新增密碼登入：使用者必須輸入電子郵件與密碼，五次失敗後鎖定帳號。 The limits are not said";
        let issue = Issue {
            number: 12,
            severity: agentd_core::diagnostic::Severity::High,
            title: text.into(),
            location: "agentd/changes/add-oauth/specs/auth-flow.md:12".into(),
            description: Prose::new(text),
            recommendation: Prose::new(text),
        };
        let run = TestRun {
            command: "cargo test".to_owned(),
            exit_code: Some(101),
            output_tail: Prose::new(&text.repeat(4)),
            duration_ms: 640,
            at: "2026-11-04T10:00:00Z".parse().unwrap(),
            tree: None,
            tree_after: None,
        };
        let running = Running {
            doing: "Write src/session/期限/token.rs".to_owned(),
            outlook: Outlook { to_come: vec![text.to_owned()], ..step().outlook },
            ..step()
        };
        let all = |columns: usize| {
            [
                findings(text, std::slice::from_ref(&issue), Some(columns), PLAIN),
                tests(&run, Some(columns), PLAIN),
                ended("Spec 1/3: auth-flow", done(text, None), columns, PLAIN),
                skipped(&["Proposal".to_owned()], text, columns, PLAIN),
                at(&running, columns, 40),
            ]
            .join("\n")
        };
        let words = |text: &str| -> Vec<String> {
            let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '…');
            words.filter(|word| !word.is_empty()).map(str::to_owned).collect()
        };
        let whole = words(&all(1000));
        for columns in 50..=250 {
            let shown = all(columns);
            for line in shown.lines() {
                assert!(width(line) <= columns, "{columns}: {line:?}");
            }
            for word in words(&shown).iter().filter(|word| !word.contains('…')) {
                assert!(whole.contains(word), "{columns}: {word:?} in\n{shown}");
            }
        }
    }

    /// Issue 19, m7: what asks for more work has no green mark.
    #[test]
    fn a_verdict_has_the_mark_that_it_deserves() {
        for (verdict, mark) in [
            (Verdict::Plan(PlanVerdict::Approved), "✓"),
            (Verdict::Plan(PlanVerdict::NeedsRevision), "!"),
            (Verdict::Plan(PlanVerdict::Rejected), "✗"),
            (Verdict::Code(CodeVerdict::NeedsFix), "!"),
            (Verdict::Code(CodeVerdict::MajorIssues), "✗"),
        ] {
            let line = ended("Review", done(verdict.label(), Some(verdict)), 200, PLAIN);
            assert!(line.starts_with(mark), "{line}");
        }
    }

    /// Issue 19, M11: the lines that say what is wrong are shown.
    #[test]
    fn tests_that_fail_show_their_end() {
        let output: Vec<String> = (0..30).map(|n| format!("line {n}\tof the output")).collect();
        let mut run = TestRun {
            command: "cargo test".to_owned(),
            exit_code: Some(101),
            output_tail: Prose::new(&output.join("\n")),
            duration_ms: 640,
            at: "2026-11-04T10:00:00Z".parse().unwrap(),
            tree: None,
            tree_after: None,
        };
        let shown = tests(&run, Some(20), PLAIN);
        let lines: Vec<&str> = shown.lines().collect();
        assert_eq!(lines[0..3], ["✗ Tests  the tests", "  failed with exit", "  code 101 after"]);
        assert!(shown.contains("\n    …\n    line 15    of t…\n"), "{shown}");
        assert!(shown.ends_with("    line 29    of t…"), "{shown}");
        assert!(lines.iter().all(|line| width(line) <= 20), "{shown}");
        let piped = tests(&run, None, PLAIN);
        assert!(
            piped.starts_with("the tests failed with exit code 101 after 0.6 s\n    …\n"),
            "{piped}"
        );
        run.exit_code = Some(0);
        assert_eq!(tests(&run, None, PLAIN), "the tests passed after 0.6 s");
    }
}
