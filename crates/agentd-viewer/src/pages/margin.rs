//! What stands beside the parts of a document: findings of `validate`, issues of reviews, comments.

use std::collections::BTreeMap;

use agentd_core::diagnostic::Diagnostic;
use agentd_core::document::comments::{Anchor, Comment, Commented, CommentedText};
use agentd_core::document::issue_fate::IssueFate;
use agentd_core::issue_places::{self, Place};
use agentd_core::layout::ChangeFile;
use agentd_core::span::LineIndex;
use maud::{Markup, html};

use super::comments::thread;
use super::review::issue_address;
use crate::findings::over_rounds;
use crate::html::{severity, with_code};
use crate::subject::Subject;

/// What is to be shown beside a document and is not on the page yet.
pub(super) struct Margin<'s> {
    subject: &'s Subject,
    /// By line.
    findings: Vec<(usize, &'s Diagnostic)>,
    /// With the lines that they are about now, where they are about one.
    comments: Vec<(Option<usize>, &'s Comment)>,
    issues: Vec<(Place, IssueFate<'s>)>,
}

impl<'s> Margin<'s> {
    pub(super) fn new(subject: &'s Subject, file: &ChangeFile, text: &str) -> Self {
        let index = LineIndex::new(text);
        let (_, found) = subject.diagnostics(file);
        let mut findings: Vec<(usize, &Diagnostic)> =
            found.iter().map(|d| (index.line_column(d.span.start).0, d)).collect();
        findings.sort_by_key(|(line, _)| *line);
        let commented = CommentedText::new(text);
        let comments = subject
            .comments_on(&Commented::Document(file.clone()))
            .map(|comment| (commented.line_of(comment), comment))
            .collect();
        let issues = over_rounds(&subject.proposal().reviews)
            .into_iter()
            .flat_map(|issue| {
                let places =
                    issue_places::named(issue.issue.location.as_str(), subject.documents());
                places.into_iter().map(move |place| (place, issue.clone()))
            })
            .filter(|(place, _)| place.file() == *file)
            .collect();
        Self { subject, findings, comments, issues }
    }

    /// Everything up to a line, and what is about this heading.
    pub(super) fn beside(&mut self, line: usize, heading: Option<&Anchor>) -> Markup {
        let count = self.findings.partition_point(|(at, _)| *at <= line);
        let findings: Vec<_> = self.findings.drain(..count).collect();
        let is_here = |at: &Option<usize>, comment: &Comment| match at {
            Some(at) => *at <= line,
            None => heading.is_some_and(|heading| comment.at == *heading),
        };
        let comments: Vec<_> =
            self.comments.extract_if(.., |(at, comment)| is_here(at, comment)).collect();
        let issues: Vec<_> =
            self.issues.extract_if(.., |(place, _)| names(place, heading)).collect();
        self.shown(&findings, &comments, &issues)
    }

    /// What is about the document as a whole.
    pub(super) fn on_top(&mut self) -> Markup {
        let comments: Vec<_> =
            self.comments.extract_if(.., |(_, comment)| comment.at == Anchor::Document).collect();
        let issues: Vec<_> =
            self.issues.extract_if(.., |(place, _)| matches!(place, Place::File(_))).collect();
        self.shown(&[], &comments, &issues)
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

    /// What is about a heading, requirement or task, wherever it stands.
    pub(super) fn about(&mut self, at: &Anchor) -> Markup {
        let comments: Vec<_> =
            self.comments.extract_if(.., |(_, comment)| comment.at == *at).collect();
        let issues: Vec<_> =
            self.issues.extract_if(.., |(place, _)| names(place, Some(at))).collect();
        self.shown(&[], &comments, &issues)
    }

    /// Everything that has found no place. What a comment was about may be gone; the comment is
    /// not.
    pub(super) fn rest(mut self) -> Markup {
        let (findings, comments) =
            (std::mem::take(&mut self.findings), std::mem::take(&mut self.comments));
        let issues = std::mem::take(&mut self.issues);
        self.shown(&findings, &comments, &issues)
    }

    fn shown(
        &self,
        findings: &[(usize, &Diagnostic)],
        comments: &[(Option<usize>, &Comment)],
        issues: &[(Place, IssueFate<'_>)],
    ) -> Markup {
        // An issue may name one place twice.
        let issues: BTreeMap<u32, &IssueFate<'_>> =
            issues.iter().map(|(_, issue)| (issue.issue.number, issue)).collect();
        html! {
            @for (line, diagnostic) in findings { (finding(diagnostic, *line)) }
            @for issue in issues.values() { (issue_note(self.subject, issue)) }
            @for (line, comment) in comments {
                @let is_line = matches!(comment.at, Anchor::Line(_));
                (thread(self.subject, comment, is_line && line.is_none()))
            }
        }
    }
}

/// Whether a place is what a heading stands for.
fn names(place: &Place, heading: Option<&Anchor>) -> bool {
    match (place, heading) {
        (Place::Requirement(_, id), Some(Anchor::Requirement(heading))) => id == heading,
        (Place::Task(id), Some(Anchor::Task(heading))) => id == heading,
        _ => false,
    }
}

/// A finding of `validate`.
fn finding(diagnostic: &Diagnostic, line: usize) -> Markup {
    let weight = diagnostic.severity();
    html! {
        div.finding.(weight.label().to_lowercase()) role="note" {
            (severity(weight)) " " (with_code(&diagnostic.message))
            p.quiet {
                "line " (line) " · " span title={ "agentd explain " (diagnostic.rule.code) } {
                    (diagnostic.rule.code)
                } " · " (with_code(diagnostic.advice()))
            }
        }
    }
}

/// An issue of a review, in one line.
pub(super) fn issue_note(subject: &Subject, issue: &IssueFate<'_>) -> Markup {
    let (number, settled) = (issue.issue.number, issue.fate.is_settled());
    html! {
        div.issue-note.settled[settled] role="note" {
            @if settled { span.badge.good { (issue.fate.name()) } } @else { (severity(issue.issue.severity)) }
            " " a href=(issue_address(subject, &ChangeFile::Proposal, number)) {
                "I" (number) " " (issue.issue.title)
            }
        }
    }
}
