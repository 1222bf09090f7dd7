//! Why an agent that reported success has not left what its step was for: what became of the tools
//! that it called, and what it wrote instead.

use std::collections::BTreeSet;

use agentd_core::layout::ChangeFile;
use agentd_core::outcome::{AgentOutcome, RefusedCall};
use agentd_core::prompt::one_line;

use crate::tools::TOOLS;

/// How much of a reason is shown.
const REASON: usize = 1000;

/// Says why what a step was for is not there, or is as it was before if it `exists`. `changed` is
/// what the agent has changed instead.
pub(super) fn of_missing(outcome: &AgentOutcome, exists: bool, changed: &[ChangeFile]) -> String {
    let tools = &outcome.tools;
    let mut parts: Vec<String> = refusals(&tools.refused);
    if !tools.unanswered.is_empty() {
        parts.push(format!("{} was called and has not answered", names(&tools.unanswered)));
    }
    if !outcome.denied_tools.is_empty() {
        let denied = names(&outcome.denied_tools);
        parts.push(format!("its CLI did not let it call {denied}"));
    }
    let wrote: Vec<&String> = tools.done.iter().filter(|tool| writes(tool)).collect();
    if !changed.is_empty() {
        let files: Vec<String> = changed.iter().map(|file| file.path().to_string()).collect();
        parts.push(format!("it changed {} instead", files.join(", ")));
    } else if !wrote.is_empty() {
        let what = if exists { "was given what is there already" } else { "reported success" };
        parts.push(format!("{} {what}, and nothing was changed", names(wrote)));
    }
    if parts.is_empty() {
        parts.push(match (tools.done.as_slice(), outcome.tool_calls) {
            ([], 0) if outcome.text.is_empty() => {
                "it printed nothing and called no tool".to_owned()
            }
            ([], 0) => "it called no tool".to_owned(),
            ([], _) => "it called no tool of agentd".to_owned(),
            (read, _) => format!("it called {}, and no tool that writes", names(read)),
        });
    }
    let parts: Vec<&str> = parts.iter().map(|part| part.trim_end_matches('.')).collect();
    let cause = parts.join("; ");
    if outcome.text.is_empty() {
        cause
    } else {
        format!("{cause}; its last words were: {}", outcome.text)
    }
}

/// The last refusal of each tool, the latest first.
fn refusals(refused: &[RefusedCall]) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let last = refused.iter().rev().filter(|call| seen.insert(&call.tool));
    last.map(|call| {
        let times = refused.iter().filter(|other| other.tool == call.tool).count();
        let again =
            if times > 1 { format!(" {times} times, most recently") } else { String::new() };
        let (tool, reason) = (&call.tool, one_line(&call.reason, REASON));
        let reason = if reason.is_empty() { "no reason was given" } else { &reason };
        match how_it_failed(&call.reason) {
            Some(how) => format!("{how} during `{tool}`: {reason}"),
            None => format!("`{tool}` was refused{again}: {reason}"),
        }
    })
    .collect()
}

/// What went wrong where it was not the tool that refused: the CLIs have words of their own.
fn how_it_failed(reason: &str) -> Option<&'static str> {
    let text = reason.to_ascii_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| text.contains(word));
    if says(&["connection closed", "transport closed", "transport send error", "-32000"]) {
        Some("the MCP server of agentd ended")
    } else if says(&["request timed out", "timed out awaiting", "-32001"]) {
        Some("the MCP server of agentd did not answer in time")
    } else if says(&["was cancelled", "was canceled", "cancelled by", "canceled by"])
        || text == "cancelled"
    {
        Some("the call was canceled")
    } else {
        None
    }
}

fn writes(tool: &str) -> bool {
    TOOLS.iter().any(|known| known.name == tool && !known.read_only)
}

fn names<'n>(tools: impl IntoIterator<Item = &'n String>) -> String {
    let names: BTreeSet<&String> = tools.into_iter().collect();
    let names: Vec<String> = names.into_iter().map(|name| format!("`{name}`")).collect();
    names.join(", ")
}
