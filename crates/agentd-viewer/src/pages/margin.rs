//! What stands next to the parts of a document: findings and comments.

use agentd_core::diagnostic::Diagnostic;
use agentd_core::document::comments::Comment;
use agentd_core::layout::ChangeFile;
use agentd_core::span::LineIndex;
use maud::{Markup, html};

use super::comments::{ShownIn, card};
use crate::html::severity;
use crate::subject::Subject;

/// The findings and comments of a document that are not on the page yet.
pub(super) struct Margin<'s> {
    subject: &'s Subject,
    /// The page, to come back to after a comment is resolved.
    here: &'s str,
    /// By line.
    findings: Vec<(usize, &'s Diagnostic)>,
    comments: Vec<&'s Comment>,
}

impl<'s> Margin<'s> {
    pub(super) fn new(subject: &'s Subject, file: &ChangeFile, text: &str, here: &'s str) -> Self {
        let index = LineIndex::new(text);
        let (_, found) = subject.diagnostics(file);
        let mut findings: Vec<(usize, &Diagnostic)> =
            found.iter().map(|d| (index.line_column(d.span.start).0, d)).collect();
        findings.sort_by_key(|(line, _)| *line);
        let comments = subject.comments_on(file).collect();
        Self { subject, here, findings, comments }
    }

    /// The findings above a line.
    pub(super) fn findings_before(&mut self, line: usize) -> Markup {
        let count = self.findings.partition_point(|(at, _)| *at < line);
        html! {
            @for (line, diagnostic) in self.findings.drain(..count) {
                (finding(diagnostic, line))
            }
        }
    }

    /// The findings that belong to something, such as a task.
    pub(super) fn findings_where(&mut self, belongs: impl Fn(&Diagnostic) -> bool) -> Markup {
        let these = self.findings.extract_if(.., |(_, diagnostic)| belongs(diagnostic));
        html! {
            @for (line, diagnostic) in these {
                (finding(diagnostic, line))
            }
        }
    }

    /// The comments about something, in order.
    pub(super) fn comments_where(&mut self, about: impl Fn(&Comment) -> bool) -> Markup {
        let these = self.comments.extract_if(.., |comment| about(comment));
        html! {
            @for comment in these {
                (card(self.subject, comment, ShownIn::Beside, self.here))
            }
        }
    }

    /// Everything that has found no place. What a comment was about may be gone; the comment is
    /// not.
    pub(super) fn rest(mut self) -> Markup {
        html! {
            (self.findings_before(usize::MAX))
            @for comment in self.comments {
                (card(self.subject, comment, ShownIn::Listed, self.here))
            }
        }
    }
}

/// A finding of `validate`.
fn finding(diagnostic: &Diagnostic, line: usize) -> Markup {
    let weight = diagnostic.severity();
    html! {
        aside.finding.(weight.label().to_lowercase()) {
            (severity(weight)) " " strong { (diagnostic.rule.code) } " "
            span { (diagnostic.message) }
            p.quiet { "line " (line) " · " (diagnostic.advice()) }
        }
    }
}
