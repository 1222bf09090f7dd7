//! A change at a glance: shared by `list`, `status` and the viewer.

use super::documents;
use crate::store::Change;
use agentd_core::diagnostic::Counts;
use agentd_core::document::proposal;
use agentd_core::document::tasks::{self, Status};
use agentd_core::ids::{ChangeId, Layer};
use agentd_core::layout::ChangeFile;
use agentd_core::phase::Phase;
use agentd_core::state::State;
use serde::Serialize;

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
    /// When its state was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<String>,
    /// The last step or command that ran.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_action: Option<String>,
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

/// Reads a change; a state that cannot be read is reported in the summary, not as an error.
pub fn of(change: &Change) -> Summary {
    let state = documents::load_state_if_begun(change);
    let known = state.as_ref().ok().and_then(Option::as_ref);
    Summary {
        change_id: change.id().clone(),
        phase: known.map(|state| state.phase),
        title: title(change, known),
        tasks: progress(change),
        cost_usd: known.map_or(0.0, |state| state.total_cost),
        updated_at: known.and_then(|state| state.updated_at).map(|at| at.to_string()),
        last_action: known.and_then(|state| state.last_action.clone()),
        problem: state.as_ref().err().map(ToString::to_string),
    }
}

/// What the change is about: its proposal's summary, else what was asked for.
fn title(change: &Change, state: Option<&State>) -> String {
    let text = change.read(&ChangeFile::Proposal).unwrap_or_default();
    let summary = proposal::parse(&text).value.summary.first_paragraph();
    let asked = state
        .and_then(|state| state.description.as_ref())
        .map(agentd_core::text::Prose::first_paragraph);
    let line = if summary.is_empty() { asked.unwrap_or_default() } else { summary };
    line.to_string()
}

/// How far the tasks are.
pub fn progress(change: &Change) -> Progress {
    let parsed = tasks::parse(&change.read(&ChangeFile::Tasks).unwrap_or_default()).value;
    Progress { total: parsed.tasks.len(), completed: parsed.completed() }
}

/// How far the tasks of each layer are.
pub fn layers(change: &Change) -> Vec<LayerProgress> {
    let parsed = tasks::parse(&change.read(&ChangeFile::Tasks).unwrap_or_default()).value;
    Layer::ALL
        .into_iter()
        .map(|layer| {
            let of_layer = || parsed.tasks.iter().filter(move |task| task.layer == Some(layer));
            let completed = of_layer().filter(|task| task.status == Status::Done).count();
            LayerProgress { layer, progress: Progress { total: of_layer().count(), completed } }
        })
        .filter(|layer| layer.progress.total > 0)
        .collect()
}

/// The verdict and the open issues of the latest review of the plan.
pub fn latest_review(change: &Change) -> Option<(&'static str, Counts)> {
    let text = change.read(&ChangeFile::Proposal).ok()?;
    let review = proposal::parse(&text).value.reviews.pop()?;
    Some((review.verdict.label(), review.counts()))
}
