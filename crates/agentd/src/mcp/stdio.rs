//! The two streams, and how the server notices that nobody is there any more.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use rmcp::transport::io::{StdioReader, StdioWriter, stdio_pipes};
use tokio::io::{AsyncRead, ReadBuf};

/// How often the parent is looked for.
const PARENT_CHECK: Duration = Duration::from_millis(250);

/// Standard input, which notes when it ends.
pub(super) struct Input {
    stream: StdioReader,
    closed: Arc<AtomicBool>,
}

/// The streams of the process. `closed` is set once the client has hung up.
pub(super) fn streams(closed: Arc<AtomicBool>) -> (Input, StdioWriter) {
    let (stream, output) = stdio_pipes();
    (Input { stream, closed }, output)
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
            self.closed.store(true, Ordering::Relaxed);
        }
        Poll::Ready(result)
    }
}

/// Returns when the process that started this one has ended. Its end of the
/// pipe may be held open by a child of its own, so the pipe does not tell.
#[cfg(unix)]
pub(super) async fn orphaned() {
    let parent = rustix::process::getppid();
    loop {
        tokio::time::sleep(PARENT_CHECK).await;
        if rustix::process::getppid() != parent {
            return;
        }
    }
}

/// There is no such notion elsewhere; the closed pipe has to do.
#[cfg(not(unix))]
pub(super) async fn orphaned() {
    let _ = PARENT_CHECK;
    std::future::pending::<()>().await;
}
