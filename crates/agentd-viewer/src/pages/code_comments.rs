//! Comments on code: at their lines where these are on the page, otherwise in a list.

use agentd_core::diff::{DiffLine, LineKind};
use agentd_core::document::comments::{Anchor, Comment, Commented, CommentedText};
use agentd_core::rel_path::RelPath;
use agentd_engine::insight::diff::{CodeDiff, CodeFile};
use maud::{Markup, html};

use super::comments::{link, thread};
use crate::subject::Subject;

/// Comments on lines of a file that are on the page, and the others.
pub(super) struct FileComments<'s> {
    placed: Vec<(LineKind, usize, &'s Comment)>,
    pub(super) others: Vec<&'s Comment>,
}

impl<'s> FileComments<'s> {
    pub(super) fn of(subject: &'s Subject, on: &Commented, file: &CodeFile) -> Self {
        let mut comments = Self { placed: Vec::new(), others: Vec::new() };
        let lines = || file.diff.hunks.iter().flat_map(|hunk| &hunk.lines);
        // What is on the page of the new text: the words are looked for there.
        let shown: Vec<(usize, String)> =
            lines().filter_map(|line| Some((line.new?, line.text()))).collect();
        let text: String = shown.iter().map(|(_, text)| format!("{text}\n")).collect();
        let commented = CommentedText::new(&text);
        for comment in subject.comments_on(on) {
            let placed = match comment.at {
                Anchor::Line(_) => {
                    let found = commented.line_of(comment).and_then(|at| shown.get(at - 1));
                    found.map(|(line, _)| (LineKind::Added, *line))
                }
                Anchor::Removed(line) => lines()
                    .find(|it| it.old == usize::try_from(line).ok() && it.new.is_none())
                    .and_then(|it| Some((LineKind::Removed, it.old?))),
                _ => None,
            };
            match placed {
                Some((side, line)) => comments.placed.push((side, line, comment)),
                None => comments.others.push(comment),
            }
        }
        comments
    }

    pub(super) fn at(&self, line: &DiffLine) -> impl Iterator<Item = &'s Comment> {
        let here = |(side, number, _): &&(LineKind, usize, &'s Comment)| match side {
            LineKind::Removed => line.new.is_none() && line.old == Some(*number),
            LineKind::Same | LineKind::Added => line.new == Some(*number),
        };
        self.placed.iter().filter(here).map(|(_, _, comment)| *comment)
    }
}

/// The comments on a file whose lines are not on the page.
pub(super) fn all_comments(subject: &Subject, on: Option<&Commented>) -> Markup {
    let comments = on.into_iter().flat_map(|on| subject.comments_on(on));
    html! { @for comment in comments { (about_thread(subject, comment)) } }
}

/// A comment under the name of what it is about.
fn about_thread(subject: &Subject, comment: &Comment) -> Markup {
    html! {
        p.about { "on " (link(subject, comment)) }
        (thread(subject, comment, false))
    }
}

/// Comments on the code as a whole, and on files that are not on the page.
pub(super) fn other_comments(subject: &Subject, code: Option<&CodeDiff>) -> Markup {
    let on_all: Vec<&Comment> = subject.comments_on(&Commented::Code).collect();
    let is_shown = |path: &RelPath| {
        code.is_some_and(|code| code.files.iter().any(|file| file.path == path.as_str()))
    };
    let elsewhere: Vec<&Comment> = subject
        .comments
        .comments
        .iter()
        .filter(|comment| comment.answers.is_none())
        .filter(|comment| match comment.commented() {
            Some(Commented::File(path)) => !is_shown(&path),
            _ => false,
        })
        .collect();
    html! {
        @if !on_all.is_empty() {
            h2 { "On all of the code" }
            @for comment in on_all { (thread(subject, comment, false)) }
        }
        @if !elsewhere.is_empty() {
            h2 { "On files that do not differ now" }
            @for comment in elsewhere { (about_thread(subject, comment)) }
        }
    }
}
