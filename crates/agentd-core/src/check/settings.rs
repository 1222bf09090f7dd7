//! `[rules]`: how much each rule weighs in a project.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

use crate::diagnostic::{Diagnostic, Rule, Severity};
use crate::nearest::nearest;
use crate::rules;

/// How much a rule weighs in a project.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Weight {
    /// It is not checked.
    Off,
    /// Its findings are LOW.
    Low,
    /// Its findings are MEDIUM.
    Medium,
    /// Its findings are HIGH, and stop a plan.
    High,
}

impl Weight {
    /// `off`, `low`, `medium` or `high`.
    pub fn name(self) -> &'static str {
        self.into()
    }

    fn severity(self) -> Option<Severity> {
        match self {
            Self::Off => None,
            Self::Low => Some(Severity::Low),
            Self::Medium => Some(Severity::Medium),
            Self::High => Some(Severity::High),
        }
    }
}

/// Rules about what was proven. A repository does not decide whether people hear of a forged review.
static EVIDENCE: [&Rule; 3] =
    [&rules::REVIEW_EDITED, &rules::FOREIGN_REVIEW, &rules::TICK_WITHOUT_EVIDENCE];

/// The rules to which a project gives another weight than they have, by their codes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RuleSettings(BTreeMap<&'static str, Weight>);

/// Why a rule cannot be set so.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SettingError {
    /// There is no such rule.
    #[error("there is no rule `{code}`")]
    Unknown {
        /// The text.
        code: String,
        /// The rule that was probably meant.
        near: Option<&'static str>,
    },
    /// The rule is set a second time, by its name or in another case.
    #[error("the rule {code} is set twice")]
    Twice {
        /// The rule.
        code: &'static str,
    },
    /// agentd depends on the rule.
    #[error("the rule {code} ({name}) is always {}: {}", severity.label(), if *is_evidence {
        "it is about what was proven, which a project cannot change"
    } else {
        "agentd could not work with a document that breaks it"
    })]
    Fixed {
        /// The rule.
        code: &'static str,
        /// Its name.
        name: &'static str,
        /// How much it weighs.
        severity: Severity,
        /// Whether it is about evidence, not about what can be read.
        is_evidence: bool,
    },
}

impl RuleSettings {
    /// Sets the rule with this code or name.
    pub fn set(&mut self, code: &str, weight: Weight) -> Result<(), SettingError> {
        let Some(rule) = rules::find(code) else {
            // `Q099` is more like Q001 than like F009.
            let letter = |known: &&str| {
                known.get(..1).zip(code.get(..1)).is_some_and(|(a, b)| a.eq_ignore_ascii_case(b))
            };
            let codes = rules::ALL.iter().map(|rule| rule.code).filter(letter);
            let near = nearest(code, codes.chain(rules::ALL.iter().map(|rule| rule.name)));
            return Err(SettingError::Unknown { code: code.to_owned(), near });
        };
        let is_evidence = EVIDENCE.contains(&rule);
        let is_fixed = is_evidence || rule.severity == Severity::High;
        if is_fixed && weight.severity() != Some(rule.severity) {
            let Rule { code, name, severity, .. } = *rule;
            return Err(SettingError::Fixed { code, name, severity, is_evidence });
        }
        if self.0.contains_key(rule.code) {
            return Err(SettingError::Twice { code: rule.code });
        }
        self.0.insert(rule.code, weight);
        Ok(())
    }

    /// The rules that are set, with their weights, in the order of their codes.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, Weight)> {
        self.0.iter().map(|(code, weight)| (*code, *weight))
    }

    /// Gives findings the weight that they have here; those of rules that are off go.
    pub(super) fn weigh(&self, found: Vec<Diagnostic>) -> Vec<Diagnostic> {
        if self.0.is_empty() {
            return found;
        }
        let weighed = found.into_iter().filter_map(|finding| match self.0.get(finding.rule.code) {
            Some(weight) => weight.severity().map(|severity| finding.weighing(severity)),
            None => Some(finding),
        });
        weighed.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::span::Span;

    fn set(code: &str, weight: Weight) -> Result<RuleSettings, String> {
        let mut settings = RuleSettings::default();
        settings.set(code, weight).map(|()| settings).map_err(|error| error.to_string())
    }

    // contract R6
    #[test]
    fn what_agentd_depends_on_keeps_its_weight() {
        for rule in rules::ALL {
            let is_fixed = rule.severity == Severity::High || EVIDENCE.contains(rule);
            for weight in [Weight::Off, Weight::Low, Weight::Medium, Weight::High] {
                let same = weight.severity() == Some(rule.severity);
                assert_eq!(set(rule.code, weight).is_ok(), same || !is_fixed, "{}", rule.code);
            }
        }
        assert_eq!(
            set("S003", Weight::Off),
            Err("the rule S003 (no-requirements) is always HIGH: agentd could not work with a document that breaks it".to_owned())
        );
        assert_eq!(
            set("foreign-review", Weight::Off),
            Err("the rule R004 (foreign-review) is always MEDIUM: it is about what was proven, which a project cannot change".to_owned())
        );
    }

    // contract R6
    #[test]
    fn findings_weigh_what_the_project_says() {
        let mut settings = set("q004", Weight::High).unwrap();
        settings.set("vague-word", Weight::Off).unwrap();
        assert_eq!(
            settings.set("Q001", Weight::Low),
            Err(SettingError::Twice { code: "Q001" }),
            "by its code and by its name"
        );
        let found = [&rules::VAGUE_WORD, &rules::NO_UNHAPPY_PATH, &rules::TASK_EMPTY];
        let found = found.map(|rule| rule.at(Span::at(0), "x")).to_vec();
        let weighed = settings.weigh(found);
        let codes: Vec<_> = weighed.iter().map(|d| (d.rule.code, d.severity())).collect();
        assert_eq!(codes, [("Q004", Severity::High), ("T017", Severity::Low)]);
        assert_eq!(
            settings.set("Q01", Weight::Off),
            Err(SettingError::Unknown { code: "Q01".to_owned(), near: Some("Q001") })
        );
    }
}
