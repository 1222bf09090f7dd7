//! A limited number of connections, each of which has to send its request within seconds.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::serve::Listener;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, Sleep, sleep};

/// How long the headers of a request may take.
const HEADERS: Duration = Duration::from_secs(10);

/// How long a connection may be silent after an answer. Streams send something every 15 s.
const IDLE: Duration = Duration::from_mins(1);

/// How many connections there may be at a time: a browser uses six.
const MOST: usize = 64;

/// Accepts connections up to the limit; others wait in the queue of the system.
pub(super) struct Connections {
    listener: TcpListener,
    places: Arc<Semaphore>,
}

impl Connections {
    pub(super) fn new(listener: TcpListener) -> Self {
        Self { listener, places: Arc::new(Semaphore::new(MOST)) }
    }
}

impl Listener for Connections {
    type Io = Connection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Connection, SocketAddr) {
        // The semaphore is never closed.
        let place = Arc::clone(&self.places).acquire_owned().await.ok();
        let (stream, address) = Listener::accept(&mut self.listener).await;
        (Connection::new(stream, place), address)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// A connection with a deadline.
pub(super) struct Connection {
    stream: TcpStream,
    deadline: Pin<Box<Sleep>>,
    state: State,
    _place: Option<OwnedSemaphorePermit>,
}

/// What the connection is waiting for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// The next request.
    Silent,
    /// The rest of the headers, of whose end this many characters have arrived.
    Headers(usize),
    /// Our answer, which may take any time.
    Answer,
}

impl Connection {
    fn new(stream: TcpStream, place: Option<OwnedSemaphorePermit>) -> Self {
        let deadline = Box::pin(sleep(HEADERS));
        Self { stream, deadline, state: State::Headers(0), _place: place }
    }

    fn due_in(&mut self, limit: Duration) {
        self.deadline.as_mut().reset(Instant::now() + limit);
    }

    /// Follows what the client has sent.
    fn heard(&mut self, bytes: &[u8]) {
        const END: &[u8; 4] = b"\r\n\r\n";
        if self.state == State::Silent {
            self.state = State::Headers(0);
            self.due_in(HEADERS);
        }
        for byte in bytes {
            let State::Headers(seen) = self.state else { return };
            let seen = match END.get(seen) {
                Some(next) if next == byte => seen + 1,
                _ => usize::from(*byte == b'\r'),
            };
            self.state = if seen == END.len() { State::Answer } else { State::Headers(seen) };
        }
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        match Pin::new(&mut self.stream).poll_read(cx, buf) {
            Poll::Ready(result) => {
                let bytes = buf.filled().get(before..).unwrap_or_default();
                self.heard(bytes);
                Poll::Ready(result)
            }
            Poll::Pending if self.state == State::Answer => Poll::Pending,
            Poll::Pending => {
                ready!(self.deadline.as_mut().poll(cx));
                Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
            }
        }
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.stream).poll_write(cx, bytes));
        self.state = State::Silent;
        self.due_in(IDLE);
        Poll::Ready(written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
