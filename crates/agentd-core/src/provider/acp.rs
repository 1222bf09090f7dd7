//! The Agent Client Protocol: JSON-RPC over the standard streams of an agent, one message per
//! line. An agent that speaks it can play any role.
//!
//! The types are our own, of the ten messages that are needed: those of the SDKs are many, change
//! often, and refuse what a lenient reader can skip.

mod connection;
mod dialogue;
mod failure;
mod message;
mod options;
mod permission;
mod start;
mod tool_call;
mod usage;

pub use connection::{Abilities, Connection};

use super::{AgentRequest, CommandSpec, Decoder, Provider};
use crate::agent::AgentKind;
use dialogue::Dialogue;

/// An agent that speaks ACP.
#[derive(Debug, Clone, Copy)]
pub struct Acp {
    agent: AgentKind,
}

impl Acp {
    /// The agent of this name.
    pub fn new(agent: AgentKind) -> Self {
        Self { agent }
    }

    /// A call of a process that was started before.
    pub fn dialogue(&self, request: &AgentRequest, connection: Connection) -> Box<dyn Decoder> {
        Box::new(Dialogue::new(self.agent, request, connection))
    }
}

impl Provider for Acp {
    fn kind(&self) -> AgentKind {
        self.agent
    }

    fn command(&self, request: &AgentRequest) -> CommandSpec {
        start::command(self.agent, request)
    }

    /// Reads a recorded call again.
    fn decoder(&self, request: &AgentRequest) -> Box<dyn Decoder> {
        Box::new(Dialogue::recorded(self.agent, request))
    }
}
