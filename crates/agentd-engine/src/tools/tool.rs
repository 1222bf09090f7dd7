//! A tool as a value: what clients read about it, who is offered it, and what it does.

use agentd_core::agent::Role;
use agentd_core::ids::ChangeId;
use agentd_core::step_name::StepName;
use serde::Serialize;
use serde_json::{Value, json};

use super::Session;
use super::outcome::{self, ActionError, Written};
use super::schema::{self, JsonObject};

/// A tool. Each one is a constant next to its function, and a row of `TOOLS`.
#[derive(Debug)]
pub struct Tool {
    /// The name that clients call it by.
    pub name: &'static str,
    /// What it is for, in the words that models read.
    pub purpose: &'static str,
    /// The sets that it is part of.
    pub offered_to: &'static [Toolset],
    /// Whether only those have it that agentd has not started for a step.
    pub by_hand: bool,
    /// Whether it changes nothing.
    pub read_only: bool,
    /// The schema of its arguments, given that of the field `change_id`.
    pub(super) input: fn(change: Value) -> JsonObject,
    /// The schema of its structured answer, if it gives one.
    pub(super) output: Option<fn() -> JsonObject>,
    /// Reads the arguments and does the work.
    pub(super) run: fn(&Session<'_>, JsonObject) -> Result<Answer, ActionError>,
}

impl Tool {
    /// Whether it is part of a set.
    pub fn is_in(&self, set: Toolset) -> bool {
        let of_role = match set {
            Toolset::Step(role) => !self.by_hand && self.offered_to.contains(&Toolset::Role(role)),
            Toolset::All | Toolset::Role(_) | Toolset::Clarify => false,
        };
        of_role || self.offered_to.contains(&set)
    }

    /// The schema of its arguments. A server that works on one change says which.
    pub fn input(&self, bound: Option<&ChangeId>) -> JsonObject {
        (self.input)(schema::change(bound.map(ChangeId::as_str)))
    }

    /// The schema of its structured answer, if it gives one.
    pub fn output(&self) -> Option<JsonObject> {
        self.output.map(|schema| schema())
    }

    /// Does what the tool is for. A server that is bound to a change refuses calls about
    /// others before it reads the rest of the arguments.
    pub fn call(
        &self,
        session: &Session<'_>,
        bound: Option<&ChangeId>,
        arguments: JsonObject,
    ) -> Result<Answer, ActionError> {
        if let (Some(bound), Some(asked)) = (bound, arguments.get("change_id"))
            && let Some(Ok(asked)) = asked.as_str().map(ChangeId::new)
            && asked != *bound
        {
            return Err(outcome::other_change(bound, &asked).into());
        }
        (self.run)(session, arguments)
    }
}

/// Which tools are offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Toolset {
    /// Those of all roles, for an interactive client. It asks people itself, so it has no
    /// tool to propose questions.
    All,
    /// Those of a role.
    Role(Role),
    /// Those of a role in a step that agentd has started: it may ask a person.
    Step(Role),
    /// Those with which a planner proposes questions.
    Clarify,
}

impl Toolset {
    /// All sets, for tools that every client is offered.
    pub(super) const EVERY: &[Self] = &[
        Self::All,
        Self::Role(Role::Planner),
        Self::Role(Role::Challenger),
        Self::Role(Role::Implementer),
        Self::Role(Role::Reviewer),
        Self::Step(Role::Planner),
        Self::Step(Role::Implementer),
        Self::Clarify,
    ];

    /// What a server that was started for a role and a step offers.
    pub fn new(role: Option<Role>, step: Option<&StepName>) -> Self {
        match (role, step) {
            (None, _) => Self::All,
            (Some(Role::Planner), Some(StepName::Clarify)) => Self::Clarify,
            (Some(role), Some(_)) => Self::Step(role),
            (Some(role), None) => Self::Role(role),
        }
    }

    /// The role that the tools are for; none if they are for all roles.
    pub fn role(self) -> Option<Role> {
        match self {
            Self::All => None,
            Self::Role(role) | Self::Step(role) => Some(role),
            Self::Clarify => Some(Role::Planner),
        }
    }
}

/// What a tool answers when it has done its work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The result for programs, as the output schema describes it.
    pub value: Option<Value>,
    /// The same in words, for models that get only the text.
    pub words: String,
    /// A remark about the words that is not part of them.
    pub note: Option<String>,
}

impl Answer {
    /// A result for programs and in words.
    pub(super) fn both(value: &impl Serialize, words: String) -> Result<Self, ActionError> {
        let value = serde_json::to_value(value)
            .map_err(|error| ActionError::Internal(error.to_string()))?;
        Ok(Self { value: Some(value), words, note: None })
    }

    /// Like [`Answer::both`], with the time of the call. The words contain it as well, so that
    /// a recording of the call can be played with it: some CLIs show one form, some the other.
    pub(super) fn timed(
        session: &Session<'_>,
        value: &impl Serialize,
        words: String,
    ) -> Result<Self, ActionError> {
        let mut answer = Self::both(value, words)?;
        if let Some(value) = &mut answer.value {
            value["at"] = json!(session.now);
        }
        Ok(answer)
    }

    /// The answer of a tool that has written a document.
    pub(super) fn written(session: &Session<'_>, written: &Written) -> Result<Self, ActionError> {
        let (path, now, sha256) = (&written.path, session.now, &written.sha256);
        let mut words = format!("Wrote {path} at {now} (sha256 {sha256}).");
        if !written.warnings.is_empty() {
            words.push_str("\nIt is accepted, but could be better:");
            for warning in &written.warnings {
                words.push_str("\n- ");
                words.push_str(warning);
            }
        }
        Self::timed(session, written, words)
    }
}
