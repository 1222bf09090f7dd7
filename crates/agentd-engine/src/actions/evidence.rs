//! Whether the file of a task shows that the task was done.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use agentd_core::document::tasks::{Action, Task};
use agentd_core::rel_path::RelPath;

use super::outcome::{ActionError, Refusal};
use crate::store::{EntryKind, Project, StoreError};

/// How long git may take; it compares one file.
const GIT_TIMEOUT: Duration = Duration::from_secs(20);

/// Refuses unless the file of the task shows that the task was done.
pub fn require(
    project: &Project,
    task: &Task,
    base_commit: Option<&str>,
) -> Result<(), ActionError> {
    let id = task.id;
    let Some(file) = &task.file else {
        return Err(Refusal::new(format!(
            "Task {id} names no file, so nothing can show that it was done."
        ))
        .hint("A person has to tick it, or the planner has to name its file.")
        .into());
    };
    let path = RelPath::new(file.as_str())
        .map_err(|error| Refusal::new(format!("Task {id}: {error}.")))?;
    match task.action {
        Some(Action::Create) => exists(project, task, &path),
        Some(Action::Delete) => gone(project, task, &path),
        Some(Action::Modify) | None => {
            exists(project, task, &path)?;
            differs(project.root(), task, &path, base_commit)
        }
    }
}

fn label(task: &Task) -> &'static str {
    task.action.map_or("MODIFY", Action::label)
}

fn exists(project: &Project, task: &Task, path: &RelPath) -> Result<(), ActionError> {
    let missing = |what: String| -> ActionError {
        let (id, label) = (task.id, label(task));
        Refusal::new(format!("Task {id} is not done ({label} {path}): {what}."))
            .hint("Do the work first, then call complete_task again.")
            .into()
    };
    match project.dir().open_file(path) {
        Ok((_, 0)) => Err(missing("the file is empty".to_owned())),
        Ok(_) => Ok(()),
        Err(error @ StoreError::Io { .. }) => Err(error.into()),
        Err(error) => Err(missing(error.to_string())),
    }
}

fn gone(project: &Project, task: &Task, path: &RelPath) -> Result<(), ActionError> {
    match project.dir().kind(path)? {
        None => Ok(()),
        Some(kind) => {
            let kind =
                if kind == EntryKind::File { "the file".to_owned() } else { kind.to_string() };
            Err(Refusal::new(format!(
                "Task {} is not done (DELETE {path}): {kind} is still there.",
                task.id
            ))
            .hint("Delete it, then call complete_task again.")
            .into())
        }
    }
}

fn differs(
    root: &Path,
    task: &Task,
    path: &RelPath,
    base_commit: Option<&str>,
) -> Result<(), ActionError> {
    let (id, label) = (task.id, label(task));
    let unknown = |why: &str| -> ActionError {
        Refusal::new(format!(
            "Task {id} ({label} {path}) cannot be shown to be done: {why}, so it is not known what \
             the file was before."
        ))
        .hint("A person can set `status: done` in tasks.md.")
        .into()
    };
    let base = base_commit.unwrap_or("HEAD");
    let is_commit = (7..=64).contains(&base.len()) && base.bytes().all(|b| b.is_ascii_hexdigit());
    if base_commit.is_some() && !is_commit {
        return Err(unknown("`base_commit` in STATE.yaml is not a commit"));
    }
    let spec = format!("{base}:./{path}");
    let in_base = git(root, &["cat-file", "-e", &spec]);
    let commit = format!("{base}^{{commit}}");
    match in_base {
        Ok(0) => {}
        Ok(_) => {
            return match git(root, &["cat-file", "-e", &commit]) {
                // The commit is there and the file was not: it is new, so it differs.
                Ok(0) => Ok(()),
                Ok(_) => Err(unknown("this is no git repository, or it has no such commit")),
                Err(why) => Err(unknown(&why)),
            };
        }
        Err(why) => return Err(unknown(&why)),
    }
    let diff = ["diff", "--quiet", "--no-ext-diff", "--no-textconv", base, "--", path.as_str()];
    match git(root, &diff) {
        Ok(0) => Err(Refusal::new(format!(
            "Task {id} is not done ({label} {path}): the file is as it was at {base}."
        ))
        .hint("Change the file as the task says, then call complete_task again.")
        .into()),
        Ok(1) => Ok(()),
        Ok(code) => Err(unknown(&format!("git diff exited with {code}"))),
        Err(why) => Err(unknown(&why)),
    }
}

/// Runs git and says how it ended. Whatever the repository configures to be run is not.
fn git(root: &Path, arguments: &[&str]) -> Result<i32, String> {
    let mut command = Command::new("git");
    command
        .args(["-c", "core.fsmonitor=false"])
        .args(arguments)
        .current_dir(root)
        .env("GIT_OPTIONAL_LOCKS", "0")
        .env("GIT_LITERAL_PATHSPECS", "1")
        .env("GIT_TERMINAL_PROMPT", "0")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    for variable in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_EXTERNAL_DIFF"] {
        command.env_remove(variable);
    }
    let mut child = command.spawn().map_err(|error| format!("git cannot be run ({error})"))?;
    let start = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) => {
                return status.code().ok_or_else(|| "git was killed".to_owned());
            }
            Ok(None) if start.elapsed() < GIT_TIMEOUT => {
                std::thread::sleep(Duration::from_millis(2));
            }
            Ok(None) => {
                let _ = child.kill();
                let _ = child.wait();
                return Err("git did not answer in time".to_owned());
            }
            Err(error) => return Err(format!("git cannot be waited for ({error})")),
        }
    }
}
