//! What went wrong, for people and for programs: a kind, a message, a cause, and hints that are
//! data, so that the terminal, `--json` and the viewer say the same.
//!
//! Each error type implements [`Explain`] next to its definition, in one `match` in which a
//! variant states its kind, its cause and its hints. Front ends convert with `?`.

use std::error::Error;
use std::io;

use agentd_core::agent::AgentKind;
use agentd_core::command_line::CommandLine;
use agentd_core::config::ConfigError;
use agentd_core::error_kind::Kind;
use agentd_core::hint::Hint;
use agentd_core::ids::ChangeId;
use agentd_core::outcome::FailureKind;
use agentd_core::phase::{Phase, Refused};
use agentd_core::provider::sessions::SessionError;
use serde::Serialize;

use crate::archive::SpecConflict;
use crate::guard::trust::ComparedSetting;

/// An error that can be shown to a person.
pub trait Explain: Error {
    /// All that is known about it.
    fn explain(&self) -> ErrorReport;

    /// Its kind.
    fn kind(&self) -> Kind {
        self.explain().kind
    }
}

/// An error as it is reported.
#[derive(Debug, Clone, Serialize)]
pub struct ErrorReport {
    /// What kind of error it is.
    pub kind: Kind,
    /// What went wrong, in one sentence without a full stop.
    pub message: String,
    /// Why, where more is known.
    pub cause: Option<String>,
    /// What to do.
    pub hints: Vec<Hint>,
    /// More about it, for programs.
    #[serde(flatten)]
    pub details: Option<Box<ErrorDetails>>,
}

/// What some kinds of errors add for programs: the keys are those of the error itself.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
pub enum ErrorDetails {
    /// Of [`Kind::Conflict`].
    Conflicts {
        /// What cannot be merged.
        conflicts: Vec<SpecConflict>,
    },
    /// Of [`Kind::NotTrusted`].
    Settings {
        /// What the settings of the project run.
        settings: Vec<ComparedSetting>,
    },
    /// Of a call that has failed.
    Call {
        /// The agent.
        agent: AgentKind,
        /// What kind of failure it was.
        failure: FailureKind,
        /// How long to wait before another call, where the vendor says so.
        retry_after_ms: Option<u64>,
    },
}

impl<E: Explain> From<E> for ErrorReport {
    fn from(error: E) -> Self {
        error.explain()
    }
}

impl ErrorReport {
    /// An error with a message of its own.
    pub fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), cause: None, hints: Vec::new(), details: None }
    }

    /// The message of an error, with what is behind it as the cause.
    pub fn of(kind: Kind, error: &dyn Error) -> Self {
        Self { cause: causes(error), ..Self::new(kind, error.to_string()) }
    }

    /// The command line was wrong.
    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(Kind::Usage, message)
    }

    /// Somebody pressed Ctrl-C.
    pub fn interrupted() -> Self {
        Self::new(Kind::Interrupted, "interrupted")
    }

    /// Sets the cause.
    #[must_use]
    pub fn cause(mut self, cause: impl Into<String>) -> Self {
        self.cause = Some(cause.into());
        self
    }

    /// Adds a hint.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<Hint>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// Adds hints.
    #[must_use]
    pub fn hints<H: Into<Hint>>(self, hints: impl IntoIterator<Item = H>) -> Self {
        hints.into_iter().fold(self, Self::hint)
    }

    /// Adds a command to run; the purpose is an imperative.
    #[must_use]
    pub fn run(self, purpose: impl Into<String>, command: impl Into<CommandLine>) -> Self {
        self.hint(Hint::run(purpose, command))
    }

    /// Adds a file to edit; the purpose is an imperative.
    #[must_use]
    pub fn edit(self, purpose: impl Into<String>, path: impl Into<String>) -> Self {
        self.hint(Hint::edit(purpose, path))
    }

    /// Adds a setting to change: `key` of a table in `agentd/config.toml`, and a TOML value.
    #[must_use]
    pub fn set(
        self,
        purpose: impl Into<String>,
        table: &'static str,
        key: &'static str,
        value: &'static str,
    ) -> Self {
        self.hint(Hint::Set { purpose: purpose.into(), table, key, value })
    }

    /// Adds details for programs.
    #[must_use]
    pub fn details(mut self, details: ErrorDetails) -> Self {
        self.details = Some(Box::new(details));
        self
    }

    /// Fills in the ID of the change in hints that were made without knowing it.
    #[must_use]
    pub fn for_change(mut self, change: &ChangeId) -> Self {
        self.hints = self.hints.into_iter().map(|hint| hint.for_change(change)).collect();
        self
    }

    /// Adds what to do when the system refuses to write, where that is known.
    #[must_use]
    pub(crate) fn remedy(self, error: Option<&io::Error>) -> Self {
        self.hints(error.and_then(remedy))
    }
}

/// What is behind an error, in one line, as far as its message does not say it already.
pub(crate) fn causes(error: &dyn Error) -> Option<String> {
    let mut known = error.to_string();
    let mut texts = Vec::new();
    for source in std::iter::successors(error.source(), |error| (*error).source()) {
        let text = source.to_string();
        if !known.contains(&text) {
            known.push_str(&text);
            texts.push(text);
        }
    }
    (!texts.is_empty()).then(|| texts.join(": "))
}

/// An error and what is behind it, in one line.
pub(crate) fn with_causes(error: &dyn Error) -> String {
    match causes(error) {
        Some(causes) => format!("{error}: {causes}"),
        None => error.to_string(),
    }
}

/// What to do when the system refuses to write, where that is known.
fn remedy(error: &io::Error) -> Option<Hint> {
    let text = match error.kind() {
        io::ErrorKind::StorageFull => "the disk is full: free some space, then retry",
        io::ErrorKind::QuotaExceeded => "the disk quota is exceeded: free some space, then retry",
        io::ErrorKind::ReadOnlyFilesystem => {
            "the file system is read-only: remount it, or work on a copy of the project"
        }
        io::ErrorKind::PermissionDenied => {
            let command = CommandLine::new(["ls", "-la", "agentd"]);
            return Some(Hint::run("check who owns the files and who may write to them", command));
        }
        io::ErrorKind::FileTooLarge => {
            "the process may not write files of this size: check `ulimit -f`"
        }
        _ => return None,
    };
    Some(text.into())
}

impl From<io::Error> for ErrorReport {
    /// An error of writing our own output: everything else has an error type of its own.
    fn from(error: io::Error) -> Self {
        let closed = error.kind() == io::ErrorKind::BrokenPipe;
        let kind = if closed { Kind::OutputClosed } else { Kind::Output };
        Self::new(kind, "cannot write the output").cause(error.to_string())
    }
}

impl From<serde_json::Error> for ErrorReport {
    fn from(error: serde_json::Error) -> Self {
        if error.is_io() {
            return Self::from(io::Error::from(error));
        }
        Self::new(Kind::Internal, "cannot convert the output to JSON").cause(error.to_string())
    }
}

impl Explain for ConfigError {
    fn explain(&self) -> ErrorReport {
        let report =
            ErrorReport::new(Kind::ConfigInvalid, format!("cannot use agentd/config.toml: {self}"));
        match &self.hint {
            Some(hint) => report.hint(hint.as_str()),
            None => report.edit("correct it", "agentd/config.toml"),
        }
    }
}

impl Explain for Refused {
    fn explain(&self) -> ErrorReport {
        let report = ErrorReport::of(Kind::Refused, self);
        match self.phase {
            Phase::Archived => report,
            Phase::Complete if self.allowed.is_empty() => report.run(
                "archive it anyway, if you have reviewed the code yourself",
                CommandLine::agentd(["archive", self.change.as_str(), "--force"])
                    .placeholder("\"<why>\""),
            ),
            // The plan is not known to be the one that was approved (C39).
            Phase::Challenged if self.needs_a_challenge() => report.run(
                "have it challenged again",
                CommandLine::agentd(["challenge", self.change.as_str()]),
            ),
            // A plan that has changed after code was written for it (W1).
            Phase::Implementing if self.needs_a_challenge() => report.run(
                "go back to planning with the plan as it is now; the code stays",
                CommandLine::agentd(["revise", self.change.as_str()]),
            ),
            // What comes next depends on the documents, too, which a state does not know.
            _ => report
                .run("see what comes next", CommandLine::agentd(["status", self.change.as_str()])),
        }
    }
}

impl Explain for SessionError {
    fn explain(&self) -> ErrorReport {
        let kind = match self {
            Self::NotFound { .. } => Kind::SessionNotFound,
            Self::ListFailed { .. } => Kind::SessionListFailed,
            Self::ListTimedOut { .. } => Kind::SessionListTimedOut,
            Self::Unparseable { .. } => Kind::SessionListUnparseable,
            Self::NotCaptured | Self::NotStored => Kind::SessionNotCaptured,
        };
        let cause = match self {
            Self::NotFound { id } => Some(format!("the session {id} has expired or was deleted")),
            Self::NotCaptured => {
                Some("the planner reported no session; what it has written stays".to_owned())
            }
            Self::NotStored => {
                Some("no session is known in which the planner could continue".to_owned())
            }
            Self::ListFailed { .. } | Self::ListTimedOut { .. } | Self::Unparseable { .. } => {
                self.output()
            }
        };
        let report = ErrorReport { cause, ..ErrorReport::of(kind, self) };
        match self {
            Self::NotFound { .. } | Self::NotStored => report.hint(fresh_session()),
            Self::NotCaptured => {
                report.run("continue without it", CommandLine::agentd(["plan"]).change())
            }
            Self::ListFailed { .. } | Self::ListTimedOut { .. } => report
                .hint("start `gemini` in the project by hand, and check that it works")
                .hint(fresh_session()),
            Self::Unparseable { .. } => report
                .set("resume by ID, which needs no list", "gemini", "resume", "\"uuid\"")
                .hint(fresh_session()),
        }
    }
}

/// What to do where the session of the planner cannot be resumed (C31).
pub(crate) fn fresh_session() -> Hint {
    let command = CommandLine::agentd(["reproposal"]).change().args(["--fresh"]);
    Hint::run("begin a new session, which is given the plan and its review", command)
}
