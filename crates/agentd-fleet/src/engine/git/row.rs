//! A change as the refs of a remote show it: its place on the list, and what is carried of it.

use std::collections::BTreeMap;
use std::time::Duration;

use agentd_core::carried::{Carried, CarriedState, WorkerName};
use agentd_core::ids::ChangeId;
use agentd_core::text::Line;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::engine::{ListedChange, ListedWorker, Submission, Worker};

/// An entry of the list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Entry {
    pub(super) version: u32,
    #[serde(flatten)]
    pub(super) submission: Submission,
    /// Who does its steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) worker: Option<WorkerName>,
    #[serde(default)]
    pub(super) paused: bool,
    /// Why nobody goes on with it: what has failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) failed: Option<Line>,
}

/// A change with both its refs.
pub(super) struct Row {
    pub(super) change: ChangeId,
    pub(super) tip: String,
    pub(super) entry: Entry,
    pub(super) carried: Option<Carried>,
    /// How long neither ref has moved.
    pub(super) still: Duration,
    /// How long what is carried has not moved.
    pub(super) carried_still: Duration,
}

impl Row {
    /// Whether a worker may go on with it.
    pub(super) fn is_free_for(
        &self,
        worker: &Worker,
        patience: Duration,
        rests: impl Fn(&str) -> bool,
    ) -> bool {
        if self.entry.paused || self.entry.failed.is_some() {
            return false;
        }
        let claimed = self.entry.worker.is_some() && self.still < patience;
        if claimed {
            return false;
        }
        let Some(carried) = &self.carried else { return true };
        match carried.state {
            CarriedState::Taken | CarriedState::Waiting => return false,
            // Nobody has tried again since: that is up to a person.
            CarriedState::Failed => {}
            // Not by the claims of those who could not take it over.
            CarriedState::Held if self.carried_still < patience => return false,
            CarriedState::Held | CarriedState::Ready => {}
        }
        let step = carried.doing.as_ref().filter(|_| carried.state == CarriedState::Held);
        let agent = step.or(carried.next.as_ref()).and_then(|step| step.agent.as_ref());
        let can = |agent: &str| worker.account_for(agent).is_some() && !rests(agent);
        agent.is_none_or(|agent| can(agent.as_str()))
    }

    pub(super) fn listed(&self) -> ListedChange {
        let carried = self.carried.as_ref();
        let state = match carried.map(|carried| carried.state) {
            _ if self.entry.paused => "paused",
            _ if self.entry.failed.is_some() => "failed",
            Some(CarriedState::Held) => "running",
            Some(CarriedState::Taken) => "taken",
            Some(CarriedState::Waiting) => "waiting",
            Some(CarriedState::Failed | CarriedState::Ready) | None => "ready",
        };
        let step = carried.and_then(|carried| carried.doing.as_ref().or(carried.next.as_ref()));
        let held = carried.filter(|carried| carried.state.is_claimed());
        let worker = held.map(|held| &held.worker).or(self.entry.worker.as_ref());
        let why = self.entry.failed.as_ref().or(carried.map(|carried| &carried.why));
        ListedChange {
            change: self.change.to_string(),
            state: state.to_owned(),
            step: step.map(|step| step.step.to_string()),
            agent: step.and_then(|step| Some(step.agent.as_ref()?.to_string())),
            worker: worker.map(ToString::to_string),
            why: why.filter(|why| !why.is_empty()).map(ToString::to_string),
            priority: self.entry.submission.priority,
            phase: carried.and_then(|carried| Some(carried.phase?.to_string())),
            cost_usd: carried.map_or(0.0, |carried| carried.cost_usd),
        }
    }
}

/// The workers that have something; those without anything to do are known to nobody.
pub(super) fn workers(rows: &[Row], patience: Duration) -> Vec<ListedWorker> {
    let mut workers: BTreeMap<String, ListedWorker> = BTreeMap::new();
    for row in rows {
        let held = row.carried.as_ref().filter(|carried| carried.state == CarriedState::Held);
        let Some(held) = held else { continue };
        let silent = Timestamp::now().duration_since(held.at.moment()).as_secs_f64().max(0.0);
        let name = held.worker.to_string();
        let listed = workers.entry(name.clone()).or_insert(ListedWorker {
            name,
            slots: 0,
            running: 0,
            accounts: Vec::new(),
            silent_secs: silent,
            drains: false,
            state: "works",
        });
        listed.running += 1;
        listed.silent_secs = listed.silent_secs.min(silent);
        let frozen = listed.silent_secs > patience.as_secs_f64();
        listed.state = if frozen { "frozen" } else { "works" };
    }
    workers.into_values().collect()
}

#[cfg(test)]
mod tests {
    use agentd_core::stamp::Stamp;

    use super::*;

    #[test]
    fn the_dead_are_not_protected_by_those_who_could_not_take_over() {
        let me = Worker {
            name: WorkerName::like("me"),
            slots: 1,
            accounts: vec!["claude:team1".parse().unwrap()],
        };
        let secs = Duration::from_secs;
        let check = |state, listed: u64, carried: u64, expected: bool| {
            let at = Stamp::new(jiff::Timestamp::UNIX_EPOCH);
            let entry = r#"{"version": 1, "description": "x"}"#;
            let row = Row {
                change: ChangeId::new("a").unwrap(),
                tip: String::new(),
                entry: serde_json::from_str(entry).unwrap(),
                carried: Some(Carried::new(state, WorkerName::like("dead"), at)),
                still: secs(listed.min(carried)),
                carried_still: secs(carried),
            };
            assert_eq!(
                row.is_free_for(&me, secs(14), |_| false),
                expected,
                "{state:?} {listed} {carried}"
            );
        };
        // Somebody gave up a moment ago; who has the change is silent all the same.
        check(CarriedState::Held, 1, 20, true);
        check(CarriedState::Held, 20, 1, false);
        check(CarriedState::Taken, 20, 20, false);
        check(CarriedState::Ready, 1, 1, true);
    }
}
