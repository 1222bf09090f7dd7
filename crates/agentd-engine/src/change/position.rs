//! Where a change stands on this machine: what comes next, what is stale, and who is working on it.

use std::process;

use agentd_core::agent::AgentKind;
use agentd_core::check;
use agentd_core::ids::ChangeId;
use agentd_core::next_step::NextStep;
use agentd_core::phase::Phase;
use agentd_core::standing::{Course, Facts};
use agentd_core::step_name::StepName;
use jiff::Timestamp;
use serde::Serialize;

use super::Snapshot;
use super::documents::{DocumentError, load_config};
use super::journal::record_problem;
use super::staleness::{self, Stale};
use crate::store::{LockName, LockState, Project, lock_state};

/// Where a change stands.
#[derive(Debug)]
pub struct Position {
    /// What comes next.
    pub course: Course,
    /// What was edited since it was judged.
    pub stale: Vec<Stale>,
    /// Why its files are not those that its record is about, if so.
    pub record: Option<String>,
    /// Who is working on it.
    pub running: Option<Running>,
}

/// A command that is working on a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Running {
    /// Its process.
    pub pid: u32,
    /// The command, for people.
    pub command: String,
    /// When it began.
    pub since: Timestamp,
    /// The step that it is at; none if no agent was called yet.
    pub step: Option<StepName>,
    /// The agent that works on that step.
    pub agent: Option<AgentKind>,
}

/// Finds out where a change stands. `high` is how many HIGH findings its documents have.
pub fn position(
    project: &Project,
    snapshot: &Snapshot,
    high: usize,
) -> Result<Position, DocumentError> {
    let running = running(project, snapshot);
    let record = record_problem(project, snapshot)?;
    let (stale, course) = judge(project, snapshot, high, record.is_some(), running.is_some())?;
    Ok(Position { course, stale, record, running })
}

/// The same, where nobody has looked for findings yet.
pub fn of(project: &Project, snapshot: &Snapshot) -> Result<Position, DocumentError> {
    position(project, snapshot, high(project, snapshot))
}

/// The commands that take a change on, for a command that has just written its state.
pub fn next_steps(project: &Project, id: &ChangeId) -> Result<Vec<NextStep>, DocumentError> {
    let snapshot = project.change(id)?.snapshot()?;
    Ok(course(project, &snapshot, high(project, &snapshot))?.next)
}

/// How many HIGH findings the documents have. Settings that cannot be read are reported by the
/// commands that need them.
fn high(project: &Project, snapshot: &Snapshot) -> usize {
    let extras = load_config(project).map(|config| config.extras()).unwrap_or_default();
    check::counts(&snapshot.findings(project, &extras)).high
}

/// What comes next, for a command that is at its end: it has checked the record, and works alone.
pub(crate) fn course(
    project: &Project,
    snapshot: &Snapshot,
    high: usize,
) -> Result<Course, DocumentError> {
    Ok(judge(project, snapshot, high, false, false)?.1)
}

fn judge(
    project: &Project,
    snapshot: &Snapshot,
    high: usize,
    record_differs: bool,
    is_running: bool,
) -> Result<(Vec<Stale>, Course), DocumentError> {
    let state = snapshot.state_if_begun()?;
    // Files that somebody is working on are not compared with anything.
    let stale = if is_running { Vec::new() } else { staleness::stale(project, snapshot)? };
    // While code is written, tests are older than it as a rule.
    let code_is_stale = match state.map(|state| state.phase) {
        Some(Phase::Complete) => !stale.is_empty(),
        _ => stale.iter().any(|stale| stale.what == "code"),
    };
    let documents = &snapshot.documents;
    let facts = Facts { documents, state, high, is_running, record_differs, code_is_stale };
    let course = facts.course();
    Ok((stale, course))
}

/// The command that is working on a change, if it is another one than this.
pub fn running(project: &Project, snapshot: &Snapshot) -> Option<Running> {
    let name = LockName::Run(snapshot.id().clone());
    let Ok(LockState::Held(Some(holder))) = lock_state(project.dir(), &name) else { return None };
    if holder.pid == process::id() {
        return None;
    }
    let last = snapshot.runs().ok().and_then(|runs| runs.last());
    let run = last.and_then(|name| snapshot.read_run(name).ok().flatten());
    let run = run.filter(|run| run.end.is_none());
    Some(Running {
        pid: holder.pid,
        command: holder.command,
        since: holder.since,
        step: run.as_ref().map(|run| run.name.step()),
        agent: run.map(|run| run.agent),
    })
}
