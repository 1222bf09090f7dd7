//! `[validation]` and `[rules]`: what a project asks of its documents.

use serde::Deserialize;

use super::{Config, ConfigError, at};
use crate::check::{Extras, RuleSettings, SettingError};
use crate::span::Span;

/// `[validation]`
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Validation {
    /// Headings that every spec must have, beside the built-in ones.
    pub required_headings: Vec<String>,
    /// A pattern that every scenario must match.
    pub scenario_pattern: Option<String>,
    /// How many scenarios a spec must have.
    pub scenario_min_count: usize,
}

impl Default for Validation {
    fn default() -> Self {
        Self { required_headings: Vec::new(), scenario_pattern: None, scenario_min_count: 1 }
    }
}

impl Config {
    /// The extra rules for documents.
    pub fn extras(&self) -> Extras {
        let validation = &self.validation;
        Extras {
            required_headings: validation.required_headings.clone(),
            // `parse` has refused patterns that do not compile.
            scenario_pattern: validation
                .scenario_pattern
                .as_deref()
                .and_then(|p| regex_lite::Regex::new(p).ok()),
            scenario_min_count: validation.scenario_min_count,
            // `parse` has refused what cannot be set.
            rules: self.rule_settings().unwrap_or_default(),
        }
    }

    fn rule_settings(&self) -> Result<RuleSettings, (&str, SettingError)> {
        let mut settings = RuleSettings::default();
        for (code, weight) in &self.rules {
            settings.set(code, *weight).map_err(|error| (code.as_str(), error))?;
        }
        Ok(settings)
    }

    /// Refuses rules that are not there, and those that are not for a project to set.
    pub(super) fn check_rules(&self, text: &str) -> Result<(), ConfigError> {
        let Err((code, error)) = self.rule_settings() else { return Ok(()) };
        let hint = match &error {
            SettingError::Unknown { near: Some(near), .. } => format!("did you mean `{near}`?"),
            SettingError::Unknown { near: None, .. } => "`agentd explain` lists them".to_owned(),
            SettingError::Twice { .. } => "delete one of the two lines".to_owned(),
            SettingError::Fixed { code, .. } => {
                format!("delete the line; `agentd explain {code}` says what the rule is for")
            }
        };
        let section = text.find("[rules]").unwrap_or(0);
        let start = section + text[section..].find(code).unwrap_or(0);
        let span = Span::new(start, start + code.len());
        Err(at(text, span, error.to_string(), Some(hint)))
    }
}
