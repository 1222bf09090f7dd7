//! What a change is in one look: shared by `list` and `status`.

use agentd_core::diagnostic::Counts;
use agentd_core::document::proposal;
use agentd_core::document::tasks::{self, Status};
use agentd_core::ids::{ChangeId, Layer};
use agentd_core::layout::ChangeFile;
use agentd_core::phase::Phase;
use agentd_core::state::State;
use agentd_engine::change::documents;
use agentd_engine::store::Change;
use serde::Serialize;

/// A change in one look.
#[derive(Debug, Serialize)]
pub(crate) struct Summary {
    pub(crate) change_id: ChangeId,
    /// Nothing where there is no STATE.yaml yet, or it cannot be read.
    pub(crate) phase: Option<Phase>,
    pub(crate) title: String,
    pub(crate) tasks: Progress,
    pub(crate) cost_usd: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) updated_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) last_action: Option<String>,
    /// What is wrong with the state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) problem: Option<String>,
}

/// How many tasks are done.
#[derive(Debug, Default, Clone, Copy, Serialize)]
pub(crate) struct Progress {
    pub(crate) total: usize,
    pub(crate) completed: usize,
}

/// The same, for one layer.
#[derive(Debug, Serialize)]
pub(crate) struct LayerProgress {
    pub(crate) layer: Layer,
    #[serde(flatten)]
    pub(crate) progress: Progress,
}

/// Looks at a change; a state that cannot be read is told, not an error.
pub(crate) fn of(change: &Change) -> Summary {
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
pub(crate) fn progress(change: &Change) -> Progress {
    let parsed = tasks::parse(&change.read(&ChangeFile::Tasks).unwrap_or_default()).value;
    Progress { total: parsed.tasks.len(), completed: parsed.completed() }
}

/// How far the tasks of each layer are.
pub(crate) fn layers(change: &Change) -> Vec<LayerProgress> {
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
pub(crate) fn latest_review(change: &Change) -> Option<(&'static str, Counts)> {
    let text = change.read(&ChangeFile::Proposal).ok()?;
    let review = proposal::parse(&text).value.reviews.pop()?;
    Some((review.verdict.label(), review.counts()))
}
