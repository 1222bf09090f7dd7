//! Who plays the roles of a workflow: the agents of the settings, and those that take over from
//! agents that have dropped out (G4).

use agentd_core::agent::{AgentKind, Complexity, Role};
use agentd_core::config::Casting;
use agentd_core::outcome::{Failure, FailureKind};
use agentd_core::step_name::StepName;

use super::provenance::authors_of;
use super::{Workflow, WorkflowError};
use crate::agents::step::{Step, StepError, StepReport};

impl Workflow<'_> {
    /// Who plays a role now.
    pub(super) fn player(&self, role: Role) -> AgentKind {
        self.cast(role).unwrap_or_else(|| self.agents.config.roles.agent(role))
    }

    /// Who plays a role now; none if all that could have dropped out.
    fn cast(&self, role: Role) -> Option<AgentKind> {
        // Before a change has begun, nobody has written anything.
        let state = self.state().ok();
        let author = match role {
            Role::Challenger => Some(Role::Planner),
            Role::Reviewer => Some(Role::Implementer),
            Role::Planner | Role::Implementer => None,
        };
        let authors = state.as_ref().zip(author).map(|(state, role)| authors_of(state, role));
        let authors = authors.unwrap_or_default();
        let authors: Vec<&str> = authors.iter().map(|author| author.vendor.as_str()).collect();
        let complexity = state.and_then(|state| state.complexity).unwrap_or(Complexity::Medium);
        let casting = Casting { config: &self.agents.config, complexity, out: &self.out };
        casting.player(role, &authors)
    }

    /// Whose models a role will use, by the settings.
    pub(super) fn vendor_of(&self, role: Role) -> Result<&'static str, WorkflowError> {
        let complexity = self.state()?.complexity.unwrap_or(Complexity::Medium);
        let casting = Casting { config: &self.agents.config, complexity, out: &self.out };
        Ok(casting.vendor(self.player(role)))
    }

    /// Whether a session is one of the agent that plays the role now.
    pub(super) fn is_own_session(&self, role: Role, session: &str) -> bool {
        let Ok(state) = self.state() else { return true };
        let calls = state.llm_calls.iter();
        let mut calls = calls.filter(|call| call.session_id.as_deref() == Some(session));
        let agent = calls.next_back().and_then(|call| call.agent);
        agent.is_none_or(|agent| agent == self.player(role))
    }

    /// Calls the agent of a step, and the next one if it has dropped out. What a reproposal asks for
    /// in the session of a plan needs another prompt without it, so that is for the caller to ask.
    pub(super) fn call_in_turn(
        &mut self,
        step: &mut Step,
        fresh: &str,
    ) -> Result<StepReport, WorkflowError> {
        loop {
            let error = match self.call(step, fresh) {
                Err(error) => error,
                called => return called,
            };
            let (from, kind) = match &error {
                WorkflowError::Step(StepError::Agent { agent, failure, .. })
                    if failure.kind.drops_out() =>
                {
                    (*agent, failure.kind)
                }
                _ => return Err(error),
            };
            self.out.insert(from);
            let Some(to) = self.cast(step.role).filter(|to| *to != from) else {
                return Err(self.with_reason(step.role, error));
            };
            self.warn(&format!("{from} {}: {to} takes over", why(kind)));
            step.agent = to;
            fresh.clone_into(&mut step.prompt);
            if step.resume.take().is_some() && step.name == StepName::Reproposal {
                return Err(WorkflowError::HandedOver { from, to });
            }
        }
    }

    /// The error of an agent that has dropped out, with why none of its list takes over.
    fn with_reason(&self, role: Role, error: WorkflowError) -> WorkflowError {
        let rest = self.agents.config.fallbacks.get(&role).into_iter().flatten();
        let left: Vec<&str> =
            rest.filter(|agent| !self.out.contains(agent)).map(AgentKind::name).collect();
        match error {
            WorkflowError::Step(StepError::Agent { agent, role, failure }) if !left.is_empty() => {
                let hint = format!(
                    "{} did not take over: the review would not be independent (T4)",
                    left.join(", ")
                );
                let failure = Box::new(Failure { hint: Some(hint), ..*failure });
                StepError::Agent { agent, role, failure }.into()
            }
            error => error,
        }
    }
}

fn why(kind: FailureKind) -> &'static str {
    if kind == FailureKind::Auth { "is not logged in" } else { "has used up its quota" }
}
