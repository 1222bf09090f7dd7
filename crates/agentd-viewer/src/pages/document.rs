//! A document of the plan as it reads, with findings, issues and comments beside its parts.

use agentd_core::document::comments::{Anchor, Commented};
use agentd_core::document::part::anchor_of;
use agentd_core::document::review_block;
use agentd_core::document::spec::{Requirement, Spec};
use agentd_core::documents::Source;
use agentd_core::ids::{RequirementId, SpecId};
use agentd_core::layout::{ChangeFile, Writer};
use agentd_core::outline::Outline;
use agentd_core::span::Span;
use agentd_core::text::counted;
use agentd_engine::insight::diff;
use agentd_engine::insight::trace::scenarios;
use axum::http::StatusCode;
use maud::{Markup, html};

use super::comments::{button, template};
use super::margin::Margin;
use super::plan::{plan_page, validation};
use super::{changes, edit, task_link};
use crate::App;
use crate::html::{icon, query_value};
use crate::markdown::{self, Block, Heading};
use crate::problem::Problem;
use crate::routes::{Form, View};
use crate::subject::Subject;

pub(crate) fn document(
    app: &App,
    subject: &Subject,
    file: &ChangeFile,
    view: &View,
) -> Result<Markup, Problem> {
    let text = readable(subject.source(file).unwrap_or(&Source::Missing))?;
    let here = subject.document_address(file);
    let title = match file {
        ChangeFile::Spec(id) => id.to_string(),
        ChangeFile::Tasks => "Tasks".to_owned(),
        ChangeFile::Clarifications => "Clarifications".to_owned(),
        _ => "Proposal".to_owned(),
    };
    let shown = match view.form() {
        Form::Read => rendered(subject, file, text),
        Form::Source => source_view(subject, file, text),
        Form::Changes => changes::since_round(subject, file, view)?,
        Form::MainSpec => changes::to_main_spec(subject, file)?,
        Form::Edit => edit::form(subject, file, text, &view.at)?,
    };
    let body = html! {
        @if *file == ChangeFile::Proposal && view.form() == Form::Read { (validation(subject)) }
        (tools(subject, file, &here, view))
        (shown)
        (template(subject))
    };
    Ok(plan_page(app, subject, &here, &title, &body))
}

/// The first page of a change whose proposal is not there yet.
pub(crate) fn no_proposal(app: &App, subject: &Subject) -> Markup {
    let asked = subject.state().and_then(|state| state.description.as_ref());
    let body = html! {
        (validation(subject))
        // The page is another one as soon as there is a proposal.
        div data-live="unwritten" {
            @if let Some(asked) = asked {
                section.asked {
                    h2.page-title { "What was asked for" }
                    div.prose { (markdown::fragment(asked.as_str())) }
                }
            }
            p.empty { "The plan is not written yet. Its documents appear here as they are written." }
        }
    };
    plan_page(app, subject, &subject.address(), "Proposal", &body)
}

pub(super) fn readable(source: &Source) -> Result<&str, Problem> {
    match source {
        Source::Text(text) => Ok(text),
        Source::Missing => Err(Problem::not_found()),
        Source::Unreadable(why) => {
            Err(Problem::new(StatusCode::INTERNAL_SERVER_ERROR, why.clone()))
        }
    }
}

/// The switch between the views, and what can be done with the whole document.
pub(super) fn tools(subject: &Subject, file: &ChangeFile, here: &str, view: &View) -> Markup {
    let path = file.path();
    let form = view.form();
    let rounds =
        if file.writer() == Writer::Agents { diff::rounds(subject.snapshot()) } else { Vec::new() };
    let switch = |to: Form, name: &str, address: String| {
        html! { a href=(address) aria-current=[(form == to).then_some("true")] { (name) } }
    };
    html! {
        div.tools {
            code { (path) }
            span.switch role="group" aria-label="How the document is shown" {
                (switch(Form::Read, "Read", here.to_owned()))
                @if let (Some(last), false) = (rounds.last(), *file == ChangeFile::Clarifications) {
                    (switch(Form::Changes, "Changes", format!("{here}?view=changes&from={last}")))
                }
                @if matches!(file, ChangeFile::Spec(_)) {
                    (switch(Form::MainSpec, "Main spec", format!("{here}?view=main")))
                }
                (switch(Form::Source, "Source", format!("{here}?view=source")))
            }
            @if subject.is_open() && file.writer() == Writer::Agents {
                a.button.small href={ (here) "?view=edit" } aria-keyshortcuts="e" { "Edit" }
            }
            (button(subject, &Commented::Document(file.clone()), &Anchor::Document, path.as_str()))
        }
    }
}

/// What of a text is shown: not the front matter, and not the reviews, which have their own page.
pub(super) fn shown_parts(file: &ChangeFile, text: &str) -> Vec<Span> {
    let mut at = Outline::scan(text).body_start;
    let mut parts = Vec::new();
    if *file == ChangeFile::Proposal {
        for block in review_block::spans(text) {
            if block.start >= at {
                parts.push(Span::new(at, block.start));
            }
            at = at.max(block.end);
        }
    }
    parts.push(Span::new(at, text.len()));
    parts
}

fn rendered(subject: &Subject, file: &ChangeFile, text: &str) -> Markup {
    let blocks = markdown::blocks(text, &shown_parts(file, text));
    let mut margin = Margin::new(subject, file, text);
    let spec = match file {
        ChangeFile::Spec(id) => subject.documents().specs.get(id).map(|spec| (id, spec.value())),
        _ => None,
    };
    let mut requirement: Option<&Requirement> = None;
    html! {
        div.reading {
            div.document data-live="document" data-on=(Commented::Document(file.clone())) {
                (aside(&margin.on_top()))
                @for (index, block) in blocks.iter().enumerate() {
                    @let anchor = block.heading.as_ref().map(|heading| anchor_of(&heading.title));
                    @if let Some(heading) = &block.heading {
                        ({
                            requirement = requirement_of(spec.map(|(_, spec)| spec), heading, requirement);
                            html! {}
                        })
                    }
                    // The title of the document is the name of the page, and the priority is in the
                    // head of its requirement.
                    @if !(index == 0 && is_title(block) || requirement.is_some() && is_priority(block)) {
                        @match (&block.heading, &anchor) {
                            (Some(heading), Some(Anchor::Requirement(id))) => {
                                (requirement_head(subject, file, spec, heading, *id))
                            }
                            (Some(heading), Some(anchor)) => {
                                (heading_block(subject, file, block, (heading, anchor), requirement.is_some()))
                            }
                            _ => {
                                div.block.prose.in-requirement[requirement.is_some()]
                                    data-line=(block.lines.0) { (block.html) }
                            }
                        }
                    }
                    (aside(&margin.beside(block.lines.1, anchor.as_ref())))
                }
                (aside(&margin.rest()))
            }
            (contents(&blocks))
        }
    }
}

/// What stands beside a block; nothing if there is nothing.
fn aside(content: &Markup) -> Markup {
    html! { @if !content.0.is_empty() { div.margin { (content) } } }
}

/// The requirement that a block is a part of, after a heading.
fn requirement_of<'s>(
    spec: Option<&'s Spec>,
    heading: &Heading,
    before: Option<&'s Requirement>,
) -> Option<&'s Requirement> {
    match anchor_of(&heading.title) {
        Anchor::Requirement(id) => spec?.requirements.iter().find(|it| it.id == id),
        _ if heading.level <= 3 => None,
        _ => before,
    }
}

fn is_title(block: &Block) -> bool {
    block.heading.as_ref().is_some_and(|heading| heading.level == 1)
}

/// Whether a block only says how important a requirement is.
fn is_priority(block: &Block) -> bool {
    let text = &block.html.0;
    text.starts_with("<p><strong>Priority") && text.matches('<').count() <= 4
}

fn heading_block(
    subject: &Subject,
    file: &ChangeFile,
    block: &Block,
    (heading, anchor): (&Heading, &Anchor),
    is_of_requirement: bool,
) -> Markup {
    html! {
        div.block.heading.prose.in-requirement[is_of_requirement] id=(heading.anchor) data-line=(block.lines.0) data-stop {
            (block.html)
            (button(subject, &Commented::Document(file.clone()), anchor, &heading.title))
            (edit_link(subject, file, anchor, &heading.title))
        }
    }
}

/// A link to the form that edits a part.
fn edit_link(subject: &Subject, file: &ChangeFile, anchor: &Anchor, name: &str) -> Markup {
    html! {
        @if subject.is_open() && file.writer() == Writer::Agents {
            a.edit-part href={
                (subject.document_address(file)) "?view=edit&at=" (query_value(&anchor.to_string()))
            } title={ "Edit " (name) } {
                (icon("M11 2l3 3-8 8H3v-3z"))
                span.visually-hidden { "Edit " (name) }
            }
        }
    }
}

/// The head of a requirement: its title, weight, tasks and scenarios.
fn requirement_head(
    subject: &Subject,
    file: &ChangeFile,
    spec: Option<(&SpecId, &Spec)>,
    heading: &Heading,
    id: RequirementId,
) -> Markup {
    let found = spec.and_then(|(_, spec)| spec.requirements.iter().find(|it| it.id == id));
    let anchor = Anchor::Requirement(id);
    let title = heading.title.split_once(':').map_or("", |(_, title)| title.trim());
    let change = spec.and_then(|(spec, _)| operation(subject, spec, id));
    html! {
        div.block.heading.requirement id=(heading.anchor) data-stop {
            span.anchor id=(id) {}
            h3 { span.id { (id) } " " (title) }
            span.chips {
                @if let Some((class, word)) = change { span.badge.(class) { (word) } }
                @if let Some(found) = found {
                    span.badge title="priority" { (found.priority.name()) }
                }
                @if let Some((spec, _)) = spec {
                    @let tasks = subject.tasks_for(spec, id);
                    @if tasks.is_empty() { span.badge.medium { "no task" } }
                    @for task in tasks { (task_link(subject, task)) }
                }
                @if let Some((_, spec)) = spec {
                    // Where they prove the spec as a whole, they say nothing about this one.
                    @let scenarios = scenarios(spec, id);
                    @if !scenarios.of_spec && !scenarios.names.is_empty() {
                        span.badge { (counted(scenarios.names.len(), "scenario")) }
                    }
                }
            }
            (button(subject, &Commented::Document(file.clone()), &anchor, &heading.title))
            (edit_link(subject, file, &anchor, &heading.title))
        }
    }
}

/// What the change does to a requirement of a main spec.
fn operation(
    subject: &Subject,
    spec: &SpecId,
    id: RequirementId,
) -> Option<(&'static str, &'static str)> {
    let delta = subject.deltas().ok()?.iter().find(|delta| delta.spec == *spec)?;
    let touched = &delta.touched;
    if delta.conflicts.iter().any(|conflict| conflict.what == id.to_string()) {
        Some(("high", "in conflict"))
    } else if touched.created {
        None
    } else if touched.added.contains(&id) {
        Some(("good", "new"))
    } else if touched.edited.contains(&id) {
        Some(("medium", "edited"))
    } else {
        Some(("", "as in the main spec"))
    }
}

/// The table of contents.
pub(super) fn contents(blocks: &[Block]) -> Markup {
    let headings: Vec<&Heading> = blocks
        .iter()
        .filter_map(|block| block.heading.as_ref())
        .filter(|heading| (2..=3).contains(&heading.level))
        .collect();
    html! {
        @if headings.len() >= 3 {
            nav.contents aria-label="On this page" {
                h2 { "On this page" }
                ul {
                    @for heading in headings {
                        li.{ "l" (heading.level) } {
                            a href={ "#" (heading.anchor) } { (heading.title) }
                        }
                    }
                }
            }
        }
    }
}

/// The text with its lines, each of which can be commented on.
fn source_view(subject: &Subject, file: &ChangeFile, text: &str) -> Markup {
    let mut margin = Margin::new(subject, file, text);
    let on = Commented::Document(file.clone());
    html! {
        h2.visually-hidden { "Source of " (file.path()) }
        div data-live="document" {
            (aside(&margin.on_top()))
            ol.source {
                @for (number, line) in (1_usize..).zip(text.lines()) {
                    li id={ "L" (number) } {
                        (line_number(subject, &on, number))
                        code { (line) }
                        (aside(&margin.beside(number, None)))
                    }
                }
            }
            (aside(&margin.rest()))
        }
    }
}

/// The number of a line, which is a link to a comment on it.
pub(super) fn line_number(subject: &Subject, on: &Commented, number: usize) -> Markup {
    html! {
        @if subject.is_open() {
            a.line.add-comment href={
                (subject.address()) "/comments?on=" (query_value(&on.to_string()))
                "&at=line%20" (number)
            } data-on=(on) data-at={ "line " (number) } aria-label={ "Comment on line " (number) } {
                (number)
            }
        } @else {
            span.line { (number) }
        }
    }
}
