//! A document, rendered or as its source, with findings and comments in their places.

use agentd_core::document::comments::{Anchor, Comment};
use agentd_core::document::review_block;
use agentd_core::documents::Source;
use agentd_core::ids::{RequirementId, SpecId};
use agentd_core::layout::ChangeFile;
use agentd_core::outline::Outline;
use agentd_core::span::Span;
use agentd_core::text::Line;
use agentd_engine::change::documents;
use axum::http::StatusCode;
use maud::{Markup, html};

use super::comments::button;
use super::margin::Margin;
use super::{change_page, task_link};
use crate::App;
use crate::html::Page;
use crate::markdown::{self, Block, Heading};
use crate::problem::Problem;
use crate::routes::View;
use crate::subject::Subject;

pub(crate) fn document(
    app: &App,
    subject: &Subject,
    file: &ChangeFile,
    view: &View,
) -> Result<Markup, Problem> {
    let text = readable(subject.source(file).unwrap_or(&Source::Missing))?;
    let here = subject.document_address(file);
    let body = html! {
        (tools(subject, file, &here, view))
        @if view.is_source() {
            (source_view(subject, file, text, &format!("{here}?view=source")))
        } @else {
            (rendered(subject, file, text, &here))
        }
    };
    Ok(change_page(app, subject, &here, file.path().as_str(), &body))
}

fn readable(source: &Source) -> Result<&str, Problem> {
    match source {
        Source::Text(text) => Ok(text),
        Source::Missing => Err(Problem::not_found()),
        Source::Unreadable(why) => {
            Err(Problem::new(StatusCode::INTERNAL_SERVER_ERROR, why.clone()))
        }
    }
}

/// The switch between the two views, and the button for a comment on the whole document.
pub(super) fn tools(subject: &Subject, file: &ChangeFile, here: &str, view: &View) -> Markup {
    let path = file.path();
    let current = |is: bool| is.then_some("true");
    html! {
        div.tools {
            code { (path) }
            span.switch {
                a href=(here) aria-current=[current(!view.is_source())] { "Read" }
                a href={ (here) "?view=source" } aria-current=[current(view.is_source())] {
                    "Source"
                }
            }
            @if subject.is_open() { (button(file, &Anchor::Document, path.as_str())) }
        }
    }
}

/// What of a text is shown: not the front matter, and not the reviews, which have their own page.
fn shown_parts(file: &ChangeFile, text: &str) -> Vec<Span> {
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

fn rendered(subject: &Subject, file: &ChangeFile, text: &str, here: &str) -> Markup {
    let blocks = markdown::blocks(text, &shown_parts(file, text));
    let mut margin = Margin::new(subject, file, text, here);
    let first = blocks.first().map_or(usize::MAX, |block| block.lines.0);
    html! {
        div.reading {
            div.prose.document data-live="document" {
                // Findings above everything that is shown, such as those in the front matter.
                (margin.findings_before(first))
                (margin.comments_where(|comment| comment.at == Anchor::Document))
                @for block in &blocks {
                    (part(subject, file, block))
                    (margin.findings_before(block.lines.1 + 1))
                    (margin.comments_where(|comment| is_about(comment, block)))
                }
                (margin.rest())
            }
            (contents(&blocks))
        }
    }
}

/// Whether a comment belongs under a block: it is about its heading, or about a line up to here.
fn is_about(comment: &Comment, block: &Block) -> bool {
    match &comment.at {
        Anchor::Line(line) => usize::try_from(*line).is_ok_and(|line| line <= block.lines.1),
        at => block.heading.as_ref().map(spot_of).as_ref() == Some(at),
    }
}

/// What a heading stands for.
fn spot_of(heading: &Heading) -> Anchor {
    let mark = heading.title.split(':').next().unwrap_or_default().trim();
    if let Ok(requirement) = mark.parse::<RequirementId>() {
        return Anchor::Requirement(requirement);
    }
    let task = mark.strip_prefix("Task ").and_then(|id| id.trim().parse().ok());
    task.map_or_else(|| Anchor::Heading(Line::new(&heading.title)), Anchor::Task)
}

/// A block; a heading with its place on the page and what belongs to it.
fn part(subject: &Subject, file: &ChangeFile, block: &Block) -> Markup {
    let Some(heading) = &block.heading else { return block.html.clone() };
    let spot = spot_of(heading);
    html! {
        div.heading id=(heading.anchor) {
            @if let Anchor::Requirement(id) = &spot { span.anchor id=(id) {} }
            (block.html)
            @if subject.is_open() { (button(file, &spot, &heading.title)) }
        }
        @if let (ChangeFile::Spec(spec), Anchor::Requirement(id)) = (file, &spot) {
            (links_to_tasks(subject, spec, *id))
        }
    }
}

/// Which tasks implement a requirement.
fn links_to_tasks(subject: &Subject, spec: &SpecId, requirement: RequirementId) -> Markup {
    let tasks = subject.tasks_for(spec, requirement);
    html! {
        p.links {
            @if tasks.is_empty() { span.badge.medium { "no task" } }
            @for task in tasks { (task_link(subject, task, "task ")) }
        }
    }
}

/// The table of contents.
fn contents(blocks: &[Block]) -> Markup {
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
fn source_view(subject: &Subject, file: &ChangeFile, text: &str, here: &str) -> Markup {
    let mut margin = Margin::new(subject, file, text, here);
    let path = file.path();
    html! {
        ol.source data-live="document" {
            @for (number, line) in (1_usize..).zip(text.lines()) {
                li id={ "L" (number) } {
                    @if subject.is_open() {
                        button.line.add-comment type="button" data-on=(path)
                            data-at={ "line " (number) } title={ "Comment on line " (number) } {
                            (number)
                        }
                    } @else {
                        span.line { (number) }
                    }
                    code { (line) }
                    (margin.findings_before(number + 1))
                    (margin.comments_where(|comment| {
                        matches!(comment.at, Anchor::Line(line) if usize::try_from(line) == Ok(number))
                    }))
                }
            }
        }
        (margin.findings_before(usize::MAX))
    }
}

/// A main spec.
pub(crate) fn main_spec(app: &App, id: &SpecId) -> Result<Markup, Problem> {
    let spec = documents::load_main_spec(&app.project, id);
    let text = readable(spec.source())?;
    let blocks = markdown::blocks(text, &[Span::new(Outline::scan(text).body_start, text.len())]);
    let body = html! {
        div.tools { code { "agentd/specs/" (id) ".md" } }
        div.reading {
            div.prose.document {
                @for block in &blocks {
                    @if let Some(heading) = &block.heading {
                        div.heading id=(heading.anchor) { (block.html) }
                    } @else {
                        (block.html)
                    }
                }
            }
            (contents(&blocks))
        }
    };
    let crumbs = [(id.as_str(), format!("/specs/{id}"))];
    let title = format!("{id} · agentd");
    Ok(Page { title: &title, crumbs: &crumbs, project: &app.project_name(), body }.render())
}
