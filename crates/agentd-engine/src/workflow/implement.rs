//! Building an approved plan: one fresh session of the implementer for every layer, ticked
//! task by task with evidence (WF4, WF5).

use std::collections::{BTreeMap, BTreeSet};

use agentd_core::agent::Role;
use agentd_core::check;
use agentd_core::config::GitCommit;
use agentd_core::document::tasks::{self, Status, Task};
use agentd_core::ids::{Layer, TaskId};
use agentd_core::layout::ChangeFile;
use agentd_core::phase::{Phase, Transition};
use agentd_core::state::State;
use agentd_core::step_name::StepName;

use super::{Action, Call, Progress, Report, Workflow, WorkflowError, prompts};
use crate::documents;
use crate::git::{Git, What};
use crate::step::Artefact;

/// Which tasks are to be done.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Wanted {
    /// All that are open.
    #[default]
    Open,
    /// These, as far as they are open.
    Some(BTreeSet<TaskId>),
}

impl Wanted {
    fn includes(&self, id: TaskId) -> bool {
        match self {
            Self::Open => true,
            Self::Some(ids) => ids.contains(&id),
        }
    }
}

/// Has the tasks done that are wanted and open, layer by layer.
pub fn implement(workflow: &mut Workflow<'_>, wanted: &Wanted) -> Result<Report, WorkflowError> {
    workflow.history()?;
    start(workflow)?;
    let all = read_tasks(workflow)?;
    if let Wanted::Some(ids) = wanted
        && let Some(unknown) = ids.iter().find(|id| !all.iter().any(|task| task.id == **id))
    {
        return Err(WorkflowError::NoSuchTask { change: workflow.change.clone(), task: *unknown });
    }
    for layer in Layer::ALL {
        let of_layer = |task: &&Task| layer_of(task) == layer && wanted.includes(task.id);
        let total = all.iter().filter(of_layer).count();
        if total == 0 {
            continue;
        }
        build(workflow, layer, wanted)?;
    }
    workflow.report(Action::Implemented)
}

/// The layer of a task. One without a heading above it is ordinary logic.
fn layer_of(task: &Task) -> Layer {
    task.layer.unwrap_or(Layer::Logic)
}

/// Moves the change to implementing, or says why it is not ready.
pub(super) fn start(workflow: &Workflow<'_>) -> Result<(), WorkflowError> {
    let state = workflow.state()?;
    if !matches!(state.phase, Phase::Challenged | Phase::Implementing) {
        let (change, phase) = (workflow.change.clone(), state.phase);
        return Err(WorkflowError::ChangeNotReady { change, phase });
    }
    let plan = check::plan_digest(&workflow.texts()?);
    let (project, holder) = (&workflow.agents.project, &workflow.agents.holder);
    let started = Transition::ImplementationStarted { plan };
    if state.phase == Phase::Implementing {
        state.apply(&started)?;
        return Ok(());
    }
    documents::update_state(project, &workflow.change, holder, (workflow.now)(), |state| {
        *state = state.apply(&started)?;
        Ok(())
    })?;
    Ok(())
}

/// The tasks as they stand in tasks.md now.
pub(super) fn read_tasks(workflow: &Workflow<'_>) -> Result<Vec<Task>, WorkflowError> {
    let text = workflow.change()?.read_if_exists(&ChangeFile::Tasks)?.ok_or_else(|| {
        WorkflowError::NoDocument { change: workflow.change.clone(), file: "tasks.md" }
    })?;
    Ok(tasks::parse(&text).value.tasks)
}

/// The tasks of a layer that are wanted and not ticked.
fn open_tasks(
    workflow: &Workflow<'_>,
    layer: Layer,
    wanted: &Wanted,
) -> Result<Vec<Task>, WorkflowError> {
    let is_open = |task: &Task| {
        layer_of(task) == layer && wanted.includes(task.id) && task.status == Status::Pending
    };
    Ok(read_tasks(workflow)?.into_iter().filter(is_open).collect())
}

/// Builds a layer: asks once, and once more for what was left. What is still open then is
/// reported; nobody ticks it for the implementer.
fn build(workflow: &mut Workflow<'_>, layer: Layer, wanted: &Wanted) -> Result<(), WorkflowError> {
    let step = StepName::Implement(layer);
    let name = step.to_string();
    let open = open_tasks(workflow, layer, wanted)?;
    let label = format!("Layer {}/{}: {layer}", layer.section(), Layer::ALL.len());
    if open.is_empty() {
        let why = "its tasks are ticked already";
        (workflow.watch)(Progress::Skipped { step: &name, label: &label, why });
        return commit(workflow, layer, wanted);
    }
    let prompt = prompts::implement(workflow, layer, &open)?;
    let session = ask(workflow, &step, &label, prompt, None, open.len(), wanted)?;
    let left = open_tasks(workflow, layer, wanted)?;
    if !left.is_empty() {
        workflow.warn(&format!("{layer}: not ticked: {}; asking once more", ids(&left)));
        let prompt = prompts::implement_again(workflow, layer, &left);
        ask(workflow, &step, &format!("{label}, once more"), prompt, session, left.len(), wanted)?;
    }
    let left = open_tasks(workflow, layer, wanted)?;
    if !left.is_empty() {
        let tasks = left.iter().map(|task| task.id).collect();
        return Err(WorkflowError::TasksLeft { change: workflow.change.clone(), layer, tasks });
    }
    commit(workflow, layer, wanted)
}

/// One call of the implementer; returns its session.
fn ask(
    workflow: &mut Workflow<'_>,
    step: &StepName,
    label: &str,
    prompt: String,
    resume: Option<String>,
    asked: usize,
    wanted: &Wanted,
) -> Result<Option<String>, WorkflowError> {
    let StepName::Implement(layer) = *step else { return Ok(None) };
    let change = workflow.change()?;
    let report = workflow.run(
        Call {
            step: step.clone(),
            role: Role::Implementer,
            label: label.to_owned(),
            prompt,
            resume,
            artefact: Artefact::Nothing,
        },
        |_| {
            let text = change.read_if_exists(&ChangeFile::Tasks)?.unwrap_or_default();
            let left = tasks::parse(&text).value.tasks.into_iter().filter(|task| {
                layer_of(task) == layer
                    && wanted.includes(task.id)
                    && task.status == Status::Pending
            });
            Ok(format!("{} of {asked} tasks ticked", asked.saturating_sub(left.count())))
        },
    )?;
    Ok(report.outcome.session_id)
}

fn ids(tasks: &[Task]) -> String {
    tasks.iter().map(|task| task.id.to_string()).collect::<Vec<_>>().join(", ")
}

/// Commits what a layer has changed, where the project wants that.
fn commit(workflow: &mut Workflow<'_>, layer: Layer, wanted: &Wanted) -> Result<(), WorkflowError> {
    let done: Vec<Task> = read_tasks(workflow)?
        .into_iter()
        .filter(|task| layer_of(task) == layer && wanted.includes(task.id))
        .collect();
    let titles: Vec<String> =
        done.iter().map(|task| format!("- {} {}", task.id, task.title)).collect();
    let message = format!(
        "{}: {layer} layer\n\nTasks: {}\n\n{}\n",
        workflow.change,
        ids(&done),
        titles.join("\n")
    );
    commit_work(workflow, &message)
}

/// Commits what has changed in the work tree, where the project wants that.
pub(super) fn commit_work(workflow: &mut Workflow<'_>, message: &str) -> Result<(), WorkflowError> {
    if workflow.agents.config.git.commit == GitCommit::None {
        return Ok(());
    }
    let Some(git) = repository(workflow)? else {
        workflow.warn("git.commit is set, but there is no git repository");
        return Ok(());
    };
    if let Some(commit) = git.commit(What::Everything, message)? {
        let subject = message.lines().next().unwrap_or_default();
        let short = commit.get(..10).unwrap_or(&commit);
        workflow.note(&format!("committed {short} {subject}"));
    }
    Ok(())
}

/// The repository of the work tree.
pub(super) fn repository(workflow: &Workflow<'_>) -> Result<Option<Git>, WorkflowError> {
    Ok(Git::discover_with(&workflow.agents.git_tool(), &workflow.agents.work_tree)?)
}

/// The specs that tasks refer to, and the requirements in them.
pub(super) fn referred(
    tasks: &[Task],
) -> BTreeMap<agentd_core::ids::SpecId, BTreeSet<agentd_core::ids::RequirementId>> {
    let mut wanted: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
    for spec_ref in tasks.iter().flat_map(|task| &task.spec_refs) {
        let of_spec = wanted.entry(spec_ref.spec.clone()).or_default();
        of_spec.extend(spec_ref.requirement);
    }
    wanted
}

/// The session in which the implementer worked last.
pub(super) fn last_session(state: &State) -> Option<String> {
    let is_work =
        |step: &str| matches!(step.parse::<StepName>(), Ok(StepName::Implement(_) | StepName::Fix));
    state
        .llm_calls
        .iter()
        .rfind(|call| is_work(&call.step) && call.session_id.is_some())?
        .session_id
        .clone()
}
