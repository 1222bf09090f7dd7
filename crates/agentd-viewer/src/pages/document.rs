//! A document, rendered or as its source, with findings and comments in their places.

use agentd_core::diagnostic::Diagnostic;
use agentd_core::document::comments::{Comment, Spot};
use agentd_core::document::review_block;
use agentd_core::documents::Source;
use agentd_core::ids::{RequirementId, SpecId};
use agentd_core::layout::ChangeFile;
use agentd_core::outline::Outline;
use agentd_core::span::{LineIndex, Span};
use agentd_core::text::Line;
use agentd_engine::change::documents;

use super::change_page;
use super::comments::{Place, button, card};
use crate::App;
use crate::html::{Page, esc, severity};
use crate::markdown::{self, Block, Heading};
use crate::problem::Problem;
use crate::routes::View;
use crate::subject::Subject;
use crate::task_graph;

pub(crate) fn document(
    app: &App,
    subject: &Subject,
    file: &ChangeFile,
    view: &View,
) -> Result<String, Problem> {
    let path = file.path();
    let text = match subject.source(file) {
        Some(Source::Text(text)) => text.as_str(),
        Some(Source::Unreadable(why)) => {
            return Err(Problem::new(axum::http::StatusCode::INTERNAL_SERVER_ERROR, why.clone()));
        }
        Some(Source::Missing) | None => return Err(Problem::not_found()),
    };
    let here = subject.document_address(file);
    let source = view.is_source();
    let mut out = tools(subject, file, &here, source);
    if source {
        source_view(&mut out, subject, file, text, &here);
    } else {
        rendered(&mut out, subject, file, text, &here);
    }
    Ok(change_page(app, subject, &here, path.as_str(), &out))
}

/// The switch between the two views, and the button for a comment on the whole.
pub(super) fn tools(subject: &Subject, file: &ChangeFile, here: &str, source: bool) -> String {
    let path = file.path();
    let (rendered, raw) =
        if source { ("", " aria-current=\"true\"") } else { (" aria-current=\"true\"", "") };
    let comment = if subject.is_open() {
        button(file, &Spot::Document, path.as_str())
    } else {
        String::new()
    };
    format!(
        "<div class=\"tools\"><code>{}</code><span class=\"switch\"><a href=\"{}\"{rendered}>Read</a>\
         <a href=\"{}?view=source\"{raw}>Source</a></span>{comment}</div>",
        esc(&path),
        esc(here),
        esc(here)
    )
}

/// What of a text is shown: not the frontmatter, and not the reviews, which have their page.
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

fn rendered(out: &mut String, subject: &Subject, file: &ChangeFile, text: &str, here: &str) {
    let parts = shown_parts(file, text);
    let blocks = markdown::blocks(text, &parts);
    let index = LineIndex::new(text);
    let (_, found) = subject.diagnostics(file);
    let mut findings: Vec<(usize, &Diagnostic)> =
        found.iter().map(|d| (index.line_column(d.span.start).0, d)).collect();
    findings.sort_by_key(|(line, _)| *line);
    let mut comments: Vec<&Comment> = subject.comments_on(file).collect();
    let mut body = String::new();
    // What stands above everything shown, such as the frontmatter.
    let first = blocks.first().map_or(usize::MAX, |block| block.lines.0);
    diagnostics_before(&mut body, &mut findings, first);
    for comment in take(&mut comments, |comment| comment.at == Spot::Document) {
        body.push_str(&card(subject, comment, Place::Beside, here));
    }
    for block in &blocks {
        push_block(&mut body, subject, file, block);
        diagnostics_before(&mut body, &mut findings, block.lines.1 + 1);
        let spot = block.heading.as_ref().map(spot_of);
        let about = |comment: &Comment| match &comment.at {
            Spot::Line(line) => usize::try_from(*line).is_ok_and(|line| line <= block.lines.1),
            at => spot.as_ref() == Some(at),
        };
        for comment in take(&mut comments, about) {
            body.push_str(&card(subject, comment, Place::Beside, here));
        }
    }
    diagnostics_before(&mut body, &mut findings, usize::MAX);
    // What a comment was about may be gone; the comment is not.
    for comment in comments {
        body.push_str(&card(subject, comment, Place::Listed, here));
    }
    let contents = contents(&blocks);
    out.push_str(&format!(
        "<div class=\"reading\"><div class=\"prose document\" data-live=\"document\">{body}</div>{contents}</div>"
    ));
}

/// Takes out those that are about something, in order.
fn take<'c>(all: &mut Vec<&'c Comment>, about: impl Fn(&Comment) -> bool) -> Vec<&'c Comment> {
    let (these, rest) = all.drain(..).partition(|comment| about(comment));
    *all = rest;
    these
}

fn diagnostics_before(out: &mut String, findings: &mut Vec<(usize, &Diagnostic)>, line: usize) {
    let count = findings.partition_point(|(at, _)| *at < line);
    for (at, diagnostic) in findings.drain(..count) {
        out.push_str(&finding(diagnostic, at));
    }
}

/// A finding of `validate`.
fn finding(diagnostic: &Diagnostic, line: usize) -> String {
    format!(
        "<aside class=\"finding {}\">{} <strong>{}</strong> <span>{}</span><p class=\"quiet\">line {line} · {}</p></aside>",
        diagnostic.severity().label().to_lowercase(),
        severity(diagnostic.severity()),
        diagnostic.rule.code,
        esc(&diagnostic.message),
        esc(diagnostic.advice())
    )
}

/// What a heading stands for.
fn spot_of(heading: &Heading) -> Spot {
    let mark = heading.title.split(':').next().unwrap_or_default().trim();
    if let Ok(requirement) = mark.parse::<RequirementId>() {
        return Spot::Requirement(requirement);
    }
    let task = mark.strip_prefix("Task ").and_then(|id| id.trim().parse().ok());
    task.map_or_else(|| Spot::Heading(Line::new(&heading.title)), Spot::Task)
}

fn push_block(out: &mut String, subject: &Subject, file: &ChangeFile, block: &Block) {
    let Some(heading) = &block.heading else {
        out.push_str(&block.html);
        return;
    };
    let spot = spot_of(heading);
    let extra = match (file, &spot) {
        (ChangeFile::Spec(spec), Spot::Requirement(id)) => links_to_tasks(subject, spec, *id),
        _ => String::new(),
    };
    let comment =
        if subject.is_open() { button(file, &spot, &heading.title) } else { String::new() };
    let anchor = match spot {
        Spot::Requirement(id) => format!("<span class=\"anchor\" id=\"{id}\"></span>"),
        _ => String::new(),
    };
    out.push_str(&format!(
        "<div class=\"heading\" id=\"{}\">{anchor}{}{comment}</div>{extra}",
        esc(&heading.anchor),
        block.html
    ));
}

/// Which tasks implement a requirement.
fn links_to_tasks(subject: &Subject, spec: &SpecId, requirement: RequirementId) -> String {
    let tasks = subject.tasks_for(spec, requirement);
    if tasks.is_empty() {
        return "<p class=\"links\"><span class=\"badge medium\">no task</span></p>".to_owned();
    }
    let mut out = String::from("<p class=\"links\">");
    for task in tasks {
        let done = task.status == agentd_core::document::tasks::Status::Done;
        out.push_str(&format!(
            "<a class=\"badge {}\" href=\"{}/tasks#{}\" title=\"{}\">{} task {}</a>",
            if done { "good" } else { "" },
            subject.address(),
            task_graph::anchor(task.id),
            esc(&task.title),
            if done { "✓" } else { "○" },
            task.id
        ));
    }
    out + "</p>"
}

/// The table of contents.
fn contents(blocks: &[Block]) -> String {
    let headings: Vec<&Heading> = blocks
        .iter()
        .filter_map(|block| block.heading.as_ref())
        .filter(|heading| (2..=3).contains(&heading.level))
        .collect();
    if headings.len() < 3 {
        return String::new();
    }
    let mut out = String::from(
        "<nav class=\"contents\" aria-label=\"On this page\"><h2>On this page</h2><ul>",
    );
    for heading in headings {
        out.push_str(&format!(
            "<li class=\"l{}\"><a href=\"#{}\">{}</a></li>",
            heading.level,
            esc(&heading.anchor),
            esc(&heading.title)
        ));
    }
    out + "</ul></nav>"
}

/// The text with its lines, each of which can be commented on.
fn source_view(out: &mut String, subject: &Subject, file: &ChangeFile, text: &str, here: &str) {
    let index = LineIndex::new(text);
    let (_, found) = subject.diagnostics(file);
    let mut findings: Vec<(usize, &Diagnostic)> =
        found.iter().map(|d| (index.line_column(d.span.start).0, d)).collect();
    findings.sort_by_key(|(line, _)| *line);
    let here = format!("{here}?view=source");
    out.push_str("<ol class=\"source\" data-live=\"document\">");
    let path = file.path();
    for (at, line) in text.lines().enumerate() {
        let number = at + 1;
        let mark = if subject.is_open() {
            format!(
                "<button type=\"button\" class=\"line add-comment\" data-on=\"{}\" data-at=\"line {number}\" \
                 title=\"Comment on line {number}\">{number}</button>",
                esc(&path)
            )
        } else {
            format!("<span class=\"line\">{number}</span>")
        };
        out.push_str(&format!("<li id=\"L{number}\">{mark}<code>{}</code>", esc(line)));
        diagnostics_before(out, &mut findings, number + 1);
        let here_too = |comment: &&Comment| matches!(comment.at, Spot::Line(line) if usize::try_from(line) == Ok(number));
        for comment in subject.comments_on(file).filter(here_too) {
            out.push_str(&card(subject, comment, Place::Beside, &here));
        }
        out.push_str("</li>");
    }
    out.push_str("</ol>");
    let mut rest = findings;
    diagnostics_before(out, &mut rest, usize::MAX);
}

/// A main spec.
pub(crate) fn main_spec(app: &App, id: &SpecId) -> Result<String, Problem> {
    let spec = documents::load_main_spec(&app.project, id);
    let text = match spec.source() {
        Source::Text(text) => text,
        Source::Missing => return Err(Problem::not_found()),
        Source::Unreadable(why) => {
            return Err(Problem::new(axum::http::StatusCode::INTERNAL_SERVER_ERROR, why.clone()));
        }
    };
    let blocks = markdown::blocks(text, &[Span::new(Outline::scan(text).body_start, text.len())]);
    let mut body = String::new();
    for block in &blocks {
        match &block.heading {
            Some(heading) => body.push_str(&format!(
                "<div class=\"heading\" id=\"{}\">{}</div>",
                esc(&heading.anchor),
                block.html
            )),
            None => body.push_str(&block.html),
        }
    }
    let body = format!(
        "<div class=\"tools\"><code>agentd/specs/{id}.md</code></div>\
         <div class=\"reading\"><div class=\"prose document\">{body}</div>{}</div>",
        contents(&blocks)
    );
    let crumbs = [(id.as_str(), format!("/specs/{id}"))];
    let title = format!("{id} · agentd");
    Ok(Page { title: &title, crumbs: &crumbs, project: &app.project_name(), body: &body }.render())
}
