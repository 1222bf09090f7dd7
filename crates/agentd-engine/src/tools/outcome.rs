//! What a tool answers: what was written, or why nothing was.

use std::fmt;

use agentd_core::diagnostic::Diagnostic;
use agentd_core::error_kind::Kind;
use agentd_core::hash::Digest;
use agentd_core::ids::ChangeId;
use agentd_core::rel_path::RelPath;
use serde::Serialize;

use crate::change::documents::DocumentError;
use crate::explain::{ErrorReport, Explain, with_causes};
use crate::store::{LockError, StoreError};

/// How many findings are reported at once; more are not read.
const MAX_FINDINGS: usize = 25;

/// A document that was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Written {
    /// Its path, from the root of the project.
    pub path: RelPath,
    /// The SHA-256 of what is on disk now, as `sha256sum` prints it.
    pub sha256: String,
    /// What could be better, in words.
    pub warnings: Vec<String>,
    /// The round of a review.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iteration: Option<u32>,
}

/// The digest of some bytes as `sha256sum` prints it.
pub(super) fn sha256(bytes: &[u8]) -> String {
    Digest::of(bytes).to_string().trim_start_matches("sha256:").to_owned()
}

/// Why a tool did nothing, in words that a model can act on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// What is wrong.
    pub message: String,
    /// The findings, one text each.
    pub findings: Vec<String>,
    /// What to do.
    pub hint: Option<String>,
}

impl Refusal {
    /// A refusal for one reason.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), findings: Vec::new(), hint: None }
    }

    /// Adds what to do about it.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds what was found.
    #[must_use]
    pub fn findings(mut self, findings: Vec<String>) -> Self {
        self.findings = findings;
        self
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        for (i, finding) in self.findings.iter().enumerate() {
            write!(f, "\n{}. {finding}", i + 1)?;
        }
        if let Some(hint) = &self.hint {
            write!(f, "\n{hint}")?;
        }
        Ok(())
    }
}

/// Why a tool did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum ActionError {
    /// The caller can do something about it. Nothing was changed.
    #[error("{0}")]
    Refused(Refusal),
    /// The caller stopped waiting. Nothing was changed.
    #[error("cancelled")]
    Cancelled,
    /// agentd or the machine is at fault.
    #[error("{0}")]
    Internal(String),
}

impl Explain for ActionError {
    /// A tool's refusal, where a command did what otherwise an agent does.
    fn explain(&self) -> ErrorReport {
        match self {
            Self::Refused(refusal) => ErrorReport {
                cause: refusal.findings.first().cloned(),
                ..ErrorReport::new(Kind::Refused, refusal.message.clone())
            }
            .hints(refusal.hint.clone()),
            Self::Cancelled => ErrorReport::interrupted(),
            Self::Internal(_) => ErrorReport::of(Kind::Internal, self),
        }
    }
}

impl From<Refusal> for ActionError {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<StoreError> for ActionError {
    fn from(error: StoreError) -> Self {
        let message = with_causes(&error);
        match error {
            StoreError::Io { action: "write" | "append to" | "create" | "remove", .. }
            | StoreError::WrongLock { .. } => Self::Internal(message),
            StoreError::NoSuchChange { .. } => Refusal::new(message)
                .hint("Call the tool with the change_id of an open change.")
                .into(),
            _ => Refusal::new(message).into(),
        }
    }
}

impl From<LockError> for ActionError {
    fn from(error: LockError) -> Self {
        let message = with_causes(&error);
        match error {
            LockError::Cancelled { .. } => Self::Cancelled,
            LockError::Held { .. } | LockError::TimedOut { .. } => {
                Refusal::new(message).hint("Try again in a moment.").into()
            }
            LockError::Unsupported { .. } | LockError::Store { .. } => Self::Internal(message),
        }
    }
}

impl From<DocumentError> for ActionError {
    fn from(error: DocumentError) -> Self {
        match error {
            DocumentError::Store(error) => error.into(),
            DocumentError::Lock(error) => error.into(),
            other => Refusal::new(with_causes(&other))
                .hint("A person has to fix that file; no tool can.")
                .into(),
        }
    }
}

/// Findings in words, not too many.
pub(super) fn findings<'d>(
    diagnostics: impl IntoIterator<Item = &'d Diagnostic>,
    text: &str,
) -> Vec<String> {
    cut(diagnostics.into_iter().map(|diagnostic| diagnostic.in_words(text)).collect())
}

/// The first of many findings, and how many more there are.
pub(super) fn cut(mut findings: Vec<String>) -> Vec<String> {
    let more = findings.len().saturating_sub(MAX_FINDINGS);
    if more > 0 {
        findings.truncate(MAX_FINDINGS);
        findings.push(format!("… and {more} more of that kind."));
    }
    findings
}

/// The refusal of a change that is not the one in hand.
pub(super) fn other_change(bound: &ChangeId, asked: &ChangeId) -> Refusal {
    Refusal::new(format!(
        "This server works on the change `{bound}` and on no other, so not on `{asked}`."
    ))
    .hint(format!("Call the tool with change_id \"{bound}\"."))
}
