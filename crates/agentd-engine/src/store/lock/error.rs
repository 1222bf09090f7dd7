//! Why a lock was not taken, and what can be done about it.

use std::io;
use std::time::Duration;

use agentd_core::error_kind::Kind;

use super::{Holder, LockName};
use crate::explain::{ErrorReport, Explain};
use crate::store::StoreError;

/// Why a lock was not taken.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Somebody else has it.
    #[error("{name} is held by {}", shown(holder.as_ref()))]
    Held {
        /// The lock.
        name: LockName,
        /// Who has it, where that could be read.
        holder: Option<Holder>,
    },
    /// Somebody else had it for as long as we were willing to wait.
    #[error("{name} is still held by {} after {} s", shown(holder.as_ref()), waited.as_secs())]
    TimedOut {
        /// The lock.
        name: LockName,
        /// Who has it, where that could be read.
        holder: Option<Holder>,
        /// How long we waited.
        waited: Duration,
    },
    /// The caller that waited was asked to stop.
    #[error("stopped waiting for {name}")]
    Cancelled {
        /// The lock.
        name: LockName,
    },
    /// The file system has no locks. Continuing without them would corrupt files.
    #[error("the file system of this project does not support locks")]
    Unsupported {
        /// The lock.
        name: LockName,
        /// The error of the system.
        source: io::Error,
    },
    /// The file of the lock cannot be used.
    #[error("cannot lock {name}")]
    Store {
        /// The lock.
        name: LockName,
        /// Why.
        source: StoreError,
    },
}

impl Explain for LockError {
    fn explain(&self) -> ErrorReport {
        match self {
            Self::Store { source, .. } => ErrorReport::of(Kind::Store, self).remedy(source.io()),
            Self::Unsupported { .. } => ErrorReport::of(Kind::Store, self).hint(
                "move the project to a file system that supports locks, such as a local disk",
            ),
            Self::Held { name: LockName::Branch | LockName::Code, .. } => {
                ErrorReport::of(Kind::Locked, self).hint(
                    "wait for it to finish; changes that are planned with `--git worktree` can be \
                     worked on at the same time",
                )
            }
            Self::Held { .. } | Self::TimedOut { .. } | Self::Cancelled { .. } => {
                ErrorReport::of(Kind::Locked, self)
                    .hint("wait for it to finish, or stop it; the lock ends with its process")
            }
        }
    }
}

fn shown(holder: Option<&Holder>) -> String {
    holder.map_or_else(|| "another process".to_owned(), Holder::to_string)
}
