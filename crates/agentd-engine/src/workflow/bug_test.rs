//! The test for a bug comes before its fix: the implementer writes it, and agentd sees it fail (W7).

use std::fs;
use std::path::Path;

use agentd_core::hash::Digest;
use agentd_core::ids::Layer;
use agentd_core::rel_path::RelPath;
use agentd_core::state::{Reproduction, SeenFile, State, TestRun, Track};
use agentd_core::step_name::StepName;

use super::code_review::run_tests;
use super::commits::repository;
use super::implement::{TaskSelection, ask, open_tasks, read_tasks};
use super::{Workflow, WorkflowError, prompts};
use crate::git::canonical;

/// How many bytes of changes are looked through for the names of files.
const DIFF_BYTES: usize = 1 << 16;

/// Makes sure that agentd has seen a test fail because of the bug, where the change fixes one.
pub(super) fn ensure(workflow: &mut Workflow<'_>) -> Result<(), WorkflowError> {
    let state = workflow.state()?;
    if state.track != Track::Bug || state.reproduction.is_some() {
        return Ok(());
    }
    // Once the implementer was asked, a test that fails may be there.
    let is_first = workflow.history()?.last(&StepName::Reproduce).is_none();
    let before = if is_first {
        if !tested(workflow)?.passed() {
            return Err(WorkflowError::TestsFailing { change: workflow.change.clone() });
        }
        changed_files(workflow)?
    } else {
        Vec::new()
    };
    let mut session = write_test(workflow, None, false)?;
    let mut run = tested(workflow)?;
    if run.passed() {
        workflow.warn("the tests passed, so they do not show the bug; asking once more");
        session = write_test(workflow, session, true)?;
        run = tested(workflow)?;
    }
    let why = match run.exit_code {
        Some(0) => Some("the tests pass"),
        None => Some("the tests were stopped before they ended"),
        Some(_) => None,
    };
    let mut files = changed_files(workflow)?;
    files.retain(|file| !before.contains(file));
    let why = why.or(files.is_empty().then_some("the implementer has changed no file"));
    if let Some(why) = why {
        return Err(WorkflowError::NotReproduced { change: workflow.change.clone(), why });
    }
    drop(session);
    workflow.update(|state| {
        state.reproduction = Some(Reproduction { run, files });
        Ok(())
    })?;
    workflow.note("the tests fail, as they should before the fix");
    Ok(())
}

/// Has the test written; returns the session.
fn write_test(
    workflow: &mut Workflow<'_>,
    session: Option<String>,
    passed: bool,
) -> Result<Option<String>, WorkflowError> {
    let tasks = open_tasks(workflow, Layer::Testing, &TaskSelection::Open)?;
    // Without a session nothing is remembered.
    let prompt = prompts::reproduce(workflow, &tasks, passed && session.is_some())?;
    let label = if passed { "Test for the bug, once more" } else { "Test for the bug" };
    ask(workflow, StepName::Reproduce, label.to_owned(), prompt, session, &tasks)
}

/// Runs the tests.
fn tested(workflow: &mut Workflow<'_>) -> Result<TestRun, WorkflowError> {
    if workflow.agents.config.implementation.test_command.is_some() {
        run_tests(workflow)?;
        if let Some(run) = workflow.state()?.test_run {
            return Ok(run);
        }
    }
    Err(WorkflowError::NoTests { change: workflow.change.clone() })
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
