//! Where a change stands on this machine: what comes next, what is stale, and who is working on it.

use std::process;

use agentd_core::agent::AgentKind;
use agentd_core::check;
use agentd_core::ids::ChangeId;
use agentd_core::layout::{ArchiveName, ChangeFile};
use agentd_core::next_step::{Command, NextStep};
use agentd_core::phase::Phase;
use agentd_core::recording::Run;
use agentd_core::standing::{Course, Facts, InArchive};
use agentd_core::state::State;
use agentd_core::step_name::StepName;
use jiff::Timestamp;
use serde::Serialize;

use super::documents::{DocumentError, load_config};
use super::journal::record_problem;
use super::staleness::{self, Stale};
use super::{Snapshot, comments};
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
    /// When that step began.
    pub step_since: Option<Timestamp>,
}

/// Finds out where a change stands. `high` is how many HIGH findings its documents have.
pub fn position(
    project: &Project,
    snapshot: &Snapshot,
    high: usize,
) -> Result<Position, DocumentError> {
    let record = record_problem(project, snapshot)?;
    if let Some(name) = snapshot.change().archived() {
        let course = in_archive(project, snapshot, name)?;
        return Ok(Position { course, stale: Vec::new(), record, running: None });
    }
    let running = running(project, snapshot);
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

/// What comes next for an archived change. What others have done since has nothing to do with it.
fn in_archive(
    project: &Project,
    snapshot: &Snapshot,
    name: &ArchiveName,
) -> Result<Course, DocumentError> {
    let id = snapshot.id();
    let is_newest = project.archived_as(id.as_str())?.first() == Some(name);
    let id_is_taken = project.change_if_open(id)?.is_some();
    let can_return = !id_is_taken && snapshot.change().has(&ChangeFile::ArchiveRecord)?;
    let name = if is_newest && !id_is_taken { id.to_string() } else { name.to_string() };
    let facts = Facts {
        documents: &snapshot.documents,
        state: snapshot.state_if_begun()?,
        high: 0,
        is_running: false,
        record_differs: false,
        code_is_stale: false,
        new_code_comments: 0,
        archived: Some(InArchive { name: &name, can_return }),
    };
    Ok(facts.course())
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
    let code_is_stale = state.is_some_and(|state| code_is_stale(state.phase, &stale));
    let documents = &snapshot.documents;
    let archived = None;
    let new_code_comments = new_code_comments(snapshot, state)?;
    let facts = Facts {
        documents,
        state,
        high,
        is_running,
        record_differs,
        code_is_stale,
        new_code_comments,
        archived,
    };
    let course = facts.course();
    Ok((stale, course))
}

/// How many comments on the code nobody has been given yet.
fn new_code_comments(snapshot: &Snapshot, state: Option<&State>) -> Result<usize, DocumentError> {
    let count = state.map(|state| comments::new_on_code(snapshot.change(), state)).transpose()?;
    Ok(count.unwrap_or(0))
}

/// While code is written, tests are older than it as a rule.
fn code_is_stale(phase: Phase, stale: &[Stale]) -> bool {
    match phase {
        Phase::Complete => !stale.is_empty(),
        _ => stale.iter().any(|stale| stale.what == "code"),
    }
}

/// Where an open change stands, for a list of many: `high` and `stale` are asked only if what comes
/// next depends on it.
pub(super) fn at_a_glance(
    project: &Project,
    snapshot: &Snapshot,
    high: impl FnOnce() -> usize,
    stale: impl FnOnce(&State) -> Result<Vec<Stale>, DocumentError>,
) -> Result<(Course, Option<Running>), DocumentError> {
    let running = running(project, snapshot);
    let record = record_problem(project, snapshot)?;
    let state = snapshot.state_if_begun()?;
    let is_still = running.is_none() && record.is_none();
    let code_is_stale = match state.filter(|_| is_still) {
        Some(state) => code_is_stale(state.phase, &stale(state)?),
        None => false,
    };
    let mut facts = Facts {
        documents: &snapshot.documents,
        state,
        high: 0,
        is_running: running.is_some(),
        record_differs: record.is_some(),
        code_is_stale,
        new_code_comments: new_code_comments(snapshot, state)?,
        archived: None,
    };
    let mut course = facts.course();
    let is_judged_next =
        course.next.first().is_some_and(|next| next.command() == Command::Challenge);
    if is_judged_next {
        facts.high = high();
        course = facts.course();
    }
    Ok((course, running))
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
        step_since: run.as_ref().map(Run::started),
        agent: run.map(|run| run.agent),
    })
}
