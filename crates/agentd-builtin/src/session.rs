//! A session of the built-in agent with agentd's MCP server.

use agentd_core::documents::Source;
use agentd_core::ids::ChangeId;
use agentd_core::rel_path::RelPath;
use serde_json::{Value, json};

use crate::error::AgentError;
use crate::mcp_client::{McpClient, ToolAnswer};
use crate::transcript::Transcript;

/// The longest document that is read; agentd itself reads no longer ones.
const LONGEST: usize = 8 << 20;

pub(crate) struct Session<'s, 'w> {
    pub(crate) change: ChangeId,
    client: McpClient,
    transcript: &'s mut Transcript<'w>,
    calls: u32,
}

impl<'s, 'w> Session<'s, 'w> {
    pub(crate) fn new(
        change: ChangeId,
        client: McpClient,
        transcript: &'s mut Transcript<'w>,
    ) -> Self {
        Self { change, client, transcript, calls: 0 }
    }

    pub(crate) fn say(&mut self, text: &str) -> Result<(), AgentError> {
        self.transcript.say(text)
    }

    /// Whether a tool is offered in this step.
    pub(crate) fn has_tool(&mut self, name: &str) -> Result<bool, AgentError> {
        Ok(self.client.tools()?.iter().any(|tool| tool == name))
    }

    /// Calls a tool, and reports the call and its answer.
    pub(crate) fn call(&mut self, tool: &str, arguments: &Value) -> Result<ToolAnswer, AgentError> {
        self.calls += 1;
        let id = format!("call-{}", self.calls);
        self.transcript.tool_call(&id, tool, arguments)?;
        let answer = self.client.call(tool, arguments, None)?;
        self.transcript.tool_result(&id, &answer)?;
        Ok(answer)
    }

    /// The same for a call that has to succeed.
    pub(crate) fn must(&mut self, tool: &str, arguments: &Value) -> Result<(), AgentError> {
        let answer = self.call(tool, arguments)?;
        if answer.ok {
            return Ok(());
        }
        Err(AgentError::other(format!("{tool} was refused: {}", answer.text)))
    }

    /// The text of a file that is there. A run lists what an agent did, and looking something up
    /// takes several calls per document, so that these are not reported.
    pub(crate) fn read(&mut self, path: &RelPath) -> Result<Source, AgentError> {
        let mut text = String::new();
        loop {
            let arguments =
                json!({ "change_id": self.change, "path": path.as_str(), "offset": text.len() });
            let answer = self.client.call("read_file", &arguments, None)?;
            if !answer.ok {
                return Ok(Source::Unreadable(answer.text));
            }
            // A second block says that there is more of the file.
            let Some((piece, note)) = answer.blocks.split_first() else {
                return Ok(Source::Unreadable("read_file answered nothing".to_owned()));
            };
            text.push_str(piece);
            if note.is_empty() {
                return Ok(Source::Text(text));
            }
            if piece.is_empty() || text.len() > LONGEST {
                return Ok(Source::Unreadable(format!("it has more than {LONGEST} bytes")));
            }
        }
    }

    /// The names in a directory, those of directories with a `/` behind them; none where the
    /// server does not show it.
    pub(crate) fn list(&mut self, dir: &RelPath) -> Result<Option<Vec<String>>, AgentError> {
        let arguments = json!({ "change_id": self.change, "path": dir.as_str() });
        let answer = self.client.call("list_directory", &arguments, None)?;
        let listing = answer.structured.filter(|_| answer.ok);
        Ok(listing.map(|listing| {
            let entries = listing["entries"].as_array().map(Vec::as_slice).unwrap_or_default();
            entries.iter().filter_map(|name| name.as_str().map(str::to_owned)).collect()
        }))
    }
}
