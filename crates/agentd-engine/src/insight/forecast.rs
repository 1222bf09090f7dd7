//! What the rest of a change will use, from what the changes of the project have used (W8).

use agentd_core::agent::{AgentKind, Complexity};
use agentd_core::complexity::{self, ChangeFacts};
use agentd_core::config::{Budget, Config};
use agentd_core::description::detailed_enough;
use agentd_core::documents::Documents;
use agentd_core::forecast::{Forecast, Outlook, PastChange, Stage, call_cost, forecast};
use agentd_core::ids::ChangeId;
use agentd_core::state::{Ranges, State, Track};
use agentd_core::step_name::StepName;
use serde::Serialize;

use crate::agents::context::Tree;
use crate::agents::recording::Recording;
use crate::change::documents;
use crate::store::{Change, Project, StoreError};
use crate::workflow::WorkflowError;
use crate::workflow::clarify::ClarifyError;

/// How many archived, and how many open changes are looked at, the newest first: older ones say
/// little about the models of today.
const MOST_CHANGES: usize = 60;

/// What the rest of a change will use.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ForecastReport {
    /// The change.
    pub change_id: ChangeId,
    /// How hard it is.
    pub complexity: Complexity,
    /// The forecast.
    #[serde(flatten)]
    pub forecast: Forecast,
    /// What the settings allow a change to cost.
    pub budget: Budget,
}

/// What is asked for, of a change that may not have begun.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'w> {
    /// What the change is to do, where it has no state that says so.
    pub description: Option<&'w str>,
    /// Whether questions about it may be asked.
    pub questions: bool,
    /// The way that it is to take; none for what its state or the configuration says.
    pub track: Option<Track>,
}

/// Forecasts the rest of a change. Nothing is written, and nobody is called.
pub fn report(
    project: &Project,
    config: &Config,
    id: &ChangeId,
    wanted: Wanted<'_>,
) -> Result<ForecastReport, WorkflowError> {
    let (documents, state) = match project.change(id) {
        Err(StoreError::NoSuchChange { .. }) => (Documents::read(id.clone(), []), None),
        change => {
            let snapshot = change?.snapshot()?;
            let state = snapshot.state_if_begun()?.cloned();
            (snapshot.documents, state)
        }
    };
    of_documents(project, config, &documents, state.as_ref(), wanted)
        .ok_or_else(|| ClarifyError::NoDescription(id.clone()).into())
}

/// Forecasts the rest of a change whose documents and state are known; nothing if it has no
/// description.
pub(crate) fn of_documents(
    project: &Project,
    config: &Config,
    documents: &Documents,
    state: Option<&State>,
    wanted: Wanted<'_>,
) -> Option<ForecastReport> {
    let described = state.and_then(|state| state.description.clone()).map(|text| text.to_string());
    let given = wanted.description.filter(|text| !text.trim().is_empty()).map(ToOwned::to_owned);
    let proposed = documents.proposal.value().summary.to_string();
    let proposed = (!proposed.is_empty()).then_some(proposed);
    // A state of an older version may have none.
    let begun = state.map(|_| String::new());
    let description = given.or(described).or(proposed).or(begun)?;
    let assess = || {
        let project_files = Tree::scan(project.root()).files();
        complexity::assess(&ChangeFacts { description: &description, project_files }).0
    };
    let complexity = state.and_then(|state| state.complexity).unwrap_or_else(assess);
    let questions = wanted.questions && !detailed_enough(&description);
    let known = state.map(|state| state.track);
    let configured = || config.workflow.ceremony.track(|| complexity);
    let track = wanted.track.or(known).unwrap_or_else(configured);
    let stage = Stage::of(documents, state, questions);
    let past = past_changes(project, None);
    let forecast = forecast(&Outlook { complexity, config, track, stage }, &past);
    let (change_id, budget) = (documents.id.clone(), config.budget);
    Some(ForecastReport { change_id, complexity, forecast, budget })
}

/// What the next call of a step is expected to cost, in US dollars; nothing where nobody is paid.
pub(crate) fn of_call(
    project: &Project,
    config: &Config,
    change: &Change,
    state: &State,
    step: &StepName,
) -> Option<f64> {
    let agent = config.roles.agent(step.role()?);
    if agent == AgentKind::Replay {
        let recording = config.replay.recording.as_ref()?;
        let recording = Recording::open(&project.root().join(recording)).ok()?;
        return recording.next(step, change)?.end?.outcome.cost_usd;
    }
    let complexity = state.complexity.unwrap_or(Complexity::Medium);
    if agent == AgentKind::Builtin {
        return None;
    }
    let mut past = past_changes(project, Some(change.id()));
    past.push(PastChange::of(state));
    call_cost(step, complexity, config, &past).filter(|cost| *cost > 0.0)
}

/// What a change will have used in the end: what it has used, and the rest.
pub(crate) fn with_spent(state: &State, rest: &Ranges) -> Ranges {
    let calls = u64::try_from(state.llm_calls.len()).unwrap_or(u64::MAX);
    let tokens = state.total_tokens_in.saturating_add(state.total_tokens_out);
    let milliseconds = state.llm_calls.iter().map(|call| call.duration_ms);
    let seconds = milliseconds.fold(0, u64::saturating_add) / 1000;
    Ranges {
        calls: rest.calls.map(|rest| rest.saturating_add(calls)),
        tokens: rest.tokens.map(|rest| rest.saturating_add(tokens)),
        cost_usd: rest.cost_usd.map(|rest| rest + state.total_cost.max(0.0)),
        seconds: rest.seconds.map(|rest| rest.saturating_add(seconds)),
    }
}

/// The changes of the project but for one, with all their calls. One that cannot be read says nothing.
fn past_changes(project: &Project, except: Option<&ChangeId>) -> Vec<PastChange> {
    let archived = project.archived().map(|listed| listed.ids).unwrap_or_default();
    let archived = archived.iter().rev().take(MOST_CHANGES);
    let archived = archived.filter_map(|name| project.archived_change(name).ok());
    let open = project.open_everywhere().unwrap_or_default().into_iter().take(MOST_CHANGES);
    let open = open.filter(|(id, _)| Some(id) != except);
    let open = open.filter_map(|(id, home)| home.change(&id).ok());
    archived.chain(open).filter_map(|change| past_change(&change)).collect()
}

fn past_change(change: &Change) -> Option<PastChange> {
    let state = documents::load_state_if_begun(change).ok()??;
    Some(PastChange::of(&state))
}
