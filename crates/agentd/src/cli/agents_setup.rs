//! What a command needs in order to run agents, made in one place: the program's own
//! environment, the supervisor, the cancel flag, and the lock that says who is at work.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;

use agentd_core::agent::{AgentKind, Role};
use agentd_core::config::{Config, Roles};
use agentd_core::error_kind::Kind;
use agentd_core::hint::Hint;
use agentd_core::ids::ChangeId;
use agentd_core::nearest::nearest;
use agentd_engine::agents::installed;
use agentd_engine::agents::step::Agents;
use agentd_engine::change::documents;
use agentd_engine::guard::sandbox;
use agentd_engine::guard::trust::{Consent, Trusted};
use agentd_engine::process::{Cancel, Supervisor};
use agentd_engine::store::{Holder, Project, RunLock};
use agentd_engine::workflow::{Report, begin};

use super::Context;
use super::trust::{self, trusted};
use crate::error::CommandError;
use crate::ui::Ui;
use crate::ui::progress::{Found, ProgressMode};

/// What every command that calls agents takes.
#[derive(Debug, Clone, Copy, Default, clap::Args)]
pub(crate) struct CallArgs {
    /// Allow the project's settings to run programs, for this command only.
    #[arg(long)]
    trust: bool,

    /// Agent for all roles in this command, instead of those in `[roles]`; `builtin` plans and
    /// reviews by rules, without a model.
    #[arg(long, value_name = "AGENT")]
    agent: Option<AgentKind>,

    /// How to report progress on stderr: lines of text, lines of JSON, or not at all. The default is
    /// a live view on a terminal, lines of JSON with `--json`, and otherwise lines of text.
    #[arg(long, value_enum, value_name = "FORMAT")]
    progress: Option<ProgressArg>,
}

/// What `--progress` takes.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum ProgressArg {
    Json,
    Plain,
    None,
}

impl CallArgs {
    /// Whether a person has agreed, for this command, to what the project's settings run.
    pub(super) fn consent(self) -> Consent {
        if self.trust { Consent::Given } else { trust::from_environment() }
    }

    /// How progress is reported.
    pub(super) fn progress(self, json: bool) -> ProgressMode {
        match self.progress {
            Some(ProgressArg::Json) => ProgressMode::Json,
            Some(ProgressArg::Plain) => ProgressMode::Plain,
            Some(ProgressArg::None) => ProgressMode::Silent,
            None => ProgressMode::auto(json),
        }
    }

    pub(super) fn agent(self) -> Option<AgentKind> {
        self.agent
    }
}

/// Gives all roles to the agent that a command names.
pub(super) fn roles_by(agent: AgentKind, config: &Config) -> Result<Roles, CommandError> {
    let known: Vec<AgentKind> =
        config.all_agents().into_iter().filter(|known| *known != AgentKind::Replay).collect();
    if known.contains(&agent) {
        return Ok(installed::roles_of(agent, config.roles));
    }
    let error = CommandError::usage(format!("there is no agent `{agent}`"));
    Err(match nearest(agent.name(), known.iter().map(AgentKind::name)) {
        Some(near) => error.hint(format!("did you mean `{near}`?")),
        None => error.hint(Hint::edit(
            format!("describe it in [agents.{agent}]"),
            "agentd/config.toml".to_owned(),
        )),
    })
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
    /// What the person has seen last of what reviews found.
    found: RefCell<Option<Found>>,
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

    /// Remembers what was shown of what reviews found.
    pub(crate) fn have_shown(&self, found: Option<Found>) {
        if found.is_some() {
            self.found.replace(found);
        }
    }

    /// Whether the person has seen what the review found that a report is about.
    pub(crate) fn has_shown(&self, report: &Report) -> bool {
        let is_it =
            |(summary, issues): &Found| *summary == report.summary && *issues == report.issues;
        self.found.borrow().as_ref().is_some_and(is_it)
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
        let roles = roles_by(agent, &config)?;
        config = config.with_roles(roles);
    }
    let lock = project.try_run_lock(change, &context.holder())?;
    let agents = agents_in(context, project, config)?;
    begin::enter_checkout(&agents, &lock)?;
    let (warned, played, found) = (Cell::new(false), RefCell::default(), RefCell::default());
    Ok(AgentRun { agents, lock, warned, played, found })
}

/// What calls need in a project, with these settings.
pub(super) fn agents_in(
    context: &Context,
    project: &Project,
    config: Trusted,
) -> Result<Agents, CommandError> {
    agents_outside_of_calls(project, config, context.holder(), cancel_on_signals()?)
}

/// The same for who calls no agents, but works where they do.
pub(crate) fn agents_outside_of_calls(
    project: &Project,
    config: Trusted,
    holder: Holder,
    cancel: Cancel,
) -> Result<Agents, CommandError> {
    Ok(Agents {
        work_tree: project.root().to_owned(),
        project: project.clone(),
        config,
        environment: std::env::vars_os().collect(),
        agentd: this_program()?,
        supervisor: Supervisor::this_program()
            .map_err(|error| cannot("start the supervisor", &error))?,
        cancel,
        holder,
        warm: Arc::default(),
        carrier: None,
    })
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
