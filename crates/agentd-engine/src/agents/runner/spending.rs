//! What a call may still use of the budget of its change (T8).

use agentd_core::outcome::{AgentOutcome, Usage};
use agentd_core::provider::prices::PriceTable;

/// What is left of a budget when a call begins.
#[derive(Debug, Clone, Default)]
pub struct Spending {
    /// Tokens; none where they are not limited.
    pub tokens: Option<u64>,
    /// Money; none where it is not limited.
    pub cost_usd: Option<f64>,
    /// What tokens cost.
    pub prices: PriceTable,
}

impl Spending {
    /// Whether a call has used up what was left. A model without a price costs nothing that could
    /// be counted; its tokens can.
    pub(super) fn is_used_up(&self, model: Option<&str>, usage: Usage, said: Option<f64>) -> bool {
        let cost = || Some(self.prices.cost(model, Some(usage), said)?.0);
        self.tokens.is_some_and(|left| usage.total() >= left)
            || self.cost_usd.is_some_and(|left| cost().is_some_and(|cost| cost >= left))
    }

    /// What is left after an attempt.
    #[must_use]
    pub(super) fn after(&self, outcome: &AgentOutcome) -> Self {
        let used = outcome.usage.unwrap_or_default().total();
        let cost = self.prices.cost(outcome.model.as_deref(), outcome.usage, outcome.cost_usd);
        let cost = cost.map_or(0.0, |(cost, _)| cost);
        Self {
            tokens: self.tokens.map(|left| left.saturating_sub(used)),
            cost_usd: self.cost_usd.map(|left| left - cost),
            prices: self.prices.clone(),
        }
    }
}
