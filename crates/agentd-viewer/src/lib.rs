//! `agentd view`: the changes of a project in a browser.
//!
//! A small HTTP server on 127.0.0.1 for one person on the same machine. Pages are rendered
//! here from what is on disk at that moment; a short script on them follows running agents
//! and opens the comment form. `guard` decides who may ask, `pages` renders, `acting`
//! calls the same engine functions as the command line.

mod acting;
mod assets;
mod board;
mod browser;
mod charts;
mod conflicts;
mod connections;
mod findings;
mod guard;
mod html;
mod live;
mod markdown;
mod pages;
mod problem;
mod routes;
mod subject;
mod summaries;
mod task_graph;
mod transcript;

use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::sync::Arc;

use agentd_core::ids::ChangeId;
use agentd_engine::agents::redact::Redactor;
use agentd_engine::opening;
use agentd_engine::store::{Holder, Project};
use jiff::Timestamp;

pub use browser::OpenedPage;
use conflicts::Conflicts;
use connections::Connections;
use guard::Token;
use summaries::Summaries;

/// What to serve, and for whom.
#[derive(Debug)]
pub struct Options {
    /// The project whose changes are shown.
    pub project: Project,
    /// The port to listen on; 0 for any free one.
    pub port: u16,
    /// The name under which comments and decisions are recorded.
    pub person: String,
    /// The command line of this process, to name the holder of a lock.
    pub command_line: String,
}

/// What every request is answered from.
#[derive(Debug)]
struct App {
    project: Project,
    /// Run files may be from an earlier version of agentd, which knew fewer secrets.
    redactor: Redactor,
    summaries: Summaries,
    conflicts: Conflicts,
    token: Token,
    port: u16,
    /// See [`Options::person`].
    person: String,
    /// See [`Options::command_line`].
    command_line: String,
}

impl App {
    /// Whether a `Host` header names this server, and not a name that someone pointed at it.
    fn is_our_host(&self, host: &str) -> bool {
        ["127.0.0.1", "localhost"].iter().any(|name| {
            // Compared as text: numbers have other spellings, such as `+80`.
            let port = host.strip_prefix(name).unwrap_or("?");
            port.strip_prefix(':') == Some(&self.port.to_string())
                || (port.is_empty() && self.port == 80)
        })
    }

    /// Cookies of 127.0.0.1 are shared between ports, so the name includes the port.
    fn cookie_name(&self) -> String {
        format!("agentd_view_{}", self.port)
    }

    /// The project that a change lives in, to act on it.
    fn home_of(&self, id: &ChangeId) -> Project {
        opening::home_of(self.project.clone(), id, &|| self.holder()).project
    }

    fn project_name(&self) -> String {
        let name = self.project.root().file_name();
        name.map_or_else(|| "project".to_owned(), |name| name.to_string_lossy().into_owned())
    }

    fn holder(&self) -> Holder {
        Holder::this_process(&self.command_line, Timestamp::now())
    }
}

/// A server that listens and does not answer yet.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    app: Arc<App>,
}

/// Binds the port, so that the address is known before the first request is answered.
pub fn listen(options: Options) -> io::Result<Server> {
    let Options { project, port, person, command_line } = options;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
    listener.set_nonblocking(true)?;
    let port = listener.local_addr()?.port();
    let (summaries, conflicts) = (Summaries::default(), Conflicts::default());
    let token = Token::random()?;
    let environment: Vec<_> = std::env::vars_os().collect();
    let redactor = Redactor::of_project(&environment, &project);
    let app = App { project, redactor, summaries, conflicts, token, port, person, command_line };
    Ok(Server { listener, app: Arc::new(app) })
}

impl Server {
    /// The address of a page, with the token.
    pub fn address(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}?token={}", self.app.port, self.app.token.as_str())
    }

    /// Asks the desktop to open an address in a browser. The page that leads there is removed
    /// when the returned value is dropped, so keep it until the server stops.
    pub fn open_in_browser(&self, address: &str) -> io::Result<OpenedPage> {
        browser::open(address, self.app.project.root())
    }

    /// Answers requests until Ctrl-C or SIGTERM.
    pub fn serve(self) -> io::Result<()> {
        // While the browser starts, read what the first page needs.
        let app = Arc::clone(&self.app);
        std::thread::spawn(move || {
            let open = app.project.open_everywhere().unwrap_or_default();
            let summaries = app.summaries.of(&open);
            app.conflicts.of(&app, &summaries);
        });
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let result = runtime.block_on(async {
            let listener = tokio::net::TcpListener::from_std(self.listener)?;
            let server = axum::serve(Connections::new(listener), routes::router(self.app));
            // Streams to open pages never end by themselves, so do not wait for them.
            tokio::select! {
                result = async { server.await } => result,
                result = stopped() => result,
            }
        });
        runtime.shutdown_background();
        result
    }
}

#[cfg(unix)]
async fn stopped() -> io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hang_up = signal(SignalKind::hangup())?;
    tokio::select! {
        result = tokio::signal::ctrl_c() => result,
        _ = terminate.recv() => Ok(()),
        _ = hang_up.recv() => Ok(()),
    }
}

#[cfg(not(unix))]
async fn stopped() -> io::Result<()> {
    tokio::signal::ctrl_c().await
}
