//! The test for a bug comes before its fix: the implementer writes it, and agentd sees it fail (W7).

use std::fs;
use std::path::Path;

use agentd_core::hash::Digest;
use agentd_core::ids::Layer;
use agentd_core::rel_path::RelPath;
use agentd_core::state::{Reproduction, SeenFile, State, Track};
use agentd_core::step_name::StepName;

use super::code_review::tests_stand;
use super::commits::repository;
use super::implement::{Asked, TaskSelection, ask, open_tasks, read_tasks};
use super::implementation::CodeStep;
use super::{Rounds, Workflow, WorkflowError, prompts};
use crate::git::canonical;

/// How many bytes of changes are looked through for the names of files.
const DIFF_BYTES: usize = 1 << 16;

/// What comes next before a bug can be fixed; nothing if agentd has seen a test fail because of it, or
/// the change fixes none.
pub(super) fn next(
    workflow: &Workflow<'_>,
    rounds: Rounds,
) -> Result<Option<CodeStep>, WorkflowError> {
    let state = workflow.state()?;
    let change = || workflow.change.clone();
    if state.track != Track::Bug || state.reproduction.is_some() {
        return Ok(None);
    }
    if workflow.agents.config.implementation.test_command.is_none() {
        return Err(WorkflowError::NoTests { change: change() });
    }
    let history = workflow.history()?;
    let is_first = history.last(&StepName::Reproduce).is_none();
    let asked = match history.in_a_row(&StepName::Reproduce, rounds.since) {
        0 => Asked::Never,
        1 => Asked::Once,
        _ => Asked::Twice,
    };
    // Once the implementer was asked, a test that fails may be there.
    if asked == Asked::Never && !is_first {
        return Ok(Some(CodeStep::Reproduce(asked)));
    }
    let run = state.test_run.filter(|_| tests_stand(workflow, rounds).unwrap_or(false));
    let not_reproduced = |why| Err(WorkflowError::NotReproduced { change: change(), why });
    match (run, asked) {
        (None, _) => Ok(Some(CodeStep::Tests)),
        (Some(run), Asked::Never) if !run.passed() => {
            Err(WorkflowError::TestsFailing { change: change() })
        }
        (Some(_), Asked::Never) => Ok(Some(CodeStep::Reproduce(asked))),
        (Some(run), Asked::Once) if run.passed() => Ok(Some(CodeStep::Reproduce(asked))),
        (Some(run), Asked::Twice) if run.passed() => not_reproduced("the tests pass"),
        (Some(run), _) if run.exit_code.is_none() => {
            not_reproduced("the tests were stopped before they ended")
        }
        // It was not taken for the proof that it is.
        (Some(_), Asked::Once | Asked::Twice) => Ok(Some(CodeStep::Tests)),
    }
}

/// Takes a run of the tests for the proof that they show the bug, if it is one.
pub(super) fn take_result(workflow: &mut Workflow<'_>) -> Result<(), WorkflowError> {
    let state = workflow.state()?;
    let asked = workflow.history()?.last(&StepName::Reproduce).is_some();
    if state.track != Track::Bug || state.reproduction.is_some() || !asked {
        return Ok(());
    }
    let Some(run) = state.test_run.filter(|run| run.exit_code.is_some_and(|code| code != 0)) else {
        return Ok(());
    };
    let mut files = changed_files(workflow)?;
    files.retain(|file| !workflow.changed_before.contains(file));
    if files.is_empty() {
        let (change, why) = (workflow.change.clone(), "the implementer has changed no file");
        return Err(WorkflowError::NotReproduced { change, why });
    }
    workflow.update(|state| {
        state.reproduction = Some(Reproduction { run, files });
        Ok(())
    })?;
    workflow.note("the tests fail, as they should before the fix");
    Ok(())
}

/// Has the test written, by one call of the implementer.
pub(super) fn write_test(workflow: &mut Workflow<'_>, asked: Asked) -> Result<(), WorkflowError> {
    let tasks = open_tasks(workflow, Layer::Testing, &TaskSelection::Open)?;
    let past = workflow.history()?;
    let last = past.last(&StepName::Reproduce);
    if last.is_none() {
        workflow.changed_before = changed_files(workflow)?;
    }
    let again = asked != Asked::Never;
    let session = last.filter(|_| again).and_then(|run| run.session_id.clone());
    if again {
        workflow.warn("the tests passed, so they do not show the bug; asking once more");
    }
    // Without a session nothing is remembered.
    let prompt = prompts::reproduce(workflow, &tasks, session.is_some())?;
    let label = if again { "Test for the bug, once more" } else { "Test for the bug" };
    ask(workflow, StepName::Reproduce, label.to_owned(), prompt, session, &tasks)?;
    Ok(())
}

/// The files that are not as they were when the change began, and what is in them. Without git, those
/// of the tasks for tests.
fn changed_files(workflow: &Workflow<'_>) -> Result<Vec<SeenFile>, WorkflowError> {
    let base = workflow.state()?.base_commit().map(str::to_owned);
    let root = &workflow.agents.work_tree;
    let paths: Vec<String> = match repository(workflow)?.zip(base) {
        Some((git, base)) => {
            let (top, root) = (git.top().to_owned(), canonical(root)?);
            let changed = git.diff(&base, DIFF_BYTES)?.files.into_iter();
            let in_project = changed.filter_map(|file| {
                let file = top.join(file.path);
                Some(file.strip_prefix(&root).ok()?.to_str()?.to_owned())
            });
            in_project.filter(|path| !path.starts_with("agentd/")).collect()
        }
        None => {
            let tasks = read_tasks(workflow)?;
            let tests = tasks.iter().filter(|task| task.layer == Some(Layer::Testing));
            tests.filter_map(|task| Some(task.file.as_ref()?.to_string())).collect()
        }
    };
    let with_digest = |path: String| Some(SeenFile { digest: digest(root, &path)?, path });
    Ok(paths.into_iter().filter_map(with_digest).collect())
}

/// What is in a file; none where there is no such file.
fn digest(root: &Path, path: &str) -> Option<Digest> {
    let file = root.join(RelPath::new(path).ok()?.as_path());
    let is_file = fs::symlink_metadata(&file).ok()?.is_file();
    is_file.then(|| fs::read(&file).ok()).flatten().map(Digest::of)
}

/// The files of the test for a bug that are not as they were when agentd saw it fail.
pub(crate) fn changed(root: &Path, state: &State) -> Vec<String> {
    let files = state.reproduction.iter().flat_map(|seen| &seen.files);
    let other = files.filter(|seen| digest(root, &seen.path).as_ref() != Some(&seen.digest));
    other.map(|seen| seen.path.clone()).collect()
}
