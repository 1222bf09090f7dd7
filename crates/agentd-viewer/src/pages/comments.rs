//! Comments: all of them on one page, those on a place next to it, and the form.

use agentd_core::document::comments::{Anchor, Comment};
use agentd_core::layout::ChangeFile;
use agentd_core::rel_path::RelPath;
use maud::{Markup, html};

use super::change_page;
use crate::App;
use crate::html::time;
use crate::markdown;
use crate::subject::Subject;

pub(crate) fn comments_page(app: &App, subject: &Subject) -> Markup {
    let here = format!("{}/comments", subject.address());
    let all = &subject.comments.comments;
    let (open, resolved): (Vec<&Comment>, Vec<&Comment>) =
        all.iter().partition(|comment| comment.resolved.is_none());
    let groups = [("Open", open), ("Resolved", resolved)];
    let body = html! {
        h1 { "Comments" }
        @if subject.is_open() {
            p.quiet {
                "Open comments go into the next reproposal. They are kept in "
                code { "comments.md" } "."
            }
        }
        @if all.is_empty() {
            p.empty {
                "There are no comments yet. To add one, use the button next to a heading, \
                 requirement or task of a document, or next to a line in the source view."
            }
        }
        @for (title, comments) in groups.into_iter().filter(|(_, group)| !group.is_empty()) {
            h2 { (title) " " span.count { (comments.len()) } }
            @for comment in comments {
                (card(subject, comment, ShownIn::Listed, &here))
            }
        }
    };
    change_page(app, subject, &here, "Comments", &body)
}

/// Where a comment is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ShownIn {
    /// Next to what it is about.
    Beside,
    /// In a list, so that it has to say what it is about.
    Listed,
}

/// A comment.
pub(super) fn card(subject: &Subject, comment: &Comment, place: ShownIn, here: &str) -> Markup {
    let id = format!("c{}", comment.number);
    let resolved = comment.resolved.is_some();
    html! {
        article.comment.resolved[resolved] id=(id) {
            header {
                strong { (comment.by) }
                @if let Some(at) = comment.date { (time(at)) }
                @if place == ShownIn::Listed { " on " (link(subject, comment)) }
                @if let Some(resolved) = &comment.resolved {
                    " " span.quiet { "resolved by " (resolved.by) }
                }
            }
            div.prose { (markdown::fragment(comment.text.as_str())) }
            @if subject.is_open() { (settle_form(subject, comment, here)) }
        }
    }
}

/// The button that resolves a comment, or opens it again.
fn settle_form(subject: &Subject, comment: &Comment, here: &str) -> Markup {
    let number = comment.number;
    let (fate, label) =
        if comment.resolved.is_some() { ("open", "Open again") } else { ("resolved", "Resolve") };
    html! {
        form method="post" action={ (subject.address()) "/comments/" (number) } {
            input type="hidden" name="back" value={ (here) "#c" (number) };
            button.small name="fate" value=(fate) {
                (label) span.visually-hidden { " comment C" (number) }
            }
        }
    }
}

/// What a comment is about, as a link to it.
fn link(subject: &Subject, comment: &Comment) -> Markup {
    let file = RelPath::new(comment.on.as_str()).ok().and_then(|path| ChangeFile::from_path(&path));
    let name = match &comment.at {
        Anchor::Document => comment.on.to_string(),
        Anchor::Heading(title) => format!("{} · {title}", comment.on),
        spot @ (Anchor::Requirement(_) | Anchor::Task(_) | Anchor::Line(_)) => {
            format!("{} · {spot}", comment.on)
        }
    };
    let Some(file) = file.filter(|file| subject.source(file).is_some()) else {
        return html! { span { (name) } };
    };
    let address = subject.document_address(&file);
    let address = match comment.at {
        Anchor::Line(line) => format!("{address}?view=source#L{line}"),
        _ => format!("{address}#c{}", comment.number),
    };
    html! { a href=(address) { (name) } }
}

/// A button that opens the form for a comment on a place.
pub(super) fn button(file: &ChangeFile, at: &Anchor, name: &str) -> Markup {
    html! {
        button.add-comment type="button" data-on=(file.path()) data-at=(at)
            title={ "Comment on " (name) } {
            svg viewBox="0 0 16 16" aria-hidden="true" { path d="M2 3h12v8H7l-3 3v-3H2z" {} }
            span.visually-hidden { "Comment on " (name) }
        }
    }
}

/// The form, once per page; the button that opens it says what the comment is about.
pub(super) fn dialog(subject: &Subject) -> Markup {
    html! {
        dialog #comment-form aria-labelledby="comment-title" {
            form method="post" action={ (subject.address()) "/comments" } {
                h2 #comment-title { "Comment" }
                p.quiet #comment-about {}
                input type="hidden" name="on";
                input type="hidden" name="at";
                input type="hidden" name="back";
                label {
                    "What would you like to say? "
                    textarea name="text" rows="6" required maxlength="8000" {}
                }
                div.buttons {
                    button.primary { "Comment" }
                    button.cancel type="button" { "Cancel" }
                }
            }
        }
    }
}
