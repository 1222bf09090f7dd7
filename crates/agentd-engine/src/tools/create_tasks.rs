//! `create_tasks`.

use agentd_core::agent::Role;
use agentd_core::document::tasks::{self, Action, Task, Tasks};
use agentd_core::ids::{ChangeId, Layer, TaskId};
use agentd_core::layout::ChangeFile;
use agentd_core::span::Uncompared;
use agentd_core::text::Line;
use serde::Deserialize;
use serde_json::{Value, json};

use super::Session;
use super::input::{self, List, LongText, Number, Path, Reference, ShortText, TEXT, TITLE};
use super::outcome::{ActionError, Written};
use super::schema::{
    JsonObject, REFERENCE, TASK, count, full_list, list, matching, one_of, optional, part,
    required, text, with_change, written,
};
use super::tool::{Answer, Tool, Toolset};
use super::writing::Gate;

pub(super) const TOOL: Tool = Tool {
    name: "create_tasks",
    purpose: "Write tasks.md with all tasks, after the specs.",
    offered_to: &[Toolset::All, Toolset::Role(Role::Planner)],
    by_hand: false,
    read_only: false,
    input: schema,
    output: Some(written),
    run: |session, arguments| {
        Answer::written(session, &create_tasks(session, input::read(arguments)?)?)
    },
};

/// The tasks of a change.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CreateTasks {
    /// The change.
    pub change_id: ChangeId,
    /// All tasks; those that were there before are replaced.
    pub tasks: List<TaskInput, 1, 500>,
}

/// One task.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskInput {
    /// The layer it belongs to.
    pub layer: Layer,
    /// Its number in the layer.
    pub number: Number<1, 999>,
    /// Its title.
    pub title: ShortText<TITLE>,
    /// The file, and what happens to it.
    pub file: FileInput,
    /// What it implements.
    #[serde(default)]
    pub spec_ref: Option<Reference>,
    /// What to do.
    pub description: LongText<TEXT>,
    /// Tasks that must be done before.
    #[serde(default, deserialize_with = "input::or_default")]
    pub depends: List<TaskId, 0, 100>,
}

/// A file, and what a task does to it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileInput {
    /// Where it is in the project.
    pub path: Path,
    /// What happens to it.
    pub action: Action,
}

fn schema(change: Value) -> JsonObject {
    let depends = json!({"type": "string", "pattern": TASK});
    let file = part(vec![
        required("path", text("From the project root")),
        required("action", one_of(&["CREATE", "MODIFY", "DELETE"])),
    ]);
    let task = part(vec![
        required("layer", one_of(&["data", "logic", "integration", "testing"])),
        required("number", count("From 1 in each layer", 1)),
        required("title", text("Imperative")),
        required("file", file),
        optional("spec_ref", matching(REFERENCE, "Requirement, e.g. auth-flow:R1")),
        required("description", text("What to do")),
        optional("depends", list("To do before, e.g. data.1", &depends)),
    ]);
    let tasks = full_list("All of them, one file each; every requirement needs one", &task);
    with_change(change, vec![required("tasks", tasks)])
}

/// Writes `tasks.md`. A task that stays as it was keeps its tick.
pub fn create_tasks(session: &Session<'_>, input: CreateTasks) -> Result<Written, ActionError> {
    let mut open = session.open(&input.change_id)?;
    let mut document = Tasks {
        change_id: Some(input.change_id),
        version: 1,
        created_at: Some(session.now),
        updated_at: Some(session.now),
        tasks: input.tasks.0.into_iter().map(task).collect(),
        ..Tasks::default()
    };
    document.tasks.sort_by_key(|task| task.id);
    if let Some(old) = open.text(&ChangeFile::Tasks)? {
        let earlier = tasks::parse(old).value;
        for task in &mut document.tasks {
            if let Some(before) = earlier.get(task.id)
                && tasks::reviewed_text(before) == tasks::reviewed_text(task)
            {
                task.status = before.status;
            }
        }
        document.created_at = earlier.created_at.or(document.created_at);
        let (version, updated_at) = (earlier.version, earlier.updated_at);
        if tasks::render(&Tasks { version, updated_at, ..document.clone() }) == old {
            return open.unchanged(&ChangeFile::Tasks, old);
        }
        document.version = version.saturating_add(1);
    }
    open.put(&ChangeFile::Tasks, &tasks::render(&document), Gate::Clean)
}

fn task(input: TaskInput) -> Task {
    Task {
        id: TaskId::in_layer(input.layer, input.number.0),
        layer: Some(input.layer),
        title: input.title.0,
        action: Some(input.file.action),
        file: Some(Line::new(input.file.path.0.as_str())),
        spec_refs: input.spec_ref.into_iter().map(|reference| reference.0).collect(),
        depends_on: input.depends.0,
        status: tasks::Status::Pending,
        description: input.description.0,
        place: Uncompared::default(),
        tick: Uncompared::default(),
    }
}
