//! What every decoder keeps while it reads, and how it becomes an outcome.

use std::borrow::Cow;

use serde::Deserialize;

use super::assistant_text::AssistantText;
use super::classify::{explain, from_exit, retry_after_ms};
use super::{AgentRequest, MCP_SERVER, Sink};
use crate::agent::AgentKind;
use crate::event::{AgentEvent, LazyText};
use crate::outcome::{AgentOutcome, Exit, Failure, FailureKind, Usage};

/// A text that borrows from the line where it can. A type of its own because
/// serde borrows in `Cow` but not in `Option<Cow>`.
#[derive(Debug, Clone, Default, Deserialize)]
pub(super) struct Text<'a>(#[serde(borrow)] pub(super) Cow<'a, str>);

impl std::ops::Deref for Text<'_> {
    type Target = str;
    fn deref(&self) -> &str {
        &self.0
    }
}

/// How the CLI itself said that the call ended.
#[derive(Debug)]
pub(super) enum Terminal {
    Success,
    Failure(Failure),
}

/// The running account of one call.
#[derive(Debug)]
pub(super) struct Tally {
    agent: AgentKind,
    expected_session: Option<String>,
    wants_mcp: bool,
    pub(super) text: AssistantText,
    pub(super) session_id: Option<String>,
    pub(super) model: Option<String>,
    pub(super) usage: Option<Usage>,
    pub(super) thread_usage: Option<Usage>,
    cost_usd: Option<f64>,
    pub(super) denied_tools: Vec<String>,
    pub(super) terminal: Option<Terminal>,
    pub(super) wrong_session: Option<Failure>,
    /// The CLI said that agentd's server is not there.
    pub(super) mcp_broken: Option<String>,
    tool_calls: u32,
    /// Ids of open calls to agentd's server, newest last; bounded.
    mcp_calls: Vec<String>,
    mcp_worked: bool,
    last_retry_ms: Option<u64>,
}

impl Tally {
    pub(super) fn new(agent: AgentKind, request: &AgentRequest) -> Self {
        Self {
            agent,
            expected_session: request.session.expected_id().map(str::to_owned),
            wants_mcp: request.mcp.is_some(),
            text: AssistantText::default(),
            session_id: None,
            model: request.model.clone(),
            usage: None,
            thread_usage: None,
            cost_usd: None,
            denied_tools: Vec::new(),
            terminal: None,
            wrong_session: None,
            mcp_broken: None,
            tool_calls: 0,
            mcp_calls: Vec::new(),
            mcp_worked: false,
            last_retry_ms: None,
        }
    }

    /// The CLI has reported its session. A wrong one is a failure at once (C6).
    pub(super) fn session(&mut self, id: &str, model: Option<&str>, sink: &mut Sink<'_>) {
        if let Some(model) = model {
            self.model = Some(model.to_owned());
        }
        // An agent that says no id has none that could be resumed (C5).
        if id.is_empty() {
            return;
        }
        self.session_id = Some(id.to_owned());
        sink(AgentEvent::Session { session_id: id.into(), model: model.map(Cow::Borrowed) });
        if let Some(expected) = self.expected_session.as_deref().filter(|expected| *expected != id)
        {
            let message = format!("asked for session {expected}, but the agent resumed {id}");
            let failure = Failure::new(FailureKind::WrongSession, message);
            sink(AgentEvent::Failed { failure: failure.clone() });
            self.wrong_session = Some(failure);
        }
    }

    /// A tool is called: splits agentd's own tools from the others.
    pub(super) fn tool_call(&mut self, event: AgentEvent<'_>, sink: &mut Sink<'_>) {
        if let AgentEvent::ToolCall { id, server, .. } = &event {
            self.tool_calls += 1;
            if server.as_deref() == Some(MCP_SERVER) && !self.mcp_worked {
                if self.mcp_calls.len() >= 64 {
                    self.mcp_calls.remove(0);
                }
                self.mcp_calls.push(id.to_string());
            }
        }
        sink(event);
    }

    pub(super) fn tool_result(
        &mut self,
        id: Cow<'_, str>,
        ok: bool,
        output: LazyText<'_>,
        sink: &mut Sink<'_>,
    ) {
        if !self.mcp_worked && self.mcp_calls.iter().any(|open| **open == *id) {
            self.mcp_worked = ok;
        }
        sink(AgentEvent::ToolResult { id, ok, output });
    }

    pub(super) fn retry(
        &mut self,
        attempt: u32,
        delay_ms: Option<u64>,
        reason: Cow<'_, str>,
        sink: &mut Sink<'_>,
    ) {
        self.last_retry_ms = delay_ms.or(self.last_retry_ms);
        sink(AgentEvent::Retry { attempt, delay_ms, reason });
    }

    /// The cost that the CLI reports. One below zero would lower what a change has cost: it is
    /// none, and the tokens are counted by their price.
    pub(super) fn cost(&mut self, said: Option<f64>, sink: &mut Sink<'_>) -> Option<f64> {
        self.cost_usd = said.filter(|cost| *cost >= 0.0);
        if let Some(cost) = said.filter(|_| self.cost_usd.is_none()) {
            let message = format!("the agent reports a cost of ${cost}, which is not counted");
            sink(AgentEvent::Warning { message: message.into() });
        }
        self.cost_usd
    }

    pub(super) fn succeeded(&mut self, text: Option<&str>, sink: &mut Sink<'_>) {
        self.terminal = Some(Terminal::Success);
        sink(AgentEvent::Finished { text: text.map(Cow::Borrowed) });
    }

    pub(super) fn failed(&mut self, failure: Failure, sink: &mut Sink<'_>) {
        sink(AgentEvent::Failed { failure: failure.clone() });
        self.terminal = Some(Terminal::Failure(failure));
    }

    /// The outcome. `by_code` is what an exit code of this CLI means by itself.
    pub(super) fn finish(
        self,
        exit: &Exit,
        by_code: impl Fn(i32) -> Option<FailureKind>,
    ) -> AgentOutcome {
        let stopped = exit.stopped.is_some();
        let terminal_ok = matches!(self.terminal, Some(Terminal::Success));
        let mut failure = match (self.wrong_session, self.terminal) {
            (Some(wrong), _) => Some(wrong),
            (None, Some(Terminal::Failure(said))) if !stopped => Some(said),
            _ => from_exit(exit, terminal_ok),
        };
        if let (Some(failure), Some(kind)) = (&mut failure, exit.code.and_then(by_code))
            && !stopped
            && matches!(
                failure.kind,
                FailureKind::Other
                    | FailureKind::NoResult
                    | FailureKind::Crashed
                    // It may have ended for that reason before it could read anything.
                    | FailureKind::StdinClosed
            )
        {
            failure.kind = kind;
        }
        if failure.is_none() && self.wants_mcp && !self.mcp_worked {
            failure = self.mcp_broken.map(|why| Failure::new(FailureKind::McpUnavailable, why));
        }
        let (text, review) = self.text.finish();
        if failure.is_none() && text.trim().is_empty() && self.tool_calls == 0 {
            let message = "the model answered with nothing";
            failure = Some(Failure::new(FailureKind::EmptyAnswer, message));
        }
        let failure = failure.map(|mut failure| {
            if failure.is_transient() {
                let said = retry_after_ms(&failure.message).or(failure.retry_after_ms);
                failure.retry_after_ms = said.or(self.last_retry_ms);
            }
            explain(self.agent, failure, exit)
        });
        AgentOutcome {
            session_id: self.session_id,
            model: self.model,
            usage: self.usage,
            thread_usage: self.thread_usage,
            cost_usd: self.cost_usd,
            text,
            review,
            tool_calls: self.tool_calls,
            denied_tools: self.denied_tools,
            failure,
        }
    }
}

/// `mcp__agentd__create_spec` or `mcp_agentd_create_spec` as server and tool.
pub(super) fn split_mcp_name<'n>(name: &'n str, joint: &str) -> (Option<&'n str>, &'n str) {
    let parts = name.strip_prefix("mcp").and_then(|rest| rest.strip_prefix(joint));
    match parts.and_then(|rest| rest.split_once(joint)) {
        Some((server, tool)) if !tool.is_empty() => (Some(server), tool),
        _ => (None, name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_mcp_tools_are_split() {
        assert_eq!(split_mcp_name("mcp__agentd__read_file", "__"), (Some("agentd"), "read_file"));
        assert_eq!(split_mcp_name("mcp_agentd_read_file", "_"), (Some("agentd"), "read_file"));
        assert_eq!(split_mcp_name("read_file", "_"), (None, "read_file"));
        assert_eq!(split_mcp_name("mcp_agentd", "_"), (None, "mcp_agentd"));
    }
}
