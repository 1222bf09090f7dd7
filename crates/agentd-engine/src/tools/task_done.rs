//! `complete_task`.

use agentd_core::document::tasks::{self, Status, Tasks};
use agentd_core::document::tasks_edit::{self, TickError};
use agentd_core::graph;
use agentd_core::ids::{ChangeId, TaskId};
use agentd_core::layout::ChangeFile;
use serde::{Deserialize, Serialize};

use super::Session;
use super::evidence;
use super::input::{self, Long, SENTENCE};
use super::outcome::{ActionError, Refusal, Written};
use super::writing::Gate;
use crate::change::documents;

/// A task that is said to be done.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CompleteTask {
    /// The change.
    pub change_id: ChangeId,
    /// The task.
    pub task_id: TaskId,
    /// What was done, for whoever reads the log of the run.
    #[serde(default, deserialize_with = "input::optional_text")]
    pub note: Option<Long<SENTENCE>>,
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
