//! Why a call could not be made.

use std::io;
use std::path::PathBuf;

use agentd_core::error_kind::Kind;

use crate::agents::files::FilesError;
use crate::carrier::CarrierError;
use crate::explain::{ErrorReport, Explain};
use crate::guard::git_files::GuardError;
use crate::guard::project_files::RepositoryError;
use crate::guard::sandbox;
use crate::process::ProcessError;

/// Why a call could not be made or recorded. That an agent failed is no error but
/// an outcome.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The agent's files could not be prepared.
    #[error(transparent)]
    Files(#[from] FilesError),
    /// The run could not be recorded. A run that nobody can look at has not succeeded.
    #[error("cannot write the run file in {}", change_dir.display())]
    Record {
        /// The directory of the change.
        change_dir: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The process could not be run.
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// What git runs could not be kept as it is.
    #[error(transparent)]
    Guard(#[from] GuardError),
    /// The repository would have a say in what the agent does.
    #[error(transparent)]
    Obeyed(#[from] RepositoryError),
    /// Somebody else has the change, or nobody could be told that the call is made.
    #[error(transparent)]
    Carrier(#[from] CarrierError),
}

impl Explain for RunError {
    fn explain(&self) -> ErrorReport {
        match self {
            Self::Process(ProcessError::Cage { .. }) => sandbox::unavailable(self),
            Self::Carrier(error) => error.explain(),
            Self::Obeyed(RepositoryError::Obeyed { .. }) => {
                ErrorReport::of(Kind::RepositorySettings, self).hint(
                    "remove it from the project, or give the role to another agent in [roles]",
                )
            }
            Self::Obeyed(_) => ErrorReport::of(Kind::RepositorySettings, self)
                .hint("set variables in your own environment or in ~/.gemini/.env")
                .hint("then remove that file from the project, or move it away"),
            Self::Files(FilesError::NotJson { path }) => ErrorReport::of(Kind::Run, self).edit(
                "correct it; comments and trailing commas are fine",
                path.display().to_string(),
            ),
            _ => ErrorReport::of(Kind::Run, self),
        }
    }
}
