//! The commits of a change, as git knows them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use agentd_core::document::tasks::Task;
use agentd_core::ids::{ChangeId, TaskId};
use agentd_core::rel_path::RelPath;
use agentd_core::state::State;
use agentd_core::text::Line;
use serde::Serialize;

use crate::git::{self, GitTool, Seen, is_hash};
use crate::insight::kept::Kept;
use crate::store::Project;

/// How long git may take, and how many commits are looked at.
const TIMEOUT: Duration = Duration::from_secs(20);
const MOST: &str = "--max-count=2000";
/// The most that is read of what git says.
const CAP: usize = 8 << 20;

/// A commit that belongs to tasks of a change.
#[derive(Debug, Clone, Serialize)]
pub struct Commit {
    /// Its id, short enough to read and long enough to find.
    pub id: String,
    /// The first line of its message.
    pub subject: Line,
    /// Who wrote it.
    pub author: Line,
    /// When, as git says it.
    pub date: Line,
    /// The tasks it belongs to.
    pub tasks: BTreeSet<TaskId>,
}

/// The commits of some tasks, as they were listed before if nothing can have changed.
pub(super) fn kept(
    kept: &Kept,
    project: &Project,
    change: &ChangeId,
    state: Option<&State>,
    tasks: &[&Task],
) -> Vec<Commit> {
    let named = tasks.iter().map(|task| (task.id, task.file.as_ref())).collect::<Vec<_>>();
    let about = state.map(|state| (&state.git, state.ids().collect::<Vec<_>>()));
    let question =
        format!("{:?} {change} {about:?} {named:?}", project.root().as_os_str().as_encoded_bytes());
    if let Some(known) = kept.commits.get(&question) {
        return known.1.clone();
    }
    let mut seen = Seen::begin();
    seen.repository_of(project.root());
    match of_tasks(project, change, state, tasks) {
        Some(found) => kept.commits.keep(question, seen, found).1.clone(),
        None => Vec::new(),
    }
}

/// The commits of some tasks, newest first: those that name the change in their message,
/// and those since the implementation began that touch the file of a task. None if git
/// cannot say.
fn of_tasks(
    project: &Project,
    change: &ChangeId,
    state: Option<&State>,
    tasks: &[&Task],
) -> Option<Vec<Commit>> {
    if tasks.is_empty() {
        return Some(Vec::new());
    }
    let setup = state.and_then(|state| state.git.as_ref());
    let tool = GitTool::default();
    // A worktree has a HEAD of its own. Once that is gone, its commits may be in the main one.
    let tree = setup.and_then(|it| git::work_tree(&tool, project.root(), change, it).ok());
    let root = tree.as_deref().unwrap_or(project.root());
    // Commits name the change as it was called then.
    let ids: Vec<&str> = match state {
        Some(state) => state.ids().map(ChangeId::as_str).collect(),
        None => vec![change.as_str()],
    };
    let names_change = |message: &str| ids.iter().any(|id| names(message, id));
    let grep: Vec<String> = ids.iter().map(|id| format!("--grep={id}")).collect();
    let arguments: Vec<&str> =
        std::iter::once("--fixed-strings").chain(grep.iter().map(String::as_str)).collect();
    let mut found = log(root, &arguments)?;
    found.retain(|commit| names_change(&commit.message));
    let base = state.and_then(State::base_commit);
    if let Some(base) = base.filter(|text| is_hash(text)) {
        let range = format!("{base}..HEAD");
        let files = tasks.iter().filter_map(|task| RelPath::new(task.file.as_ref()?.as_str()).ok());
        let files: Vec<String> = files.map(|file| file.to_string()).collect();
        let mut arguments = vec![range.as_str(), "--"];
        arguments.extend(files.iter().map(String::as_str));
        if !files.is_empty() {
            // The base may be gone from the repository; what names the change is still there.
            found.extend(log(root, &arguments).unwrap_or_default());
        }
    }
    let mut commits: BTreeMap<String, (usize, Commit)> = BTreeMap::new();
    for (order, raw) in found.into_iter().enumerate() {
        let own = tasks.iter().filter(|task| {
            let file = task.file.as_ref().and_then(|file| RelPath::new(file.as_str()).ok());
            file.is_some_and(|file| raw.files.contains(file.as_str()))
                || names_change(&raw.message) && names(&raw.message, &task.id.to_string())
        });
        let tasks: BTreeSet<TaskId> = own.map(|task| task.id).collect();
        if tasks.is_empty() {
            continue;
        }
        let id = raw.id.chars().take(12).collect::<String>();
        let subject = Line::new(raw.message.lines().next().unwrap_or_default());
        let commit = Commit { id: id.clone(), subject, author: raw.author, date: raw.date, tasks };
        commits.entry(id).or_insert((order, commit));
    }
    let mut commits: Vec<(usize, Commit)> = commits.into_values().collect();
    commits.sort_by(|(a, left), (b, right)| {
        right.date.as_str().cmp(left.date.as_str()).then(a.cmp(b))
    });
    Some(commits.into_iter().map(|(_, commit)| commit).collect())
}

/// Whether a name stands in a text as a word of its own: `1.1` is not in `1.10`.
fn names(text: &str, name: &str) -> bool {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    text.match_indices(name).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let mut after = text[at + name.len()..].chars();
        let next = after.next();
        let decimal = next == Some('.') && after.next().is_some_and(|c| c.is_ascii_digit());
        !before.is_some_and(|c| word(c) || c == '.') && !next.is_some_and(word) && !decimal
    })
}

struct Raw {
    id: String,
    author: Line,
    date: Line,
    message: String,
    files: BTreeSet<String>,
}

/// Asks git; nothing where it cannot answer.
fn log(root: &Path, arguments: &[&str]) -> Option<Vec<Raw>> {
    let said = GitTool::default()
        .call(root, "log")
        .literal_paths()
        .within(TIMEOUT)
        .at_most(CAP)
        .args([MOST, "--no-color", "--no-ext-diff", "--no-textconv", "--no-renames"])
        .args(["--no-show-signature", "--relative", "--name-only"])
        .args(["--format=%x1e%H%x1f%an%x1f%aI%x1f%B%x1f"])
        .args(arguments)
        .run();
    Some(said.ok()?.text().split('\u{1e}').filter_map(raw).collect())
}

fn raw(record: &str) -> Option<Raw> {
    let mut fields = record.splitn(5, '\u{1f}');
    let id = fields.next()?.trim().to_owned();
    let (author, date) = (Line::new(fields.next()?), Line::new(fields.next()?));
    let message = fields.next()?.trim().to_owned();
    let files = fields.next()?.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect();
    Some(Raw { id, author, date, message, files })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_is_named_by_its_whole_id() {
        for text in ["1.1", "Task 1.1: a", "tasks 1.2, 1.1.", "(1.1)"] {
            assert!(names(text, "1.1"), "{text}");
        }
        for text in ["1.10", "1.1.2", "11.1", "2.1.1", "v1.1-x"] {
            assert!(!names(text, "1.1"), "{text}");
        }
        assert!(
            !names("agentd/add-oauth-2", "add-oauth") && names("agentd/add-oauth: x", "add-oauth")
        );
    }
}
