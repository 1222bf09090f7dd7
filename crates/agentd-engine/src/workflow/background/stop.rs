//! Stopping the command that works on a change, no matter who has started it.

use agentd_core::command_line::CommandLine;
use agentd_core::error_kind::Kind;
use agentd_core::ids::ChangeId;

use crate::explain::{ErrorReport, Explain};
use crate::process::{InterruptError, interrupt_holder};
use crate::store::{Holder, LockError, LockName, LockState, Project, host, lock_file, lock_state};

/// Why nothing was stopped.
#[derive(Debug, thiserror::Error)]
pub enum StopError {
    /// Nobody works on it.
    #[error("nobody is working on `{change}`")]
    NotRunning {
        /// The change.
        change: ChangeId,
    },
    /// Somebody does, on another machine.
    #[error("it is being worked on elsewhere: {holder}")]
    Elsewhere {
        /// Who.
        holder: Holder,
    },
    /// Somebody has locked it, and it is not known to be who the lock says.
    #[error("it is not known which process is working on `{change}`")]
    Unknown {
        /// The change.
        change: ChangeId,
    },
    /// The lock cannot be read.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The system said no.
    #[error("it cannot be stopped: {0}")]
    Signal(#[from] std::io::Error),
}

impl Explain for StopError {
    fn explain(&self) -> ErrorReport {
        match self {
            Self::NotRunning { change } => ErrorReport::of(Kind::NotRunning, self)
                .run("see what is next", CommandLine::agentd(["status", change.as_str()])),
            Self::Elsewhere { .. } => {
                ErrorReport::of(Kind::NotRunning, self).hint("press Ctrl-C where it was started")
            }
            Self::Unknown { .. } => {
                ErrorReport::of(Kind::NotRunning, self).hint("press Ctrl-C where it was started")
            }
            Self::Lock(error) => error.explain(),
            Self::Signal(_) => ErrorReport::of(Kind::Store, self),
        }
    }
}

/// Whether [`stop`] can stop anything here: it has to see which files a process has open.
pub const CAN_STOP: bool = cfg!(target_os = "linux");

/// Asks the command that works on a change to stop, as Ctrl-C does, and returns which it was. Anyone
/// who can write to the project can write any number into the file of the lock, so the process gets
/// the signal only if the system says that it has that file open.
pub fn stop(project: &Project, change: &ChangeId) -> Result<Holder, StopError> {
    let name = LockName::Run(change.clone());
    let unknown = || StopError::Unknown { change: change.clone() };
    let holder = match lock_state(project.dir(), &name)? {
        LockState::Free => return Err(StopError::NotRunning { change: change.clone() }),
        LockState::Held(None) => return Err(unknown()),
        LockState::Held(Some(holder)) => holder,
    };
    if holder.host != host() {
        return Err(StopError::Elsewhere { holder });
    }
    let file = lock_file(project.dir(), &name).map_err(|_| unknown())?;
    match interrupt_holder(holder.pid, &file) {
        Ok(()) => Ok(holder),
        Err(InterruptError::NotTheHolder) => Err(unknown()),
        Err(InterruptError::System(error)) => Err(error.into()),
    }
}
