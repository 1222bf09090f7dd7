//! Why a call failed.

use agentd_core::outcome::{Failure, FailureKind};

use crate::mcp_client::ClientError;

#[derive(Debug, thiserror::Error)]
pub(crate) enum AgentError {
    /// It ended by itself, with a reason.
    #[error("{}", .0.message)]
    Failed(Failure),
    /// Nobody reads the output.
    #[error("the output cannot be written: {0}")]
    Output(#[from] std::io::Error),
    #[error("agentd's MCP server: {0}")]
    Client(#[from] ClientError),
}

impl AgentError {
    pub(crate) fn new(kind: FailureKind, message: impl Into<String>, hint: &str) -> Self {
        Self::Failed(Failure::new(kind, message).hint(hint))
    }

    /// A failure that has no remedy of its own.
    pub(crate) fn other(message: impl Into<String>) -> Self {
        Self::Failed(Failure::new(FailureKind::Other, message))
    }

    pub(crate) fn failure(self) -> Failure {
        let message = self.to_string();
        match self {
            Self::Failed(failure) => failure,
            Self::Client(_) => Failure::new(FailureKind::McpUnavailable, message),
            Self::Output(_) => Failure::new(FailureKind::Other, message),
        }
    }
}
