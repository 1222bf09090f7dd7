//! A change at a glance: shared by `list`, `status` and the viewer.

use agentd_core::document::tasks::Status;
use agentd_core::documents::Documents;
use agentd_core::ids::{ChangeId, Layer};
use agentd_core::layout::ChangeFile;
use agentd_core::phase::Phase;
use agentd_core::state::LastAction;
use agentd_core::state::State;
use serde::Serialize;

use super::Snapshot;
use super::documents::DocumentError;
use super::settling::estimated;
use super::snapshot::state_of;
use crate::store::Change;

/// A change at a glance.
#[derive(Debug, Serialize)]
pub struct Summary {
    /// Which change it is.
    pub change_id: ChangeId,
    /// Nothing where there is no STATE.yaml yet, or it cannot be read.
    pub phase: Option<Phase>,
    /// What it is about, in one paragraph.
    pub title: String,
    /// How many of its tasks are done.
    pub tasks: Progress,
    /// What its agents cost so far.
    pub cost_usd: f64,
    /// How much of that is an estimate, since calls were cut short.
    #[serde(skip)]
    pub estimated_usd: f64,
    /// When its state was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<String>,
    /// The last step or command that ran.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_action: Option<LastAction>,
    /// Its branch; nothing where it is worked on in place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// The branch that it was started from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_branch: Option<String>,
    /// The checkout that its documents are in, if that is another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub work_tree: Option<String>,
    /// What is wrong with the state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// How many tasks are done.
#[derive(Debug, Default, Clone, Copy, Serialize)]
pub struct Progress {
    /// All of them.
    pub total: usize,
    /// Those that are done.
    pub completed: usize,
}

/// The same, for one layer.
#[derive(Debug, Serialize)]
pub struct LayerProgress {
    /// The layer.
    pub layer: Layer,
    #[serde(flatten)]
    /// Its tasks.
    pub progress: Progress,
}

impl Summary {
    /// Reads as little of a change as a summary needs: projects have hundreds of them.
    pub fn read(change: &Change) -> Self {
        Self::with_state(change).0
    }

    /// The same with the state, if it can be read.
    pub(super) fn with_state(change: &Change) -> (Self, Option<State>) {
        let files = [ChangeFile::State, ChangeFile::Proposal, ChangeFile::Tasks];
        let documents = change.documents(files);
        let state = state_of(&documents, change);
        let known = state.as_ref().ok().copied().flatten().cloned();
        (Self::new(&documents, state), known)
    }

    /// The summary of a change that was read.
    pub fn of(snapshot: &Snapshot) -> Self {
        Self::new(&snapshot.documents, snapshot.state_if_begun())
    }

    /// A state that cannot be read is reported in the summary, not as an error.
    fn new(documents: &Documents, state: Result<Option<&State>, DocumentError>) -> Self {
        let known = state.as_ref().ok().copied().flatten();
        let tasks = documents.tasks.value();
        Self {
            change_id: documents.id.clone(),
            phase: known.map(|state| state.phase),
            title: title(documents, known),
            tasks: Progress { total: tasks.tasks.len(), completed: tasks.completed() },
            cost_usd: known.map_or(0.0, |state| state.total_cost),
            estimated_usd: known.map_or(0.0, |state| estimated(&state.llm_calls)),
            updated_at: known.and_then(|state| state.updated_at).map(|at| at.to_string()),
            last_action: known.and_then(|state| state.last_action.clone()),
            branch: known.and_then(|state| state.git.as_ref()?.branch.clone()),
            base_branch: known.and_then(|state| state.git.as_ref()?.base_branch.clone()),
            work_tree: None,
            problem: state.err().map(|error| error.to_string()),
        }
    }
}

/// What the change is about: its proposal's summary, else what was asked for.
fn title(documents: &Documents, state: Option<&State>) -> String {
    let summary = documents.proposal.value().summary.first_paragraph();
    let asked = state
        .and_then(|state| state.description.as_ref())
        .map(agentd_core::text::Prose::first_paragraph);
    let line = if summary.is_empty() { asked.unwrap_or_default() } else { summary };
    line.to_string()
}

/// How far the tasks of each layer are.
pub fn layers(documents: &Documents) -> Vec<LayerProgress> {
    let tasks = &documents.tasks.value().tasks;
    Layer::ALL
        .into_iter()
        .map(|layer| {
            let of_layer = || tasks.iter().filter(move |task| task.layer == Some(layer));
            let completed = of_layer().filter(|task| task.status == Status::Done).count();
            LayerProgress { layer, progress: Progress { total: of_layer().count(), completed } }
        })
        .filter(|layer| layer.progress.total > 0)
        .collect()
}
