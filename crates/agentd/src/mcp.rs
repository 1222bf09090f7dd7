//! `agentd mcp`: the tools with which agents write, on standard input and output.
//!
//! Standard output carries the protocol and nothing else; what there is to
//! say to people goes to standard error. What the tools do is in
//! [`agentd_engine::tools`]; here is only how clients ask for it.

mod answering;
mod form;
#[cfg(test)]
mod prompt_tests;
mod resources;
mod server;
mod stdio;
mod tools;
mod transport;

use std::io::{self, Write as _};
use std::path::PathBuf;
use std::time::Duration;

use agentd_core::agent::{AgentKind, Role};
use agentd_core::command_line::CommandLine;
use agentd_core::error_kind::Kind;
use agentd_core::ids::ChangeId;
use agentd_core::layout;
use agentd_core::step_name::StepName;
use agentd_engine::explain::{ErrorReport, Explain};
use agentd_engine::opening;
use agentd_engine::process::confine;
use agentd_engine::store::{Holder, Project, StoreError, UserDirs};
use agentd_engine::tools::Toolset;
use jiff::Timestamp;
use rmcp::ServiceExt as _;
use rmcp::service::ServerInitializeError;

use crate::ui::Ui;
use crate::ui::progress::ProgressMode;
use server::Server;
use stdio::ClientGone;

/// How long work that has begun may continue after the client has gone.
const GRACE: Duration = Duration::from_millis(300);

/// What the server is started with.
#[derive(Debug, Clone)]
pub(crate) struct McpOptions {
    /// Where the search for the project begins.
    pub(crate) start_dir: PathBuf,
    /// The one change to serve; every open change where there is none.
    pub(crate) change: Option<ChangeId>,
    /// What to offer.
    pub(crate) toolset: Toolset,
    /// The step that the agent was started for.
    pub(crate) step: Option<StepName>,
    /// Who signs, where it is not who the configuration says.
    pub(crate) agent: Option<AgentKind>,
    /// The file with the key for the receipts of reviews.
    pub(crate) receipt: Option<PathBuf>,
    /// Whether a recording is played, so that each call brings its time.
    pub(crate) replaying: bool,
}

/// Why the server could not serve.
#[derive(Debug, thiserror::Error)]
pub(crate) enum McpError {
    /// There is no project, or no such change.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The machine refused something that is needed to begin.
    #[error("the MCP server cannot start")]
    Start(#[source] io::Error),
    /// What came in is not the protocol.
    #[error("the client does not speak MCP")]
    Protocol(#[source] Box<ServerInitializeError>),
}

impl Explain for McpError {
    fn explain(&self) -> ErrorReport {
        let report = || ErrorReport::of(Kind::Mcp, self);
        match self {
            Self::Store(error) => error.explain(),
            Self::Start(_) => report().run("find the reason", CommandLine::agentd(["doctor"])),
            Self::Protocol(_) => report()
                .hint("it speaks JSON-RPC on standard input and output; start it from a client"),
        }
    }
}

/// Serves until the client hangs up.
pub(crate) fn run(options: McpOptions) -> Result<(), McpError> {
    let holder = || Holder::this_process("agentd mcp", Timestamp::now());
    let project = if options.toolset.role().is_none() {
        let opened = opening::open(&options.start_dir, UserDirs::from_env(), &holder)?;
        Ui { json: false, pages: false, progress: ProgressMode::Plain }.repaired(&opened.repaired);
        opened.project
    } else {
        opening::open_within_call(&options.start_dir, UserDirs::from_env())?
    };
    if options.toolset.role().is_some_and(Role::edits_the_work_tree) {
        // What this server asks git about is in the hands of the agent, and not every agent
        // confines its servers. It writes documents and nothing else; so does what git runs.
        // Where the system cannot do it, the record of the run has said so.
        confine(&[project.root().join(layout::AGENTD_DIR)]);
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        // Calls wait for one lock, so many at once gain nothing.
        .max_blocking_threads(16)
        .thread_keep_alive(Duration::from_secs(1))
        .build()
        .map_err(McpError::Start)?;
    let hung_up = ClientGone::new();
    let result = runtime.block_on(serve(project, options, hung_up.clone()));
    hung_up.set();
    // Reading standard input may be blocked for ever; a write that has begun is let finish.
    runtime.shutdown_timeout(GRACE);
    result
}

async fn serve(project: Project, options: McpOptions, hung_up: ClientGone) -> Result<(), McpError> {
    let server = Server::new(project, options, hung_up.clone());
    let (input, output) = stdio::streams(hung_up.clone());
    let (lines, mut writer) = transport::lines(input, output);
    let until_closed = async {
        let result = match server.serve(lines).await {
            Ok(service) => {
                if let Err(error) = service.waiting().await {
                    log(&format!("the server has failed: {error}"));
                }
                Ok(())
            }
            // The client came and went.
            Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
            Err(error) => Err(McpError::Protocol(Box::new(error))),
        };
        // What was refused last is still on its way, perhaps to a client that does not read.
        let _ = tokio::time::timeout(GRACE, &mut writer).await;
        result
    };
    tokio::select! {
        result = until_closed => result,
        () = stdio::orphaned(&hung_up) => {
            log("the process that started agentd mcp has ended");
            Ok(())
        }
    }
}

/// Says something to people. Nobody may be listening, and that is fine.
fn log(message: &str) {
    let _ = writeln!(io::stderr(), "agentd mcp: {message}");
}
