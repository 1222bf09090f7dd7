//! What a call is in the ledger of a change.

use std::path::Path;

use agentd_core::agent::AgentKind;
use agentd_core::config::Config;
use agentd_core::layout::RunName;
use agentd_core::outcome::AgentOutcome;
use agentd_core::provider::prices::PriceTable;
use agentd_core::state::LlmCall;
use agentd_core::step_name::StepName;

/// An entry, and whether a price was known for it.
pub(crate) struct Entry {
    pub(crate) call: LlmCall,
    pub(crate) priced: bool,
}

/// The entry of a call, without its time, which the caller knows. `asked` is the
/// model that was asked for, where the agent does not say which one it used.
pub(crate) fn entry(
    config: &Config,
    step: &StepName,
    agent: AgentKind,
    outcome: &AgentOutcome,
    asked: Option<&str>,
) -> Entry {
    let prices = PriceTable::default().with(config.prices.clone());
    let model = outcome.model.as_deref().or(asked);
    let cost = prices.cost(model, outcome.usage, outcome.cost_usd).map(|(cost, _)| cost);
    let usage = outcome.usage.unwrap_or_default();
    let call = LlmCall {
        step: step.clone(),
        agent: Some(agent),
        model: model.unwrap_or_default().to_owned(),
        tokens_in: usage.input,
        tokens_out: usage.output,
        tokens_cached: usage.cached,
        duration_ms: 0,
        cost: cost.unwrap_or(0.0),
        unsettled: false,
        timestamp: None,
        session_id: outcome.session_id.clone(),
        run: None,
        failure: outcome.failure.as_ref().map(|failure| failure.kind),
        asked: false,
    };
    Entry { call, priced: cost.is_some() }
}

/// What a call counts as that was cut short: at least what it was expected to cost, since nobody has
/// said what it did cost. The vendor may have been paid for all of it.
pub(crate) fn reserve(call: &mut LlmCall, estimate: Option<f64>) {
    let estimate = estimate.filter(|estimate| estimate.is_finite() && *estimate > 0.0);
    if let Some(estimate) = estimate {
        call.cost = call.cost.max(estimate);
        call.unsettled = true;
    }
}

/// The number of a run file.
pub(crate) fn run_number(file: &Path) -> Option<u32> {
    let name: RunName = file.file_name()?.to_str()?.parse().ok()?;
    Some(name.number())
}
