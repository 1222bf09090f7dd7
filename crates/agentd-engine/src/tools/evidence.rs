//! Whether the file of a task shows that the task was done.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use agentd_core::document::tasks::{Action, Task};
use agentd_core::ids::ChangeId;
use agentd_core::rel_path::RelPath;
use agentd_core::state::{Placement, State};

use super::outcome::{ActionError, Refusal};
use crate::explain::Explain as _;
use crate::git::{self, GitTool, is_hash};
use crate::store::{EntryKind, Project, StoreError};

/// How long git may take; it compares one file.
const GIT_TIMEOUT: Duration = Duration::from_secs(20);

/// No program of the repository's choice compares files.
const COMPARE_ONLY: [&str; 3] = ["--no-ext-diff", "--no-textconv", "--ignore-submodules=dirty"];

/// Why a task is not shown to be done.
enum MissingEvidence {
    /// Its file is missing, is as it was, or is still there.
    NotDone(Refusal),
    /// Nothing can show it; a person's word counts.
    Unknown(Refusal),
    Failed(ActionError),
}

impl From<ActionError> for MissingEvidence {
    fn from(error: ActionError) -> Self {
        Self::Failed(error)
    }
}

impl From<StoreError> for MissingEvidence {
    fn from(error: StoreError) -> Self {
        Self::Failed(error.into())
    }
}

/// Refuses unless the file of the task shows that the task was done.
pub fn require(
    project: &Project,
    change: &ChangeId,
    task: &Task,
    state: Option<&State>,
) -> Result<(), ActionError> {
    look(project, change, task, state).map_err(|lack| match lack {
        MissingEvidence::NotDone(refusal) | MissingEvidence::Unknown(refusal) => refusal.into(),
        MissingEvidence::Failed(error) => error,
    })
}

/// Why a task was visibly not done, if so.
pub fn contradicted(
    project: &Project,
    change: &ChangeId,
    task: &Task,
    state: Option<&State>,
) -> Option<Refusal> {
    match look(project, change, task, state) {
        Err(MissingEvidence::NotDone(refusal)) => Some(refusal),
        Ok(()) | Err(MissingEvidence::Unknown(_) | MissingEvidence::Failed(_)) => None,
    }
}

/// Those of several tasks that were visibly not done. It asks git once about all edited files.
pub(crate) fn all_contradicted<'t>(
    project: &Project,
    change: &ChangeId,
    tasks: &[&'t Task],
    state: Option<&State>,
) -> Vec<(&'t Task, Refusal)> {
    let edited = edited(project, change, tasks, state).unwrap_or_default();
    let is_edited = |task: &Task| {
        !matches!(task.action, Some(Action::Create | Action::Delete))
            && task.file.as_ref().is_some_and(|file| edited.contains(file.as_str()))
    };
    let open = tasks.iter().filter(|task| !is_edited(task));
    open.filter_map(|task| Some((*task, contradicted(project, change, task, state)?))).collect()
}

/// The files of tasks that are there and differ from the base. None if git cannot say.
fn edited(
    project: &Project,
    change: &ChangeId,
    tasks: &[&Task],
    state: Option<&State>,
) -> Option<BTreeSet<String>> {
    let base = state.and_then(State::base_commit).unwrap_or("HEAD");
    let worked_on = worked_on(project, change, state).ok()?;
    let project = worked_on.as_ref().unwrap_or(project);
    let there = |path: &RelPath| matches!(project.dir().open_file(path), Ok((_, 1..)));
    let files = tasks.iter().filter_map(|task| RelPath::new(task.file.as_ref()?.as_str()).ok());
    let files: BTreeSet<String> = files.filter(there).map(|path| path.to_string()).collect();
    if files.is_empty() || (base != "HEAD" && !is_hash(base)) {
        return None;
    }
    let mut arguments = vec!["--name-only", "--relative", "-z"];
    arguments.extend(COMPARE_ONLY);
    arguments.extend([base, "--"]);
    arguments.extend(files.iter().map(String::as_str));
    let git = GitTool::default();
    let call = git.call(project.root(), "diff").literal_paths();
    let said = call.within(GIT_TIMEOUT).args(&arguments).ask().ok()?;
    let names = || String::from_utf8_lossy(&said.stdout).split('\0').map(str::to_owned).collect();
    (said.code == 0).then(names)
}

fn look(
    project: &Project,
    change: &ChangeId,
    task: &Task,
    state: Option<&State>,
) -> Result<(), MissingEvidence> {
    let base_commit = state.and_then(State::base_commit);
    let worked_on = worked_on(project, change, state)?;
    let project = worked_on.as_ref().unwrap_or(project);
    let id = task.id;
    let Some(file) = &task.file else {
        return Err(MissingEvidence::Unknown(
            Refusal::new(format!("Task {id} names no file, so nothing can show that it was done."))
                .hint("A person has to tick it, or the planner has to name its file."),
        ));
    };
    let path = RelPath::new(file.as_str())
        .map_err(|error| MissingEvidence::Unknown(Refusal::new(format!("Task {id}: {error}."))))?;
    match task.action {
        Some(Action::Create) => exists(project, task, &path),
        Some(Action::Delete) => gone(project, task, &path),
        Some(Action::Modify) | None => {
            exists(project, task, &path)?;
            differs(project.root(), task, &path, base_commit)
        }
    }
}

/// The worktree of the change, where it has one: the files of its tasks are there.
fn worked_on(
    project: &Project,
    change: &ChangeId,
    state: Option<&State>,
) -> Result<Option<Project>, ActionError> {
    let setup = state.and_then(|state| state.git.as_ref());
    let Some(setup) = setup.filter(|setup| setup.workflow == Placement::Worktree) else {
        return Ok(None);
    };
    let path = git::work_tree(&GitTool::default(), project.root(), change, setup);
    let path = path.map_err(|error| {
        let refusal = Refusal::new(format!("The working tree cannot be read: {error}."));
        match error.explain().for_change(change).hints.first() {
            Some(hint) => refusal.hint(hint.to_string()),
            None => refusal,
        }
    })?;
    Ok(Some(Project::open(&path)?))
}

fn label(task: &Task) -> &'static str {
    task.action.map_or("MODIFY", Action::label)
}

fn exists(project: &Project, task: &Task, path: &RelPath) -> Result<(), MissingEvidence> {
    let missing = |what: String| {
        let (id, label) = (task.id, label(task));
        MissingEvidence::NotDone(
            Refusal::new(format!("Task {id} is not done ({label} {path}): {what}."))
                .hint("Do the work first, then call complete_task again."),
        )
    };
    match project.dir().open_file(path) {
        Ok((_, 0)) => Err(missing("the file is empty".to_owned())),
        Ok(_) => Ok(()),
        Err(error @ StoreError::Io { .. }) => Err(error.into()),
        Err(error) => Err(missing(error.to_string())),
    }
}

fn gone(project: &Project, task: &Task, path: &RelPath) -> Result<(), MissingEvidence> {
    match project.dir().kind(path)? {
        None => Ok(()),
        Some(kind) => {
            let kind =
                if kind == EntryKind::File { "the file".to_owned() } else { kind.to_string() };
            Err(MissingEvidence::NotDone(
                Refusal::new(format!(
                    "Task {} is not done (DELETE {path}): {kind} is still there.",
                    task.id
                ))
                .hint("Delete it, then call complete_task again."),
            ))
        }
    }
}

fn differs(
    root: &Path,
    task: &Task,
    path: &RelPath,
    base_commit: Option<&str>,
) -> Result<(), MissingEvidence> {
    let (id, label) = (task.id, label(task));
    let unknown = |why: &str| {
        MissingEvidence::Unknown(
            Refusal::new(format!(
                "Task {id} ({label} {path}) cannot be shown to be done: {why}, so it is not known \
                 what the file was before."
            ))
            .hint("A person can set `status: done` in tasks.md."),
        )
    };
    let base = base_commit.unwrap_or("HEAD");
    if base_commit.is_some_and(|base| !is_hash(base)) {
        return Err(unknown("`base_commit` in STATE.yaml is not a commit"));
    }
    let spec = format!("{base}:./{path}");
    let in_base = ask_git(root, "cat-file", &["-e", &spec]);
    let commit = format!("{base}^{{commit}}");
    match in_base {
        Ok(0) => {}
        Ok(_) => {
            return match ask_git(root, "cat-file", &["-e", &commit]) {
                // The commit is there and the file was not: it is new, so it differs.
                Ok(0) => Ok(()),
                Ok(_) => Err(unknown("this is not a git repository, or it has no such commit")),
                Err(why) => Err(unknown(&why)),
            };
        }
        Err(why) => return Err(unknown(&why)),
    }
    let diff = [&["--quiet"], &COMPARE_ONLY[..], &[base, "--", path.as_str()]].concat();
    match ask_git(root, "diff", &diff) {
        Ok(0) => Err(MissingEvidence::NotDone(
            Refusal::new(format!(
                "Task {id} is not done ({label} {path}): the file is as it was at {base}."
            ))
            .hint("Change the file as the task says, then call complete_task again."),
        )),
        Ok(1) => Ok(()),
        Ok(code) => Err(unknown(&format!("git diff exited with {code}"))),
        Err(why) => Err(unknown(&why)),
    }
}

/// Runs git and says how it ended.
fn ask_git(root: &Path, subcommand: &'static str, arguments: &[&str]) -> Result<i32, String> {
    let call = GitTool::default()
        .call(root, subcommand)
        .literal_paths()
        .within(GIT_TIMEOUT)
        .args(arguments)
        .ask();
    call.map(|said| said.code).map_err(|error| error.to_string())
}
