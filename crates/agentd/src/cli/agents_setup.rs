//! What a command needs in order to run agents, made in one place: the program's own
//! environment, the supervisor, the cancel flag, and the lock that says who is at work.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ops::Deref;
use std::path::Path;

use agentd_core::agent::{AgentKind, Role};
use agentd_core::error_kind::Kind;
use agentd_core::ids::ChangeId;
use agentd_engine::agents::installed;
use agentd_engine::agents::step::Agents;
use agentd_engine::change::documents;
use agentd_engine::guard::sandbox;
use agentd_engine::guard::trust::Consent;
use agentd_engine::process::{Cancel, Supervisor};
use agentd_engine::store::{Project, RunLock};
use agentd_engine::workflow::begin;

use super::Context;
use super::trust::{self, trusted};
use crate::error::CommandError;
use crate::ui::Ui;

/// What every command that calls agents takes.
#[derive(Debug, Clone, Copy, Default, clap::Args)]
pub(crate) struct CallArgs {
    /// Allow the project's settings to run programs, for this command only.
    #[arg(long)]
    trust: bool,

    /// Agent for all roles in this command, instead of those in `[roles]`; `builtin` plans and
    /// reviews by rules, without a model.
    #[arg(long, value_enum, value_name = "AGENT")]
    agent: Option<AgentArg>,
}

/// What `--agent` takes.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum AgentArg {
    Gemini,
    Codex,
    Claude,
    Builtin,
}

impl CallArgs {
    /// Whether a person has agreed, for this command, to what the project's settings run.
    pub(super) fn consent(self) -> Consent {
        if self.trust { Consent::Given } else { trust::from_environment() }
    }

    pub(super) fn agent(self) -> Option<AgentKind> {
        self.agent.map(|agent| match agent {
            AgentArg::Gemini => AgentKind::Gemini,
            AgentArg::Codex => AgentKind::Codex,
            AgentArg::Claude => AgentKind::Claude,
            AgentArg::Builtin => AgentKind::Builtin,
        })
    }
}

/// The agents, ready to be called for one change. Nobody else runs agents for the
/// change as long as this value lives.
pub(crate) struct AgentRun {
    /// What a step is given; a command may still choose a worktree.
    pub(crate) agents: Agents,
    /// Held for as long as agents may be called.
    lock: RunLock,
    /// Whether the user has seen what the sandbox cannot enforce here.
    warned: Cell<bool>,
    /// The agents that this command has called, by the role that they played.
    played: RefCell<BTreeMap<Role, AgentKind>>,
}

impl AgentRun {
    /// Warns about what the sandbox cannot enforce: before the first call, and only once.
    pub(crate) fn warn_once(&self, ui: &Ui) {
        if !self.warned.replace(true) {
            for warning in sandbox::warnings(self) {
                ui.warn(&warning);
            }
        }
    }

    /// Remembers who was called.
    pub(crate) fn have_played(&self, played: &BTreeMap<Role, AgentKind>) {
        self.played.borrow_mut().extend(played);
    }

    /// The agents that this command has called so far, by the role that they played.
    pub(crate) fn played(&self) -> BTreeMap<Role, AgentKind> {
        self.played.borrow().clone()
    }

    /// The lock that says that nobody else runs this change.
    pub(crate) fn lock(&self) -> &RunLock {
        &self.lock
    }
}

impl Deref for AgentRun {
    type Target = Agents;

    fn deref(&self) -> &Agents {
        &self.agents
    }
}

/// Takes the run lock of a change and makes ready what its agents need. The change
/// itself may not exist yet. Nothing is begun before somebody has agreed to what the
/// project's settings run.
///
/// From here on the first Ctrl-C asks for a stop: the agent is ended with all that it has
/// started, the step fails with [`Kind::Interrupted`], and the
/// command says so with exit code 130. The second one ends agentd at once, and the
/// supervisor ends the agent.
pub(crate) fn agents_for(
    context: &Context,
    project: &Project,
    change: &ChangeId,
) -> Result<AgentRun, CommandError> {
    root_is_text(project.root())?;
    let mut config = trusted(context, project, documents::load_config(project)?)?;
    if let Some(agent) = context.agent {
        let roles = installed::roles_of(agent, config.roles);
        config = config.with_roles(roles);
    }
    let holder = context.holder();
    let lock = project.try_run_lock(change, &holder)?;
    let agents = Agents {
        work_tree: project.root().to_owned(),
        project: project.clone(),
        config,
        environment: std::env::vars_os().collect(),
        agentd: this_program()?,
        supervisor: Supervisor::this_program()
            .map_err(|error| cannot("start the supervisor", &error))?,
        cancel: cancel_on_signals()?,
        holder,
    };
    begin::enter_checkout(&agents, &lock)?;
    let (warned, played) = (Cell::new(false), RefCell::default());
    Ok(AgentRun { agents, lock, warned, played })
}

/// A request to stop, made by the first Ctrl-C.
pub(super) fn cancel_on_signals() -> Result<Cancel, CommandError> {
    let made = Cancel::new().and_then(|cancel| cancel.on_signals().map(|()| cancel));
    made.map_err(|error| cannot("install the signal handler", &error))
}

/// The path under which agents start agentd's MCP server. It stands in JSON and TOML,
/// which hold text only.
fn this_program() -> Result<String, CommandError> {
    let path =
        std::env::current_exe().map_err(|error| cannot("find the path of agentd", &error))?;
    match path.into_os_string().into_string() {
        Ok(path) => Ok(path),
        Err(path) => {
            let shown = path.to_string_lossy().into_owned();
            Err(CommandError::new(
                Kind::Agents,
                "cannot run agents: the path of agentd is not UTF-8",
            )
            .cause(shown)
            .hint("install agentd in a directory with a plain name"))
        }
    }
}

/// Agents get the path of the project in JSON and TOML, which hold text only. To be asked
/// before anything is written.
pub(super) fn root_is_text(root: &Path) -> Result<(), CommandError> {
    if root.to_str().is_some() {
        return Ok(());
    }
    let message = "cannot run agents here: the path of the project is not UTF-8";
    let shown = root.as_os_str().as_encoded_bytes().escape_ascii().to_string();
    Err(CommandError::new(Kind::PathNotUtf8, message)
        .cause(shown)
        .hint("move the project, or rename the directory, to a name that is UTF-8"))
}

fn cannot(what: &str, error: &std::io::Error) -> CommandError {
    let message = format!("cannot run agents: failed to {what}");
    CommandError::new(Kind::Agents, message).cause(error.to_string())
}
