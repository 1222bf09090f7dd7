//! Which model, and how much effort, for which complexity (P9, C14). Every entry
//! can be replaced in the config; these are what it is without one.

use serde::Deserialize;

use crate::agent::{AgentKind, Complexity};

/// A model and an effort. None leaves the choice to the CLI. In the config a bare
/// name means a model.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(from = "Form")]
pub struct ModelChoice {
    /// The model's name or alias.
    pub model: Option<String>,
    /// The effort, for codex and claude.
    pub effort: Option<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Form {
    Name(String),
    Full(FullForm),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FullForm {
    model: Option<String>,
    effort: Option<String>,
}

impl From<Form> for ModelChoice {
    fn from(form: Form) -> Self {
        match form {
            Form::Name(model) => Self { model: Some(model), effort: None },
            Form::Full(FullForm { model, effort }) => Self { model, effort },
        }
    }
}

/// The first in the catalogue of codex 0.166 (`codex debug models`).
const CODEX_MODEL: &str = "gpt-6.1-sol";

/// What is used where the config does not say.
pub fn default_model(agent: AgentKind, complexity: Complexity) -> ModelChoice {
    use Complexity as C;
    let (model, effort) = match (agent, complexity) {
        // Aliases of the CLI itself: they follow the newest model of their class.
        (AgentKind::Gemini, C::Low) => (Some("flash-lite"), None),
        (AgentKind::Gemini, C::Medium) => (Some("flash"), None),
        (AgentKind::Gemini, C::High | C::Critical) => (Some("pro"), None),
        // Named, because codex does not say which model it used, and without a name
        // there is no cost. "max" is the deepest; "ultra" would start agents of its own.
        (AgentKind::Codex, C::Low) => (Some(CODEX_MODEL), Some("low")),
        (AgentKind::Codex, C::Medium) => (Some(CODEX_MODEL), Some("medium")),
        (AgentKind::Codex, C::High) => (Some(CODEX_MODEL), Some("high")),
        (AgentKind::Codex, C::Critical) => (Some(CODEX_MODEL), Some("max")),
        (AgentKind::Claude, C::Low) => (Some("haiku"), None),
        (AgentKind::Claude, C::Medium) => (Some("sonnet"), Some("medium")),
        (AgentKind::Claude, C::High) => (Some("opus"), Some("high")),
        (AgentKind::Claude, C::Critical) => (Some("opus"), Some("max")),
        (AgentKind::Builtin | AgentKind::Replay | AgentKind::Named(_), _) => (None, None),
    };
    ModelChoice { model: model.map(str::to_owned), effort: effort.map(str::to_owned) }
}

/// The choice of the config where it makes one, otherwise the default.
pub fn choose(
    agent: AgentKind,
    complexity: Complexity,
    configured: Option<&ModelChoice>,
) -> ModelChoice {
    let default = default_model(agent, complexity);
    match configured {
        None => default,
        // A model that the user names may not know the effort of ours.
        Some(choice) if choice.model.is_some() => choice.clone(),
        Some(choice) => {
            ModelChoice { model: default.model, effort: choice.effort.clone().or(default.effort) }
        }
    }
}

/// The model that an alias of a CLI means, as far as is known; other names are their own.
pub(crate) fn full_name(agent: AgentKind, model: &str) -> &str {
    match (agent, model) {
        (AgentKind::Gemini, "flash-lite") => "gemini-3.5-flash-lite",
        (AgentKind::Gemini, "flash") => "gemini-3.8-flash",
        (AgentKind::Gemini, "pro") => "gemini-3.1-pro",
        (AgentKind::Claude, "haiku") => "claude-haiku-5-5",
        (AgentKind::Claude, "sonnet") => "claude-sonnet-5-5",
        (AgentKind::Claude, "opus") => "claude-opus-5-5",
        (_, model) => model,
    }
}

/// Whether this model may answer where that one is asked for: it is the same one, a version of it,
/// or one that the alias means.
pub(crate) fn answers_to(asked: &str, answered: &str) -> bool {
    let words = |name: &str| -> Vec<String> {
        name.split(|c: char| !c.is_alphanumeric()).map(str::to_owned).collect()
    };
    let (asked, answered) = (words(asked), words(answered));
    // A light model is another one.
    let is_lite = |words: &[String]| words.iter().any(|word| word == "lite" || word == "mini");
    is_lite(&asked) == is_lite(&answered)
        && answered.windows(asked.len()).any(|part| part == asked.as_slice())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn complexity_picks_the_model() {
        let model = |agent, complexity| default_model(agent, complexity).model.unwrap();
        assert_eq!(model(AgentKind::Gemini, Complexity::Medium), "flash");
        assert_eq!(model(AgentKind::Gemini, Complexity::Critical), "pro");
        let effort = |complexity| default_model(AgentKind::Codex, complexity).effort.unwrap();
        assert_eq!(effort(Complexity::Medium), "medium");
        assert_eq!(effort(Complexity::Critical), "max");
    }

    #[test]
    fn the_config_wins() {
        let own = ModelChoice { model: Some("m".into()), effort: None };
        assert_eq!(choose(AgentKind::Claude, Complexity::Critical, Some(&own)), own);
        let effort = ModelChoice { model: None, effort: Some("low".into()) };
        let chosen = choose(AgentKind::Claude, Complexity::Critical, Some(&effort));
        assert_eq!(chosen.model.as_deref(), Some("opus"));
        assert_eq!(chosen.effort.as_deref(), Some("low"));
    }
    #[test]
    fn aliases_are_answered_by_the_models_that_they_mean() {
        for (asked, answered, expected) in [
            ("flash", "gemini-3.8-flash", true),
            ("flash", "gemini-3.8-flash-preview", true),
            ("flash", "gemini-3.5-flash-lite", false),
            ("flash-lite", "gemini-3.5-flash-lite", true),
            ("gpt-6.1-sol", "gpt-6.1-sol", true),
            ("gpt-6.1-sol", "gpt-6-sol", false),
            ("sonnet", "claude-sonnet-5-5[1m]", true),
            ("sonnet", "claude-opus-5-5", false),
            ("sonnet", "", false),
            ("", "anything", false),
        ] {
            assert_eq!(answers_to(asked, answered), expected, "{asked} {answered}");
        }
        let complexities = Complexity::ALL;
        for agent in AgentKind::CLIS {
            for asked in complexities.map(|c| default_model(agent, c).model.unwrap()) {
                let full = full_name(agent, &asked);
                assert!(answers_to(&asked, full), "{full}");
                let prices = crate::provider::prices::PriceTable::default();
                assert!(prices.price(full).is_some(), "{full}");
            }
        }
    }
}
