//! What a change that is carried between machines says of itself: who has it, and where it stands.
//!
//! A snapshot of the change is a commit, and this is a line of its message. Anyone who can push to the
//! repository can write one, so it is text from outside: it says whom to wait for and what comes
//! next, and no verdict follows from it.

mod slim_run;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use strum::IntoStaticStr;

use crate::ids::ChangeId;
use crate::phase::Phase;
use crate::stamp::Stamp;
use crate::text::{Line, excerpt, printable};

pub use slim_run::SlimRun;

/// What stands in front of it in the message of a commit.
const KEY: &str = "Agentd-Carried: ";

/// The version that this code writes, and reads.
const VERSION: u32 = 1;

/// What a change is doing, and who has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum CarriedState {
    /// A worker has it, and reports from time to time that it is alive.
    Held,
    /// A person has taken it, and gives it back when they are done.
    Taken,
    /// Nobody has it: the next step can be done by anyone.
    Ready,
    /// Nobody has it: a person has to decide something.
    Waiting,
    /// Nobody has it: the last step has failed, and a person has to look.
    Failed,
}

impl CarriedState {
    /// `held`, `taken`, …
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Whether somebody has the change.
    pub fn is_claimed(self) -> bool {
        matches!(self, Self::Held | Self::Taken)
    }
}

/// A step as it is carried along, for people and schedulers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CarriedStep {
    /// Its name.
    pub step: Line,
    /// The agent that is called; none where none is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<Line>,
    /// What it is expected to cost, in US dollars.
    #[serde(default)]
    pub estimate_usd: f64,
}

/// What a change that is carried says of itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Carried {
    /// The version of the format.
    pub version: u32,
    /// What it is doing.
    pub state: CarriedState,
    /// Who has it, or had it last.
    pub worker: WorkerName,
    /// When that was written, by the clock of the worker.
    pub at: Stamp,
    /// Since when it has had the change, by the same clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Stamp>,
    /// What is being done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub doing: Option<CarriedStep>,
    /// What comes next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<CarriedStep>,
    /// What a person has to know: what to decide, or what has failed.
    #[serde(default, skip_serializing_if = "Line::is_empty")]
    pub why: Line,
    /// The phase of the change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    /// What the change has cost so far, in US dollars.
    #[serde(default)]
    pub cost_usd: f64,
}

impl Carried {
    /// A change of which nothing else is known.
    pub fn new(state: CarriedState, worker: WorkerName, at: Stamp) -> Self {
        Self {
            version: VERSION,
            state,
            worker,
            at,
            since: state.is_claimed().then_some(at),
            doing: None,
            next: None,
            why: Line::default(),
            phase: None,
            cost_usd: 0.0,
        }
    }

    /// The message of a commit that carries it.
    pub fn message(&self, change: &ChangeId) -> String {
        let words = match (self.state, &self.doing) {
            (CarriedState::Held, Some(doing)) => doing.step.to_string(),
            (CarriedState::Taken, _) => format!("taken by {}", self.worker),
            (state, _) => state.name().to_owned(),
        };
        let json = serde_json::to_string(self).unwrap_or_default();
        format!("{change}: {words}\n\n{KEY}{json}\n")
    }

    /// Reads the message of a commit. Nothing where it is none of agentd's, or of another version.
    pub fn of_message(message: &str) -> Option<Self> {
        let json = message.lines().rev().find_map(|line| line.strip_prefix(KEY))?;
        let carried: Self = serde_json::from_str(json).ok()?;
        (carried.version == VERSION && carried.cost_usd.is_finite()).then_some(carried)
    }

    /// The same with no more of each text than is shown anywhere: anyone may have written it.
    #[must_use]
    pub fn cut(mut self) -> Self {
        let cut = |line: &Line, most| Line::new(&excerpt(&printable(line.as_str()), most));
        for step in [&mut self.doing, &mut self.next].into_iter().flatten() {
            step.step = cut(&step.step, 80);
            step.agent = step.agent.as_ref().map(|agent| cut(agent, 40));
        }
        self.why = cut(&self.why, 300);
        self.cost_usd = self.cost_usd.clamp(0.0, 1e9);
        self
    }
}

/// The name of a worker: letters, digits, dots, hyphens and underscores, since it becomes part of
/// commits and of messages.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorkerName(Box<str>);

/// A text that is not the name of a worker.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{shown}` is not the name of a worker: letters, digits and `.-_`, at most 64")]
pub struct WorkerNameError {
    /// The text, cut and with control characters escaped.
    pub shown: String,
}

impl WorkerName {
    const LONGEST: usize = 64;

    /// The name that a text becomes if what is not allowed in it is replaced.
    pub fn like(text: &str) -> Self {
        let plain = |c: char| if is_plain(c) { c } else { '-' };
        let name: String = text.chars().take(Self::LONGEST).map(plain).collect();
        let name = name.trim_start_matches(['.', '-']);
        Self(if name.is_empty() { "worker" } else { name }.into())
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || ".-_".contains(c)
}

impl FromStr for WorkerName {
    type Err = WorkerNameError;

    fn from_str(text: &str) -> Result<Self, WorkerNameError> {
        let fits = (1..=Self::LONGEST).contains(&text.len());
        if fits && text.chars().all(is_plain) && !text.starts_with(['.', '-']) {
            Ok(Self(text.into()))
        } else {
            Err(WorkerNameError { shown: excerpt(text, 80) })
        }
    }
}

impl fmt::Display for WorkerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl Serialize for WorkerName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for WorkerName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn carried() -> Carried {
        let step = |name: &str, agent: Option<&str>| CarriedStep {
            step: Line::new(name),
            agent: agent.map(Line::new),
            estimate_usd: 0.25,
        };
        Carried {
            doing: Some(step("spec-gen-auth-flow", Some("claude"))),
            next: Some(step("tests", None)),
            why: Line::new("its plan\nAgentd-Carried: {}"),
            phase: Some(Phase::Proposed),
            cost_usd: 1.5,
            ..Carried::new(
                CarriedState::Held,
                WorkerName::like("box-1"),
                "2026-11-18T01:02:03Z".parse().unwrap(),
            )
        }
    }

    #[test]
    fn a_message_is_read_as_it_was_written() {
        let change = ChangeId::new("add-oauth").unwrap();
        let message = carried().message(&change);
        assert!(message.starts_with("add-oauth: spec-gen-auth-flow\n\nAgentd-Carried: {"));
        assert_eq!(message.lines().count(), 3, "{message}");
        assert_eq!(Carried::of_message(&message), Some(carried()));
        let later = message.replace("\"version\":1", "\"version\":2");
        assert_eq!(Carried::of_message(&later), None);
        let more = message.replace("\"version\":1", "\"version\":1,\"more\":[]");
        assert_eq!(Carried::of_message(&more), Some(carried()), "what is not known does no harm");
        for odd in ["", "add-oauth", "Agentd-Carried: ", "Agentd-Carried: {\"version\":1}"] {
            assert_eq!(Carried::of_message(odd), None, "{odd}");
        }
    }

    #[test]
    fn what_is_shown_is_cut() {
        let mut long = carried();
        long.why = Line::new(&"\u{202e}why ".repeat(1000));
        long.cost_usd = -1e300;
        long.next = Some(CarriedStep { step: Line::new(&"s".repeat(9999)), ..long.next.unwrap() });
        let cut = long.cut();
        assert!(cut.why.as_str().chars().count() <= 301, "{:?}", cut.why);
        assert!(cut.cost_usd >= 0.0);
        assert!(cut.next.unwrap().step.as_str().chars().count() <= 81);
        assert_eq!(carried().cut(), carried());
    }

    #[test]
    fn names_of_workers_are_plain() {
        for (text, name) in
            [("box.local", "box.local"), ("ada's box/\n1", "ada-s-box--1"), ("", "worker")]
        {
            assert_eq!(WorkerName::like(text).as_str(), name);
        }
        assert_eq!(WorkerName::like("--x").as_str(), "x");
        assert!("ok_1".parse::<WorkerName>().is_ok());
        for wrong in ["", "-x", ".x", "a b", "a\n", "ä", &"x".repeat(65)] {
            assert!(wrong.parse::<WorkerName>().is_err(), "{wrong}");
        }
    }
}
