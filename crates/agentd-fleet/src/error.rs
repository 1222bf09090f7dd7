//! The error with which a command of the fleet ends.

use std::fmt;

use agentd_core::error_kind::Kind;
use agentd_core::text::{Line, excerpt};
use serde::Serialize;

/// What went wrong, why, and what to do about it.
#[derive(Debug, Clone, Serialize)]
pub struct FleetError {
    /// Its stable name.
    pub kind: Kind,
    /// What went wrong.
    pub message: String,
    /// Why, in the words of git or the database.
    pub cause: Option<String>,
    /// What to do about it.
    pub hints: Vec<String>,
}

/// The result of most functions here.
pub type Result<T> = std::result::Result<T, FleetError>;

/// The most of a foreign message that is shown.
const CAUSE: usize = 600;

impl FleetError {
    /// An error of a kind.
    pub fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), cause: None, hints: Vec::new() }
    }

    /// A wrong command line.
    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(Kind::Usage, message)
    }

    /// Adds the cause, which is text from outside.
    #[must_use]
    pub fn cause(mut self, cause: impl fmt::Display) -> Self {
        let line = Line::new(&cause.to_string());
        self.cause = Some(excerpt(line.as_str(), CAUSE)).filter(|cause| !cause.is_empty());
        self
    }

    /// Adds what to do.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// A file or directory that cannot be used.
    pub fn unusable(path: &std::path::Path, error: &std::io::Error) -> Self {
        Self::new(Kind::Store, format!("cannot use {}", path.display())).cause(error)
    }

    /// What needs the server.
    pub fn needs_server(what: &str) -> Self {
        Self::usage(format!("{what} needs a fleet with Postgres; this one has only the git remote"))
            .hint("name the server: --engine postgres://…, or set AGENTD_FLEET")
            .hint("docs/fleet.md says what each of them promises")
    }
}

impl fmt::Display for FleetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        if let Some(cause) = &self.cause {
            write!(f, ": {cause}")?;
        }
        Ok(())
    }
}

impl std::error::Error for FleetError {}
