//! The server's threads, and how it is started, looked into and stopped.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{self, BufReader, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::net::sockopt::{set_socket_linger, socket_linger};
use serde::Serialize;
use serde_json::Value;

use crate::answer;
use crate::choice::Choices;
use crate::http;
use crate::request::{ModelRequest, RequestKind};
use crate::script::{Provider, Script};

/// A running server. It stops when this is dropped, also in the middle of
/// answers, so that a script that hangs does not hang its test.
///
/// Its sockets belong to the network namespace of the thread that started it.
pub struct ScriptedModels {
    port: u16,
    shared: Arc<Shared>,
    acceptor: Option<JoinHandle<()>>,
}

/// One request as it came in, and what became of it.
#[derive(Clone, Debug, Serialize)]
pub struct Recorded {
    /// Its place in the order of arrival.
    pub sequence: usize,
    /// The HTTP method.
    pub method: String,
    /// The path, without the query.
    pub path: String,
    /// By lower-case name; keys are left out.
    pub headers: BTreeMap<String, String>,
    /// The body, where it is JSON.
    pub body: Value,
    /// What it asks of a model; `None` for anything else that a CLI asks for.
    pub request: Option<ModelRequest>,
    /// The rule that answered it.
    pub rule: Option<usize>,
    /// The scripted tools that the request did not offer. In codex's code mode
    /// that is known only one request later, and said there.
    pub unoffered_tools: Vec<String>,
    /// The HTTP status that was sent, if one was.
    pub status: Option<u16>,
    /// Why the script did not foresee it.
    pub surprise: Option<String>,
    /// Why the answer was not sent whole.
    pub broken: Option<String>,
}

/// What the threads share.
pub(crate) struct Shared {
    pub(crate) choices: Choices,
    stopping: AtomicBool,
    sequence: AtomicUsize,
    records: Mutex<Vec<Recorded>>,
    connections: Mutex<HashMap<usize, TcpStream>>,
    log: Option<Mutex<File>>,
}

impl ScriptedModels {
    /// Starts a server on a free port of loopback.
    pub fn start(script: Script) -> io::Result<Self> {
        Self::start_with_log(script, None)
    }

    /// Starts a server that also writes each record to a file, as JSON lines.
    pub fn start_with_log(script: Script, log: Option<&Path>) -> io::Result<Self> {
        script.check().map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let port = listener.local_addr()?.port();
        let log = log.map(File::create).transpose()?.map(Mutex::new);
        let shared = Arc::new(Shared {
            choices: Choices::new(script),
            stopping: AtomicBool::new(false),
            sequence: AtomicUsize::new(0),
            records: Mutex::default(),
            connections: Mutex::default(),
            log,
        });
        let acceptor = std::thread::Builder::new().name("scripted-models".to_owned()).spawn({
            let shared = Arc::clone(&shared);
            move || accept(&listener, &shared)
        })?;
        Ok(Self { port, shared, acceptor: Some(acceptor) })
    }

    /// The port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The base URL for gemini and claude; codex wants `/v1` after it.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Everything that was asked so far, in order of arrival.
    pub fn records(&self) -> Vec<Recorded> {
        lock(&self.shared.records).clone()
    }

    /// The main model requests so far: what follows from the user's prompts.
    pub fn requests(&self) -> Vec<ModelRequest> {
        let requests = self.records().into_iter().filter_map(|record| record.request);
        requests.filter(|request| request.kind == RequestKind::Main).collect()
    }

    /// What the script did not foresee: unmatched prompts, tools that were not
    /// offered, paths that no provider has. A test should find none.
    pub fn surprises(&self) -> Vec<String> {
        self.records().into_iter().filter_map(|record| record.surprise).collect()
    }

    /// Blocks until the server is stopped, which only ending the process does.
    pub fn wait(mut self) {
        if let Some(acceptor) = self.acceptor.take() {
            let _ = acceptor.join();
        }
    }
}

impl Drop for ScriptedModels {
    fn drop(&mut self) {
        self.shared.stopping.store(true, Ordering::SeqCst);
        // Wakes the acceptor, which then sees that it is to stop. From another
        // network namespace it cannot be reached, and is left alone.
        let woken = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).is_ok();
        if let Some(acceptor) = self.acceptor.take()
            && woken
        {
            let _ = acceptor.join();
        }
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    let mut workers: Vec<JoinHandle<()>> = Vec::new();
    for (connection, stream) in listener.incoming().enumerate() {
        if shared.is_stopping() {
            break;
        }
        let Ok(stream) = stream else { continue };
        let shared = Arc::clone(shared);
        let worker = std::thread::Builder::new().spawn(move || serve(&stream, &shared, connection));
        workers.retain(|worker| !worker.is_finished());
        workers.extend(worker);
    }
    for stream in lock(&shared.connections).values() {
        let _ = stream.shutdown(Shutdown::Both);
    }
    for worker in workers {
        let _ = worker.join();
    }
}

/// Answers the requests of a connection, until one ends it.
fn serve(stream: &TcpStream, shared: &Shared, connection: usize) {
    let _ = stream.set_nodelay(true);
    if let Ok(clone) = stream.try_clone() {
        lock(&shared.connections).insert(connection, clone);
    }
    let mut reader = BufReader::new(stream);
    // A stop may have come before the connection was registered.
    while !shared.is_stopping()
        && let Ok(Some(request)) = http::read_request(stream, &mut reader)
    {
        let sequence = shared.sequence.fetch_add(1, Ordering::SeqCst);
        let connection = Connection { stream, shared, sequence };
        let is_whole = answer::answer(&connection, &request);
        if !is_whole || stream.set_read_timeout(None).is_err() {
            break;
        }
    }
    lock(&shared.connections).remove(&connection);
    // Closing a socket that lingers for no time resets the connection; shutting
    // it down first would not.
    if !socket_linger(stream).is_ok_and(|linger| linger.is_some()) {
        let _ = stream.shutdown(Shutdown::Both);
    }
}

/// A connection whose request has been read.
pub(crate) struct Connection<'a> {
    pub(crate) stream: &'a TcpStream,
    pub(crate) shared: &'a Shared,
    pub(crate) sequence: usize,
}

impl Connection<'_> {
    /// Waits, but not longer than the client or the server stays.
    pub(crate) fn wait(&self, time: Option<Duration>) -> io::Result<()> {
        const TICK: Duration = Duration::from_millis(20);
        let deadline = time.map(|time| Instant::now() + time);
        self.stream.set_read_timeout(Some(TICK))?;
        loop {
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                return Ok(());
            }
            match self.stream.peek(&mut [0]) {
                Ok(0) => return Err(io::ErrorKind::ConnectionReset.into()),
                Ok(_) => std::thread::sleep(TICK),
                Err(error) if is_timeout(&error) => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Makes the end of the connection a reset, once the client has had time
    /// to read what it was sent.
    pub(crate) fn reset_soon(&self) -> io::Result<()> {
        self.wait(Some(Duration::from_millis(50)))?;
        set_socket_linger(self.stream, Some(Duration::ZERO))?;
        Ok(())
    }

    /// Adds a record, to be completed once it is answered: what a test looks
    /// for must be there also while an answer hangs.
    pub(crate) fn record(&self, record: &Recorded) {
        let mut records = lock(&self.shared.records);
        // Another thread may have been faster with a later request.
        let place = records.partition_point(|other| other.sequence < record.sequence);
        records.insert(place, record.clone());
    }

    /// Completes the record.
    pub(crate) fn complete(&self, record: Recorded) {
        if let Some(log) = &self.shared.log
            && let Ok(line) = serde_json::to_string(&record)
        {
            let _ = writeln!(lock(log), "{line}");
        }
        let mut records = lock(&self.shared.records);
        if let Some(place) = records.iter_mut().find(|other| other.sequence == record.sequence) {
            *place = record;
        }
    }
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

impl Shared {
    fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::SeqCst)
    }

    /// Whether the request has the key that the script requires.
    pub(crate) fn is_key_right(&self, provider: Provider, request: &http::HttpRequest) -> bool {
        let Some(wanted) = &self.choices.script.require_key else { return true };
        let header = |name: &str| request.headers.get(name).map_or("", String::as_str);
        let key = match provider {
            Provider::Gemini => header("x-goog-api-key"),
            Provider::OpenAi => header("authorization").trim_start_matches("Bearer "),
            Provider::Anthropic => header("x-api-key"),
        };
        key == wanted
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
