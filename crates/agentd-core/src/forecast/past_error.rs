//! How earlier forecasts turned out.

use serde::Serialize;

use super::PastChange;

/// How earlier forecasts turned out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct PastError {
    /// How many finished changes had a forecast when they began.
    pub changes: usize,
    /// How many of them cost as much as it said.
    pub inside: usize,
}

/// How the forecasts that were recorded when changes began turned out.
pub(super) fn past_error(past: &[PastChange]) -> PastError {
    let mut error = PastError::default();
    for change in past.iter().filter(|change| change.is_whole()) {
        let Some(forecast) = change.forecast else { continue };
        error.changes += 1;
        let [least, most] = forecast.cost_usd;
        error.inside += usize::from(least <= change.total_cost && change.total_cost <= most);
    }
    error
}
