//! What the pages show. Each function renders one page from what is on disk now.

mod answers;
mod archive_preview;
mod changes;
mod code;
mod code_comments;
mod comments;
mod costs;
mod document;
mod edit;
mod fleet;
mod frame;
mod home;
mod list;
mod margin;
mod new_change;
mod next;
mod plan;
mod questions;
mod review;
mod runs;
mod search;
mod specs;
mod static_page;
mod tasks;
mod trace;

pub(super) use archive_preview::archive_preview;
pub(super) use code::{code, is_in_code};
pub(super) use comments::comments_page;
pub(super) use costs::costs;
pub(super) use document::{document, no_proposal};
pub(super) use edit::findings as edit_findings;
pub(super) use home::home;
pub(super) use list::Query as ListQuery;
pub(super) use new_change::new_change;
pub(super) use next::is_startable;
pub(super) use questions::seen as questions_seen;
pub(super) use review::review;
pub(super) use runs::{run, runs};
pub(super) use search::search;
pub(super) use specs::{archive, main_spec, specs};
pub(super) use static_page::{requirement_anchor as static_requirement, static_page};
pub(super) use tasks::tasks;

use agentd_core::document::tasks::{Status, Task};
use maud::{Markup, html};

use super::subject::Subject;
use super::task_graph;

/// A link to a task.
fn task_link(subject: &Subject, task: &Task) -> Markup {
    let (class, mark) = if task.status == Status::Done { ("good", "✓") } else { ("", "○") };
    let address = format!("{}/tasks#{}", subject.address(), task_graph::anchor(task.id));
    html! { a.badge.(class) href=(address) title=(task.title) { (mark) " " (task.id) } }
}
