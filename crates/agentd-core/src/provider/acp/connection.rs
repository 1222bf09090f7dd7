//! What is known about a process that speaks ACP, from one call of it to the next.

use serde_json::json;

use super::message::{Initialized, PROTOCOL};
use crate::text::{Line, head};

/// The most that is kept of the name of an agent, in bytes.
const LONGEST_NAME: usize = 200;

/// A process that speaks ACP, as a dialogue sees it.
#[derive(Debug, Clone)]
pub struct Connection {
    next_id: u64,
    /// The id of `initialize`.
    greeting: u64,
    abilities: Option<Abilities>,
}

/// What an agent can do, by its own account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Abilities {
    /// It opens earlier sessions, and repeats their history.
    pub load: bool,
    /// It opens earlier sessions as they are.
    pub resume: bool,
    /// It forgets sessions that are over.
    pub close: bool,
    /// What it calls itself.
    pub name: String,
    /// Its version.
    pub version: String,
}

impl Connection {
    /// A new process, and the line that is to be written to it first.
    pub fn new() -> (Self, String) {
        let greeting = 1;
        // Neither files nor terminals are offered: what an agent does, it does in its cage.
        let params = json!({
            "protocolVersion": PROTOCOL,
            "clientCapabilities": {
                "fs": { "readTextFile": false, "writeTextFile": false },
                "terminal": false,
            },
            "clientInfo": {
                "name": "agentd",
                "title": "agentd",
                "version": env!("CARGO_PKG_VERSION"),
            },
        });
        let line = json!({
            "jsonrpc": "2.0", "id": greeting, "method": "initialize", "params": params,
        });
        (Self { next_id: greeting + 1, greeting, abilities: None }, format!("{line}\n"))
    }

    /// What the agent says that it is, once it has: its name and its version.
    pub fn agent(&self) -> Option<String> {
        let Abilities { name, version, .. } = self.abilities.as_ref()?;
        let words = Line::new(head(&format!("{name} {version}"), LONGEST_NAME));
        (!version.is_empty()).then(|| words.to_string())
    }

    /// What the agent can do, once it has said so.
    pub(super) fn abilities(&self) -> Option<&Abilities> {
        self.abilities.as_ref()
    }

    /// The id of the greeting, while it is not answered.
    pub(super) fn greeting(&self) -> Option<u64> {
        self.abilities.is_none().then_some(self.greeting)
    }

    pub(super) fn greeted(&mut self, abilities: Abilities) {
        self.abilities = Some(abilities);
    }

    pub(super) fn next_id(&mut self) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        id
    }
}

impl Abilities {
    pub(super) fn of(answer: Initialized) -> Self {
        let info = answer.agent_info.unwrap_or_default();
        let can = answer.agent_capabilities;
        Self {
            load: can.load_session,
            resume: can.session_capabilities.resume.is_some(),
            close: can.session_capabilities.close.is_some(),
            name: info.name,
            version: info.version,
        }
    }
}
