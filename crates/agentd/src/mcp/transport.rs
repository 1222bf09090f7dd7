//! Messages in lines, over standard input and output.
//!
//! rmcp has a transport for this, too. It reads as fast as the client sends, whether or not
//! anybody reads the answers, and it drops what it does not understand without a word. This one
//! takes a bounded number of requests at a time and answers everything that asks for an answer.

use std::io;
use std::sync::Arc;

use rmcp::model::{ErrorCode, GetExtensions as _, JsonRpcMessage};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::{ErrorData, RoleServer};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot, watch};
use tokio::task::JoinHandle;

use agentd_core::text::excerpt;

/// The longest message that is read.
const MESSAGE_LIMIT: usize = 16 * 1024 * 1024;

/// How many requests are worked on at a time.
const REQUESTS: usize = 16;

/// What one request takes at the least of what all may take together. A request of
/// [`MESSAGE_LIMIT`] is worked on alone: as values it is many times larger than as text.
const SHARE: usize = MESSAGE_LIMIT / REQUESTS;

/// How many messages may wait for the client to read them before nothing is read from it.
const UNREAD: usize = 2 * REQUESTS;

/// The requests that are served.
const METHODS: [&str; 7] = [
    "initialize",
    "ping",
    "tools/list",
    "tools/call",
    "resources/list",
    "resources/templates/list",
    "resources/read",
];

/// The server's side of the conversation.
pub(super) struct Lines<R> {
    input: BufReader<R>,
    /// The line that is being read. `receive` may be dropped at any point and called again.
    line: Vec<u8>,
    /// Whether the rest of the line belongs to a message that was too long.
    skipping: bool,
    /// A message that waits until there is room for it.
    waiting: Option<(Incoming, usize)>,
    room: Arc<Semaphore>,
    output: Output,
}

enum Incoming {
    Message(Box<RxJsonRpcMessage<RoleServer>>),
    /// The answer to what is no message.
    Refused(Value),
}

enum Step {
    Line,
    TooLong,
    Ended,
}

/// Messages on their way out, in order.
struct Output {
    queue: mpsc::UnboundedSender<Outgoing>,
    length: Arc<watch::Sender<usize>>,
}

struct Outgoing {
    line: Vec<u8>,
    written: oneshot::Sender<io::Result<()>>,
}

impl Output {
    /// Queues a line; the receiver hears when it is written.
    fn push(&self, mut line: Vec<u8>) -> oneshot::Receiver<io::Result<()>> {
        line.push(b'\n');
        let (written, hears) = oneshot::channel();
        self.length.send_modify(|length| *length += 1);
        if self.queue.send(Outgoing { line, written }).is_err() {
            self.length.send_modify(|length| *length -= 1);
        }
        hears
    }

    async fn has_room(&self) {
        // The sender lives as long as `self`.
        let _ = self.length.subscribe().wait_for(|length| *length < UNREAD).await;
    }
}

/// A transport over two streams, and the task that writes: it ends once the transport is gone
/// and all is written.
pub(super) fn lines<R, W>(input: R, output: W) -> (Lines<R>, JoinHandle<()>)
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let (queue, outgoing) = mpsc::unbounded_channel();
    let length = Arc::new(watch::Sender::new(0));
    let writer = tokio::spawn(write_out(output, outgoing, Arc::clone(&length)));
    let lines = Lines {
        input: BufReader::with_capacity(64 * 1024, input),
        line: Vec::new(),
        skipping: false,
        waiting: None,
        room: Arc::new(Semaphore::new(MESSAGE_LIMIT)),
        output: Output { queue, length },
    };
    (lines, writer)
}

async fn write_out<W: AsyncWrite + Unpin>(
    mut output: W,
    mut queue: mpsc::UnboundedReceiver<Outgoing>,
    length: Arc<watch::Sender<usize>>,
) {
    while let Some(Outgoing { line, written }) = queue.recv().await {
        let mut result = output.write_all(&line).await;
        if result.is_ok() {
            result = output.flush().await;
        }
        length.send_modify(|length| *length -= 1);
        // Nobody may be interested.
        let _ = written.send(result);
    }
}

impl<R: AsyncRead + Unpin> Lines<R> {
    /// Reads on until a line is complete. Dropped in the middle, it continues where it was.
    async fn step(&mut self) -> Step {
        loop {
            let Ok(available) = self.input.fill_buf().await else { return Step::Ended };
            if available.is_empty() {
                return Step::Ended;
            }
            let newline = available.iter().position(|byte| *byte == b'\n');
            let text = &available[..newline.unwrap_or(available.len())];
            let fits = self.line.len() + text.len() <= MESSAGE_LIMIT;
            let was_skipping = self.skipping;
            if fits && !self.skipping {
                self.line.extend_from_slice(text);
            } else {
                self.line = Vec::new();
                self.skipping = true;
            }
            let taken = text.len() + usize::from(newline.is_some());
            self.input.consume(taken);
            let too_long = self.skipping && !was_skipping;
            if newline.is_some() {
                self.skipping = false;
                if !too_long && !was_skipping {
                    return Step::Line;
                }
            }
            if too_long {
                return Step::TooLong;
            }
        }
    }

    /// The next message, and what it takes of the room that there is.
    async fn next(&mut self) -> Option<(Incoming, usize)> {
        loop {
            match self.step().await {
                Step::Ended => return None,
                Step::TooLong => {
                    let message = format!("the message is longer than {MESSAGE_LIMIT} bytes");
                    let answer = refusal(ErrorCode::INVALID_REQUEST, &message, &Value::Null);
                    return Some((Incoming::Refused(answer), SHARE));
                }
                Step::Line => {
                    // A long line's memory is not kept for the short ones after it.
                    let line = std::mem::take(&mut self.line);
                    if let Some(incoming) = read(&line) {
                        return Some((incoming, line.len().clamp(SHARE, MESSAGE_LIMIT)));
                    }
                }
            }
        }
    }
}

impl<R: AsyncRead + Send + Unpin> Transport<RoleServer> for Lines<R> {
    type Error = io::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let written = serde_json::to_vec(&item).map(|line| self.output.push(line));
        async move {
            let gone = || io::Error::new(io::ErrorKind::NotConnected, "the output is closed");
            written?.await.map_err(|_| gone())?
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            // Kept in `self` before anything else is waited for: this future may be dropped.
            if self.waiting.is_none() {
                self.waiting = Some(self.next().await?);
            }
            let needs = match &self.waiting {
                // Cancellations pass: they make room.
                Some((Incoming::Message(message), size))
                    if matches!(**message, JsonRpcMessage::Request(_)) =>
                {
                    Some(u32::try_from(*size).unwrap_or(u32::MAX))
                }
                Some((Incoming::Refused(_), _)) => Some(0),
                Some((Incoming::Message(_), _)) | None => None,
            };
            let mut permit = None;
            if let Some(size) = needs {
                self.output.has_room().await;
                permit = Arc::clone(&self.room).acquire_many_owned(size).await.ok();
            }
            match self.waiting.take()?.0 {
                Incoming::Refused(answer) => {
                    self.output.push(answer.to_string().into_bytes());
                }
                Incoming::Message(mut message) => {
                    if let (JsonRpcMessage::Request(request), Some(permit)) =
                        (&mut *message, permit)
                    {
                        request.request.extensions_mut().insert(RequestPermit(Arc::new(permit)));
                    }
                    return Some(*message);
                }
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        Ok(())
    }
}

/// The room that a request takes. It travels with the request and is free again when its
/// work ends, in whatever way.
#[derive(Clone)]
pub(super) struct RequestPermit(
    #[expect(dead_code, reason = "held for its end")] Arc<OwnedSemaphorePermit>,
);

/// What a line says; nothing where it needs no answer.
fn read(line: &[u8]) -> Option<Incoming> {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let line = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line);
    if line.is_empty() {
        return None;
    }
    if let Ok(message) = serde_json::from_slice(line) {
        return Some(Incoming::Message(Box::new(message)));
    }
    let answer = match serde_json::from_slice::<Value>(line) {
        Err(error) => {
            let message = format!("the line is not JSON: {error}");
            refusal(ErrorCode::PARSE_ERROR, &message, &Value::Null)
        }
        // Notifications are never answered, not even those that nobody knows.
        Ok(Value::Object(object))
            if object.get("method").is_some_and(Value::is_string) && !object.contains_key("id") =>
        {
            return None;
        }
        Ok(value) => {
            let id = value.get("id").filter(|id| id.is_string() || id.is_number());
            match (id, value.get("method").and_then(Value::as_str)) {
                // Parameters may be a list in JSON-RPC; no method of MCP takes one.
                (Some(id), Some(method)) if value["jsonrpc"] == "2.0" => {
                    let error = unfit(method);
                    refusal(error.code, &error.message, id)
                }
                (id, _) => {
                    let message = "this is not a JSON-RPC 2.0 message";
                    refusal(ErrorCode::INVALID_REQUEST, message, id.unwrap_or(&Value::Null))
                }
            }
        }
    };
    Some(Incoming::Refused(answer))
}

/// What is wrong with a request that is none of those that MCP has: its parameters, where its
/// method is one that there is.
pub(super) fn unfit(method: &str) -> ErrorData {
    let shown = excerpt(method, 60);
    if METHODS.contains(&method) {
        ErrorData::invalid_params(format!("the params do not fit `{shown}`"), None)
    } else {
        ErrorData::new(ErrorCode::METHOD_NOT_FOUND, shown, None)
    }
}

fn refusal(code: ErrorCode, message: &str, id: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code.0, "message": message}})
}
