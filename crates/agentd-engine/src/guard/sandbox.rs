//! The policy of the sandbox: who may write where. The [`Cage`] enforces it.
//!
//! Everything that is an agent or runs what an agent wrote goes through here: every role, the
//! project's tests, and git where it may run hooks and filters.

mod caches;
mod call_tmp;
mod trial;

use std::error::Error;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use agentd_core::agent::{AgentKind, Role};
use agentd_core::command_line::CommandLine;
use agentd_core::config::{self, Caches};
use agentd_core::error_kind::Kind;
use agentd_core::ids::ChangeId;
use agentd_core::known_agent::{CliState, HomeSettings};
use agentd_core::layout;
use agentd_core::provider::{CommandSpec, Surroundings};

use crate::agents::receipts;
use crate::agents::step::Agents;
use crate::explain::{ErrorReport, Explain};
use crate::git::Git;
use crate::process::{Cage, Enforced, hidden_by_private_tmp};
use crate::store::{OutsideDir, Project, StoreError};

use call_tmp::CallTmp;
pub(crate) use call_tmp::sweep;
pub use trial::{Trial, try_out};

/// Why there is no sandbox.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// A directory that it needs cannot be created.
    #[error("cannot create {} for the sandbox", path.display())]
    Io {
        /// The directory.
        path: PathBuf,
        /// The error of the system.
        #[source]
        source: io::Error,
    },
    /// The user's own directories, or those of the project, cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Explain for SandboxError {
    fn explain(&self) -> ErrorReport {
        unavailable(self)
    }
}

/// There is no sandbox, for a reason that any part of it may find.
pub(crate) fn unavailable(error: &dyn Error) -> ErrorReport {
    ErrorReport::of(Kind::Sandbox, error)
        .run("see what this system can enforce", CommandLine::agentd(["doctor"]))
        .set("or run without a sandbox", "sandbox", "enabled", "false")
}

fn at<T>(path: &Path, result: io::Result<T>) -> Result<T, SandboxError> {
    result.map_err(|source| SandboxError::Io { path: path.to_owned(), source })
}

/// What runs in it.
#[derive(Debug, Clone, Copy)]
pub enum SandboxUser<'a> {
    /// An agent in a role, and the command that starts it.
    Agent(Role, &'a CommandSpec),
    /// The project's tests: code that an agent may have written.
    Tests,
    /// Git, and the hooks and filters that it runs: they may be files of the working tree.
    Git,
}

impl SandboxUser<'_> {
    /// Whether it builds the project, and so needs caches.
    fn builds(self) -> bool {
        match self {
            Self::Agent(role, _) => role.edits_the_work_tree(),
            Self::Tests | Self::Git => true,
        }
    }
}

/// A sandbox that is ready for one call or command.
#[derive(Debug, Clone)]
pub struct Sandbox {
    root: PathBuf,
    work_tree: PathBuf,
    /// Where the tools of the MCP server write, for the agent that starts it.
    documents: Vec<PathBuf>,
    git: Vec<PathBuf>,
    /// Where the keys for the receipts of each role are.
    keys: Vec<(Role, PathBuf)>,
    caches: caches::CacheSetup,
    /// What the user has added.
    added: Vec<PathBuf>,
    visible: Vec<PathBuf>,
    network: bool,
    enforced: Enforced,
    environment: Vec<(OsString, OsString)>,
    tmp: Arc<CallTmp>,
}

impl Sandbox {
    /// Prepares one; none if the settings switch it off. It lasts as long as this value and its
    /// clones.
    pub fn open(agents: &Agents, change: Option<&ChangeId>) -> Result<Option<Self>, SandboxError> {
        let settings = &agents.config.sandbox;
        if !settings.enabled {
            return Ok(None);
        }
        let (project, root) = (&agents.project, agents.project.root().to_owned());
        let home = home(&agents.environment);
        let mut documents = Vec::new();
        if let Some(change) = change {
            documents = document_dirs(project, change)?;
        }
        let git = Git::discover_with(&agents.git_tool_outside(), &agents.work_tree).ok().flatten();
        let git = git.and_then(|git| git.directories().ok()).unwrap_or_default().to_vec();
        let caches = match settings.caches {
            Caches::Project => caches::project(project, home.as_deref(), &agents.environment)?,
            Caches::Shared => caches::shared(home.as_deref(), &agents.environment),
            Caches::None => caches::CacheSetup::default(),
        };
        Ok(Some(Self {
            visible: visible(agents, home.as_deref()),
            work_tree: agents.work_tree.clone(),
            documents,
            git,
            keys: receipts::key_dirs(project)?,
            caches,
            added: settings.writable_paths(home.as_deref()),
            network: settings.network,
            enforced: agents.supervisor.enforceable(),
            environment: agents.environment.clone(),
            tmp: Arc::new(CallTmp::make(project)?),
            root,
        }))
    }

    /// What a call finds around it.
    pub fn surroundings(&self) -> Surroundings {
        let mut writable = self.caches.writable.clone();
        writable.extend(self.added.iter().filter(|path| path.exists()).cloned());
        Surroundings {
            tmp_dir: self.tmp_dir(),
            private_tmp: self.enforced.private_tmp,
            writable,
            network: self.network,
        }
    }

    /// The directory for temporary files, by its name inside.
    fn tmp_dir(&self) -> PathBuf {
        if self.enforced.private_tmp { "/tmp".into() } else { self.tmp.dir() }
    }

    /// The variables that are set inside.
    pub fn variables(&self, who: SandboxUser<'_>) -> Vec<(OsString, OsString)> {
        let mut variables = vec![("TMPDIR".into(), self.tmp_dir().into_os_string())];
        if who.builds() {
            variables.extend(self.caches.variables.iter().cloned());
        }
        variables
    }

    /// The cage itself.
    pub fn cage(&self, who: SandboxUser<'_>) -> Cage {
        let mut writable = Vec::new();
        // What decides about the project stays read-only, even if the work is done in the project
        // itself; the documents that are to be written are further down.
        let mut readonly = vec![self.root.join(layout::AGENTD_DIR)];
        let mut makes_mounts = false;
        if who.builds() {
            writable.push(self.work_tree.clone());
            writable.extend(self.caches.writable.iter().cloned());
            writable.extend(self.added.iter().cloned());
        }
        match who {
            SandboxUser::Agent(role, spec) => {
                writable.extend(self.documents.iter().cloned());
                if role.edits_the_work_tree() {
                    writable.extend(self.git.iter().cloned());
                }
                let environment = with(&self.environment, &spec.env);
                for state in spec.state {
                    writable.extend(state_paths(*state, &environment));
                }
                for place in &spec.extra_state {
                    make_in_home(place, &environment);
                    writable.push(place.clone());
                }
                readonly
                    .extend(spec.settings.iter().flat_map(|of| settings_files(of, &environment)));
                makes_mounts = spec.makes_mounts;
            }
            SandboxUser::Git => writable.extend(self.git.iter().cloned()),
            SandboxUser::Tests => {}
        }
        let own_role = match who {
            SandboxUser::Agent(role, _) => Some(role),
            SandboxUser::Tests | SandboxUser::Git => None,
        };
        let hidden = self.keys.iter().filter(|(role, _)| Some(*role) != own_role);
        Cage {
            readonly,
            hidden: hidden.map(|(_, dir)| dir.clone()).collect(),
            writable,
            visible: self.visible.clone(),
            tmp: Some(self.tmp.dir()),
            // A CLI has to reach its model. What it starts cannot be distinguished from it.
            network: self.network || matches!(who, SandboxUser::Agent(..)),
            makes_mounts,
            layers: self.enforced.layers(),
        }
    }
}

/// The warning before the first call, if the system cannot do what the settings ask for.
pub fn warnings(agents: &Agents) -> Vec<String> {
    let settings = &agents.config.sandbox;
    if agents.config.roles.all().iter().all(|agent| agent.is_own()) {
        return Vec::new();
    }
    if !settings.enabled {
        return vec![
            "the sandbox is off: agents and tests may write wherever you may ([sandbox] enabled)"
                .to_owned(),
        ];
    }
    let mut warnings = Vec::new();
    let gaps = agents.supervisor.enforceable().gaps(settings.network);
    if !gaps.is_empty() {
        warnings.push(format!(
            "this system cannot enforce all of the sandbox: an agent could {}; see `agentd doctor`",
            gaps.join(", ")
        ));
    }
    let implementer = agents.config.roles.implementer;
    if !settings.network && implementer != AgentKind::Codex && !implementer.is_own() {
        warnings.push(format!(
            "[sandbox] network = false holds for tests and hooks; {implementer} needs the network \
             for its model, and its commands share it"
        ));
    }
    warnings
}

/// What the prompt of an implementer says about the sandbox, one sentence per line.
pub(crate) fn for_prompt(agents: &Agents) -> String {
    let settings = &agents.config.sandbox;
    if !settings.enabled {
        return String::new();
    }
    let own_tmp = agents.supervisor.enforceable().private_tmp;
    let tmp = if own_tmp { "/tmp, which is your own" } else { "$TMPDIR, not /tmp" };
    let mut lines = vec![
        format!("You can write in the working tree, in {tmp}, and nowhere else but what follows."),
        match settings.caches {
            Caches::Project => "Package managers use caches of this project; environment \
                                variables such as CARGO_HOME and npm_config_cache lead there."
                .to_owned(),
            Caches::Shared => "Package managers use the caches of the user.".to_owned(),
            Caches::None => "Caches of package managers cannot be written.".to_owned(),
        },
    ];
    if !settings.writable.is_empty() {
        lines.push(format!("You can also write in: {}.", settings.writable.join(", ")));
    }
    let network = if settings.network { "works" } else { "is not there for commands and tests" };
    lines.push(format!("The network {network}."));
    lines.push(
        "\"Read-only file system\" or \"Permission denied\" elsewhere is the sandbox: do not work \
         around it, say at the end what was needed ([sandbox] writable in agentd/config.toml)."
            .to_owned(),
    );
    lines.join("\n")
}

/// A hint for a command that has failed because of the sandbox, as far as its output shows.
pub(crate) fn suspects(agents: &Agents, output: &str) -> Option<String> {
    const SIGNS: [&str; 6] = [
        "Read-only file system",
        "Permission denied",
        "EROFS",
        "EACCES",
        "Operation not permitted",
        "Network is unreachable",
    ];
    let sign = SIGNS.into_iter().find(|sign| output.contains(sign))?;
    agents.config.sandbox.enabled.then(|| {
        format!(
            "\"{sign}\" may come from the sandbox: {}; widen it with [sandbox] writable or caches \
             in agentd/config.toml",
            in_words(&agents.config.sandbox)
        )
    })
}

/// The settings as they are without a sandbox.
pub(crate) fn no_surroundings(environment: &[(OsString, OsString)]) -> Surroundings {
    let tmp_dir = variable(environment, "TMPDIR").unwrap_or_else(|| "/tmp".into());
    Surroundings { tmp_dir, private_tmp: false, writable: Vec::new(), network: true }
}

/// The settings of the sandbox, in one line.
pub fn in_words(settings: &config::Sandbox) -> String {
    if !settings.enabled {
        return "off: agents and tests may write wherever you may".to_owned();
    }
    let mut words = vec![
        "agents and tests write to the working tree, their own /tmp".to_owned(),
        format!("caches: {}", settings.caches.name()),
    ];
    if !settings.writable.is_empty() {
        words.push(format!("also writable: {}", settings.writable.join(", ")));
    }
    words.push(format!("network: {}", if settings.network { "on" } else { "off for commands" }));
    words.join("; ")
}

/// Where the tools of the MCP server write. The directories are created here: what does not exist
/// when the sandbox starts cannot be created in it.
fn document_dirs(project: &Project, change: &ChangeId) -> Result<Vec<PathBuf>, SandboxError> {
    let dirs = [layout::change_dir(change), layout::locks_dir(), layout::questions_dir()];
    let mut paths = Vec::new();
    for dir in dirs {
        // Never through a link: one that came with a clone could lead anywhere.
        project.dir().without_symlinks().create_dir_all(&dir)?;
        paths.push(project.root().join(dir.as_path()));
    }
    Ok(paths)
}

fn home(environment: &[(OsString, OsString)]) -> Option<PathBuf> {
    variable(environment, "HOME")
}

/// An absolute path in a variable.
pub(crate) fn variable(environment: &[(OsString, OsString)], wanted: &str) -> Option<PathBuf> {
    let found = environment.iter().find(|(name, value)| name == wanted && !value.is_empty());
    found.map(|(_, value)| PathBuf::from(value)).filter(|path| path.is_absolute())
}

fn with(
    environment: &[(OsString, OsString)],
    added: &[(String, String)],
) -> Vec<(OsString, OsString)> {
    let is_set = |name: &OsString| added.iter().any(|(set, _)| name == set.as_str());
    let kept = environment.iter().filter(|(name, _)| !is_set(name)).cloned();
    kept.chain(added.iter().map(|(name, value)| (name.into(), value.into()))).collect()
}

/// The CLI's own files.
fn state_paths(state: CliState, environment: &[(OsString, OsString)]) -> Vec<PathBuf> {
    if let Some(elsewhere) = variable(environment, state.variable) {
        return vec![elsewhere.join(state.below)];
    }
    let Some(home) = home(environment) else { return Vec::new() };
    let directory = home.join(state.directory);
    // The agent would create it by itself, which it cannot do inside of the sandbox.
    let _ =
        OutsideDir::open(&home).and_then(|home| home.create_dir_all(Path::new(state.directory)));
    std::iter::once(directory).chain(state.file.map(|file| home.join(file))).collect()
}

/// Makes a directory for an agent's own files, if it is missing: the agent could not, inside of the
/// sandbox. Nothing is made outside of the home directory.
fn make_in_home(place: &Path, environment: &[(OsString, OsString)]) {
    let Some(home) = home(environment) else { return };
    if let Ok(below) = place.strip_prefix(&home) {
        let _ = OutsideDir::open(&home).and_then(|home| home.create_dir_all(below));
    }
}

/// The files of a user's settings for an agent.
fn settings_files(of: &HomeSettings, environment: &[(OsString, OsString)]) -> Vec<PathBuf> {
    let named = variable(environment, of.variable.0).map(|dir| dir.join(of.variable.1));
    let dir = named.or_else(|| home(environment).map(|home| home.join(of.directory)));
    dir.iter().flat_map(|dir| of.files.iter().map(|file| dir.join(file))).collect()
}

/// What must be visible although it is in a directory that the sandbox replaces.
fn visible(agents: &Agents, home: Option<&Path>) -> Vec<PathBuf> {
    let path = agents.environment.iter().find(|(name, _)| name == "PATH");
    let programs = path.map(|(_, value)| std::env::split_paths(value).collect::<Vec<_>>());
    let mut all: Vec<PathBuf> = programs.unwrap_or_default();
    all.extend([agents.project.root().to_owned(), agents.work_tree.clone()]);
    all.push(PathBuf::from(&agents.agentd));
    let programs = agents.config.all_agents().into_iter().filter(|agent| !agent.is_own());
    let programs = programs.filter_map(|agent| agents.config.command(agent).into_iter().next());
    all.extend(programs.map(PathBuf::from));
    all.extend(home.map(Path::to_owned));
    all.extend(
        agents.config.replay.recording.as_ref().map(|path| agents.project.root().join(path)),
    );
    // The files of the call are there.
    all.extend(agents.project.user().state_path(agents.project.root()));
    let mut visible: Vec<PathBuf> =
        all.iter().filter_map(|path| hidden_by_private_tmp(path)).collect();
    visible.sort_unstable();
    visible.dedup();
    visible
}
