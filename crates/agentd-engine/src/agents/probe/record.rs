//! What probes have found out, by agent, in the user's state directory.

use agentd_core::agent::{AgentKind, Role};
use agentd_core::hash::Digest;
use agentd_core::probe::ProbeReport;
use agentd_core::rel_path::RelPath;
use serde::{Deserialize, Serialize};

use crate::agents::step::{Agents, identity};
use crate::store::StoreError;

/// The most that is read of a file.
const MAX_BYTES: u64 = 64 << 10;

/// What is kept of a probe.
#[derive(Debug, Serialize, Deserialize)]
struct Record {
    /// The program and the settings that were probed.
    identity: Digest,
    report: ProbeReport,
}

/// Names of agents are safe in paths, so there always is one.
fn path(agent: AgentKind) -> Option<RelPath> {
    RelPath::new(&format!("{agent}.json")).ok()
}

/// Keeps what was found out.
pub(super) fn keep(agents: &Agents, report: &ProbeReport) -> Result<(), StoreError> {
    let (Some(path), Some(identity)) = (path(report.agent), identity(agents, report.agent)) else {
        return Ok(());
    };
    let record = Record { identity, report: report.clone() };
    let text = serde_json::to_string_pretty(&record).unwrap_or_default();
    agents.project.user().probes()?.write_atomic(&path, text.as_bytes())
}

/// Nothing is known any more.
pub(super) fn forget(agents: &Agents, agent: AgentKind) -> Result<(), StoreError> {
    let Some(path) = path(agent) else { return Ok(()) };
    let Some(dir) = agents.project.user().probes_if_there()? else { return Ok(()) };
    match dir.remove_file(&path) {
        Err(error) if !error.is_not_found() => Err(error),
        _ => Ok(()),
    }
}

/// Why an agent cannot play a role, by its last probe. One that was not probed, or was another
/// program then, can play any.
pub(crate) fn objection(agents: &Agents, agent: AgentKind, role: Role) -> Option<String> {
    if agent.is_own() {
        return None;
    }
    let dir = agents.project.user().probes_if_there().ok()??;
    let bytes = dir.read_capped(&path(agent)?, MAX_BYTES).ok()?;
    let record: Record = serde_json::from_slice(&bytes).ok()?;
    let is_about_it = record.report.agent == agent && identity(agents, agent)? == record.identity;
    is_about_it.then(|| record.report.objection(role, &agents.config.budget))?
}
