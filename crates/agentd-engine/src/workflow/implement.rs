//! Building an approved plan: one fresh session of the implementer for every layer, ticked
//! task by task with evidence (WF4, WF5).

use std::collections::{BTreeMap, BTreeSet};

use agentd_core::agent::Role;
use agentd_core::config::GitCommit;
use agentd_core::document::tasks::{self, Status, Task};
use agentd_core::document::tasks_edit;
use agentd_core::hash::Digest;
use agentd_core::ids::{ChangeId, Layer, RequirementId, SpecId, TaskId};
use agentd_core::layout::ChangeFile;
use agentd_core::phase::{Phase, Transition};
use agentd_core::state::State;
use agentd_core::step_name::StepName;

use super::commits::{commit_work, repository};
use super::outlook::{layer_label, layers};
use super::{
    Action, Call, Progress, Report, Rounds, Workflow, WorkflowError, implementation, prompts,
    revision,
};
use crate::agents::step::Artifact;
use crate::change::documents;
use crate::tools;

/// Which tasks are to be done.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum TaskSelection {
    /// All that are open.
    #[default]
    Open,
    /// These, as far as they are open.
    Some(BTreeSet<TaskId>),
}

impl TaskSelection {
    fn includes(&self, id: TaskId) -> bool {
        match self {
            Self::Open => true,
            Self::Some(ids) => ids.contains(&id),
        }
    }
}

/// Has the tasks done that are wanted and open, layer by layer.
pub fn implement(
    workflow: &mut Workflow<'_>,
    wanted: &TaskSelection,
) -> Result<Report, WorkflowError> {
    workflow.history()?;
    start(workflow)?;
    prove_ticks(workflow)?;
    wanted_tasks(workflow, wanted)?;
    commit_done(workflow, wanted, Ticked::Reported)?;
    let report = do_tasks(workflow, wanted);
    workflow.or_waiting(report)
}

fn do_tasks(workflow: &mut Workflow<'_>, wanted: &TaskSelection) -> Result<Report, WorkflowError> {
    let rounds = Rounds::of_this_command(workflow)?;
    while let Some(step) = implementation::next_task(workflow, wanted, rounds)? {
        implementation::perform(workflow, step, wanted)?;
    }
    workflow.report(Action::Implemented)
}

/// The tasks that are wanted, done or not. One that the plan does not have is an error.
pub(super) fn wanted_tasks(
    workflow: &Workflow<'_>,
    wanted: &TaskSelection,
) -> Result<Vec<Task>, WorkflowError> {
    let mut all = read_tasks(workflow)?;
    if let TaskSelection::Some(ids) = wanted
        && let Some(unknown) = ids.iter().find(|id| !all.iter().any(|task| task.id == **id))
    {
        return Err(WorkflowError::NoSuchTask { change: workflow.change.clone(), task: *unknown });
    }
    all.retain(|task| wanted.includes(task.id));
    Ok(all)
}

/// Says that tasks are open which were ticked: what is reviewed is all of the work.
pub(super) fn all_proven(workflow: &mut Workflow<'_>) -> Result<(), WorkflowError> {
    let tasks = prove_ticks(workflow)?;
    let all = read_tasks(workflow)?;
    match all.iter().find(|task| tasks.contains(&task.id)) {
        Some(first) => {
            let layer = layer_of(first);
            Err(WorkflowError::TasksLeft { change: workflow.change.clone(), layer, tasks })
        }
        None => Ok(()),
    }
}

/// The layer of a task. One without a heading above it is ordinary logic.
pub(super) fn layer_of(task: &Task) -> Layer {
    task.layer.unwrap_or(Layer::Logic)
}

/// Moves the change to implementing, or says why it is not ready.
pub(super) fn start(workflow: &mut Workflow<'_>) -> Result<(), WorkflowError> {
    let state = workflow.state()?;
    if !matches!(state.phase, Phase::Challenged | Phase::Implementing) {
        let (change, phase) = (workflow.change.clone(), state.phase);
        return Err(WorkflowError::ChangeNotReady { change, phase });
    }
    workflow.check_record()?;
    let plan = still_approved(workflow)?;
    if state.phase == Phase::Implementing {
        return Ok(());
    }
    revision::reopen_tasks(workflow)?;
    workflow.update(|state| {
        *state = state.apply(&Transition::ImplementationStarted { plan })?;
        state.revision = None;
        Ok(())
    })
}

/// The digest of the plan, which is still the one that was approved. An implementer has
/// tools that could write to it.
pub(super) fn still_approved(workflow: &Workflow<'_>) -> Result<Digest, WorkflowError> {
    let snapshot = workflow.snapshot()?;
    let plan = snapshot.documents.digest();
    snapshot.state()?.apply(&Transition::ImplementationStarted { plan: plan.clone() })?;
    Ok(plan)
}

/// The tasks as they stand in tasks.md now.
pub(super) fn read_tasks(workflow: &Workflow<'_>) -> Result<Vec<Task>, WorkflowError> {
    let documents = workflow.documents_with(&ChangeFile::Tasks)?;
    let tasks = documents.tasks.value_if_there().ok_or_else(|| WorkflowError::NoDocument {
        change: workflow.change.clone(),
        file: "tasks.md",
    })?;
    Ok(tasks.tasks.clone())
}

/// The tasks of a layer that are wanted and not ticked.
pub(super) fn open_tasks(
    workflow: &Workflow<'_>,
    layer: Layer,
    wanted: &TaskSelection,
) -> Result<Vec<Task>, WorkflowError> {
    let is_open = |task: &Task| {
        layer_of(task) == layer && wanted.includes(task.id) && task.status == Status::Pending
    };
    Ok(read_tasks(workflow)?.into_iter().filter(is_open).collect())
}

/// How often the implementer was asked for what is open in a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asked {
    /// Not yet.
    Never,
    /// Once: it is asked once more for what it has left.
    Once,
    /// Twice: what is still open is reported; nobody ticks it for the implementer.
    Twice,
}

/// The first layer in which tasks are wanted and open, and how often they were asked for.
pub(super) fn next_layer(
    workflow: &Workflow<'_>,
    wanted: &TaskSelection,
    rounds: Rounds,
) -> Result<Option<(Layer, Asked)>, WorkflowError> {
    for layer in Layer::ALL {
        if open_tasks(workflow, layer, wanted)?.is_empty() {
            continue;
        }
        let history = workflow.history()?;
        let asked = match history.in_a_row(&StepName::Implement(layer), rounds.since) {
            0 => Asked::Never,
            1 => Asked::Once,
            _ => Asked::Twice,
        };
        return Ok(Some((layer, asked)));
    }
    Ok(None)
}

/// Has a layer built, by one call of the implementer.
pub(super) fn build(
    workflow: &mut Workflow<'_>,
    layer: Layer,
    asked: Asked,
    wanted: &TaskSelection,
) -> Result<(), WorkflowError> {
    let name = StepName::Implement(layer);
    let open = open_tasks(workflow, layer, wanted)?;
    let change = workflow.change.clone();
    let left = |tasks: &[Task]| {
        let tasks = tasks.iter().map(|task| task.id).collect();
        Err(WorkflowError::TasksLeft { change: change.clone(), layer, tasks })
    };
    let label = layer_label(layer, &layers(read_tasks(workflow)?.iter().map(layer_of)));
    let (label, prompt, session) = match asked {
        Asked::Never => (label, prompts::implement(workflow, layer, &open)?, None),
        Asked::Once => {
            let past = workflow.history()?;
            let session = past.last(&name).and_then(|run| run.session_id.clone());
            workflow.warn(&format!("{layer}: not ticked: {}; asking once more", ids(&open)));
            let prompt = match session {
                Some(_) => prompts::implement_again(workflow, layer, &open),
                // Without a session nothing is remembered.
                None => prompts::implement(workflow, layer, &open)?,
            };
            (format!("{label}, once more"), prompt, session)
        }
        Asked::Twice => return left(&open),
    };
    ask(workflow, name, label, prompt, session, &open)?;
    let still_open = open_tasks(workflow, layer, wanted)?;
    if !still_open.is_empty() {
        return if asked == Asked::Once { left(&still_open) } else { Ok(()) };
    }
    let done = match asked {
        Asked::Never => open,
        Asked::Once | Asked::Twice => tasks_of(workflow, layer, wanted)?,
    };
    commit_work(workflow, &layer_message(&workflow.change, layer, &done))
}

/// One call of the implementer; returns its session.
pub(super) fn ask(
    workflow: &mut Workflow<'_>,
    step: StepName,
    label: String,
    prompt: String,
    resume: Option<String>,
    asked: &[Task],
) -> Result<Option<String>, WorkflowError> {
    let (role, artifact) = (Role::Implementer, Artifact::Nothing);
    let earlier = done(&read_tasks(workflow)?);
    let (report, ticks) = workflow.run_checked(
        Call { step, role, label, prompt, resume, artifact },
        |workflow, _| take_back_unproven(workflow, &earlier),
        |_, ticks| {
            let ticked = asked.iter().filter(|task| ticks.kept.contains(&task.id)).count();
            format!("{ticked} of {} tasks ticked", asked.len())
        },
    )?;
    for (id, why) in ticks.taken_back {
        workflow.warn(&format!("the tick of {id} is taken back: {why}"));
    }
    still_approved(workflow)?;
    Ok(report.outcome.session_id)
}

/// What became of ticks.
pub(super) struct Ticks {
    /// Those that stay.
    kept: Vec<TaskId>,
    /// Those that were taken back, and why.
    pub(super) taken_back: Vec<(TaskId, String)>,
}

fn done(tasks: &[Task]) -> BTreeSet<TaskId> {
    tasks.iter().filter(|task| task.status == Status::Done).map(|task| task.id).collect()
}

/// Takes back the ticks of a call, in any layer, that nothing proves. `complete_task` sees to
/// that, but an implementer can also write to the file.
fn take_back_unproven(
    workflow: &Workflow<'_>,
    earlier: &BTreeSet<TaskId>,
) -> Result<Ticks, WorkflowError> {
    let (project, change) = (&workflow.agents.project, &workflow.change);
    take_back(workflow, |task, state| {
        if earlier.contains(&task.id) {
            return None;
        }
        tools::evidence(project, change, task, Some(state)).err().map(|e| e.to_string())
    })
}

/// Takes back every tick, no matter who set it, that the files contradict: a call that was killed
/// may have set them, and so may the tests. A person's word counts where nothing can be shown.
pub(super) fn prove_ticks(workflow: &mut Workflow<'_>) -> Result<Vec<TaskId>, WorkflowError> {
    let (project, change) = (&workflow.agents.project, workflow.change.clone());
    let ticks = take_back(workflow, |task, state| {
        let why = tools::contradicted(project, &change, task, Some(state));
        why.map(|why| why.to_string())
    })?;
    for (id, why) in &ticks.taken_back {
        workflow.warn(&format!("the tick of {id} is taken back: {why}"));
    }
    Ok(ticks.taken_back.into_iter().map(|(id, _)| id).collect())
}

/// Takes back the ticks for which there is a reason to. State and tasks are read under the lock.
pub(super) fn take_back(
    workflow: &Workflow<'_>,
    why_not: impl Fn(&Task, &State) -> Option<String>,
) -> Result<Ticks, WorkflowError> {
    let agents = workflow.agents;
    let lock = agents.project.write_lock(&workflow.change, &agents.holder)?;
    let files = workflow.change()?;
    let state = documents::load_state(&files)?;
    let mut text = files.read_if_exists(&ChangeFile::Tasks)?.unwrap_or_default();
    let tasks = tasks::parse(&text).value.tasks;
    let mut ticks = Ticks { kept: Vec::new(), taken_back: Vec::new() };
    for task in tasks.iter().filter(|task| task.status == Status::Done) {
        let Some(why) = why_not(task, &state) else {
            ticks.kept.push(task.id);
            continue;
        };
        let now = (workflow.now)();
        if let Ok(back) = tasks_edit::set_status(&text, task.id, Status::Pending, now) {
            text = back;
        }
        ticks.taken_back.push((task.id, why));
    }
    if !ticks.taken_back.is_empty() {
        files.write(&lock, &ChangeFile::Tasks, text.as_bytes())?;
        workflow.forget();
    }
    Ok(ticks)
}

fn ids(tasks: &[Task]) -> String {
    tasks.iter().map(|task| task.id.to_string()).collect::<Vec<_>>().join(", ")
}

fn layer_subject(change: &ChangeId, layer: Layer) -> String {
    format!("{change}: {layer} layer")
}

fn layer_message(change: &ChangeId, layer: Layer, done: &[Task]) -> String {
    let titles: Vec<String> =
        done.iter().map(|task| format!("- {} {}", task.id, task.title)).collect();
    let (subject, ids) = (layer_subject(change, layer), ids(done));
    format!("{subject}\n\nTasks: {ids}\n\n{}\n", titles.join("\n"))
}

/// Whether to report which layers were done before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ticked {
    /// To a person who starts a workflow.
    Reported,
    Silent,
}

/// Commits the layers that are ticked and were not committed.
pub(super) fn commit_done(
    workflow: &mut Workflow<'_>,
    wanted: &TaskSelection,
    ticked: Ticked,
) -> Result<(), WorkflowError> {
    let tasks = read_tasks(workflow)?;
    let any_open = tasks.iter().any(|task| task.status == Status::Pending);
    let all = layers(tasks.iter().map(layer_of));
    for layer in Layer::ALL {
        if tasks_of(workflow, layer, wanted)?.is_empty()
            || !open_tasks(workflow, layer, wanted)?.is_empty()
        {
            continue;
        }
        if ticked == Ticked::Reported && any_open {
            let (step, why) = (&StepName::Implement(layer), "its tasks are ticked already");
            let label = &layer_label(layer, &all);
            (workflow.watch)(Progress::Skipped { step, label, why });
        }
        commit_late(workflow, layer, wanted)?;
    }
    Ok(())
}

/// The wanted tasks of a layer, done or not.
fn tasks_of(
    workflow: &Workflow<'_>,
    layer: Layer,
    wanted: &TaskSelection,
) -> Result<Vec<Task>, WorkflowError> {
    let mut tasks = wanted_tasks(workflow, wanted)?;
    tasks.retain(|task| layer_of(task) == layer);
    Ok(tasks)
}

/// Commits a layer that was ticked and not committed: agentd was killed between the two, or
/// a hook refused. What is changed after its commit is no part of it.
fn commit_late(
    workflow: &mut Workflow<'_>,
    layer: Layer,
    wanted: &TaskSelection,
) -> Result<(), WorkflowError> {
    let base = workflow.state()?.base_commit().map(str::to_owned);
    if workflow.agents.config.git.commit == GitCommit::None {
        return Ok(());
    }
    let Some((git, base)) = repository(workflow)?.zip(base) else { return Ok(()) };
    let subject = layer_subject(&workflow.change, layer);
    if git.commits_since(&base)?.iter().any(|commit| commit.subject == subject) {
        return Ok(());
    }
    let done = tasks_of(workflow, layer, wanted)?;
    commit_work(workflow, &layer_message(&workflow.change, layer, &done))
}

/// The specs that tasks refer to, and the requirements in them; none for all of them.
pub(super) fn referred(tasks: &[Task]) -> BTreeMap<SpecId, Option<BTreeSet<RequirementId>>> {
    let mut wanted: BTreeMap<_, Option<BTreeSet<_>>> = BTreeMap::new();
    for spec_ref in tasks.iter().flat_map(|task| &task.spec_refs) {
        let of_spec = wanted.entry(spec_ref.spec.clone()).or_insert_with(|| Some(BTreeSet::new()));
        match (spec_ref.requirement, of_spec.as_mut()) {
            (Some(id), Some(ids)) => {
                ids.insert(id);
            }
            (None, _) => *of_spec = None,
            (Some(_), None) => {}
        }
    }
    wanted
}

/// Whether a step is one in which the implementer works.
pub(super) fn is_work(step: &StepName) -> bool {
    matches!(step, StepName::Reproduce | StepName::Implement(_) | StepName::Fix)
}

/// The session in which the implementer worked last.
pub(super) fn last_session(state: &State) -> Option<String> {
    state
        .llm_calls
        .iter()
        .rfind(|call| is_work(&call.step) && call.session_id.is_some())?
        .session_id
        .clone()
}
