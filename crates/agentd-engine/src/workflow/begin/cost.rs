//! What a change is expected to cost, before its first call.

use agentd_core::documents::Documents;
use agentd_core::phase::Phase;
use agentd_core::state::{State, Track};
use agentd_core::step_name::StepName;

use super::{Clarify, Person, Request};
use crate::insight::forecast::{self, ForecastReport, Wanted};
use crate::store::StoreError;
use crate::workflow::{Workflow, WorkflowError};

/// Whether a change may cost more than `[budget] ask_above_usd`, by its forecast (W8).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CostConsent {
    /// Nobody was asked yet.
    Ask,
    /// A person agrees.
    Given,
    /// The forecast was reported, and nothing stands in its way.
    Settled,
}

/// Whether a change may cost what the forecast says.
#[derive(Debug)]
pub struct CostQuestion(WorkflowError);

impl CostQuestion {
    /// What it is about, in one sentence.
    pub fn text(&self) -> String {
        self.0.to_string()
    }

    /// What it means not to agree.
    pub fn decline(self) -> WorkflowError {
        self.0
    }
}

/// Reports what a change will use before its first call (W8), and asks where that may be more than the
/// settings allow without asking. Nothing is written before. Questions that were asked and are
/// answered do not count as its first call: the plan is still to be paid for.
pub(super) fn expect_cost(
    workflow: &mut Workflow<'_>,
    known: Option<&State>,
    request: &mut Request<'_>,
) -> Result<Option<CostQuestion>, WorkflowError> {
    let called = |state: &State| state.llm_calls.iter().any(|c| c.step != StepName::Clarify);
    let begun = known.is_some_and(|state| state.phase != Phase::Proposed || called(state));
    if begun || request.cost == CostConsent::Settled {
        return Ok(None);
    }
    let (agents, id) = (workflow.agents, workflow.change.clone());
    let documents = match agents.project.change(&id) {
        Err(StoreError::NoSuchChange { .. }) => Documents::read(id.clone(), []),
        change => change?.snapshot()?.documents,
    };
    let questions = request.person == Person::Present && matches!(request.clarify, Clarify::Ask);
    let wanted = Wanted { description: request.description, questions, track: request.track };
    // Without a description the change cannot begin, which has an error of its own.
    let Some(ForecastReport { forecast, .. }) =
        forecast::of_documents(&agents.project, &agents.config, &documents, known, wanted)
    else {
        return Ok(None);
    };
    let most = forecast.ranges.cost_usd[1];
    let limit = agents.config.budget.ask_above_usd.filter(|limit| most > *limit);
    if let (Some(limit), CostConsent::Ask) = (limit, request.cost) {
        let is_bug = request.track == Some(Track::Bug);
        let mut plan = vec![if is_bug { "bug" } else { "plan" }.to_owned(), id.to_string()];
        plan.extend(request.description.filter(|_| known.is_none()).map(ToOwned::to_owned));
        match &request.clarify {
            Clarify::Skip if is_bug => {}
            Clarify::Skip => plan.push("--skip-clarify".to_owned()),
            Clarify::File { name, .. } => plan.extend(["--answers".to_owned(), name.clone()]),
            Clarify::Ask | Clarify::Answered(_) => {}
        }
        if request.track == Some(Track::Quick) {
            plan.push("--quick".to_owned());
        }
        let cost = forecast.ranges.cost_shown();
        let above = WorkflowError::AboveAskLimit { change: id, cost, limit, plan };
        return match request.person {
            Person::Present => Ok(Some(CostQuestion(above))),
            Person::Absent => Err(above),
        };
    }
    request.cost = CostConsent::Settled;
    let roles = agents.config.roles;
    // Who plans by rules is not paid.
    if !(roles.planner.is_own() && roles.challenger.is_own()) {
        let (summary, basis) = (forecast.summary(), forecast.basis_shown());
        let error = forecast.error.shown().map(|error| format!("; {error}")).unwrap_or_default();
        workflow.note(&format!("forecast: {summary} (from {basis}{error})"));
    }
    Ok(None)
}
