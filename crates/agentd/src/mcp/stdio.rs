//! The two streams, and how the server notices that nobody is there any more.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use rmcp::transport::io::{StdioReader, StdioWriter, stdio_pipes};
use tokio::io::{AsyncRead, ReadBuf};
use tokio::sync::watch;

/// How long calls may still wait for their turn after the client has gone.
const PATIENCE: Duration = Duration::from_millis(600);

/// How often the parent and the client's end of the pipe are looked for.
const PARENT_CHECK: Duration = Duration::from_millis(250);

/// Whether the client has hung up. Clones know the same.
#[derive(Debug, Clone)]
pub(super) struct ClientGone(Arc<watch::Sender<bool>>);

impl ClientGone {
    pub(super) fn new() -> Self {
        Self(Arc::new(watch::Sender::new(false)))
    }

    pub(super) fn set(&self) {
        self.0.send_replace(true);
    }

    pub(super) fn is_set(&self) -> bool {
        *self.0.borrow()
    }

    /// Returns some time after the client has hung up: what was asked before
    /// is still done if it is soon done.
    pub(super) async fn and_waited(&self) {
        // The sender lives as long as `self`, so this ends only when it is set.
        let _ = self.0.subscribe().wait_for(|set| *set).await;
        tokio::time::sleep(PATIENCE).await;
    }
}

/// Standard input, which notes when it ends.
pub(super) struct Input {
    stream: StdioReader,
    hung_up: ClientGone,
}

/// The streams of the process.
pub(super) fn streams(hung_up: ClientGone) -> (Input, StdioWriter) {
    let (stream, output) = stdio_pipes();
    (Input { stream, hung_up }, output)
}

impl AsyncRead for Input {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let result = ready!(Pin::new(&mut self.stream).poll_read(cx, buf));
        if result.is_err() || buf.filled().len() == before {
            self.hung_up.set();
        }
        Poll::Ready(result)
    }
}

/// Returns when the process that started this one has ended. Its end of the
/// pipe may be held open by a child of its own, so the pipe does not show it.
///
/// Notes meanwhile when the client hangs up: nobody reads to the end of the input while all
/// requests that may be worked on wait for something.
#[cfg(unix)]
pub(super) async fn orphaned(hung_up: &ClientGone) {
    let parent = rustix::process::getppid();
    loop {
        tokio::time::sleep(PARENT_CHECK).await;
        if !hung_up.is_set() && input_is_closed() {
            hung_up.set();
        }
        if rustix::process::getppid() != parent {
            return;
        }
    }
}

/// Whether nobody has the other end of standard input, whatever is still to be read from it.
#[cfg(unix)]
fn input_is_closed() -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    let input = io::stdin();
    let mut input = [PollFd::new(&input, PollFlags::empty())];
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut input, Some(&at_once)).is_ok() && input[0].revents().contains(PollFlags::HUP)
}

/// There is no such notion elsewhere; the closed pipe has to do.
#[cfg(not(unix))]
pub(super) async fn orphaned(_hung_up: &ClientGone) {
    let _ = PARENT_CHECK;
    std::future::pending::<()>().await;
}
