//! Calls that were cut short before anyone knew what they cost.

use std::collections::BTreeMap;

use agentd_core::ids::ChangeId;
use agentd_core::stamp::Stamp;
use agentd_core::state::{LlmCall, State};
use agentd_core::step_name::StepName;
use serde::Serialize;

use super::documents::{self, DocumentError};
use crate::store::{Holder, Project};

/// A call that was cut short. It counts with what it was expected to cost.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct UnsettledCall {
    /// The number of its run.
    pub run: u32,
    /// The step.
    pub step: StepName,
    /// What it counts as, in US dollars.
    pub cost_usd: f64,
}

/// The calls that were cut short.
pub fn unsettled(calls: &[LlmCall]) -> Vec<UnsettledCall> {
    let unsettled = calls.iter().filter(|call| call.unsettled).filter_map(|call| {
        Some(UnsettledCall { run: call.run?, step: call.step.clone(), cost_usd: call.cost })
    });
    unsettled.collect()
}

/// What calls are estimated to have cost that were cut short, in US dollars.
pub fn estimated(calls: &[LlmCall]) -> f64 {
    calls.iter().filter(|call| call.unsettled).map(|call| call.cost).sum()
}

/// Records what calls have cost that were cut short, by the numbers of their runs.
pub fn settle(
    project: &Project,
    id: &ChangeId,
    costs: &BTreeMap<u32, f64>,
    holder: &Holder,
    now: Stamp,
) -> Result<State, DocumentError> {
    documents::update_state(project, id, holder, now, |state| {
        for (run, cost) in costs {
            if !state.settle(*run, *cost) {
                return Err(DocumentError::NothingToSettle { change: id.clone(), run: *run });
            }
        }
        Ok(state.clone())
    })
}
