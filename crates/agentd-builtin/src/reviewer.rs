//! The built-in agent as reviewer of code: judges by what can be seen without a model, which are
//! ticks, the files of tasks, and the test run that agentd has recorded.

use std::path::Path;

use agentd_core::document::tasks::{Action, Status, Task};
use agentd_core::prompt;
use agentd_core::rel_path::RelPath;
use agentd_core::state::TestRun;
use agentd_core::text::head;
use serde_json::{Value, json};

use crate::challenger::MOST_ISSUES;
use crate::earlier;
use crate::error::AgentError;
use crate::project;
use crate::session::Session;

/// Reviews the implementation.
pub(crate) fn review(
    mut session: Session<'_, '_>,
    prompt: &str,
    cwd: &Path,
) -> Result<(), AgentError> {
    if !session.has_begun()? {
        return Err(AgentError::other(format!("there is no change `{}`", session.change)));
    }
    let documents = session.documents()?;
    let tasks = &documents.tasks.value().tasks;
    let test_run = project::state(&documents)?.and_then(|state| state.test_run.as_ref());
    let diff = prompt::Review::diff_in(prompt);
    let mut issues: Vec<Value> =
        tasks.iter().filter_map(|task| task_issue(cwd, task, diff.as_deref())).collect();
    if tasks.is_empty() {
        let why = "Without tasks nothing says what had to be done.";
        issues.push(issue("high", "There are no tasks", why, "Plan the change first."));
    }
    issues.extend(test_issue(test_run));
    let verdict = if issues.is_empty() { "APPROVED" } else { "NEEDS_FIX" };
    let summary = format!(
        "Reviewed without a model: {} tasks were looked at for their ticks and their files, and the recorded run of \
         the tests was read; {} issues. Nobody has read the code.",
        tasks.len(),
        issues.len(),
    );
    let last = documents.review.value_if_there();
    let last = last.filter(|review| earlier::is_own(&review.reviewer));
    let own = last.iter().flat_map(|review| &review.issues);
    let previous = earlier::previous(own, &issues.iter().collect::<Vec<_>>());
    issues.truncate(MOST_ISSUES);
    let review = json!({
        "change_id": session.change, "verdict": verdict, "summary": summary, "previous": previous,
        "issues": issues,
    });
    session.must("create_review", &review)?;
    session.say(&summary)
}

fn issue(severity: &str, title: &str, description: &str, recommendation: &str) -> Value {
    json!({
        "severity": severity,
        "title": title.chars().take(190).collect::<String>(),
        "description": head(description, 15_000),
        "recommendation": recommendation,
    })
}

fn task_issue(cwd: &Path, task: &Task, diff: Option<&str>) -> Option<Value> {
    if task.status != Status::Done {
        let title = format!("Task {} is not done: {}", task.id, task.title);
        let why = "It is not ticked, so what it was for is missing or nobody has shown it.";
        return Some(issue("high", &title, why, "Do it, and tick it with complete_task."));
    }
    let why = unproven(cwd, task, diff)?;
    let title = format!("Task {} is ticked, but its file does not show it", task.id);
    Some(issue("high", &title, &why, "Do it, or take the tick back."))
}

/// Why the working tree and the diff do not show that a task was done, if so. agentd compares ticks
/// with git before it asks for a review; a prompt without any diff leaves it at that.
fn unproven(cwd: &Path, task: &Task, diff: Option<&str>) -> Option<String> {
    let id = task.id;
    let Some(file) = &task.file else {
        return Some(format!("Task {id} names no file, so nothing can show that it was done."));
    };
    let path = match RelPath::new(file.as_str()) {
        Ok(path) => path,
        Err(error) => return Some(format!("Task {id}: {error}.")),
    };
    let label = task.action.map_or("MODIFY", Action::label);
    let not_done = |what: &str| Some(format!("Task {id} is not done ({label} {path}): {what}."));
    let found = cwd.join(path.as_path()).metadata();
    match (task.action, found) {
        (Some(Action::Delete), Ok(_)) => not_done("it is still there"),
        (Some(Action::Delete), Err(_)) => None,
        (_, Err(error)) => not_done(&error.to_string()),
        (_, Ok(found)) if !found.is_file() => not_done("it is not a file"),
        (_, Ok(found)) if found.len() == 0 => not_done("the file is empty"),
        (Some(Action::Create), Ok(_)) => None,
        (Some(Action::Modify) | None, Ok(_)) => {
            // A shortened diff may leave out a file that was changed.
            let names = |diff: &str| diff.contains(path.as_str()) || diff.contains("(shortened; ");
            if diff.is_none_or(names) { None } else { not_done("the diff shows no change of it") }
        }
    }
}

fn test_issue(run: Option<&TestRun>) -> Option<Value> {
    let Some(run) = run else {
        return Some(issue(
            "medium",
            "No run of the tests is recorded",
            "Nothing shows that the tests pass.",
            "Set `test_command` under [implementation] in agentd/config.toml, so that agentd runs them.",
        ));
    };
    if run.passed() {
        return None;
    }
    let code =
        run.exit_code.map_or_else(|| "no exit code".to_owned(), |code| format!("exit code {code}"));
    let tail = run.output_tail.as_str();
    let description = format!("`{}` ended with {code}. Its last output:\n\n{tail}", run.command);
    Some(issue("high", "The tests fail", &description, "Make them pass."))
}

#[cfg(test)]
mod tests {
    use agentd_core::document::tasks;

    use super::*;

    #[test]
    fn a_tick_needs_a_file_that_shows_it() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("there.rs"), "x").unwrap();
        std::fs::write(dir.path().join("empty.rs"), "").unwrap();
        let check = |action: &str, file: &str, diff: &str, proven: bool| {
            let text = format!(
                "# Tasks\n\n## 2. Logic Layer\n\n### Task 2.1: x\n\n```yaml\nid: \"2.1\"\naction: {action}\n\
                 status: done\nfile: {file}\nspec_ref: a:R1\n```\n"
            );
            let task = tasks::parse(&text).value.tasks.pop().unwrap();
            assert_eq!(task.status, Status::Done);
            let why = unproven(dir.path(), &task, Some(diff));
            assert_eq!(why.is_none(), proven, "{action} {file}: {why:?}");
        };
        check("CREATE", "there.rs", "", true);
        check("CREATE", "empty.rs", "", false);
        check("CREATE", "gone.rs", "", false);
        check("DELETE", "gone.rs", "", true);
        check("DELETE", "there.rs", "", false);
        check("MODIFY", "there.rs", "--- a/there.rs\n+++ b/there.rs\n", true);
        check("MODIFY", "there.rs", "(shortened; the 900 files that were changed: a, b …)", true);
        check("MODIFY", "there.rs", "--- a/other.rs\n+++ b/other.rs\n", false);
        check("MODIFY", "gone.rs", "--- a/gone.rs\n+++ /dev/null\n", false);
        check("MODIFY", "../there.rs", "there.rs", false);
    }
}
