//! The issues of a review, for a person who is to decide.

use agentd_core::diagnostic::Severity;
use agentd_core::document::review_block::Issue;
use anstyle::Style;

use super::measure::wrap;
use super::output::Remarks;
use super::{BAD, BOLD, DIM, Screen, Ui, WARN};

/// Lines that are longer than this are hard to read, however wide the terminal is.
const READABLE: usize = 100;

/// In fewer columns the terminal may break the lines as it likes.
const NARROW: usize = 40;

impl Ui {
    /// Shows issues on stderr, where the question about them is asked: the heaviest first.
    pub(crate) fn show_issues(&self, issues: &[Issue]) {
        if !self.json {
            Remarks::stderr().issues(issues);
        }
    }
}

impl Screen<'_> {
    /// Shows issues as a remark: the heaviest first.
    pub(crate) fn show_issues(&mut self, issues: &[Issue]) {
        self.remarks().issues(issues);
    }
}

impl Remarks<'_> {
    fn issues(&mut self, issues: &[Issue]) {
        let text = list(issues, self.columns());
        self.raw(&text);
    }
}

/// Issues as a list, the heaviest first: severity, id, title and place on a line, what is wrong and
/// what to do below it.
pub(super) fn list(issues: &[Issue], columns: usize) -> String {
    let columns = columns.clamp(NARROW, READABLE);
    let mut out = String::new();
    let id_width = issues.iter().map(|issue| format!("I{}", issue.number).len()).max().unwrap_or(0);
    // Severity, two spaces, id, two spaces.
    let indent = 6 + 2 + id_width + 2;
    for issue in by_weight(issues) {
        let (severity, style) = (issue.severity.label(), style(issue.severity));
        let id = format!("I{}", issue.number);
        out.push_str(&format!("{style}{severity:6}{style:#}  {DIM}{id:id_width$}{DIM:#}  "));
        push(&mut out, issue.title.as_str(), BOLD, indent, columns);
        for (text, style) in
            [(issue.location.as_str(), DIM), (issue.description.as_str(), Style::new())]
        {
            if !text.is_empty() {
                out.push_str(&" ".repeat(indent));
                push(&mut out, text, style, indent, columns);
            }
        }
        if !issue.recommendation.is_empty() {
            out.push_str(&format!("{}→ ", " ".repeat(indent)));
            push(&mut out, issue.recommendation.as_str(), Style::new(), indent + 2, columns);
        }
        out.push('\n');
    }
    out
}

/// Issues in the order in which people read them: the heaviest first.
pub(super) fn by_weight(issues: &[Issue]) -> impl Iterator<Item = &Issue> {
    let mut sorted: Vec<&Issue> = issues.iter().collect();
    sorted.sort_by_key(|issue| (issue.severity, issue.number));
    sorted.into_iter()
}

fn style(severity: Severity) -> Style {
    match severity {
        Severity::High => BAD,
        Severity::Medium => WARN,
        Severity::Low => DIM,
    }
}

/// A text from where the line stands, wrapped; further lines are indented.
fn push(out: &mut String, text: &str, style: Style, indent: usize, columns: usize) {
    let lines = wrap(text, columns.saturating_sub(indent).max(10));
    for (i, line) in lines.iter().enumerate() {
        let pad = if i == 0 || line.is_empty() { 0 } else { indent };
        out.push_str(&format!("{}{style}{line}{style:#}\n", " ".repeat(pad)));
    }
    if lines.is_empty() {
        out.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use agentd_core::text::{Line, Prose};
    use unicode_width::UnicodeWidthStr as _;

    use super::*;

    fn issue(number: u32, severity: Severity, texts: [&str; 4]) -> Issue {
        Issue {
            number,
            severity,
            title: Line::new(texts[0]),
            location: Line::new(texts[1]),
            description: Prose::new(texts[2]),
            recommendation: Prose::new(texts[3]),
        }
    }

    fn plain(text: &str) -> String {
        anstream::adapter::strip_str(text).to_string()
    }

    #[test]
    fn issues_are_listed_by_weight_and_wrapped() {
        let issues = [
            issue(2, Severity::Low, ["A typo", "", "", ""]),
            issue(
                12,
                Severity::Medium,
                ["No limit", "auth-flow:R1", "It is not said how often.", "Say it."],
            ),
            issue(
                1,
                Severity::High,
                [
                    "Tokens are stored in plain text",
                    "specs/auth-flow.md:12",
                    "Anyone who reads the disk\ncan log in as anyone else.",
                    "Hash them before they are stored, and compare the hashes.",
                ],
            ),
        ];
        let expected = "\
HIGH    I1   Tokens are stored in plain
             text
             specs/auth-flow.md:12
             Anyone who reads the disk
             can log in as anyone else.
             → Hash them before they are
               stored, and compare the
               hashes.

MEDIUM  I12  No limit
             auth-flow:R1
             It is not said how often.
             → Say it.

LOW     I2   A typo

";
        assert_eq!(plain(&list(&issues, 40)), expected);
        assert_eq!(plain(&list(&[], 40)), "");
    }

    #[test]
    fn any_text_fits_and_steers_nothing() {
        let nasty = "\u{1b}[2J 日本語日本語日本語日本語 averyveryverylongwordindeed\n\n\tx\u{9b}y";
        for columns in NARROW..60 {
            let issues = [issue(7, Severity::High, [nasty, nasty, nasty, nasty])];
            let text = plain(&list(&issues, columns));
            for line in text.lines() {
                assert!(line.width() <= columns, "{columns}: {line:?}");
                assert!(!line.contains(|c: char| c.is_control()), "{line:?}");
            }
        }
    }
}
