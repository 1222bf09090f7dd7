//! Processes of agents that speak ACP, kept from one call to the next (G5).
//!
//! A process serves one role in one change: the role decides what its cage lets it write, and which
//! keys of receipts it can see. Outside of its turn it is frozen, so that no two agents are at work
//! at a time, except for one that starts for the next step: what it may write to is compared after
//! the step beside it. One that cannot be frozen, and every implementer, is ended after its call: what agents
//! must not change is compared and restored between calls, which only counts if nothing of the agent
//! is left that could change it again.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use agentd_core::agent::{AgentKind, Role};
use agentd_core::ids::ChangeId;
use agentd_core::provider::Connection;

use super::files::FilesError;
use crate::guard::calls::Claim;
use crate::guard::sandbox::Sandbox;
use crate::process::{Cage, Limits, ProcessEnd, ProcessError, Program, Running, Supervisor};
use crate::store::{OutsideDir, PRIVATE};

/// What a process is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WarmKey {
    pub(crate) agent: AgentKind,
    pub(crate) role: Role,
    pub(crate) change: ChangeId,
    pub(crate) work_tree: PathBuf,
}

/// How a process is started. One that was started in another way is not used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Start {
    pub(crate) program: String,
    pub(crate) args: Vec<String>,
    pub(crate) environment: Vec<(OsString, OsString)>,
}

/// A process that speaks ACP, and what it needs for as long as it runs.
#[derive(Debug)]
pub(crate) struct WarmAgent {
    key: WarmKey,
    start: Start,
    running: Running,
    connection: Connection,
    is_frozen: bool,
    /// Its temporary directory goes with it.
    _sandbox: Option<Sandbox>,
    _place: Place,
}

/// The working directory of a process: an empty one of its own, since some agents take settings and
/// variables from the directory that they are started in. Their sessions are in the project.
#[derive(Debug)]
struct Place {
    parent: OutsideDir,
    name: OsString,
    /// As long as it is held, nobody takes the directory for one that was left behind.
    _claim: Claim,
}

impl Place {
    fn make(dir: &Path) -> Result<Self, FilesError> {
        let claim = Claim::of(dir)?;
        let parent = OutsideDir::own(dir.parent().unwrap_or(dir))?;
        let name = dir.file_name().unwrap_or_default().to_owned();
        let at = |source| FilesError::Io { path: dir.to_owned(), source };
        parent.remove(&name).map_err(at)?;
        parent.create_dir(&name, PRIVATE).map_err(at)?;
        Ok(Self { parent, name, _claim: claim })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // Nothing depends on it: the next process of this name empties the directory anyway.
        let _ = self.parent.remove(&self.name);
    }
}

/// Why a process could not be started.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WarmError {
    #[error(transparent)]
    Files(#[from] FilesError),
    #[error(transparent)]
    Process(#[from] ProcessError),
}

impl WarmAgent {
    /// Starts a process and greets it; the answer is read in the first call. `place` is the
    /// directory that it is started in.
    pub(crate) fn start(
        key: WarmKey,
        start: Start,
        supervisor: &Supervisor,
        sandbox: Option<(Sandbox, Cage)>,
        limits: Limits,
        place: &Path,
    ) -> Result<Self, WarmError> {
        let made = Place::make(place)?;
        let (connection, greeting) = Connection::new();
        let (sandbox, cage) = sandbox.unzip();
        let program = Program {
            program: &start.program,
            args: &start.args,
            env: &start.environment,
            cwd: place,
            stdin: greeting.as_bytes(),
            keeps_input_open: true,
            cage: cage.as_ref(),
        };
        let mut running = Running::start(supervisor, program, limits)?;
        // It can answer while others are at work.
        running.write(b"");
        let is_frozen = false;
        Ok(Self { key, start, running, connection, is_frozen, _sandbox: sandbox, _place: made })
    }

    /// What is known about the process.
    pub(crate) fn connection(&self) -> Connection {
        self.connection.clone()
    }

    /// Its turn begins.
    pub(crate) fn wake(&mut self) -> &mut Running {
        if std::mem::take(&mut self.is_frozen) {
            self.running.thaw();
        }
        &mut self.running
    }

    /// Its turn is over, and it is not needed again.
    pub(crate) fn end(self) -> ProcessEnd {
        self.running.end()
    }

    fn freeze(&mut self) -> bool {
        self.is_frozen = self.is_frozen || self.running.freeze();
        self.is_frozen
    }
}

/// The processes that wait for their next turn.
#[derive(Debug, Default)]
pub struct WarmAgents(Mutex<Vec<WarmAgent>>);

impl WarmAgents {
    fn with<T>(&self, work: impl FnOnce(&mut Vec<WarmAgent>) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The process for a call, if one waits that was started in the same way and still runs.
    pub(crate) fn take(&self, key: &WarmKey, start: &Start) -> Option<WarmAgent> {
        self.with(|waiting| {
            let at = waiting.iter().position(|agent| agent.key == *key)?;
            let mut found = waiting.swap_remove(at);
            (found.start == *start && found.running.is_alive()).then_some(found)
        })
    }

    /// Whether a process waits for a call.
    pub(crate) fn has(&self, key: &WarmKey) -> bool {
        self.with(|waiting| waiting.iter().any(|agent| agent.key == *key))
    }

    /// Whether a process waits that is not frozen, because it was started for a later call.
    pub(crate) fn is_any_awake(&self) -> bool {
        self.with(|waiting| waiting.iter().any(|agent| !agent.is_frozen))
    }

    /// Keeps a process that was started for a later call.
    pub(crate) fn add(&self, agent: WarmAgent) {
        self.with(|waiting| waiting.push(agent));
    }

    /// Keeps a process whose turn is over, frozen; it is ended if that is not possible. Returns how
    /// it ended, if it did.
    pub(crate) fn keep(&self, mut agent: WarmAgent, connection: Connection) -> Option<ProcessEnd> {
        agent.connection = connection;
        if agent.key.role.edits_the_work_tree() || !agent.freeze() {
            return Some(agent.end());
        }
        self.add(agent);
        None
    }

    /// What an agent that waits says that it is.
    pub(crate) fn says_it_is(&self, agent: AgentKind) -> Option<String> {
        self.with(|waiting| {
            let found = waiting.iter().find(|waits| waits.key.agent == agent)?;
            found.connection.agent()
        })
    }

    /// Ends all that wait, gently, and returns how they ended.
    pub(crate) fn close_all(&self, patience: Duration) -> Vec<ProcessEnd> {
        let waiting = self.with(std::mem::take);
        let close = |mut agent: WarmAgent| {
            agent.wake();
            agent.running.close(patience)
        };
        waiting.into_iter().map(close).collect()
    }

    /// Freezes all that wait, and ends those that cannot be: somebody gets a key that they must not
    /// use.
    pub(crate) fn freeze_all(&self) {
        self.with(|waiting| waiting.retain_mut(WarmAgent::freeze));
    }
}
