//! What the pages show. Each function renders one page from what is on disk now.

mod change;
mod comments;
mod decision;
mod document;
mod home;
mod margin;
mod plan_changes;
mod reviews;
mod runs;
mod tasks;
mod trace;

pub(super) use change::overview;
pub(super) use comments::comments_page;
pub(super) use document::{document, main_spec};
pub(super) use home::home;
pub(super) use plan_changes::plan_changes;
pub(super) use reviews::reviews;
pub(super) use runs::{run, runs};
pub(super) use tasks::tasks;
pub(super) use trace::trace;

use agentd_core::document::tasks::{Status, Task};
use maud::{Markup, html};

use super::App;
use super::html::Page;
use super::subject::Subject;
use super::task_graph;

/// A page of a change: its menu at the side, and a body.
fn change_page(app: &App, subject: &Subject, here: &str, title: &str, body: &Markup) -> Markup {
    let base = subject.address();
    let body = html! {
        div.with-menu {
            (menu(subject, here))
            div.content data-base=(base) { (body) }
        }
        @if subject.is_open() { (comments::dialog(subject)) }
    };
    let title = format!("{title} · {}", subject.id());
    let crumbs = [(subject.id().as_str(), base)];
    Page { title: &title, crumbs: &crumbs, project: &app.project_name(), body }.render()
}

/// An entry of the menu.
struct Entry {
    address: String,
    name: String,
    count: usize,
    /// How the count looks.
    class: &'static str,
}

/// The pages of a change.
fn menu(subject: &Subject, here: &str) -> Markup {
    let base = subject.address();
    let entry = |page: &str, name: &str, count, class| {
        let address = format!("{base}{page}");
        Entry { address, name: name.to_owned(), count, class }
    };
    let mut entries = vec![entry("", "Overview", 0, "")];
    entries.extend(subject.titles().into_iter().map(|(file, name)| {
        let count = subject.diagnostics(&file).1.len();
        Entry { address: subject.document_address(&file), name, count, class: "warn" }
    }));
    entries.extend([
        entry("/reviews", "Reviews", subject.proposal().reviews.len(), ""),
        entry("/trace", "Traceability", 0, ""),
        entry("/runs", "Runs and cost", 0, ""),
        entry("/comments", "Comments", subject.comments.open().count(), "accent"),
    ]);
    html! {
        nav.menu aria-label="Pages of this change" data-live="menu" {
            ul {
                @for Entry { address, name, count, class } in entries {
                    @let current = (address == here).then_some("page");
                    li {
                        a href=(address) aria-current=[current] {
                            span { (name) }
                            @if count > 0 { span.count.(class) { (count) } }
                        }
                    }
                }
            }
        }
    }
}

/// A link to a task; the label comes before its id.
fn task_link(subject: &Subject, task: &Task, label: &str) -> Markup {
    let (class, mark) = if task.status == Status::Done { ("good", "✓") } else { ("", "○") };
    let address = format!("{}/tasks#{}", subject.address(), task_graph::anchor(task.id));
    html! { a.badge.(class) href=(address) title=(task.title) { (mark) " " (label) (task.id) } }
}
