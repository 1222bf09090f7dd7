//! What the pages show. Each function makes one page from what is on the disk now.

mod change;
mod comments;
mod document;
mod home;
mod reviews;
mod runs;
mod tasks;
mod trace;

pub(super) use change::overview;
pub(super) use comments::comments_page;
pub(super) use document::{document, main_spec};
pub(super) use home::home;
pub(super) use reviews::{plan_changes, reviews};
pub(super) use runs::{run, runs};
pub(super) use tasks::tasks;
pub(super) use trace::trace;

use super::App;
use super::html::{Page, esc};
use super::subject::Subject;

/// A page of a change: its menu on the side, its head, and a body.
pub(super) fn change_page(
    app: &App,
    subject: &Subject,
    here: &str,
    title: &str,
    body: &str,
) -> String {
    let base = subject.address();
    let crumbs = [(subject.id().as_str(), base.clone())];
    let body = format!(
        "<div class=\"with-menu\">{}<div class=\"content\" data-base=\"{}\">{body}</div></div>{}",
        menu(subject, here),
        esc(&base),
        if subject.is_open() { comments::dialog(subject) } else { String::new() },
    );
    let title = format!("{title} · {}", subject.id());
    Page { title: &title, crumbs: &crumbs, project: &app.project_name(), body: &body }.render()
}

/// The pages of a change.
fn menu(subject: &Subject, here: &str) -> String {
    let base = subject.address();
    let mut out = String::from(
        "<nav class=\"menu\" aria-label=\"Pages of this change\" data-live=\"menu\"><ul>",
    );
    let mut item = |address: String, name: &str, count: String| {
        let current = if address == here { " aria-current=\"page\"" } else { "" };
        out.push_str(&format!(
            "<li><a href=\"{}\"{current}><span>{}</span>{count}</a></li>",
            esc(&address),
            esc(name)
        ));
    };
    let count = |n: usize, class: &str| match n {
        0 => String::new(),
        n => format!("<span class=\"count {class}\">{n}</span>"),
    };
    item(base.clone(), "Overview", String::new());
    for (file, name) in subject.documents() {
        let (_, found) = subject.diagnostics(&file);
        item(subject.document_address(&file), &name, count(found.len(), "warn"));
    }
    item(format!("{base}/reviews"), "Reviews", count(subject.proposal.reviews.len(), ""));
    item(format!("{base}/trace"), "Traceability", String::new());
    item(format!("{base}/runs"), "Runs and cost", String::new());
    let open = subject.comments.open().count();
    item(format!("{base}/comments"), "Comments", count(open, "accent"));
    out.push_str("</ul></nav>");
    out
}
