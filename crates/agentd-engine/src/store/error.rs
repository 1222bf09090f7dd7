//! What can go wrong with a file.

use std::io;
use std::path::PathBuf;

use agentd_core::command_line::CommandLine;
use agentd_core::error_kind::Kind;
use agentd_core::ids::ChangeId;
use agentd_core::layout::NameError;
use agentd_core::rel_path::{PathError, RelPath};

use super::confined::EntryKind;
use crate::explain::{ErrorReport, Explain};

/// Why the store could not do what was asked. Paths are relative to the project.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The text is no path inside a project at all.
    #[error(transparent)]
    Path(#[from] PathError),
    /// The text cannot be the name of a run log.
    #[error(transparent)]
    Name(#[from] NameError),
    /// A symlink on the way leads out of the directory that the caller is confined to.
    #[error("`{path}` leads outside of the directory it must stay in")]
    Escapes {
        /// The path.
        path: RelPath,
    },
    /// A symlink stands where agentd does not follow one.
    #[error("`{path}` is or contains a symbolic link, which is not followed here")]
    Symlink {
        /// The path.
        path: RelPath,
    },
    /// There is nothing at this path.
    #[error("`{path}` does not exist")]
    NotFound {
        /// The path.
        path: RelPath,
    },
    /// There is something at this path already.
    #[error("`{path}` already exists")]
    AlreadyExists {
        /// The path.
        path: RelPath,
    },
    /// A file was wanted.
    #[error("`{path}` is {kind}, not a file")]
    NotAFile {
        /// The path.
        path: RelPath,
        /// What it is instead.
        kind: EntryKind,
    },
    /// A directory was wanted.
    #[error("`{path}` is not a directory, or leads through something that is not one")]
    NotADirectory {
        /// The path.
        path: RelPath,
    },
    /// The file is larger than agentd is willing to read.
    #[error("`{path}` has {size} bytes; the limit is {cap}")]
    TooLarge {
        /// The path.
        path: RelPath,
        /// How large the file is.
        size: u64,
        /// How much would be read.
        cap: u64,
    },
    /// The file is not text.
    #[error("`{path}` is not valid UTF-8: bad byte at offset {offset}")]
    NotUtf8 {
        /// The path.
        path: RelPath,
        /// Where the first bad byte stands, from 0.
        offset: usize,
    },
    /// No change of this name.
    #[error("there is no change `{change}`")]
    NoSuchChange {
        /// The id that was asked for.
        change: ChangeId,
    },
    /// A write was tried under the lock of another change.
    #[error("the lock of `{locked}` was used to write to `{change}`")]
    WrongLock {
        /// The change to be written.
        change: ChangeId,
        /// The change that is locked.
        locked: ChangeId,
    },
    /// No project here or above.
    #[error("no agentd project in {} or any directory above it", start.display())]
    NotInitialised {
        /// Where the search began.
        start: PathBuf,
        /// Where `agentd init` would make sense: the root of the repository, otherwise the start.
        suggested: PathBuf,
    },
    /// A directory outside of any project could not be opened.
    #[error("cannot open the directory {}", path.display())]
    OpenRoot {
        /// The directory.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// There is no home directory to keep anything in.
    #[error("no home directory for agentd's own state")]
    NoUserDir,
    /// The project holds the user's state directory, so that a clone could have brought it.
    #[error("the project {} contains agentd's state directory {}", root.display(), state.display())]
    StateInProject {
        /// The state directory.
        state: PathBuf,
        /// The project.
        root: PathBuf,
    },
    /// The state directory belongs to somebody else.
    #[error("{} belongs to user {owner}, not to you", path.display())]
    ForeignState {
        /// The directory.
        path: PathBuf,
        /// The owner's user id.
        owner: u32,
    },
    /// The system refused.
    #[error("cannot {action} `{path}`")]
    Io {
        /// What was tried, as a verb.
        action: &'static str,
        /// The path.
        path: RelPath,
        /// The error of the system.
        source: io::Error,
    },
}

impl StoreError {
    /// What the system said, where it was the system that refused.
    pub fn io(&self) -> Option<&io::Error> {
        match self {
            Self::OpenRoot { source, .. } | Self::Io { source, .. } => Some(source),
            _ => None,
        }
    }

    /// Whether the thing is simply not there.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::NotFound { .. } | Self::NoSuchChange { .. })
    }

    /// Sorts an error of the system into the cases above.
    pub(crate) fn from_io(action: &'static str, path: RelPath, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::NotFound => Self::NotFound { path },
            io::ErrorKind::AlreadyExists => Self::AlreadyExists { path },
            io::ErrorKind::NotADirectory => Self::NotADirectory { path },
            // cap-std reports an escape as an error of its own, the system one with a number.
            io::ErrorKind::PermissionDenied if source.raw_os_error().is_none() => {
                Self::Escapes { path }
            }
            _ => Self::Io { action, path, source },
        }
    }
}

impl Explain for StoreError {
    fn explain(&self) -> ErrorReport {
        let report = |kind| ErrorReport::of(kind, self);
        match self {
            Self::NotInitialised { suggested, .. } => {
                let purpose = format!("set one up in {}", suggested.display());
                ErrorReport::new(Kind::NotInitialised, "there is no agentd project here")
                    .cause(self.to_string())
                    .run(purpose, CommandLine::agentd(["init"]))
            }
            Self::NoSuchChange { .. } => report(Kind::NoSuchChange)
                .run("see which changes are open", CommandLine::agentd(["list"])),
            Self::NoUserDir => {
                report(Kind::Store).hint("set HOME, or XDG_STATE_HOME to a directory of your own")
            }
            Self::StateInProject { .. } => report(Kind::Store)
                .cause("files in a repository may have come with it, so agentd does not trust them")
                .hint("set XDG_STATE_HOME to a directory outside of the project"),
            Self::ForeignState { path, .. } => report(Kind::Store).hint(format!(
                "remove {}, or set XDG_STATE_HOME to a directory of your own",
                path.display()
            )),
            _ => report(Kind::Store).remedy(self.io()),
        }
    }
}
