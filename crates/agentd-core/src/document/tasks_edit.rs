//! Ticking a task in a text that may be hand-written: nothing but the tick changes.

use super::tasks::{self, Status, Task, Tick};
use crate::frontmatter;
use crate::ids::TaskId;
use crate::stamp::Stamp;

/// Why a task could not be ticked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TickError {
    /// There is no such task.
    #[error("there is no task {id}; the tasks are {}", known_ids(.known))]
    NoSuchTask {
        /// The id that was asked for.
        id: TaskId,
        /// The ids that are there.
        known: Vec<TaskId>,
    },
    /// The same id stands twice, so that it is not clear which task is meant.
    #[error("task {id} is there twice")]
    Ambiguous {
        /// The id that was asked for.
        id: TaskId,
    },
    /// The task has neither a YAML block that can be read nor a checkbox.
    #[error("task {id} has neither a readable yaml block nor a checkbox to tick")]
    NoPlace {
        /// The id that was asked for.
        id: TaskId,
    },
}

fn known_ids(ids: &[TaskId]) -> String {
    let shown: Vec<String> = ids.iter().take(40).map(ToString::to_string).collect();
    if shown.is_empty() { "none".to_owned() } else { shown.join(", ") }
}

/// Sets the status of one task, and the counts in the frontmatter where they are kept.
pub fn set_status(text: &str, id: TaskId, status: Status, now: Stamp) -> Result<String, TickError> {
    let parsed = tasks::parse(text).value;
    let mut found = parsed.tasks.iter().filter(|task| task.id == id);
    let task: &Task = found.next().ok_or_else(|| TickError::NoSuchTask {
        id,
        known: parsed.tasks.iter().map(|task| task.id).collect(),
    })?;
    if found.next().is_some() {
        return Err(TickError::Ambiguous { id });
    }
    let mut expected = parsed.tasks.clone();
    for task in expected.iter_mut().filter(|task| task.id == id) {
        task.status = status;
    }
    let mut out = text.to_owned();
    match task.tick.0 {
        Tick::Nowhere => return Err(TickError::NoPlace { id }),
        Tick::Value(span) => {
            let space = if text[..span.start].ends_with(':') { " " } else { "" };
            out.replace_range(span.range(), &format!("{space}{}", status.name()));
        }
        Tick::Missing(at) => {
            out.insert_str(
                at,
                &format!("status: {}{}", status.name(), frontmatter::newline_of(text)),
            );
        }
        Tick::Checkbox(span) => {
            out.replace_range(span.range(), if status == Status::Done { "x" } else { " " });
        }
    }
    // YAML has notations in which a line cannot be changed or added so: look what came of it.
    let ticked = tasks::parse(&out).value;
    if ticked.tasks != expected {
        return Err(TickError::NoPlace { id });
    }
    if out == text {
        return Ok(out);
    }
    let completed = ticked.completed().to_string();
    // A frontmatter that does not keep counts or times is left as its author wants it.
    let keeps = |text: &str, key: &str| text.lines().any(|line| line.trim_start().starts_with(key));
    if parsed.has_frontmatter.0 {
        let front = parsed.frontmatter.0.of(text).to_owned();
        if keeps(&front, "completed:") {
            out = frontmatter::set(&out, "summary.completed", &completed).unwrap_or(out);
        }
        if keeps(&front, "updated_at:") {
            out = frontmatter::set(&out, "updated_at", &now.to_string()).unwrap_or(out);
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Stamp {
        "2026-01-02T03:04:05Z".parse().unwrap()
    }

    fn tick(text: &str, id: &str) -> Result<String, TickError> {
        set_status(text, id.parse().unwrap(), Status::Done, now())
    }

    #[test]
    fn a_checkbox_changes_one_byte() {
        let text =
            "# T\r\n\r\n## 1. Data Layer\r\n\r\n* [ ] 1.1 A\r\n  File: a\r\n* [ ] 1.2 B\r\nend";
        let ticked = tick(text, "data.2").unwrap();
        assert_eq!(ticked, text.replace("[ ] 1.2", "[x] 1.2"));
    }

    #[test]
    fn a_block_changes_its_status_and_the_count() {
        let text = "---\nsummary:\n  total: 1\n  completed: 0 # so far\n---\n## 1. Data Layer\n### Task 1.1: A\n```yaml\nid: \"1.1\"\nstatus: pending # yet\n```\nx\n";
        let expected = text.replace("completed: 0", "completed: 1").replace("pending", "done");
        assert_eq!(tick(text, "1.1").unwrap(), expected);
        let without = "### Task 1.1: A\n```yaml\nid: \"1.1\"\n```\n";
        assert_eq!(
            tick(without, "1.1").unwrap(),
            "### Task 1.1: A\n```yaml\nid: \"1.1\"\nstatus: done\n```\n"
        );
    }

    #[test]
    fn what_cannot_be_ticked_is_an_error() {
        assert!(matches!(tick("x", "1.1"), Err(TickError::NoSuchTask { .. })));
        assert!(matches!(
            tick("- [ ] 1.1 a\n- [ ] 1.1 b\n", "1.1"),
            Err(TickError::Ambiguous { .. })
        ));
        for text in [
            "### Task 1.1: A\n",
            "### Task 1.1: A\n```yaml\n{id: \"1.1\", status: pending}\n```\n",
            "- [ ] 1.1 A\n  Status: pending\n",
        ] {
            assert!(matches!(tick(text, "1.1"), Err(TickError::NoPlace { .. })), "{text}");
        }
    }

    #[test]
    fn only_the_status_of_the_task_itself_is_changed() {
        let text = "### Task 1.1: A\n```yaml\n# status: x\nnote: |\n  status: pending\nstatus:\nid: 1.1\n```\n";
        assert_eq!(tick(text, "1.1").unwrap(), text.replace("\nstatus:\n", "\nstatus: done\n"));
    }
}
