//! `complete_task`.

use agentd_core::agent::Role;
use agentd_core::document::tasks::{self, Status, Tasks};
use agentd_core::document::tasks_edit::{self, TickError};
use agentd_core::graph;
use agentd_core::ids::{ChangeId, TaskId};
use agentd_core::layout::ChangeFile;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Session;
use super::evidence;
use super::input::{self, LongText, SENTENCE};
use super::outcome::{ActionError, Refusal, Written};
use super::schema::{
    JsonObject, TASK, answer, free_text, matching, one, optional, required, texts, with_change,
};
use super::tool::{Answer, Tool, Toolset};
use super::writing::Gate;
use crate::change::documents;

pub(super) const TOOL: Tool = Tool {
    name: "complete_task",
    purpose: "Mark a task as done. Its file is checked: CREATE must exist, MODIFY must differ from the base commit, DELETE must be gone.",
    offered_to: &[Toolset::Role(Role::Implementer)],
    by_hand: false,
    read_only: false,
    input: schema,
    output: Some(output),
    run: |session, arguments| {
        completed(session, &complete_task(session, &input::read(arguments)?)?)
    },
};

/// A task that is said to be done.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CompleteTask {
    /// The change.
    pub change_id: ChangeId,
    /// The task.
    pub task_id: TaskId,
    /// What was done, for anyone who reads the log of the run.
    #[serde(default, deserialize_with = "input::optional_text")]
    pub note: Option<LongText<SENTENCE>>,
}

/// A task that is done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Completed {
    /// The document.
    #[serde(flatten)]
    pub written: Written,
    /// The task.
    pub task_id: TaskId,
    /// How many tasks are done.
    pub completed: usize,
    /// How many tasks there are.
    pub total: usize,
    /// The tasks that can be done now.
    pub ready: Vec<TaskId>,
}

fn schema(change: Value) -> JsonObject {
    with_change(
        change,
        vec![
            required("task_id", matching(TASK, "As in tasks.md, e.g. 1.1 or data.1")),
            optional("note", free_text("What was done, in one sentence")),
        ],
    )
}

/// The answer of `complete_task`.
fn output() -> JsonObject {
    answer(&[
        ("path", one("string")),
        ("sha256", one("string")),
        ("warnings", texts()),
        ("task_id", one("string")),
        ("completed", one("integer")),
        ("total", one("integer")),
        ("ready", texts()),
    ])
}

/// Ticks a task for which there is evidence. A task that is ticked stays so.
pub fn complete_task(
    session: &Session<'_>,
    input: &CompleteTask,
) -> Result<Completed, ActionError> {
    let mut open = session.open(&input.change_id)?;
    let Some(old) = open.text(&ChangeFile::Tasks)?.map(str::to_owned) else {
        return Err(Refusal::new("There is no tasks.md.").into());
    };
    let id = input.task_id;
    let ticked = tasks_edit::set_status(&old, id, Status::Done, session.now)
        .map_err(|error| untickable(&error))?;
    let before = tasks::parse(&old).value;
    let done = before.get(id).is_some_and(|task| task.status == Status::Done);
    let written = if done {
        open.unchanged(&ChangeFile::Tasks, &old)?
    } else {
        ready(&before, id)?;
        let state = documents::load_state_if_begun(&open.change)?;
        if let Some(task) = before.get(id) {
            evidence::require(open.project, &input.change_id, task, state.as_ref())?;
        }
        open.put(&ChangeFile::Tasks, &ticked, Gate::Unchecked)?
    };
    let after = tasks::parse(if done { &old } else { &ticked }).value;
    Ok(Completed {
        written: Written { warnings: Vec::new(), ..written },
        task_id: id,
        completed: after.completed(),
        total: after.tasks.len(),
        ready: graph::ready(&after.tasks).iter().map(|task| task.id).collect(),
    })
}

fn completed(session: &Session<'_>, done: &Completed) -> Result<Answer, ActionError> {
    let ready: Vec<String> = done.ready.iter().map(ToString::to_string).collect();
    let ready = if ready.is_empty() { "none".to_owned() } else { ready.join(", ") };
    let words = format!(
        "Task {} is done at {} ({} of {}). Ready now: {ready}.",
        done.task_id, session.now, done.completed, done.total
    );
    Answer::timed(session, done, words)
}

fn untickable(error: &TickError) -> ActionError {
    Refusal::new(format!("{error}.")).into()
}

/// Refuses a task that others must come before.
fn ready(tasks: &Tasks, id: TaskId) -> Result<(), ActionError> {
    let Some(task) = tasks.get(id) else { return Ok(()) };
    let is_open = |id: &&TaskId| tasks.get(**id).is_none_or(|task| task.status != Status::Done);
    let open: Vec<String> =
        task.depends_on.iter().filter(is_open).map(ToString::to_string).collect();
    if open.is_empty() {
        return Ok(());
    }
    let (names, verb) = (open.join(", "), if open.len() == 1 { "is" } else { "are" });
    Err(Refusal::new(format!("Task {id} depends on {names}, which {verb} not done yet."))
        .hint("Complete those first.")
        .into())
}
