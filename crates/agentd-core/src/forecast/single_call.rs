//! What one call costs, for what is set aside before it is made.

use super::{Ledger, PastChange, StepKind};
use crate::agent::Complexity;
use crate::config::Config;
use crate::step_name::StepName;

/// What the next call of a step typically costs, in US dollars. Nothing where agentd itself plays
/// the agent, or the step is not known.
pub fn call_cost(
    step: &StepName,
    complexity: Complexity,
    config: &Config,
    past: &[PastChange],
) -> Option<f64> {
    let kind = StepKind::of(step)?;
    let ledger = Ledger::new(config, past);
    if ledger.who(kind, complexity).agent.is_own() {
        return None;
    }
    Some(ledger.per_call(kind, complexity, None).typical.cost)
}
