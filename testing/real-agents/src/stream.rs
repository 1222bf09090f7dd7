//! Reading the CLIs' own event streams, as far as tests of the CLIs need it.
//!
//! This is deliberately not agentd's decoder: it is what that can be compared to.

use serde_json::Value;

use crate::Cli;

/// What a CLI says it used, as it says it.
///
/// The conventions differ: claude's input excludes what was cached, codex's
/// numbers are the sum over the whole thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Input tokens.
    pub input: u64,
    /// Input tokens read from the cache.
    pub cached: u64,
    /// Output tokens.
    pub output: u64,
}

/// The session's id.
pub(crate) fn session_id(cli: Cli, events: &[Value]) -> Option<String> {
    let (kind, field) = match cli {
        Cli::Gemini => ("init", "session_id"),
        Cli::Codex => ("thread.started", "thread_id"),
        Cli::Claude => ("system", "session_id"),
    };
    let event = events.iter().find(|event| event["type"] == kind)?;
    event[field].as_str().map(str::to_owned)
}

/// The last event that ends a run, if there is one.
pub(crate) fn terminal(cli: Cli, events: &[Value]) -> Option<&Value> {
    events.iter().rev().find(|event| match cli {
        Cli::Gemini | Cli::Claude => event["type"] == "result",
        Cli::Codex => event["type"] == "turn.completed" || event["type"] == "turn.failed",
    })
}

/// Whether the last event says that all went well.
pub(crate) fn is_success(cli: Cli, events: &[Value]) -> bool {
    terminal(cli, events).is_some_and(|event| match cli {
        Cli::Gemini => event["status"] == "success",
        Cli::Codex => event["type"] == "turn.completed",
        Cli::Claude => event["is_error"] == false,
    })
}

/// What the model said last.
pub(crate) fn final_text(cli: Cli, events: &[Value]) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    match cli {
        Cli::Gemini => {
            let after_tools = events.iter().rposition(|event| event["type"] == "tool_result");
            let said = events.iter().skip(after_tools.map_or(0, |index| index + 1));
            said.filter(|event| event["role"] == "assistant")
                .map(|event| text(&event["content"]))
                .collect()
        }
        Cli::Codex => events
            .iter()
            .rev()
            .find(|event| event["item"]["type"] == "agent_message")
            .map(|event| text(&event["item"]["text"]))
            .unwrap_or_default(),
        Cli::Claude => {
            terminal(cli, events).map(|event| text(&event["result"])).unwrap_or_default()
        }
    }
}

/// The usage in the last event.
pub(crate) fn usage(cli: Cli, events: &[Value]) -> Option<Usage> {
    let terminal = terminal(cli, events)?;
    let (usage, cached) = match cli {
        Cli::Gemini => (&terminal["stats"], "cached"),
        Cli::Codex => (&terminal["usage"], "cached_input_tokens"),
        Cli::Claude => (&terminal["usage"], "cache_read_input_tokens"),
    };
    Some(Usage {
        input: usage["input_tokens"].as_u64()?,
        cached: usage[cached].as_u64()?,
        output: usage["output_tokens"].as_u64()?,
    })
}
