//! `agentd view`: the changes of a project in a browser.
//!
//! A small HTTP server on 127.0.0.1, made for one person on the same machine. Pages are
//! rendered here from what is on the disk at that moment; a little script on them follows
//! running agents and opens the form for a comment. [`guard`] decides who may ask,
//! [`pages`] shows, [`acting`] calls the same engine functions as the command line.

mod acting;
mod assets;
mod board;
mod charts;
mod conflicts;
mod connections;
mod diff;
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

use std::fs::{OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::net::{Ipv4Addr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;

use agentd_engine::agents::redact::Redactor;
use agentd_engine::store::{Holder, Project};
use jiff::Timestamp;

use conflicts::Conflicts;
use connections::Connections;
use guard::Token;
use summaries::Summaries;

/// What every request is answered from.
#[derive(Debug)]
pub(crate) struct App {
    pub(crate) project: Project,
    /// Run files may be of an earlier agentd, which knew fewer secrets.
    redactor: Redactor,
    summaries: Summaries,
    conflicts: Conflicts,
    token: Token,
    port: u16,
    /// Who makes comments and decisions here.
    person: String,
    /// How this process is called, to name the holder of a lock.
    command_line: String,
}

impl App {
    /// Whether a `Host` means this server, and not a name that somebody has pointed at it.
    fn is_our_host(&self, host: &str) -> bool {
        ["127.0.0.1", "localhost"].iter().any(|name| {
            // Compared as text: numbers have other spellings, such as `+80`.
            let port = host.strip_prefix(name).unwrap_or("?");
            port.strip_prefix(':') == Some(&self.port.to_string())
                || (port.is_empty() && self.port == 80)
        })
    }

    /// Cookies of 127.0.0.1 are shared between ports, so the name says which port is meant.
    fn cookie_name(&self) -> String {
        format!("agentd_view_{}", self.port)
    }

    fn project_name(&self) -> String {
        let name = self.project.root().file_name();
        name.map_or_else(|| "project".to_owned(), |name| name.to_string_lossy().into_owned())
    }

    fn holder(&self) -> Holder {
        Holder::this_process(&self.command_line, Timestamp::now())
    }

    /// A page that leads to an address, in a directory that nobody else may look into. It is
    /// opened in place of the address: what is on a command line, everybody can read.
    pub(crate) fn doorway(address: &str) -> io::Result<(tempfile::TempDir, PathBuf)> {
        use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};

        let dir = tempfile::Builder::new()
            .prefix("agentd-view-")
            .permissions(Permissions::from_mode(0o700))
            .tempdir()?;
        let path = dir.path().join("open.html");
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
        let to = html::esc(address);
        writeln!(
            file,
            "<!doctype html><meta charset=\"utf-8\"><meta name=\"referrer\" content=\"no-referrer\">\
             <meta http-equiv=\"refresh\" content=\"0;url={to}\"><title>agentd</title>\
             <a href=\"{to}\">Open the viewer</a>"
        )?;
        Ok((dir, path))
    }

    /// The address to open, with the token.
    pub(crate) fn address(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}?token={}", self.port, self.token.as_str())
    }
}

/// A server that listens and does not answer yet.
#[derive(Debug)]
pub(crate) struct Listening {
    listener: TcpListener,
    /// What it will answer from.
    pub(crate) app: Arc<App>,
}

/// Takes a port: this one, or a free one where it is 0.
pub(crate) fn listen(
    project: Project,
    port: u16,
    person: String,
    command_line: String,
) -> io::Result<Listening> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
    listener.set_nonblocking(true)?;
    let port = listener.local_addr()?.port();
    let (summaries, conflicts) = (Summaries::default(), Conflicts::default());
    let token = Token::random()?;
    let environment: Vec<_> = std::env::vars_os().collect();
    let redactor = Redactor::of_project(&environment, &project);
    let app = App { project, redactor, summaries, conflicts, token, port, person, command_line };
    Ok(Listening { listener, app: Arc::new(app) })
}

impl Listening {
    /// Answers until Ctrl-C, or SIGTERM.
    pub(crate) fn serve(self) -> io::Result<()> {
        // While the browser starts, what the first page needs is read.
        let app = Arc::clone(&self.app);
        std::thread::spawn(move || {
            let ids = app.project.change_ids().map(|listed| listed.ids).unwrap_or_default();
            let summaries = app.summaries.of(&app.project, &ids);
            app.conflicts.of(&app, &summaries);
        });
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let result = runtime.block_on(async {
            let listener = tokio::net::TcpListener::from_std(self.listener)?;
            let server = axum::serve(Connections::new(listener), routes::router(self.app));
            // Streams to open pages never end by themselves: nobody is waited for.
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
