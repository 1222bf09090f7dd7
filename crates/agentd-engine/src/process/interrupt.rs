//! Interrupting another process of this user, if it is the one that has a file open.

use std::fs::File;
use std::io;

/// Why a process was not interrupted.
#[derive(Debug, thiserror::Error)]
pub(crate) enum InterruptError {
    /// It does not have the file open, or there is no such process.
    #[error("it does not have the file open")]
    NotTheHolder,
    /// The system said no.
    #[error(transparent)]
    System(#[from] io::Error),
}

/// Sends SIGINT to a process that has a file open. Its number may be another process's by now, or a
/// lie: so the process is held by a descriptor first, then looked at, then signaled.
#[cfg(target_os = "linux")]
pub(crate) fn interrupt_holder(pid: u32, file: &File) -> Result<(), InterruptError> {
    use std::os::unix::fs::MetadataExt as _;

    use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

    let number = i32::try_from(pid).ok().and_then(Pid::from_raw);
    // Not this process, and not the first one of the machine.
    let number = number.filter(|_| pid > 1 && pid != std::process::id());
    let number = number.ok_or(InterruptError::NotTheHolder)?;
    let process =
        pidfd_open(number, PidfdFlags::empty()).map_err(|_| InterruptError::NotTheHolder)?;
    let wanted = file.metadata()?;
    let wanted = (wanted.dev(), wanted.ino());
    let is_it = |entry: io::Result<std::fs::DirEntry>| {
        let opened = entry.and_then(|entry| std::fs::metadata(entry.path()));
        opened.is_ok_and(|opened| (opened.dev(), opened.ino()) == wanted)
    };
    let open = std::fs::read_dir(format!("/proc/{pid}/fd"));
    if !open.is_ok_and(|mut open| open.any(is_it)) {
        return Err(InterruptError::NotTheHolder);
    }
    pidfd_send_signal(&process, Signal::INT).map_err(|error| InterruptError::System(error.into()))
}

/// The same where nothing shows which files a process has open: nothing is interrupted.
#[cfg(not(target_os = "linux"))]
pub(crate) fn interrupt_holder(_pid: u32, _file: &File) -> Result<(), InterruptError> {
    Err(InterruptError::NotTheHolder)
}
