//! What every decoder keeps while it reads, and how it becomes an outcome.

use std::borrow::Cow;
use std::collections::VecDeque;

use serde::Deserialize;

use super::assistant_text::AssistantText;
use super::classify::{explain, from_exit};
use super::quota::{SOON_MS, retry_after_ms};
use super::{AgentRequest, MCP_SERVER, Sink};
use crate::agent::AgentKind;
use crate::event::{AgentEvent, LazyText};
use crate::outcome::{AgentOutcome, Exit, Failure, FailureKind, RefusedCall, ToolUse, Usage};
use crate::text::head;

/// How many calls may be open at a time; older ones are taken for answered.
const OPEN_CALLS: usize = 64;
/// How much is kept of calls that were answered.
const KEPT_NAMES: usize = 32;
const KEPT_REFUSALS: usize = 8;
const NAME_BYTES: usize = 100;
const REASON_BYTES: usize = 1500;
/// The longest ID of a session; it is written to STATE.yaml.
const SESSION_BYTES: usize = 512;
/// What no call costs.
const MOST_COST_USD: f64 = 1e6;

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

/// A call of a tool that was not answered yet.
#[derive(Debug)]
struct OpenCall {
    id: String,
    tool: String,
    /// Whether it is one of agentd's.
    is_own: bool,
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
    /// Why the call is not worth waiting for any more; agentd ends it then.
    pub(super) hopeless: Option<Failure>,
    /// The CLI said that agentd's server is not there.
    pub(super) mcp_broken: Option<String>,
    tool_calls: u32,
    /// Calls that have not been answered, newest last; bounded.
    open_calls: VecDeque<OpenCall>,
    tools: ToolUse,
    last_retry_ms: Option<u64>,
}

/// Whether a text can be kept as the ID of a session.
pub(super) fn is_session_id(id: &str) -> bool {
    !id.is_empty() && id.len() <= SESSION_BYTES && !id.contains(char::is_control)
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
            hopeless: None,
            mcp_broken: None,
            tool_calls: 0,
            open_calls: VecDeque::new(),
            tools: ToolUse::default(),
            last_retry_ms: None,
        }
    }

    /// The CLI has reported its session. A wrong one is a failure at once (C6).
    pub(super) fn session(&mut self, id: &str, model: Option<&str>, sink: &mut Sink<'_>) {
        if let Some(model) = model {
            self.model = Some(model.to_owned());
        }
        // An agent that says no id has none that could be resumed (C5).
        if !is_session_id(id) {
            return;
        }
        self.session_id = Some(id.to_owned());
        sink(AgentEvent::Session { session_id: id.into(), model: model.map(Cow::Borrowed) });
        if let Some(expected) = self.expected_session.as_deref().filter(|expected| *expected != id)
        {
            let message = format!("asked for session {expected}, but the agent resumed {id}");
            let failure = Failure::new(FailureKind::WrongSession, message);
            self.give_up(failure, sink);
        }
    }

    /// The call cannot succeed any more, although the agent goes on.
    pub(super) fn give_up(&mut self, failure: Failure, sink: &mut Sink<'_>) {
        sink(AgentEvent::Failed { failure: failure.clone() });
        self.hopeless = Some(failure);
    }

    /// A tool is called: splits agentd's own tools from the others.
    pub(super) fn tool_call(&mut self, event: AgentEvent<'_>, sink: &mut Sink<'_>) {
        if let AgentEvent::ToolCall { id, server, name, .. } = &event {
            self.tool_calls += 1;
            if self.open_calls.len() >= OPEN_CALLS {
                self.open_calls.pop_front();
            }
            let is_own = server.as_deref() == Some(MCP_SERVER);
            let (id, tool) = (id.to_string(), head(name, NAME_BYTES).to_owned());
            self.open_calls.push_back(OpenCall { id, tool, is_own });
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
        let at = self.open_calls.iter().rposition(|open| *open.id == *id);
        if let Some(call) = at.and_then(|at| self.open_calls.remove(at)) {
            self.answered(call, ok, &output);
        }
        sink(AgentEvent::ToolResult { id, ok, output });
    }

    /// Keeps what became of a call. That a command of the CLI's own failed says nothing.
    fn answered(&mut self, call: OpenCall, ok: bool, output: &LazyText<'_>) {
        let OpenCall { tool, is_own, .. } = call;
        if ok {
            let done = &mut self.tools.done;
            if is_own && done.len() < KEPT_NAMES && !done.contains(&tool) {
                done.push(tool);
            }
            return;
        }
        let text = output.text();
        let reason = head(without_wrapping(&text), REASON_BYTES);
        if is_own || names_no_tool(reason) {
            if self.tools.refused.len() >= KEPT_REFUSALS {
                self.tools.refused.remove(0);
            }
            self.tools.refused.push(RefusedCall { tool, reason: reason.to_owned() });
        }
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

    /// The cost that the CLI reports. One below zero would lower what a change has cost, and nobody
    /// pays a million for a call: it is none, and the tokens are counted by their price.
    pub(super) fn cost(&mut self, said: Option<f64>, sink: &mut Sink<'_>) -> Option<f64> {
        self.cost_usd = said.filter(|cost| (0.0..MOST_COST_USD).contains(cost));
        if let Some(cost) = said.filter(|_| self.cost_usd.is_none()) {
            let shown =
                if cost < MOST_COST_USD { format!("${cost}") } else { format!("${cost:e}") };
            let message = format!("the agent reports a cost of {shown}, which is not counted");
            sink(AgentEvent::Warning { message: message.into() });
        }
        self.cost_usd
    }

    /// The cost that was reported last.
    pub(super) fn cost_usd(&self) -> Option<f64> {
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
        let mut failure = match (self.hopeless, self.terminal) {
            (Some(hopeless), _) => Some(hopeless),
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
        if failure.is_none() && self.wants_mcp && self.tools.done.is_empty() {
            failure = self.mcp_broken.map(|why| Failure::new(FailureKind::McpUnavailable, why));
        }
        let unanswered = self.open_calls.into_iter().filter(|call| call.is_own);
        let unanswered = unanswered.map(|call| call.tool).take(KEPT_NAMES).collect();
        let (text, review) = self.text.finish();
        if failure.is_none() && text.trim().is_empty() && self.tool_calls == 0 {
            let message = "the model answered with nothing";
            failure = Some(Failure::new(FailureKind::EmptyAnswer, message));
        }
        let failure = failure.map(|mut failure| {
            let said = retry_after_ms(&failure.message).or(failure.retry_after_ms);
            failure.retry_after_ms = match failure.kind {
                // A wait of seconds is that of another limit.
                FailureKind::QuotaExhausted => said.filter(|wait| *wait > SOON_MS),
                _ if failure.is_transient() => said.or(self.last_retry_ms),
                _ => failure.retry_after_ms,
            };
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
            tools: ToolUse { unanswered, ..self.tools },
            failure,
        }
    }
}

/// The answer of a tool without what some CLIs put around it for their model.
fn without_wrapping(text: &str) -> &str {
    let mut text = text.trim();
    for (start, end) in
        [("<untrusted_context>", "</untrusted_context>"), ("<tool_use_error>", "</tool_use_error>")]
    {
        let inner = text.strip_prefix(start).map(|text| text.strip_suffix(end).unwrap_or(text));
        text = inner.unwrap_or(text).trim();
    }
    text
}

/// Whether a CLI says that it has no tool of this name.
fn names_no_tool(reason: &str) -> bool {
    let text = head(reason, 300).to_ascii_lowercase();
    text.contains("tool")
        && [
            "not found in registry",
            "no such tool",
            "not registered",
            "unknown tool",
            "unsupported",
        ]
        .iter()
        .any(|words| text.contains(words))
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
