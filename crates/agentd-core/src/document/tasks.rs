//! `tasks.md`: what has to be done, in layers, with the order between tasks.

mod block;
mod read;

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr};

use super::push_prose;
use crate::frontmatter::{quoted, scalar};
use crate::ids::{ChangeId, Layer, SpecRef, TaskId};
use crate::span::{Location, Span, Uncompared};
use crate::stamp::Stamp;
use crate::text::{Line, Prose};

pub use read::parse;

/// The tasks of a change.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tasks {
    /// The change, as the frontmatter says.
    pub change_id: Option<ChangeId>,
    /// How often it was written.
    pub version: u32,
    /// When it was first written.
    pub created_at: Option<Stamp>,
    /// When it was last written.
    pub updated_at: Option<Stamp>,
    /// The tasks, as they stand in the text.
    pub tasks: Vec<Task>,
    /// The frontmatter's content, or the top of the text.
    pub frontmatter: Location,
    /// Whether there is a frontmatter.
    pub has_frontmatter: Uncompared<bool>,
    /// The heading of the document, or its top.
    pub title: Location,
}

/// One task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    /// Its id.
    pub id: TaskId,
    /// The layer it belongs to.
    pub layer: Option<Layer>,
    /// Its title.
    pub title: Line,
    /// What happens to the file.
    pub action: Option<Action>,
    /// The file, relative to the project.
    pub file: Option<Line>,
    /// What it implements.
    pub spec_refs: Vec<SpecRef>,
    /// Tasks that must be done before.
    pub depends_on: Vec<TaskId>,
    /// Whether it is done.
    pub status: Status,
    /// What to do.
    pub description: Prose,
    /// Its heading or its checkbox line.
    pub place: Location,
    /// How the task is ticked in the text.
    pub tick: Uncompared<Tick>,
}

/// How a task is ticked in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Tick {
    /// There is no place for it.
    #[default]
    Nowhere,
    /// The value behind `status:`.
    Value(Span),
    /// A `status:` line is missing and would stand here.
    Missing(usize),
    /// The character between the brackets of a checkbox.
    Checkbox(Span),
}

/// What a task does to its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr, EnumString)]
#[serde(rename_all = "UPPERCASE")]
#[strum(serialize_all = "UPPERCASE", ascii_case_insensitive)]
pub enum Action {
    /// The file does not exist yet.
    Create,
    /// The file exists and changes.
    Modify,
    /// The file goes away.
    Delete,
}

impl Action {
    /// `CREATE`, `MODIFY` or `DELETE`.
    pub fn label(self) -> &'static str {
        self.into()
    }

    /// The action of this name, in any case.
    pub fn from_name(name: &str) -> Option<Self> {
        name.parse().ok()
    }
}

/// Whether a task is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, IntoStaticStr)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Status {
    /// Still to do.
    #[default]
    Pending,
    /// Done, with evidence.
    Done,
}

impl Status {
    /// `pending` or `done`.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

impl Tasks {
    /// How many tasks are done.
    pub fn completed(&self) -> usize {
        self.tasks.iter().filter(|task| task.status == Status::Done).count()
    }

    /// The task with this id.
    pub fn get(&self, id: TaskId) -> Option<&Task> {
        self.tasks.iter().find(|task| task.id == id)
    }
}

/// Writes tasks as agentd does.
pub fn render(tasks: &Tasks) -> String {
    let mut out = String::from("---\n");
    if let Some(id) = &tasks.change_id {
        let _ = writeln!(out, "change_id: {}", scalar(id.as_str()));
    }
    let _ = write!(out, "type: tasks\nversion: {}\n", tasks.version);
    super::push_stamps(&mut out, tasks.created_at, tasks.updated_at);
    let _ = write!(
        out,
        "summary:\n  total: {}\n  completed: {}\n",
        tasks.tasks.len(),
        tasks.completed()
    );
    let id = tasks.change_id.as_ref().map(ChangeId::as_str).unwrap_or_default();
    let _ = write!(out, "---\n\n# Tasks: {id}\n\n");
    for layer in Layer::ALL {
        let of_layer: Vec<&Task> =
            tasks.tasks.iter().filter(|task| task.layer == Some(layer)).collect();
        if of_layer.is_empty() {
            continue;
        }
        let name = layer.name();
        let _ = write!(
            out,
            "## {}. {}{} Layer\n\n",
            layer.section(),
            name[..1].to_uppercase(),
            &name[1..]
        );
        for task in of_layer {
            push_task(&mut out, task);
        }
    }
    super::end_with_one_newline(out)
}

fn push_task(out: &mut String, task: &Task) {
    let _ = write!(out, "### Task {}: {}\n\n```yaml\n", task.id, task.title);
    let _ = writeln!(out, "id: \"{}\"", task.id);
    if let Some(action) = task.action {
        let _ = writeln!(out, "action: {}", action.label());
    }
    if let Some(file) = &task.file {
        let _ = writeln!(out, "file: {}", scalar(file.as_str()));
    }
    let refs: Vec<String> = task.spec_refs.iter().map(|r| quoted(&r.to_string())).collect();
    match refs.as_slice() {
        [] => {}
        [one] => {
            let _ = writeln!(out, "spec_ref: {one}");
        }
        many => {
            let _ = writeln!(out, "spec_ref: [{}]", many.join(", "));
        }
    }
    let depends: Vec<String> = task.depends_on.iter().map(|id| quoted(&id.to_string())).collect();
    let _ = write!(
        out,
        "depends_on: [{}]\nstatus: {}\n```\n\n",
        depends.join(", "),
        task.status.name()
    );
    push_prose(out, &task.description);
}

/// What a reviewer judges of a task: everything but whether it is done.
pub fn reviewed_text(task: &Task) -> String {
    let pending = Task { status: Status::Pending, ..task.clone() };
    let mut out = String::new();
    push_task(&mut out, &pending);
    out
}
