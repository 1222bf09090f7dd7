//! What a call may cost.

use agentd_core::agent::AgentKind;
use agentd_core::config::{Budget, Config};
use agentd_core::ids::ChangeId;
use agentd_core::provider::prices::PriceTable;
use agentd_core::state::State;

use super::StepError;
use crate::agents::runner::Spending;

/// What a call may use of the budget, after what the change has used (T8).
pub(super) fn spending(state: &State, config: &Config) -> Spending {
    let tokens = state.total_tokens_in.saturating_add(state.total_tokens_out);
    Spending {
        tokens: config.budget.max_tokens.map(|limit| limit.saturating_sub(tokens)),
        cost_usd: config.budget.max_cost_usd.map(|limit| limit - state.total_cost),
        prices: PriceTable::default().with(config.prices.clone()),
    }
}

/// Fails where the budget is used up; `ended` is the agent whose call was ended for it.
pub(super) fn check_budget(
    change: &ChangeId,
    state: &State,
    budget: &Budget,
    ended: Option<AgentKind>,
) -> Result<(), StepError> {
    let used_up = |spent: String, limit: String| {
        Err(StepError::Budget { change: change.clone(), spent, limit, ended })
    };
    if let Some(limit) = budget.max_cost_usd
        && state.total_cost >= limit
    {
        return used_up(format!("${:.4}", state.total_cost), format!("${limit:.4}"));
    }
    let tokens = state.total_tokens_in.saturating_add(state.total_tokens_out);
    if let Some(limit) = budget.max_tokens
        && tokens >= limit
    {
        return used_up(format!("{tokens} tokens"), format!("{limit} tokens"));
    }
    Ok(())
}
