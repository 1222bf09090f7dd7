//! What tokens cost. A table that users can edit, with defaults that are an
//! orientation and no promise; a CLI's own figure always wins.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::outcome::Usage;

/// USD per million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// Input that came from no cache.
    pub input: f64,
    /// Input that was read from a cache. Without one: as other input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_input: Option<f64>,
    /// Input that was written to a cache. Without one: as other input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<f64>,
    /// Output, with reasoning.
    pub output: f64,
}

impl Price {
    /// The cost of this usage. Cached tokens are part of the input and are counted
    /// once, at their own price.
    pub fn cost(&self, usage: Usage) -> f64 {
        let plain = usage.input.saturating_sub(usage.cached).saturating_sub(usage.cache_write);
        let parts = [
            (plain, self.input),
            (usage.cached, self.cached_input.unwrap_or(self.input)),
            (usage.cache_write, self.cache_write.unwrap_or(self.input)),
            (usage.output, self.output),
        ];
        // Token counts are far below 2^52.
        #[expect(clippy::cast_precision_loss, reason = "token counts are far below 2^52")]
        parts.iter().map(|(tokens, price)| *tokens as f64 / 1e6 * price).sum()
    }
}

/// Prices by model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PriceTable(BTreeMap<String, Price>);

/// Start of the model's name; input, cached input, cache write, output. List prices of
/// November 2026 for prompts of usual length; what a long prompt costs more is not in
/// here.
const BUILT_IN: [(&str, f64, f64, Option<f64>, f64); 21] = [
    ("gemini-3.1-pro", 2.0, 0.2, None, 12.0),
    ("gemini-3.8-flash", 0.75, 0.075, None, 3.75),
    ("gemini-3.5-flash", 1.5, 0.15, None, 9.0),
    ("gemini-3.5-flash-lite", 0.25, 0.025, None, 1.5),
    ("gemini-2.5-pro", 1.25, 0.125, None, 10.0),
    ("gemini-2.5-flash", 0.3, 0.03, None, 2.5),
    ("gpt-6.1-sol", 2.0, 0.1, Some(2.5), 10.0),
    ("gpt-6.1-terra", 1.0, 0.05, Some(1.25), 5.0),
    ("gpt-6-sol", 2.0, 0.2, Some(2.5), 10.0),
    ("gpt-6-luna", 0.1, 0.01, Some(0.125), 0.5),
    ("gpt-5.6-terra", 2.0, 0.2, None, 12.0),
    ("gpt-5.5", 5.0, 0.5, None, 30.0),
    ("gpt-5.4", 2.5, 0.25, None, 15.0),
    ("claude-opus-5-5", 4.0, 0.2, Some(5.0), 20.0),
    ("claude-opus-5", 5.0, 0.5, Some(6.25), 25.0),
    ("claude-opus-4", 5.0, 0.5, Some(6.25), 25.0),
    ("claude-sonnet-5-5", 2.0, 0.1, Some(2.5), 10.0),
    ("claude-sonnet-5", 2.0, 0.2, Some(2.5), 10.0),
    ("claude-sonnet-4", 3.0, 0.3, Some(3.75), 15.0),
    ("claude-haiku-5-5", 0.1, 0.01, Some(0.125), 0.5),
    ("claude-haiku-4", 1.0, 0.1, Some(1.25), 5.0),
];

impl Default for PriceTable {
    fn default() -> Self {
        let prices = BUILT_IN.iter().map(|(model, input, cached, cache_write, output)| {
            let price = Price {
                input: *input,
                cached_input: Some(*cached),
                cache_write: *cache_write,
                output: *output,
            };
            ((*model).to_owned(), price)
        });
        Self(prices.collect())
    }
}

/// Where a cost comes from.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CostSource {
    /// The CLI said it.
    Agent,
    /// The price table.
    Table,
}

impl PriceTable {
    /// The built-in prices, with these put over them.
    #[must_use]
    pub fn with(mut self, prices: impl IntoIterator<Item = (String, Price)>) -> Self {
        self.0.extend(prices);
        self
    }

    /// The price of a model: its own entry, otherwise the longest entry that its name
    /// starts with, so that `gpt-5.5-2026-09` finds `gpt-5.5`.
    pub fn price(&self, model: &str) -> Option<Price> {
        if let Some(price) = self.0.get(model) {
            return Some(*price);
        }
        // A provider before the name only passes the model on.
        let model = model.rsplit('/').next().unwrap_or(model);
        let matching = self.0.iter().filter(|(name, _)| {
            model
                .strip_prefix(name.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with(['-', '.', '[', '@', ':']))
        });
        matching.max_by_key(|(name, _)| name.len()).map(|(_, price)| *price)
    }

    /// What a call cost: the CLI's own figure, otherwise by the table. None when
    /// neither is known; that is not the same as nothing. Never below zero: a call gives
    /// nothing back, whatever its CLI or an edited run file says.
    pub fn cost(
        &self,
        model: Option<&str>,
        usage: Option<Usage>,
        own: Option<f64>,
    ) -> Option<(f64, CostSource)> {
        if let Some(own) = own.filter(|own| *own >= 0.0) {
            return Some((own, CostSource::Agent));
        }
        let price = self.price(model?)?;
        Some((price.cost(usage?), CostSource::Table))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cached_tokens_are_counted_once() {
        let price = Price { input: 2.0, cached_input: Some(0.2), cache_write: None, output: 10.0 };
        let usage = Usage {
            input: 1_000_000,
            cached: 400_000,
            cache_write: 100_000,
            output: 100_000,
            reasoning: 50_000,
        };
        let expected = 0.5 * 2.0 + 0.4 * 0.2 + 0.1 * 2.0 + 0.1 * 10.0;
        assert!((price.cost(usage) - expected).abs() < 1e-9);
    }

    #[test]
    fn the_reported_cost_wins_and_unknown_is_not_free() {
        let table = PriceTable::default();
        let usage = Some(Usage { input: 1_000_000, ..Usage::default() });
        assert_eq!(table.cost(Some("x"), usage, Some(0.5)), Some((0.5, CostSource::Agent)));
        assert_eq!(table.cost(Some("unknown-model"), usage, None), None);
        for absurd in [-5.0, f64::NEG_INFINITY, f64::NAN] {
            let cost = table.cost(Some("claude-opus-4-8"), usage, Some(absurd));
            assert_eq!(cost, table.cost(Some("claude-opus-4-8"), usage, None));
        }
        let (cost, source) = table.cost(Some("claude-opus-4-8[1m]"), usage, None).unwrap();
        assert!((cost - 5.0).abs() < 1e-9);
        assert_eq!(source, CostSource::Table);
    }

    #[test]
    fn a_user_can_edit_the_table() {
        let own = Price { input: 1.0, cached_input: None, cache_write: None, output: 1.0 };
        let table = PriceTable::default().with([("gpt-5.4".to_owned(), own)]);
        assert_eq!(table.price("gpt-5.4").unwrap(), own);
        assert_eq!(table.price("gpt-5.4-mini").unwrap(), own);
        assert_ne!(table.price("gpt-5.5"), Some(own));
        assert_eq!(table.price("gpt-5.45"), None);
        assert_eq!(table.price("openrouter/openai/gpt-5.4"), Some(own));
    }
}
