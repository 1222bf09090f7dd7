//! Comments: all of them on one page, those on a place beside it, and the form.

use agentd_core::document::comments::{Anchor, Comment, Commented};
use agentd_engine::change::comments;
use maud::{Markup, html};

use super::plan::plan_page;
use super::review::issue_address;
use crate::App;
use crate::html::{icon, query_value, time};
use crate::markdown;
use crate::routes::View;
use crate::subject::Subject;

pub(crate) fn comments_page(app: &App, subject: &Subject, view: &View) -> Markup {
    let here = format!("{}/comments", subject.address());
    let all = subject.comments.comments.iter().filter(|comment| comment.answers.is_none());
    let (open, resolved): (Vec<&Comment>, Vec<&Comment>) =
        all.partition(|comment| comment.resolved.is_none());
    let groups = [("Open", &open), ("Resolved", &resolved)];
    let body = html! {
        h2.page-title { "Comments" }
        @if subject.is_open() {
            p.quiet {
                "Open comments on the plan are given to the planner when it revises the plan; those on \
                 code to the implementer when it fixes the code. They are kept in "
                code { "comments.md" } "."
            }
            // Without the script, the buttons beside parts of documents lead here.
            @if !view.on.is_empty() { (form(subject, &view.on, &view.at)) }
        }
        div data-live="comments" {
            @if open.is_empty() && resolved.is_empty() {
                p.empty {
                    "There are no comments yet. Select words in a document, or use the button beside a \
                     heading, a task or a line of code."
                }
            }
            @for (title, comments) in groups.into_iter().filter(|(_, group)| !group.is_empty()) {
                h3 { (title) " " span.count { (comments.len()) } }
                @for comment in comments {
                    p.about { "on " (link(subject, comment)) }
                    (thread(subject, comment, false))
                }
            }
        }
    };
    plan_page(app, subject, &here, "Comments", &body)
}

/// A comment and its answers. `outdated`: the words that it was about are gone.
pub(super) fn thread(subject: &Subject, comment: &Comment, outdated: bool) -> Markup {
    let resolved = comment.resolved.is_some();
    let number = comment.number;
    html! {
        article.thread.resolved[resolved] id={ "C" (number) } {
            @if outdated {
                p.quiet {
                    span.badge.medium { "outdated" } " The words are gone: “" (comment.quote) "”"
                }
            } @else if !comment.quote.is_empty() {
                p.quote { "“" (comment.quote) "”" }
            }
            (card(subject, comment))
            @for answer in subject.answers(number) { (card(subject, answer)) }
            @if let Some(resolved) = &comment.resolved {
                p.quiet {
                    "resolved by " (resolved.by)
                    @if let Some(at) = resolved.date { " " (time(at)) }
                }
            }
            @if let Some(call) = subject.state().and_then(|state| comments::given(state, comment)) {
                p.quiet { "given to the agent in " (call.step) @if let Some(run) = call.run { ", run " (run) } }
            }
            @if subject.is_open() { (actions(subject, comment)) }
        }
    }
}

fn card(subject: &Subject, comment: &Comment) -> Markup {
    html! {
        div.comment id={ "comment-" (comment.number) } {
            header {
                strong { (comment.by) }
                @if let Some(at) = comment.date { " " (time(at)) }
                " " span.quiet { "C" (comment.number) }
            }
            div.prose { (markdown::fragment(comment.text.as_str())) }
            @if subject.is_open() { (own_actions(subject, comment)) }
        }
    }
}

/// What can be done with one's own words.
fn own_actions(subject: &Subject, comment: &Comment) -> Markup {
    let address = format!("{}/comments/{}", subject.address(), comment.number);
    let is_answered = subject.answers(comment.number).next().is_some();
    html! {
        details.own {
            summary { "Edit" span.visually-hidden { " comment C" (comment.number) } }
            form method="post" action={ (address) "/edit" } data-send {
                label {
                    span.visually-hidden { "Comment C" (comment.number) }
                    textarea name="text" rows="3" required maxlength="8000" { (comment.text) }
                }
                div.actions { button.small { "Save" } }
            }
            @if !is_answered {
                form method="post" action={ (address) "/remove" } data-send {
                    button.small.danger { "Remove" }
                }
            }
        }
    }
}

/// What can be done with a comment: resolve it, open it again, answer it.
fn actions(subject: &Subject, comment: &Comment) -> Markup {
    let number = comment.number;
    let address = format!("{}/comments/{number}", subject.address());
    let (fate, label) =
        if comment.resolved.is_some() { ("open", "Open again") } else { ("resolved", "Resolve") };
    html! {
        div.thread-actions {
            form method="post" action=(address) data-send {
                button.small name="fate" value=(fate) {
                    (label) span.visually-hidden { " comment C" (number) }
                }
            }
            details {
                summary { "Reply" span.visually-hidden { " to comment C" (number) } }
                form method="post" action={ (address) "/answer" } data-send
                    data-draft={ "answer " (number) } {
                    label {
                        span.visually-hidden { "Reply to comment C" (number) }
                        textarea name="text" rows="3" required maxlength="8000" {}
                    }
                    button.small { "Reply" }
                }
            }
        }
    }
}

/// What a comment is about, as a link to it.
pub(super) fn link(subject: &Subject, comment: &Comment) -> Markup {
    let name = match (&comment.commented(), &comment.at) {
        (Some(Commented::Code), _) => "the code".to_owned(),
        (Some(Commented::File(path)), at) => format!("{path} {at}"),
        (_, Anchor::Document) => comment.on.to_string(),
        (_, Anchor::Heading(title)) => format!("{} · {title}", comment.on),
        (_, at) => format!("{} · {at}", comment.on),
    };
    let base = subject.address();
    let address = match comment.commented() {
        Some(Commented::Document(file)) if let Anchor::Issue(number) = comment.at => {
            issue_address(subject, &file, number)
        }
        Some(Commented::Document(file)) if subject.source(&file).is_some() => {
            format!("{}#C{}", subject.document_address(&file), comment.number)
        }
        Some(Commented::Code | Commented::File(_)) => format!("{base}/code#C{}", comment.number),
        _ => return html! { span { (name) } },
    };
    html! { a href=(address) { (name) } }
}

/// A link to the form for a comment on a place; the script opens it in place.
pub(super) fn button(subject: &Subject, on: &Commented, at: &Anchor, name: &str) -> Markup {
    let (on, at) = (on.to_string(), at.to_string());
    let address =
        format!("{}/comments?on={}&at={}", subject.address(), query_value(&on), query_value(&at));
    html! {
        @if subject.is_open() {
            a.add-comment href=(address) data-on=(on) data-at=(at) title={ "Comment on " (name) } {
                (icon("M2 3h12v8H7l-3 3v-3H2z"))
                span.visually-hidden { "Comment on " (name) }
            }
        }
    }
}

/// The form for a comment, which the script copies to where it is wanted.
pub(super) fn template(subject: &Subject) -> Markup {
    html! {
        @if subject.is_open() {
            template #comment-template { (form(subject, "", "")) }
        }
    }
}

fn form(subject: &Subject, on: &str, at: &str) -> Markup {
    html! {
        form.new-comment method="post" action={ (subject.address()) "/comments" } data-send {
            input type="hidden" name="on" value=(on);
            input type="hidden" name="at" value=(at);
            input type="hidden" name="quote" value="";
            p.quote hidden {}
            label {
                span.about-what { "Comment on " (on) " " (at) }
                textarea name="text" rows="3" required maxlength="8000" {}
            }
            div.actions {
                button.primary.small { "Comment" }
                button.small.cancel type="button" hidden { "Cancel" }
            }
        }
    }
}
