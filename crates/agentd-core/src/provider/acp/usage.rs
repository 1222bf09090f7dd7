//! What a turn has used, in the words of each agent.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::outcome::Usage;

/// The result of `session/prompt`. What it says besides the reason of the stop is read apart, so
/// that nothing in it can hide that the turn is over.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct PromptResult {
    pub(super) stop_reason: Option<String>,
    usage: Option<Box<RawValue>>,
    #[serde(rename = "_meta")]
    meta: Option<Box<RawValue>>,
}

impl PromptResult {
    /// The tokens of the turn.
    pub(super) fn usage(&self) -> Option<Usage> {
        let usage = self.usage.as_ref()?;
        let usage = serde_json::from_str::<TurnUsage>(usage.get()).ok()?.usage();
        (usage.total() > 0).then_some(usage)
    }

    /// What some agents say besides, with the models that were used.
    pub(super) fn quota(&self) -> Option<Quota> {
        serde_json::from_str::<ResultMeta>(self.meta.as_ref()?.get()).ok()?.quota
    }
}

/// The usage of a turn, as the protocol has it.
#[expect(clippy::struct_field_names, reason = "the names are the protocol's")]
#[derive(Deserialize, Default, Clone, Copy)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct TurnUsage {
    input_tokens: u64,
    cached_read_tokens: u64,
    cached_write_tokens: u64,
    output_tokens: u64,
    thought_tokens: u64,
    total_tokens: u64,
}

impl TurnUsage {
    /// The protocol does not say whether cached tokens are part of the input, and thoughts of the
    /// output, and agents differ; their total shows it.
    pub(super) fn usage(self) -> Usage {
        let cached = self.cached_read_tokens.saturating_add(self.cached_write_tokens);
        let sum = |with_cached: bool, with_thoughts: bool| {
            let extra = if with_cached { cached } else { 0 };
            let thoughts = if with_thoughts { self.thought_tokens } else { 0 };
            let plain = self.input_tokens.saturating_add(self.output_tokens);
            plain.saturating_add(extra).saturating_add(thoughts)
        };
        let forms = [(true, false), (false, false), (true, true), (false, true)];
        let form = forms.into_iter().find(|(c, t)| sum(*c, *t) == self.total_tokens);
        // Without a total that fits: apart, as most agents have it.
        let (cached_apart, thoughts_apart) = form.unwrap_or((true, false));
        let input = if cached_apart {
            self.input_tokens.saturating_add(cached)
        } else {
            self.input_tokens.max(cached)
        };
        let output = if thoughts_apart {
            self.output_tokens.saturating_add(self.thought_tokens)
        } else {
            self.output_tokens
        };
        Usage {
            input,
            cached: self.cached_read_tokens,
            cache_write: self.cached_write_tokens,
            output,
            reasoning: self.thought_tokens.min(output),
        }
    }
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct ResultMeta {
    quota: Option<Quota>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct Quota {
    token_count: TokenCount,
    model_usage: Vec<ModelUsage>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct ModelUsage {
    model: String,
    token_count: TokenCount,
}

/// The counts of Gemini CLI; those of others have other names and are not needed.
#[derive(Deserialize, Default, Clone, Copy)]
#[serde(default)]
struct TokenCount {
    input_tokens: u64,
    output_tokens: u64,
    #[serde(rename = "outputTokens")]
    output: u64,
}

impl Quota {
    /// The tokens, where they are in no other place.
    pub(super) fn usage(&self) -> Option<Usage> {
        let TokenCount { input_tokens, output_tokens, .. } = self.token_count;
        let usage = Usage { input: input_tokens, output: output_tokens, ..Usage::default() };
        (usage.total() > 0).then_some(usage)
    }

    /// The model that wrote most. One model may be listed by its name and by an alias; the longer
    /// one says more.
    pub(super) fn model(&self) -> Option<&str> {
        let mut written: BTreeMap<&str, u64> = BTreeMap::new();
        for usage in self.model_usage.iter().filter(|usage| !usage.model.is_empty()) {
            let count = usage.token_count.output_tokens.max(usage.token_count.output);
            let sum = written.entry(&usage.model).or_default();
            *sum = sum.saturating_add(count);
        }
        let most = written.into_iter().max_by_key(|(model, count)| (*count, model.len()));
        most.map(|(model, _)| model)
    }
}

/// `_meta` of a chunk: what one request to the model has used.
#[derive(Deserialize)]
pub(super) struct ChunkMeta {
    pub(super) usage: Option<TurnUsage>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(json: &str) -> Usage {
        serde_json::from_str::<TurnUsage>(json).unwrap().usage()
    }

    #[test]
    fn the_total_shows_what_is_counted_twice() {
        let expected = Usage { input: 1000, cached: 100, cache_write: 0, output: 20, reasoning: 0 };
        // claude, codex, opencode: cached tokens are apart.
        let apart =
            r#"{"inputTokens":900,"cachedReadTokens":100,"outputTokens":20,"totalTokens":1020}"#;
        assert_eq!(usage(apart), expected);
        // qwen: they are part of the input.
        let within =
            r#"{"inputTokens":1000,"cachedReadTokens":100,"outputTokens":20,"totalTokens":1020}"#;
        assert_eq!(usage(within), expected);
        let without_total = r#"{"inputTokens":900,"cachedReadTokens":100,"outputTokens":20}"#;
        assert_eq!(usage(without_total), expected);
        let thoughts = r#"{"inputTokens":10,"outputTokens":5,"thoughtTokens":7,"totalTokens":22}"#;
        assert_eq!(
            usage(thoughts),
            Usage { input: 10, output: 12, reasoning: 7, ..Usage::default() }
        );
        let inside = r#"{"inputTokens":10,"outputTokens":5,"thoughtTokens":3,"totalTokens":15}"#;
        assert_eq!(usage(inside), Usage { input: 10, output: 5, reasoning: 3, ..Usage::default() });
        let absurd =
            r#"{"inputTokens":18446744073709551615,"cachedReadTokens":9,"outputTokens":1}"#;
        assert_eq!(usage(absurd).input, u64::MAX);
    }

    #[test]
    fn the_model_that_wrote_most_counts() {
        let json = r#"{"token_count":{"input_tokens":2000,"output_tokens":40},"model_usage":[
            {"model":"gemini-3.8-flash","token_count":{"input_tokens":1000,"output_tokens":20}},
            {"model":"flash","token_count":{"input_tokens":1000,"output_tokens":20}}]}"#;
        let quota: Quota = serde_json::from_str(json).unwrap();
        assert_eq!(quota.model(), Some("gemini-3.8-flash"));
        assert_eq!(quota.usage().unwrap().total(), 2040);
        let codex = r#"{"token_count":{"totalTokens":7},"model_usage":[{"model":"gpt-6.1-sol","token_count":{"outputTokens":4}}]}"#;
        let quota: Quota = serde_json::from_str(codex).unwrap();
        assert_eq!((quota.model(), quota.usage()), (Some("gpt-6.1-sol"), None));
    }
}
