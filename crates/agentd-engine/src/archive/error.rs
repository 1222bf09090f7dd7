//! What can stand in the way of archiving.

use agentd_core::command_line::CommandLine;
use agentd_core::error_kind::Kind;
use agentd_core::ids::ChangeId;
use agentd_core::phase::Refused;
use agentd_core::rel_path::RelPath;

use super::SpecConflict;
use crate::change::documents::DocumentError;
use crate::change::staleness::{self, Stale};
use crate::explain::{ErrorReport, Explain};
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
    /// The change was edited since it was approved (T3).
    #[error("`{change}` was edited since it was approved: {}", staleness::listed(stale))]
    Stale {
        /// The change.
        change: ChangeId,
        /// What is stale.
        stale: Vec<Stale>,
    },
    /// A document of the change cannot be merged.
    #[error("cannot merge `{file}`: {why}")]
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
    #[error("an open change has the ID `{change}`")]
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
    #[error("cannot read `{file}`: {why}")]
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

impl Explain for ArchiveError {
    fn explain(&self) -> ErrorReport {
        let report = |kind| ErrorReport::of(kind, self);
        let list = || CommandLine::agentd(["list", "--archived"]);
        match self {
            Self::Document(error) => error.explain(),
            Self::Conflicts { .. } => report(Kind::Conflict),
            Self::Stale { change, .. } => {
                let id = change.as_str();
                let accept = ["archive", id, "--accept-stale", "--note", "reviewed by hand"];
                report(Kind::ReviewStale)
                    .cause("a verdict is about the files and documents that the reviewer saw")
                    .run("see what is stale", CommandLine::agentd(["status", id]))
                    .hint("undo the edit")
                    .run("or archive it all the same, and say why", CommandLine::agentd(accept))
            }
            Self::Unsound { file, .. } => report(Kind::UnsoundSpec)
                .edit("fix it", file.to_string())
                .run("see what is wrong with it", CommandLine::agentd(["validate", "--all"])),
            Self::NotArchived { .. } => {
                report(Kind::NotArchived).run("see which changes are archived", list())
            }
            Self::NoRecord { .. } => {
                report(Kind::NoArchiveRecord).hint("agentd did not archive it; revert it with git")
            }
            Self::IsOpen { change } => report(Kind::ChangeOpen).run(
                "rename the open one",
                CommandLine::agentd(["rename", change.as_str()]).placeholder("<new-id>"),
            ),
            Self::ChangedSince { files, .. } => {
                let files: Vec<String> = files.iter().map(ToString::to_string).collect();
                report(Kind::ChangedSince)
                    .cause(files.join(", "))
                    .run("find later changes, and unarchive them first", list())
            }
            Self::BadRecord { .. } => {
                report(Kind::BadRecord).hint("restore it from git, or remove it by hand")
            }
        }
    }
}
