//! Listing the sessions of Gemini CLI and resuming one of them is one piece for a project (C32):
//! each resume moves its session to the end of the list, so the index that another process has
//! just read would mean another session.

use std::ops::ControlFlow;
use std::time::Duration;

use agentd_core::agent::{AgentKind, Transport};
use agentd_core::config::Resume;
use agentd_core::event::AgentEvent;

use super::{Agents, Step, StepError};
use crate::agents::runner::Observer;
use crate::store::{Lock, LockError};

/// How long the start of a new session waits for others. It moves no other session, so after that
/// it goes ahead.
const FRESH_WAIT: Duration = Duration::from_secs(20);

/// Whether sessions of this agent are resumed by their index.
pub(super) fn by_index(agents: &Agents, agent: AgentKind) -> bool {
    let resume = agents.config.agent(agent).resume.unwrap_or_default();
    agent == AgentKind::Gemini
        && resume == Resume::Index
        && agents.config.transport(agent) == Transport::Cli
}

/// The turn of a process: from before the list until the agent has reported its session, or the
/// call has failed or ended.
pub(super) struct SessionTurn(Option<Lock>);

impl SessionTurn {
    pub(super) fn take(
        agents: &Agents,
        step: &Step,
        agent: AgentKind,
        observer: &mut Observer<'_>,
    ) -> Result<Self, StepError> {
        if !by_index(agents, agent) {
            return Ok(Self(None));
        }
        let resumes = step.resume.is_some();
        let timeout = if resumes {
            Duration::from_secs(agents.config.agent(agent).timeout_secs)
        } else {
            FRESH_WAIT
        };
        let mut reported = false;
        let turn = agents.project.sessions_lock(&agents.holder, timeout, |waiting| {
            if agents.cancel.reason().is_some() {
                return ControlFlow::Break(());
            }
            if resumes && !std::mem::replace(&mut reported, true) {
                let who = waiting.holder.as_ref().map(ToString::to_string);
                let who = who.unwrap_or_else(|| "another process".to_owned());
                let message = format!("waiting for {who}, which is opening a session");
                observer(&AgentEvent::Warning { message: message.into() });
            }
            ControlFlow::Continue(())
        });
        match turn {
            Ok(lock) => Ok(Self(Some(lock))),
            Err(LockError::Cancelled { .. }) => Err(StepError::Interrupted),
            Err(_) if !resumes => Ok(Self(None)),
            Err(error) => Err(StepError::Documents(error.into())),
        }
    }

    /// The turn ends once the session is open, and whenever the call is made again: that is done
    /// by ID.
    pub(super) fn watch(&mut self, event: &AgentEvent<'_>) {
        if matches!(
            event,
            AgentEvent::Session { .. } | AgentEvent::Failed { .. } | AgentEvent::Retry { .. }
        ) {
            self.0 = None;
        }
    }
}
