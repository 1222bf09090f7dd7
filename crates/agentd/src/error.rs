//! What went wrong, for people and for programs: a kind, a message, a cause,
//! and hints that are data, so that `--json` and the terminal say the same.

pub(crate) mod kinds;

use std::io;

use agentd_core::phase::{Phase, Refused};
use agentd_engine::agents::step::StepError;
use agentd_engine::archive::ArchiveError;
use agentd_engine::change::documents::DocumentError;
use agentd_engine::git::GitError;
use agentd_engine::guard::trust::TrustError;
use agentd_engine::store::{LockError, StoreError, causes, remedy};
use agentd_engine::tools::ActionError;
use agentd_engine::workflow::clarify::ClarifyError;
use serde::Serialize;

use crate::cli::{next, trust};

/// An error of a command.
#[derive(Debug, Serialize)]
pub(crate) struct CommandError {
    /// What kind of error it is; stable, in `snake_case`.
    pub(crate) kind: &'static str,
    /// What went wrong, in one sentence without a full stop.
    pub(crate) message: String,
    /// Why, where more is known.
    pub(crate) cause: Option<String>,
    /// What to do.
    pub(crate) hints: Vec<String>,
    /// More of it, for programs.
    #[serde(flatten)]
    pub(crate) details: Option<Box<serde_json::Value>>,
    /// The exit code.
    #[serde(skip)]
    pub(crate) exit: Exit,
}

/// How a process ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// It was wanted so: whoever reads our output has seen enough.
    Quiet,
    /// A failure that the contract names.
    Failure,
    /// The command line was wrong.
    Usage,
    /// Somebody pressed Ctrl-C.
    Interrupted,
}

impl Exit {
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Quiet => 0,
            Self::Failure => 1,
            Self::Usage => 2,
            Self::Interrupted => 130,
        }
    }
}

impl CommandError {
    pub(crate) fn new(kind: &'static str, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            cause: None,
            hints: Vec::new(),
            details: None,
            exit: Exit::Failure,
        }
    }

    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self { exit: Exit::Usage, ..Self::new("usage", message) }
    }

    pub(crate) fn interrupted() -> Self {
        Self { exit: Exit::Interrupted, ..Self::new("interrupted", "interrupted") }
    }

    #[must_use]
    pub(crate) fn cause(mut self, cause: impl Into<String>) -> Self {
        self.cause = Some(cause.into());
        self
    }

    /// Adds the entries of a JSON object.
    #[must_use]
    pub(crate) fn details(mut self, details: serde_json::Value) -> Self {
        self.details = Some(Box::new(details));
        self
    }

    #[must_use]
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }
}

/// What was printed, where the outcome of the command stands whether or not
/// anybody has read all of it.
pub(crate) fn printed(result: Result<(), CommandError>) -> Result<(), CommandError> {
    match result {
        Err(error) if error.exit == Exit::Quiet => Ok(()),
        result => result,
    }
}

impl From<io::Error> for CommandError {
    /// Errors of our own output: everything else has an error of its own.
    fn from(error: io::Error) -> Self {
        let exit =
            if error.kind() == io::ErrorKind::BrokenPipe { Exit::Quiet } else { Exit::Failure };
        Self {
            exit,
            ..Self::new("output", "the output cannot be written").cause(error.to_string())
        }
    }
}

impl From<serde_json::Error> for CommandError {
    fn from(error: serde_json::Error) -> Self {
        if error.is_io() {
            return Self::from(io::Error::from(error));
        }
        Self::new("internal", "the output cannot be put into JSON").cause(error.to_string())
    }
}

impl From<StoreError> for CommandError {
    fn from(error: StoreError) -> Self {
        let message = error.to_string();
        match error {
            StoreError::NotInitialised { suggested, .. } => {
                let hint = format!("run `agentd init` in {}", suggested.display());
                Self::new("not_initialised", "there is no agentd project here")
                    .cause(message)
                    .hint(hint)
            }
            StoreError::NoSuchChange { .. } => Self::new("no_such_change", message)
                .hint("`agentd list` shows the changes that are open"),
            StoreError::OpenRoot { source, .. } | StoreError::Io { source, .. } => {
                let error = Self::new("store", message).cause(source.to_string());
                remedy(&source).into_iter().fold(error, Self::hint)
            }
            StoreError::NoUserDir => Self::new("store", message)
                .hint("set HOME, or XDG_STATE_HOME to a directory of your own"),
            StoreError::StateInProject { .. } => Self::new("store", message)
                .cause("what lies in a repository may have come with it, so it decides nothing")
                .hint("set XDG_STATE_HOME to a directory outside of the project"),
            StoreError::ForeignState { path, .. } => Self::new("store", message).hint(format!(
                "remove {}, or set XDG_STATE_HOME to a directory of your own",
                path.display()
            )),
            _ => Self::new("store", message),
        }
    }
}

impl From<TrustError> for CommandError {
    fn from(error: TrustError) -> Self {
        let message = error.to_string();
        match error {
            TrustError::NotTrusted(standing) => {
                let lines: Vec<String> =
                    standing.settings.iter().map(ToString::to_string).collect();
                let details =
                    serde_json::json!({ "settings": trust::compared_settings(&standing) });
                Self::new("not_trusted", message)
                    .cause(lines.join("; "))
                    .details(details)
                    .hint("see what would run, and agree to it: agentd trust")
                    .hint("for this one command: --trust; for a CI job: AGENTD_TRUST=all")
            }
            TrustError::Store(error) => error.into(),
        }
    }
}

impl From<GitError> for CommandError {
    fn from(error: GitError) -> Self {
        if let GitError::Interrupted { .. } = error {
            return Self::interrupted();
        }
        let (cause, hints) = (error.cause(), error.solutions());
        Self { cause, hints, ..Self::new(error.kind(), error.to_string()) }
    }
}

impl From<LockError> for CommandError {
    fn from(error: LockError) -> Self {
        let message = error.to_string();
        match &error {
            // Nobody has it: the file cannot be used.
            LockError::Store { source, .. } => {
                let wrong = Self { cause: causes(&error), ..Self::new("store", message) };
                source.io().and_then(remedy).into_iter().fold(wrong, Self::hint)
            }
            LockError::Unsupported { .. } => {
                Self { cause: causes(&error), ..Self::new("store", message) }
                    .hint("move the project to a file system with locks, such as a local disk")
            }
            LockError::Held { .. } | LockError::TimedOut { .. } | LockError::Cancelled { .. } => {
                Self::new("locked", message)
                    .hint("wait for it to end, or stop it; a lock ends with its process")
            }
        }
    }
}

impl From<Refused> for CommandError {
    fn from(refused: Refused) -> Self {
        let error = Self::new("refused", refused.to_string());
        let allowed: Vec<String> =
            next::existing(&refused.allowed).map(|name| format!("`agentd {name}`")).collect();
        match allowed.as_slice() {
            [] if refused.phase == Phase::Complete => error.hint(
                "if you have looked at the code yourself: agentd archive <id> --force \"why\"",
            ),
            [] => error,
            allowed => error.hint(format!("allowed now: {}", allowed.join(", "))),
        }
    }
}

impl From<DocumentError> for CommandError {
    fn from(error: DocumentError) -> Self {
        let message = error.to_string();
        match error {
            DocumentError::Store(error) => error.into(),
            DocumentError::Lock(error) => error.into(),
            DocumentError::Refused(refused) => refused.into(),
            DocumentError::State { change, .. } => Self::new("state_invalid", message)
                .hint(format!("restore it: git checkout -- agentd/changes/{change}/STATE.yaml"))
                .hint("agentd never overwrites a state that it cannot read"),
            DocumentError::NoState { .. } => Self::new("no_state", message)
                .hint("restore STATE.yaml from git; a change without it was not begun by agentd"),
            DocumentError::Config(error) => {
                let wrong = Self::new("config_invalid", message);
                match error.hint {
                    Some(hint) => wrong.hint(hint),
                    None => wrong.hint("correct agentd/config.toml"),
                }
            }
        }
    }
}

impl From<ClarifyError> for CommandError {
    fn from(error: ClarifyError) -> Self {
        let message = error.to_string();
        match error {
            ClarifyError::Documents(error) => error.into(),
            ClarifyError::Step(error) => error.into(),
            ClarifyError::Action(error) => error.into(),
            ClarifyError::Questions { path, .. } => {
                Self::new("questions_invalid", message).hint(format!("remove it: rm {path}"))
            }
            ClarifyError::NoDescription(id) => Self::new("no_description", message)
                .hint(format!("say it: agentd clarify {id} \"<what you want>\"")),
            ClarifyError::Planned(id) => Self::new("refused", message)
                .hint(format!("leave the description out: agentd clarify {id}"))
                .hint("or begin another change under another id"),
            ClarifyError::BeyondPlanning { .. } => Self::new("refused", message),
        }
    }
}

impl From<ActionError> for CommandError {
    /// A tool's refusal, where a command did what else an agent does.
    fn from(error: ActionError) -> Self {
        match error {
            ActionError::Refused(refusal) => {
                let error = Self::new("refused", refusal.message);
                let error = match refusal.findings.first() {
                    Some(finding) => error.cause(finding.clone()),
                    None => error,
                };
                refusal.hint.into_iter().fold(error, Self::hint)
            }
            ActionError::Cancelled => Self::interrupted(),
            ActionError::Internal(message) => Self::new("internal", message),
        }
    }
}

impl From<StepError> for CommandError {
    /// The card of a step that failed (P28); one that was interrupted ends as Ctrl-C does.
    fn from(error: StepError) -> Self {
        let (kind, message) = (error.kind(), error.to_string());
        let cause = error.cause().or_else(|| causes(&error));
        let solutions = error.solutions();
        let base = match error {
            StepError::Documents(error) => return error.into(),
            _ if kind == "interrupted" => Self { message, ..Self::interrupted() },
            _ => Self::new(kind, message),
        };
        solutions.into_iter().fold(Self { cause, ..base }, Self::hint)
    }
}

impl From<ArchiveError> for CommandError {
    fn from(error: ArchiveError) -> Self {
        let message = error.to_string();
        match error {
            ArchiveError::Document(error) => error.into(),
            ArchiveError::Conflicts { .. } => Self::new("conflict", message),
            ArchiveError::Unsound { file, .. } => Self::new("unsound_spec", message)
                .hint(format!("correct {file}; `agentd validate` tells the places")),
            ArchiveError::NotArchived { .. } => Self::new("not_archived", message)
                .hint("`agentd list --archived` shows what is archived"),
            ArchiveError::NoRecord { .. } => Self::new("no_archive_record", message)
                .hint("it was not archived by `agentd archive`; take it back with git"),
            ArchiveError::IsOpen { .. } => Self::new("change_open", message),
            ArchiveError::ChangedSince { files, .. } => {
                let files: Vec<String> = files.iter().map(ToString::to_string).collect();
                Self::new("changed_since", message)
                    .cause(files.join(", "))
                    .hint("take back the later changes first: `agentd list --archived`")
            }
            ArchiveError::BadRecord { .. } => {
                Self::new("bad_record", message).hint("restore it from git, or remove it by hand")
            }
        }
    }
}
