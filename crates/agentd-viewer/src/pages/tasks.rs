//! The tasks: as a graph, and layer by layer.

use agentd_core::document::comments::Spot;
use agentd_core::document::tasks::{Status, Task};
use agentd_core::ids::Layer;
use agentd_core::layout::ChangeFile;
use agentd_core::span::line_column;

use super::comments::{Place, button, card};
use super::{change_page, document};
use crate::App;
use crate::html::{esc, progress, severity};
use crate::markdown;
use crate::problem::Problem;
use crate::subject::Subject;
use crate::task_graph;

pub(crate) fn tasks(app: &App, subject: &Subject) -> Result<String, Problem> {
    let Some(text) = subject.texts.tasks.text() else { return Err(Problem::not_found()) };
    let file = ChangeFile::Tasks;
    let here = subject.document_address(&file);
    let mut out = document::tools(subject, &file, &here, false);
    out.push_str("<div data-live=\"tasks\">");
    out.push_str(&format!(
        "<div class=\"title-row\"><h1>Tasks</h1>{}</div>",
        progress(subject.completed(), subject.tasks.tasks.len())
    ));
    match task_graph::svg(&subject.tasks.tasks) {
        Ok(svg) if svg.is_empty() => {}
        Ok(svg) => out.push_str(&format!(
            "<div class=\"scroll graph-box\" tabindex=\"0\" role=\"region\" aria-label=\"Task graph\">{svg}</div>\
             <p class=\"legend quiet\"><span class=\"dot done\"></span> done <span class=\"dot ready\"></span> can be done now \
             <span class=\"dot waiting\"></span> waits for others</p>"
        )),
        Err(circle) => out.push_str(&format!("<p class=\"alert\" role=\"alert\">{}</p>", esc(&circle))),
    }
    for comment in subject.comments_on(&file).filter(|comment| comment.at == Spot::Document) {
        out.push_str(&card(subject, comment, Place::Beside, &here));
    }
    let (_, found) = subject.diagnostics(&file);
    let mut findings: Vec<(usize, &agentd_core::diagnostic::Diagnostic)> =
        found.iter().map(|d| (d.span.start, d)).collect();
    // Those about the whole stand above it.
    let first = subject.tasks.tasks.iter().map(|task| task.place.0.start).min();
    findings.retain(|(at, diagnostic)| {
        let above = first.is_none_or(|first| *at < first);
        if above {
            out.push_str(&note(text, diagnostic));
        }
        !above
    });
    let groups = Layer::ALL.into_iter().map(Some).chain([None]);
    for layer in groups {
        let here_are: Vec<&Task> =
            subject.tasks.tasks.iter().filter(|task| task.layer == layer).collect();
        if here_are.is_empty() {
            continue;
        }
        let name = layer.map_or("Other", Layer::name);
        out.push_str(&format!("<h2 class=\"layer\">{name}</h2>"));
        for task in here_are {
            push_task(&mut out, subject, task);
            let mut rest = Vec::new();
            for (at, diagnostic) in findings {
                // A finding belongs to the last task that begins before it.
                let owner = subject.tasks.tasks.iter().rfind(|t| t.place.0.start <= at);
                if owner.is_some_and(|owner| owner.id == task.id) {
                    out.push_str(&note(text, diagnostic));
                } else {
                    rest.push((at, diagnostic));
                }
            }
            findings = rest;
            let about = |c: &&agentd_core::document::comments::Comment| c.at == Spot::Task(task.id);
            for comment in subject.comments_on(&file).filter(about) {
                out.push_str(&card(subject, comment, Place::Beside, &here));
            }
            out.push_str("</article>");
        }
    }
    // Comments on a line, or on a task that is gone.
    let elsewhere = subject.comments_on(&file).filter(|comment| match &comment.at {
        Spot::Document => false,
        Spot::Task(id) => !subject.tasks.tasks.iter().any(|task| task.id == *id),
        Spot::Heading(_) | Spot::Requirement(_) | Spot::Line(_) => true,
    });
    for comment in elsewhere {
        out.push_str(&card(subject, comment, Place::Listed, &here));
    }
    out.push_str("</div>");
    Ok(change_page(app, subject, &here, "Tasks", &out))
}

fn note(text: &str, diagnostic: &agentd_core::diagnostic::Diagnostic) -> String {
    format!(
        "<aside class=\"finding {}\">{} <strong>{}</strong> {}<p class=\"quiet\">line {} · {}</p></aside>",
        diagnostic.severity().label().to_lowercase(),
        severity(diagnostic.severity()),
        diagnostic.rule.code,
        esc(&diagnostic.message),
        line_column(text, diagnostic.span.start).0,
        esc(diagnostic.advice())
    )
}

fn push_task(out: &mut String, subject: &Subject, task: &Task) {
    let done = task.status == Status::Done;
    let (class, mark, state) = if done { ("done", "✓", "done") } else { ("", "○", "to do") };
    out.push_str(&format!(
        "<article class=\"task {class}\" id=\"{}\"><h3><span class=\"mark\" title=\"{state}\">{mark}</span> \
         <span class=\"id\">{}</span> {}",
        task_graph::anchor(task.id),
        task.id,
        esc(&task.title)
    ));
    out.push_str("</h3>");
    if subject.is_open() {
        out.push_str(&button(
            &ChangeFile::Tasks,
            &Spot::Task(task.id),
            &format!("task {}", task.id),
        ));
    }
    out.push_str("<p class=\"facts\">");
    if let Some(action) = task.action {
        out.push_str(&format!("<span class=\"badge\">{}</span>", action.label()));
    }
    if let Some(file) = &task.file {
        out.push_str(&format!("<code>{}</code>", esc(file)));
    }
    for spec_ref in &task.spec_refs {
        let known = subject.specs.iter().any(|(id, _)| *id == spec_ref.spec);
        let anchor = spec_ref.requirement.map(|id| format!("#{id}")).unwrap_or_default();
        let address = if known {
            format!("{}/specs/{}{anchor}", subject.address(), spec_ref.spec)
        } else {
            format!("/specs/{}", spec_ref.spec)
        };
        out.push_str(&format!("<a href=\"{}\">{}</a>", esc(&address), esc(spec_ref)));
    }
    if !task.depends_on.is_empty() {
        out.push_str("<span>after ");
        let links = task
            .depends_on
            .iter()
            .map(|id| format!("<a href=\"#{}\">{id}</a>", task_graph::anchor(*id)));
        out.push_str(&links.collect::<Vec<_>>().join(", "));
        out.push_str("</span>");
    }
    out.push_str("</p>");
    if !task.description.is_empty() {
        out.push_str(&format!(
            "<div class=\"prose\">{}</div>",
            markdown::fragment(task.description.as_str())
        ));
    }
}
