//! Why a step failed: for code as a kind, for people as a card with the cause and
//! what to do (P28).

use agentd_core::agent::AgentKind;
use agentd_core::diagnostic::Diagnostic;
use agentd_core::ids::ChangeId;
use agentd_core::outcome::{Failure, FailureKind};
use agentd_core::provider::sessions::SessionError;
use agentd_core::text::counted;

use crate::agents::runner::RunError;
use crate::change::documents::DocumentError;
use crate::guard::git_files::{self, Tampered};
use crate::guard::sandbox::SandboxError;
use crate::process::ProcessError;
use crate::store::StoreError;

/// Why a step failed.
#[derive(Debug, thiserror::Error)]
pub enum StepError {
    /// A document or the state could not be worked with.
    #[error(transparent)]
    Documents(#[from] DocumentError),
    /// The call could not be made or recorded.
    #[error(transparent)]
    Run(#[from] RunError),
    /// There is no sandbox to make the call in.
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
    /// The session to go on with was not found.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// The change has used up what it may cost.
    #[error("the budget of `{change}` is used up: {spent} of {limit}")]
    Budget {
        /// The change.
        change: ChangeId,
        /// What it has used.
        spent: String,
        /// What it may use.
        limit: String,
    },
    /// Somebody wanted it to stop.
    #[error("interrupted")]
    Interrupted,
    /// The agent failed.
    #[error("{agent} failed: {failure}")]
    Agent {
        /// Who.
        agent: AgentKind,
        /// How.
        failure: Failure,
    },
    /// Something was changed that others run or obey, or that only agentd writes.
    #[error("{who} changed what is not its own: {}", git_files::list(tampered))]
    Tampered {
        /// The agent, or the tests.
        who: &'static str,
        /// What.
        tampered: Vec<Tampered>,
    },
    /// The agent reported success, and what it should have written is not there.
    #[error("{agent} reported success, but {} {}", file, if *.exists { "is as it was" } else { "is not there" })]
    NoArtefact {
        /// Who.
        agent: AgentKind,
        /// What is missing.
        file: String,
        /// Whether there is an earlier one.
        exists: bool,
        /// What the agent said at the end.
        said: String,
    },
    /// What the agent wrote is not valid.
    #[error("{file} is not valid after {agent}: {}", counted(findings.len(), "finding"))]
    InvalidArtefact {
        /// Who.
        agent: AgentKind,
        /// The file.
        file: String,
        /// The HIGH findings.
        findings: Vec<Diagnostic>,
    },
}

impl From<StoreError> for StepError {
    fn from(error: StoreError) -> Self {
        Self::Documents(error.into())
    }
}

impl StepError {
    /// What kind of error it is; stable, in `snake_case`.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Documents(_) => "documents",
            Self::Sandbox(_) | Self::Run(RunError::Process(ProcessError::Cage { .. })) => "sandbox",
            Self::Run(RunError::Obeyed(_)) => "repository_settings",
            Self::Run(_) => "run",
            Self::Session(error) => error.kind(),
            Self::Budget { .. } => "budget",
            Self::Interrupted => "interrupted",
            Self::Agent { failure, .. } => match failure.kind {
                FailureKind::SessionNotFound => "session_not_found",
                FailureKind::McpUnavailable => "mcp_unavailable",
                FailureKind::NotInstalled => "agent_not_installed",
                FailureKind::Auth => "agent_auth",
                FailureKind::Cancelled => "interrupted",
                _ => "agent_failed",
            },
            Self::Tampered { .. } => "tampered",
            Self::NoArtefact { .. } => "no_artefact",
            Self::InvalidArtefact { .. } => "invalid_artefact",
        }
    }

    /// Why, as far as it is known.
    pub fn cause(&self) -> Option<String> {
        match self {
            Self::Agent { failure, .. } if !failure.stderr_tail.is_empty() => {
                Some(failure.stderr_tail.clone())
            }
            Self::Agent { failure, .. } if failure.kind == FailureKind::McpUnavailable => {
                Some("its tool server did not start, or its settings forbid it".to_owned())
            }
            Self::Session(SessionError::NotFound { id }) => {
                Some(format!("the session {id} has expired or was deleted"))
            }
            Self::Session(SessionError::NotCaptured) => {
                Some("no session is known in which the planner could go on".to_owned())
            }
            Self::Session(error) => error.output(),
            Self::Tampered { tampered, .. } => Some(
                if tampered.iter().all(|one| one.restored) {
                    "others would run or obey it outside of the agent's confinement; all of it \
                     was put back as it was, and nothing of it was run"
                } else {
                    "others would run or obey it outside of the agent's confinement, and not all \
                     of it could be put back as it was"
                }
                .to_owned(),
            ),
            Self::NoArtefact { said, .. } => Some(if said.is_empty() {
                "it said nothing and called no tool that writes".to_owned()
            } else {
                format!("it called no tool that writes; its last words were: {said}")
            }),
            Self::InvalidArtefact { findings, .. } => {
                findings.first().map(|finding| finding.message.clone())
            }
            Self::Run(RunError::Process(ProcessError::Cage { source, .. })) => {
                Some(source.to_string())
            }
            Self::Documents(_)
            | Self::Run(_)
            | Self::Sandbox(_)
            | Self::Interrupted
            | Self::Budget { .. }
            | Self::Agent { .. } => None,
        }
    }

    /// What to do about it.
    pub fn solutions(&self) -> Vec<String> {
        let own = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>();
        match self {
            Self::Sandbox(_) | Self::Run(RunError::Process(ProcessError::Cage { .. })) => own(&[
                "see what this system can enforce: agentd doctor",
                "set `[sandbox] enabled = false` in agentd/config.toml to run without a sandbox",
            ]),
            Self::Run(RunError::Obeyed(_)) => own(&[
                "set variables in your own environment, or in ~/.gemini/.env",
                "then remove that file from the project, or move it away",
            ]),
            Self::Documents(_) | Self::Run(_) | Self::Interrupted => Vec::new(),
            Self::Session(_) => {
                own(&["re-run the proposal: its session may have expired or been deleted"])
            }
            Self::Budget { .. } => own(&["raise [budget] in agentd/config.toml, or go on by hand"]),
            Self::Agent { failure, .. } if failure.kind == FailureKind::McpUnavailable => own(&[
                "look whether the MCP server starts: agentd doctor",
                "look whether the agent's settings forbid MCP servers",
            ]),
            Self::Agent { failure, .. } => failure.hint.clone().into_iter().collect(),
            Self::Tampered { tampered, .. } => {
                let left = tampered.iter().filter(|one| !one.restored);
                let mut lines: Vec<String> = left
                    .map(|one| format!("look at it before you call git or an agent: {}", one.path))
                    .collect();
                lines.extend(own(&[
                    "see what it wrote: the newest file in the change's runs/",
                    "if it is wanted, do it yourself; then run the step again",
                ]));
                lines
            }
            Self::NoArtefact { .. } => own(&[
                "run the step again: a model may forget to call its tool",
                "look at what it did: the newest file in the change's runs/",
                "look whether the MCP server starts: agentd doctor",
            ]),
            Self::InvalidArtefact { findings, file, .. } => {
                let mut lines = vec![format!("edit {file}, or run the step again")];
                lines.extend(findings.iter().take(5).map(|finding| {
                    format!("{}: {} {}", finding.rule.code, finding.message, finding.advice())
                }));
                lines
            }
        }
    }
}
