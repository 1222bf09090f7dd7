//! A change on one page for people who do not have the project: everything that its tabs show, below
//! each other, with nothing that can be pressed.

use agentd_core::document::comments::{Anchor, Comment, Commented};
use agentd_core::document::part::anchor_of;
use agentd_core::figures::{duration, tokens};
use agentd_core::ids::RequirementId;
use agentd_core::layout::ChangeFile;
use agentd_engine::insight::diff;
use agentd_engine::insight::kept::Kept;
use maud::{DOCTYPE, Markup, html};

use super::code::{static_differences, tests};
use super::code_comments::other_comments;
use super::comments::{link, thread};
use super::document::shown_parts;
use super::frame::{code_badge, life, plan_badge};
use super::review::static_review;
use super::trace::trace_table;
use crate::assets;
use crate::findings::{on_code, over_rounds};
use crate::html::{dollars, progress, time};
use crate::markdown::{self, Block};
use crate::subject::Subject;
use crate::task_graph;

/// The page has no script and loads nothing, and nothing that it shows can change that.
const POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";

pub(crate) fn static_page(subject: &Subject) -> Markup {
    let title = subject.title();
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) " · " (subject.id()) }
                // The one text that is not escaped by maud and not Markdown is our own file.
                (markdown::style(&assets::CSS))
            }
            body.static {
                main #main {
                    (head(subject, &title))
                    (contents(subject))
                    (documents(subject))
                    section #review { h2 { "Review" } (static_review(subject)) }
                    (comments(subject))
                    (code(subject))
                    (calls(subject))
                }
            }
        }
    }
}

fn head(subject: &Subject, title: &str) -> Markup {
    let state = subject.state();
    html! {
        header.change-head {
            h1 { (title) }
            p.facts {
                code { (subject.id()) } (plan_badge(subject)) (code_badge(subject))
                (progress(subject.completed(), subject.tasks().len()))
                @if let Some(state) = state {
                    span { (dollars(state.total_cost)) }
                    @if let Some(at) = state.updated_at { span { "as of " (time(at)) } }
                }
            }
            (life(subject.phase()))
        }
    }
}

fn contents(subject: &Subject) -> Markup {
    html! {
        nav.tabs aria-label="On this page" {
            @for (file, name) in subject.titles() {
                a href={ "#" (anchor(&file)) } { span.name { (name) } }
            }
            @for (anchor, name) in [("review", "Review"), ("code", "Code")] {
                a href={ "#" (anchor) } { span.name { (name) } }
            }
            @if subject.state().is_some_and(|state| !state.llm_calls.is_empty()) {
                a href="#runs" { span.name { "Runs" } }
            }
        }
    }
}

fn anchor(file: &ChangeFile) -> String {
    crate::html::slug(file.path().as_str())
}

/// The place of a requirement: two specs may have one of the same number.
pub(crate) fn requirement_anchor(spec: &str, id: RequirementId) -> String {
    format!("{spec}-{id}")
}

/// The place of a block that others lead to.
fn place(file: &ChangeFile, block: &Block) -> Option<String> {
    match (file, anchor_of(&block.heading.as_ref()?.title)) {
        (ChangeFile::Spec(spec), Anchor::Requirement(id)) => {
            Some(requirement_anchor(spec.as_str(), id))
        }
        (ChangeFile::Tasks, Anchor::Task(id)) => Some(task_graph::anchor(id)),
        _ => None,
    }
}

fn documents(subject: &Subject) -> Markup {
    html! {
        @for (file, name) in subject.titles() {
            @if let Some(text) = subject.documents().get(&file).text() {
                section id=(anchor(&file)) {
                    h2 { (name) }
                    @if file == ChangeFile::Tasks && let Ok(Some(svg)) = task_graph::svg(subject.tasks(), false) {
                        div.scroll.graph-box { (svg) }
                    }
                    div.document {
                        @for block in markdown::blocks(text, &shown_parts(&file, text)) {
                            @let is_title = block.heading.as_ref().is_some_and(|it| it.level == 1);
                            @if !is_title { div.block.prose id=[place(&file, &block)] { (block.html) } }
                        }
                    }
                }
            }
        }
    }
}

/// The comments on documents. Those on findings and on code stand with them.
fn comments(subject: &Subject) -> Markup {
    let (plan, code) = (over_rounds(&subject.proposal().reviews), on_code(subject));
    let is_elsewhere = |comment: &Comment| match (comment.commented(), &comment.at) {
        (Some(Commented::File(_) | Commented::Code), _) => true,
        (Some(Commented::Document(file)), Anchor::Issue(number)) => {
            let findings = if file == ChangeFile::Review { &code } else { &plan };
            findings.iter().any(|finding| finding.issue.number == *number)
        }
        _ => false,
    };
    let all: Vec<&Comment> = subject
        .comments
        .comments
        .iter()
        .filter(|comment| comment.answers.is_none() && !is_elsewhere(comment))
        .collect();
    html! {
        @if !all.is_empty() {
            section {
                h2 { "Comments" }
                @for comment in all {
                    p.about { "on " (link(subject, comment)) }
                    (thread(subject, comment, false))
                }
            }
        }
    }
}

fn code(subject: &Subject) -> Markup {
    let code = diff::code(subject.home(), subject.snapshot()).ok().flatten();
    let code = code.filter(|_| !subject.is_archived());
    html! {
        section #code {
            h2 { "Code" }
            (tests(subject))
            @if let Some(code) = &code { (static_differences(subject, code)) }
            (other_comments(subject, code.as_ref()))
            (trace_table(subject, code.as_ref(), &Kept::default()))
        }
    }
}

fn calls(subject: &Subject) -> Markup {
    let calls = subject.state().map_or(&[][..], |state| &state.llm_calls);
    html! {
        @if !calls.is_empty() {
            section #runs {
                h2 { "Runs" }
                div.table {
                    table {
                        thead {
                            tr { @for name in ["Step", "Model", "When", "Took", "Tokens", "Cost"] { th scope="col" { (name) } } }
                        }
                        tbody {
                            @for call in calls {
                                tr {
                                    th scope="row" { (call.step) }
                                    td {
                                        (call.model)
                                        @if let Some(failure) = call.failure { " " span.badge.high { (failure.words()) } }
                                    }
                                    td { @if let Some(at) = call.timestamp { (time(at)) } }
                                    td.n { (duration(call.duration_ms)) }
                                    td.n { (tokens(call.tokens_in)) " / " (tokens(call.tokens_out)) }
                                    td.n { (dollars(call.cost)) }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}
