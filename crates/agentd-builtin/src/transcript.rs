//! What the process prints, line by line.

use std::io::Write;

use agentd_core::event::{AgentEvent, Json};
use agentd_core::provider::MCP_SERVER;
use serde_json::Value;

use crate::error::AgentError;
use crate::mcp_client::ToolAnswer;

pub(crate) struct Transcript<'w> {
    out: &'w mut dyn Write,
}

impl<'w> Transcript<'w> {
    pub(crate) fn new(out: &'w mut dyn Write) -> Self {
        Self { out }
    }

    pub(crate) fn event(&mut self, event: &AgentEvent<'_>) -> Result<(), AgentError> {
        self.line(&serde_json::to_string(event).map_err(std::io::Error::from)?)
    }

    pub(crate) fn line(&mut self, line: &str) -> Result<(), AgentError> {
        writeln!(self.out, "{line}")?;
        Ok(self.out.flush()?)
    }

    pub(crate) fn say(&mut self, text: &str) -> Result<(), AgentError> {
        self.event(&AgentEvent::Text { text: text.into(), delta: false })
    }

    /// Reports that a tool of agentd's is called.
    pub(crate) fn tool_call(
        &mut self,
        id: &str,
        tool: &str,
        arguments: &Value,
    ) -> Result<(), AgentError> {
        let raw = serde_json::value::to_raw_value(arguments).map_err(std::io::Error::from)?;
        self.event(&AgentEvent::ToolCall {
            id: id.into(),
            server: Some(MCP_SERVER.into()),
            name: tool.into(),
            arguments: Json::from(raw),
        })
    }

    /// Reports what it answered.
    pub(crate) fn tool_result(&mut self, id: &str, answer: &ToolAnswer) -> Result<(), AgentError> {
        let output = answer.text.as_str().into();
        self.event(&AgentEvent::ToolResult { id: id.into(), ok: answer.ok, output })
    }
}
