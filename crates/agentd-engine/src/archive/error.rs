//! What can stand in the way of archiving.

use agentd_core::ids::ChangeId;
use agentd_core::phase::Refused;
use agentd_core::rel_path::RelPath;

use super::SpecConflict;
use crate::change::documents::DocumentError;
use crate::store::{LockError, StoreError};

/// Why a change could not be archived or taken back.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// A document or its state stands in the way.
    #[error(transparent)]
    Document(#[from] DocumentError),
    /// The main specs have changed in ways that contradict the change.
    #[error("{} of the change and of the main specs contradict each other", edits(conflicts.len()))]
    Conflicts {
        /// All of them, with their texts.
        conflicts: Vec<SpecConflict>,
    },
    /// A document of the change cannot be merged.
    #[error("`{file}` cannot be merged: {why}")]
    Unsound {
        /// The file.
        file: RelPath,
        /// Why.
        why: String,
    },
    /// No such change is in the archive.
    #[error("there is no archived change `{change}`")]
    NotArchived {
        /// What was asked for.
        change: String,
    },
    /// An archived change has no record of what archiving did.
    #[error("`{dir}` has no archive.json that says what archiving changed")]
    NoRecord {
        /// The directory in the archive.
        dir: RelPath,
    },
    /// A change of this id is open, so that the archived one has no place to go.
    #[error("a change `{change}` is open")]
    IsOpen {
        /// The change.
        change: ChangeId,
    },
    /// Main specs have changed since.
    #[error("{} changed since `{change}` was archived", files_have(files))]
    ChangedSince {
        /// The change.
        change: ChangeId,
        /// The files.
        files: Vec<RelPath>,
    },
    /// What agentd has written for itself cannot be read.
    #[error("`{file}` cannot be read: {why}")]
    BadRecord {
        /// The file.
        file: RelPath,
        /// Why.
        why: String,
    },
}

fn edits(count: usize) -> String {
    if count == 1 { "1 edit".to_owned() } else { format!("{count} edits") }
}

fn files_have(files: &[RelPath]) -> String {
    match files {
        [one] => format!("`{one}` has"),
        [one, rest @ ..] => format!("`{one}` and {} more have", rest.len()),
        [] => "nothing has".to_owned(),
    }
}

impl From<StoreError> for ArchiveError {
    fn from(error: StoreError) -> Self {
        Self::Document(error.into())
    }
}

impl From<LockError> for ArchiveError {
    fn from(error: LockError) -> Self {
        Self::Document(error.into())
    }
}

impl From<Refused> for ArchiveError {
    fn from(error: Refused) -> Self {
        Self::Document(error.into())
    }
}
