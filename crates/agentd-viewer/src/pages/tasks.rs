//! The tasks: as a graph, and layer by layer.

use agentd_core::diagnostic::Diagnostic;
use agentd_core::document::comments::{Anchor, Commented};
use agentd_core::document::tasks::{Status, Task};
use agentd_core::ids::Layer;
use agentd_core::layout::ChangeFile;
use maud::{Markup, html};

use super::comments::{button, template};
use super::document;
use super::margin::Margin;
use super::plan::plan_page;
use super::trace::requirement_link;
use crate::App;
use crate::html::{progress, scroll_box};
use crate::markdown;
use crate::problem::Problem;
use crate::routes::View;
use crate::subject::Subject;
use crate::task_graph;

pub(crate) fn tasks(app: &App, subject: &Subject, view: &View) -> Result<Markup, Problem> {
    let Some(text) = subject.documents().tasks.text() else { return Err(Problem::not_found()) };
    let file = ChangeFile::Tasks;
    let here = subject.document_address(&file);
    let all = subject.tasks();
    let mut margin = Margin::new(subject, &file, text);
    let body = html! {
        (document::tools(subject, &file, &here, view))
        div.tasks data-live="document" {
            div.title-row {
                h2.page-title { "Tasks" }
                (progress(subject.completed(), all.len()))
            }
            (graph(subject, all))
            (margin.on_top())
            // Findings about the whole document.
            (margin.findings_where(|diagnostic| owner(all, diagnostic).is_none()))
            @for (name, group) in by_layer(all) {
                h3.layer { (name) " " span.quiet { (done(&group)) "/" (group.len()) } }
                @for task in group {
                    article.task.done[task.status == Status::Done] id=(task_graph::anchor(task.id)) data-stop {
                        (details(subject, task))
                        (margin.findings_where(|diagnostic| {
                            owner(all, diagnostic).is_some_and(|owner| owner.id == task.id)
                        }))
                        (margin.about(&Anchor::Task(task.id)))
                    }
                }
            }
            (margin.rest())
        }
        (template(subject))
    };
    Ok(plan_page(app, subject, &here, "Tasks", &body))
}

fn done(tasks: &[&Task]) -> usize {
    tasks.iter().filter(|task| task.status == Status::Done).count()
}

/// The task that a finding is about: the last one that starts before it.
fn owner<'t>(tasks: &'t [Task], diagnostic: &Diagnostic) -> Option<&'t Task> {
    tasks.iter().rfind(|task| task.place.0.start <= diagnostic.span.start)
}

/// The tasks in groups; those without a layer come last.
fn by_layer(tasks: &[Task]) -> Vec<(&'static str, Vec<&Task>)> {
    let layers = Layer::ALL.into_iter().map(Some).chain([None]);
    layers
        .map(|layer| {
            let name = layer.map_or("Other", Layer::name);
            (name, tasks.iter().filter(|task| task.layer == layer).collect::<Vec<_>>())
        })
        .filter(|(_, group)| !group.is_empty())
        .collect()
}

fn graph(subject: &Subject, tasks: &[Task]) -> Markup {
    html! {
        @match task_graph::svg(tasks, subject.is_running()) {
            Ok(Some(svg)) => {
                (scroll_box("scroll graph-box", "Task graph", &svg))
                p.legend.quiet {
                    span { span.dot.done {} " done" }
                    span { span.dot.ready {} " next" }
                    span { span.dot.waiting {} " waits for others, or for the layer above" }
                    span { "arrows lead from a task to the one that waits for it" }
                }
            }
            Ok(None) => {}
            Err(circle) => { p.alert role="alert" { (circle) } }
        }
    }
}

fn details(subject: &Subject, task: &Task) -> Markup {
    let done = task.status == Status::Done;
    let (mark, state) = if done { ("✓", "done") } else { ("○", "to do") };
    html! {
        h4 {
            span.mark title=(state) { (mark) } " " span.id { (task.id) } " " (task.title)
            (button(subject, &Commented::Document(ChangeFile::Tasks), &Anchor::Task(task.id), &format!("task {}", task.id)))
        }
        p.facts {
            @if let Some(action) = task.action { span.badge { (action.label()) } }
            @if let Some(file) = &task.file { code { (file) } }
            @for spec_ref in &task.spec_refs { (requirement_link(subject, spec_ref)) }
            @if !task.depends_on.is_empty() {
                span {
                    "after "
                    @for (at, id) in task.depends_on.iter().enumerate() {
                        @if at > 0 { ", " }
                        a href={ "#" (task_graph::anchor(*id)) } { (id) }
                    }
                }
            }
        }
        @if !task.description.is_empty() {
            div.prose { (markdown::fragment(task.description.as_str())) }
        }
    }
}
