//! `agentd view`: the changes of a project in a browser.
//!
//! A small HTTP server on 127.0.0.1 for one person on the same machine. Pages are rendered
//! here from what is on disk at that moment; a short script on them follows running agents,
//! sends forms without leaving the page, and says when something waits. `guard` decides who may
//! ask, `pages` renders, `acting` calls the same engine functions as the command line, and
//! `export` makes a page that can be given to others.

mod acting;
mod assets;
mod board;
mod browser;
mod conflicts;
mod connections;
mod export;
mod findings;
mod fleet;
mod guard;
mod highlight;
mod html;
mod live;
mod markdown;
mod overview;
mod pages;
mod problem;
mod routes;
mod run_file;
mod subject;
mod task_graph;
mod timeline;
mod transcript;
mod trees;

use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use agentd_core::config::Budget;
use agentd_core::ids::ChangeId;
use agentd_engine::agents::redact::Redactor;
use agentd_engine::change::documents;
use agentd_engine::guard::trust;
use agentd_engine::insight::cost::{self, ProjectCost};
use agentd_engine::insight::kept::Kept;
use agentd_engine::opening;
use agentd_engine::store::{Holder, Project};
use jiff::Timestamp;

pub use browser::OpenedPage;
use conflicts::Conflicts;
use connections::Connections;
pub use export::{ExportError, Format, export};
use fleet::Fleet;
use guard::Token;
use overview::Overviews;
use trees::Trees;

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
    /// Whether commands can be started and stopped on the pages.
    pub acts: bool,
    /// The program that such commands are started with.
    pub program: PathBuf,
    /// Whether the remote repository may be asked what workers do.
    pub asks_remote: bool,
}

/// What every request is answered from.
#[derive(Debug)]
struct App {
    project: Project,
    /// Run files may be from an earlier version of agentd, which knew fewer secrets.
    redactor: Redactor,
    overviews: Overviews,
    conflicts: Conflicts,
    trees: Arc<Trees>,
    fleet: Arc<Fleet>,
    /// What code differs in, to be shown.
    kept: Kept,
    spent: Mutex<Spent>,
    /// Held while a command is checked and started, so that two requests do not start two.
    starting: Mutex<()>,
    token: Token,
    port: u16,
    /// See [`Options::person`].
    person: String,
    /// See [`Options::command_line`].
    command_line: String,
    /// See [`Options::acts`].
    acts: bool,
    /// See [`Options::program`].
    program: PathBuf,
}

/// What the project has cost, as it was when the first page had this mark.
#[derive(Debug, Default)]
struct Spent {
    mark: Option<u64>,
    cost: Option<Arc<ProjectCost>>,
}

/// With more changes than this, the first page shows what was known of the costs before, and the
/// rest is found in the background.
const QUICK: usize = 100;

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

    /// The limits of the project; none if its settings cannot be read.
    fn budget(&self) -> Budget {
        documents::load_config(&self.project).map(|config| config.budget).unwrap_or_default()
    }

    /// Whether commands of the project would run: a person has agreed to what its settings run.
    fn is_trusted(&self) -> bool {
        let config = documents::load_config(&self.project).unwrap_or_default();
        trust::standing(&self.project, &config).is_ok_and(|standing| standing.trusted)
    }

    /// What all changes have cost, where that is known; `mark` is that of the first page.
    fn spent(self: &Arc<Self>, mark: u64, changes: usize) -> Option<Arc<ProjectCost>> {
        let mut spent = self.spent.lock().unwrap_or_else(PoisonError::into_inner);
        if spent.mark.replace(mark) != Some(mark) {
            let find = |app: &Self| cost::of_project(&app.project, None).ok().map(Arc::new);
            if changes <= QUICK {
                spent.cost = find(self);
            } else {
                let app = Arc::clone(self);
                std::thread::spawn(move || {
                    let cost = find(&app);
                    app.spent.lock().unwrap_or_else(PoisonError::into_inner).cost = cost;
                });
            }
        }
        spent.cost.clone()
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
    let Options { project, port, person, command_line, acts, program, asks_remote } = options;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
    listener.set_nonblocking(true)?;
    let port = listener.local_addr()?.port();
    let token = Token::random()?;
    let environment: Vec<_> = std::env::vars_os().collect();
    let redactor = Redactor::of_project(&environment, &project);
    let fleet = Arc::new(Fleet::new(project.clone(), asks_remote));
    let app = App {
        project,
        redactor,
        overviews: Overviews::default(),
        conflicts: Conflicts::default(),
        trees: Arc::default(),
        fleet,
        kept: Kept::default(),
        spent: Mutex::default(),
        starting: Mutex::default(),
        token,
        port,
        person,
        command_line,
        acts,
        program,
    };
    Ok(Server { listener, app: Arc::new(app) })
}

impl Server {
    /// The address of a page, with the token.
    pub fn address(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}?token={}", self.app.port, self.app.token.as_str())
    }

    /// Whether commands that are started from the pages would run: a person has agreed to what the
    /// settings of the project run.
    pub fn is_trusted(&self) -> bool {
        self.app.is_trusted()
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
            if let Ok(board) = board::Board::load(&app) {
                app.conflicts.of(&app, &board.changes);
                app.spent(board.mark, board.changes.len());
            }
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
