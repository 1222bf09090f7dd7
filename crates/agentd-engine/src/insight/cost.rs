//! What a change has cost, step by step.

use agentd_core::config::Budget;
use agentd_core::ids::ChangeId;
use agentd_core::state::{LlmCall, State};
use agentd_core::step_name::StepName;
use serde::Serialize;

/// What all calls of agents for a change have cost.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CostReport {
    /// The change.
    pub change_id: ChangeId,
    /// The cost of all calls, in US dollars.
    pub total_cost_usd: f64,
    /// Tokens that went in, including cached ones.
    pub tokens_in: u64,
    /// Tokens that went in and were cached.
    pub tokens_cached: u64,
    /// Tokens that came out.
    pub tokens_out: u64,
    /// How long all calls took together.
    pub duration_ms: u64,
    /// How many calls there were.
    pub calls: usize,
    /// What the settings allow a change to cost.
    pub budget: Budget,
    /// The calls by step and model, in the order of their first call.
    pub steps: Vec<StepCost>,
}

/// All calls of one step with one model.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StepCost {
    /// The step.
    pub step: StepName,
    /// The model that answered.
    pub model: String,
    /// How many calls there were.
    pub calls: usize,
    /// Tokens that went in, including cached ones.
    pub tokens_in: u64,
    /// Tokens that went in and were cached.
    pub tokens_cached: u64,
    /// Tokens that came out.
    pub tokens_out: u64,
    /// How long the calls took together.
    pub duration_ms: u64,
    /// Their cost, in US dollars.
    pub cost_usd: f64,
}

impl StepCost {
    /// No calls yet.
    fn none(step: StepName, model: String) -> Self {
        Self {
            step,
            model,
            calls: 0,
            tokens_in: 0,
            tokens_cached: 0,
            tokens_out: 0,
            duration_ms: 0,
            cost_usd: 0.0,
        }
    }
}

/// The cost of a change so far.
pub fn report(state: &State, budget: Budget) -> CostReport {
    CostReport {
        change_id: state.change_id.clone(),
        total_cost_usd: state.total_cost,
        tokens_in: state.total_tokens_in,
        tokens_cached: state.llm_calls.iter().map(|call| call.tokens_cached).sum(),
        tokens_out: state.total_tokens_out,
        duration_ms: state.llm_calls.iter().map(|call| call.duration_ms).sum(),
        calls: state.llm_calls.len(),
        budget,
        steps: by_step(&state.llm_calls),
    }
}

fn by_step(calls: &[LlmCall]) -> Vec<StepCost> {
    let mut steps: Vec<StepCost> = Vec::new();
    for call in calls {
        let same = |step: &StepCost| step.step == call.step && step.model == call.model;
        let at = steps.iter().position(same).unwrap_or_else(|| {
            let (step, model) = (call.step.clone(), call.model.clone());
            steps.push(StepCost::none(step, model));
            steps.len() - 1
        });
        let step = &mut steps[at];
        step.calls += 1;
        step.tokens_in = step.tokens_in.saturating_add(call.tokens_in);
        step.tokens_cached = step.tokens_cached.saturating_add(call.tokens_cached);
        step.tokens_out = step.tokens_out.saturating_add(call.tokens_out);
        step.duration_ms = step.duration_ms.saturating_add(call.duration_ms);
        step.cost_usd += call.cost;
    }
    steps
}
