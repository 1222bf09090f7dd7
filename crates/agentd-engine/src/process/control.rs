//! The messages between agentd and the supervisor of a child, over a socket
//! whose closing is itself a message: agentd is gone.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags,
};

/// From agentd: one byte each.
pub(super) mod command {
    /// Comes first, with the descriptor for standard input.
    pub(in crate::process) const START: u8 = b'S';
    /// SIGINT to the group.
    pub(in crate::process) const INTERRUPT: u8 = b'I';
    /// SIGTERM to the group.
    pub(in crate::process) const TERMINATE: u8 = b'T';
    /// SIGKILL to everything.
    pub(in crate::process) const KILL: u8 = b'K';
    /// Everything stops until the next one.
    pub(in crate::process) const FREEZE: u8 = b'F';
    /// Everything continues.
    pub(in crate::process) const THAW: u8 = b'C';
}

/// From the supervisor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Report {
    /// The child runs; its process id, which is also its group.
    Started(i32),
    /// The child could not be started; the error of the system.
    SpawnFailed(i32),
    /// The child has exited with this code.
    Exited(i32),
    /// A signal has ended the child.
    Killed(i32),
    /// What the cage keeps the child from, encoded.
    Confined(i32),
    /// The cage could not be set up.
    CageFailed {
        /// Which step.
        step: i32,
        /// The error of the system.
        error: i32,
    },
    /// Whether everything has stopped: 1 or 0.
    Frozen(i32),
    /// Everything has ended; this many stragglers had to be killed.
    Clean(i32),
}

/// Numbers of errors are below this.
const STEP: i32 = 10_000;

/// The size of a report on the wire.
pub(super) const REPORT_BYTES: usize = 5;

impl Report {
    pub(super) fn encode(self) -> [u8; REPORT_BYTES] {
        let (tag, value) = match self {
            Self::Started(pid) => (b'P', pid),
            Self::SpawnFailed(error) => (b'E', error),
            Self::Exited(code) => (b'X', code),
            Self::Killed(signal) => (b'G', signal),
            Self::Confined(is) => (b'C', is),
            Self::CageFailed { step, error } => (b'F', step * STEP + error.clamp(0, STEP - 1)),
            Self::Frozen(held) => (b'H', held),
            Self::Clean(stragglers) => (b'Z', stragglers),
        };
        let [a, b, c, d] = value.to_le_bytes();
        [tag, a, b, c, d]
    }

    pub(super) fn decode(bytes: [u8; REPORT_BYTES]) -> Option<Self> {
        let [tag, value @ ..] = bytes;
        let value = i32::from_le_bytes(value);
        Some(match tag {
            b'P' => Self::Started(value),
            b'E' => Self::SpawnFailed(value),
            b'X' => Self::Exited(value),
            b'G' => Self::Killed(value),
            b'C' => Self::Confined(value),
            b'F' => Self::CageFailed { step: value / STEP, error: value % STEP },
            b'H' => Self::Frozen(value),
            b'Z' => Self::Clean(value),
            _ => return None,
        })
    }
}

/// Sends the first command with a descriptor. It waits in the socket until the
/// supervisor fetches it.
pub(super) fn send_start(socket: impl AsFd, stdin: BorrowedFd<'_>) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let fds = [stdin];
    if !control.push(SendAncillaryMessage::ScmRights(&fds)) {
        return Err(io::Error::other("no room for a descriptor"));
    }
    let bytes = [IoSlice::new(&[command::START])];
    rustix::net::sendmsg(socket, &bytes, &mut control, SendFlags::empty())?;
    Ok(())
}

/// Fetches the descriptor. None: agentd is gone, or sent something else.
pub(super) fn receive_start(socket: impl AsFd) -> io::Result<Option<OwnedFd>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let mut bytes = [IoSliceMut::new(&mut byte)];
    let got = rustix::net::recvmsg(socket, &mut bytes, &mut control, RecvFlags::empty())?;
    let fds = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(fds) => Some(fds),
        _ => None,
    });
    let fd = fds.flatten().next();
    if got.bytes != 1 || byte != [command::START] {
        return Ok(None);
    }
    if let Some(fd) = &fd {
        rustix::io::fcntl_setfd(fd, rustix::io::FdFlags::CLOEXEC)?;
    }
    Ok(fd)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read as _, Write as _};
    use std::os::unix::net::UnixStream;

    #[test]
    fn a_descriptor_goes_through() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let (reader, mut writer) = io::pipe().unwrap();
        send_start(&ours, reader.as_fd()).unwrap();
        drop(reader);
        let mut received = std::fs::File::from(receive_start(&theirs).unwrap().unwrap());
        writer.write_all(b"hello").unwrap();
        drop(writer);
        let mut text = String::new();
        received.read_to_string(&mut text).unwrap();
        assert_eq!(text, "hello");
        drop(ours);
        assert!(receive_start(&theirs).unwrap().is_none());
    }

    #[test]
    fn reports_round_trip() {
        for report in [
            Report::Started(7),
            Report::Exited(-1),
            Report::CageFailed { step: 3, error: 22 },
            Report::Frozen(1),
            Report::Clean(0),
        ] {
            assert_eq!(Report::decode(report.encode()), Some(report));
        }
    }
}
