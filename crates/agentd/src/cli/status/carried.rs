//! Which worker has a change, as the remote repository had it when it was last looked at.

use agentd_core::carried::CarriedState;
use agentd_core::ids::ChangeId;
use agentd_core::stamp::Stamp;
use agentd_engine::carrier::sightings;
use agentd_engine::store::Project;
use serde::Serialize;

/// Who has a change that is carried between machines.
#[derive(Debug, Serialize)]
pub(super) struct CarriedReport {
    /// The remote, by its name.
    remote: String,
    /// When it was looked at.
    seen: Option<Stamp>,
    state: CarriedState,
    /// Who has it, or had it last.
    worker: String,
    /// Since when they have it, by their clock.
    since: Option<Stamp>,
    /// Their last sign of life, by their clock.
    at: Stamp,
    /// What is done, or comes next.
    step: Option<String>,
    agent: Option<String>,
    /// What a person has to know.
    why: Option<String>,
}

impl CarriedReport {
    pub(super) fn of(project: &Project, change: &ChangeId) -> Option<Self> {
        let known = sightings::known(project)?;
        let carried = known.of(change)?.carried.clone();
        let step = carried.doing.as_ref().or(carried.next.as_ref());
        Some(Self {
            seen: known.seen,
            state: carried.state,
            worker: carried.worker.to_string(),
            since: carried.since,
            at: carried.at,
            step: step.map(|step| step.step.to_string()),
            agent: step.and_then(|step| Some(step.agent.as_ref()?.to_string())),
            why: (!carried.why.is_empty()).then(|| carried.why.to_string()),
            remote: known.remote,
        })
    }

    /// In a line.
    pub(super) fn words(&self) -> String {
        let time = |at: Stamp| at.moment().strftime("%H:%M:%S UTC").to_string();
        let step = self.step.as_deref().unwrap_or("a step");
        let agent = self.agent.as_ref().map(|agent| format!(" by {agent}")).unwrap_or_default();
        let since = self.since.map(|at| format!(" since {}", time(at))).unwrap_or_default();
        let why = self.why.as_deref().unwrap_or_default();
        let worker = &self.worker;
        let what = match self.state {
            CarriedState::Held => format!(
                "{step}{agent} on worker {worker}{since}, last sign of life {}",
                time(self.at)
            ),
            CarriedState::Taken => format!("with {worker}{since}"),
            CarriedState::Waiting => format!("waits for a person: {why}"),
            CarriedState::Failed => format!("{step} failed on worker {worker}: {why}"),
            CarriedState::Ready => format!("next {step}{agent}, on any worker"),
        };
        let seen = self.seen.map(time).unwrap_or_default();
        format!("{what} (as `{}` had it at {seen})", self.remote)
    }

    #[cfg(test)]
    pub(super) fn sample() -> Self {
        let at = "2026-11-04T10:00:00Z".parse().unwrap();
        Self {
            remote: "origin".to_owned(),
            seen: Some(at),
            state: CarriedState::Held,
            worker: "box-1".to_owned(),
            since: Some(at),
            at,
            step: Some("challenge".to_owned()),
            agent: Some("codex".to_owned()),
            why: Some("its plan needs revision".to_owned()),
        }
    }
}
