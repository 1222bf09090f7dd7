//! What is wrong with a document, where, and what to do about it.

use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr};

use crate::span::{Span, line_column};
use crate::text::head;

/// How much a finding weighs. HIGH findings stop a plan.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    IntoStaticStr,
    EnumString,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "UPPERCASE", ascii_case_insensitive)]
pub enum Severity {
    /// The document cannot be worked with.
    High,
    /// A reader would be misled or a requirement missed.
    Medium,
    /// It could be better.
    Low,
}

impl Severity {
    /// `HIGH`, `MEDIUM` or `LOW`.
    pub fn label(self) -> &'static str {
        self.into()
    }

    /// The severity of this name, in any case.
    pub fn from_name(name: &str) -> Option<Self> {
        name.trim().parse().ok()
    }
}

/// One rule of validation. Its code never changes its meaning.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Rule {
    /// The stable code, such as `T005`.
    pub code: &'static str,
    /// A short name, such as `task-cycle`.
    pub name: &'static str,
    /// How much a finding weighs.
    pub severity: Severity,
    /// What the rule asks for, in one sentence.
    pub summary: &'static str,
    /// Why it is asked.
    pub why: &'static str,
    /// What to do about a finding.
    pub fix: &'static str,
    /// What breaks the rule, and what to write instead.
    pub example: Option<Example>,
}

/// A piece of text that breaks a rule, and one that keeps it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Example {
    /// What breaks the rule.
    pub bad: &'static str,
    /// What to write instead.
    pub good: &'static str,
}

impl Rule {
    /// A finding of this rule at a place.
    pub fn at(&'static self, span: Span, message: impl Into<String>) -> Diagnostic {
        let severity = self.severity;
        Diagnostic { rule: self, severity, span, message: message.into(), fix: None }
    }

    /// Whether it is about wording. These rules are heuristics, and nothing that agentd does
    /// depends on them, so that a document may say that one does not apply to it.
    pub(crate) fn is_advisory(&self) -> bool {
        self.code.starts_with('Q')
    }
}

/// One finding in one document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// The rule that was broken.
    pub rule: &'static Rule,
    /// How much it weighs in this project.
    severity: Severity,
    /// Where, in the document's text.
    pub span: Span,
    /// What is wrong here.
    pub message: String,
    /// What to do here, where that is more than the rule's own advice.
    pub fix: Option<String>,
}

impl Diagnostic {
    /// Adds advice for this very finding.
    #[must_use]
    pub fn with_fix(mut self, fix: impl Into<String>) -> Self {
        self.fix = Some(fix.into());
        self
    }

    /// The same finding with the weight that a project gives it.
    #[must_use]
    pub(crate) fn weighing(mut self, severity: Severity) -> Self {
        self.severity = severity;
        self
    }

    /// How much it weighs.
    pub fn severity(&self) -> Severity {
        self.severity
    }

    /// What to do about it.
    pub fn advice(&self) -> &str {
        self.fix.as_deref().unwrap_or(self.rule.fix)
    }

    /// The finding in words, for an agent: code, line, what is wrong there, and what to do.
    pub fn in_words(&self, text: &str) -> String {
        let (line, _) = line_column(text, self.span.start);
        let shown = text.lines().nth(line - 1).unwrap_or_default().trim();
        let at = if shown.is_empty() || shown == "---" {
            format!("line {line}")
        } else {
            format!("line {line} (`{}`)", head(shown, 80))
        };
        let severity = match self.severity() {
            Severity::High => "",
            other => other.label(),
        };
        let space = if severity.is_empty() { "" } else { " " };
        let (code, message) = (self.rule.code, self.message.trim_end_matches('.'));
        format!("{severity}{space}{code} at {at}: {message}. Fix: {}", self.advice())
    }
}

/// A document that was read, and everything that was wrong with its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parsed<T> {
    /// The document; what could not be read is missing or empty.
    pub value: T,
    /// What was wrong.
    pub diagnostics: Vec<Diagnostic>,
}

/// How many findings there are of each severity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Counts {
    /// HIGH findings.
    pub high: usize,
    /// MEDIUM findings.
    pub medium: usize,
    /// LOW findings.
    pub low: usize,
}

impl Counts {
    /// Counts severities.
    pub fn of(severities: impl IntoIterator<Item = Severity>) -> Self {
        let mut counts = Self::default();
        for severity in severities {
            match severity {
                Severity::High => counts.high += 1,
                Severity::Medium => counts.medium += 1,
                Severity::Low => counts.low += 1,
            }
        }
        counts
    }

    /// How many there are together.
    pub fn total(self) -> usize {
        self.high + self.medium + self.low
    }

    /// The two counts together.
    #[must_use]
    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            high: self.high + other.high,
            medium: self.medium + other.medium,
            low: self.low + other.low,
        }
    }
}
