//! What an agent is doing now, in a few words.

use agentd_core::event::AgentEvent;
use agentd_core::text::head;

use super::line::Running;

/// The most of a text that is kept: no terminal shows more on a line.
const WORDS: usize = 300;

/// The arguments of a tool that say what it does, the most informative first.
const INFORMATIVE: [&str; 11] = [
    "\"command\"",
    "\"cmd\"",
    "\"file_path\"",
    "\"path\"",
    "\"pattern\"",
    "\"query\"",
    "\"url\"",
    "\"spec_id\"",
    "\"task_id\"",
    "\"verdict\"",
    "\"description\"",
];

/// How much of the arguments is looked at. Streams can be gigabytes long.
const LOOKED_AT: usize = 1 << 10;

/// Takes note of what an agent did. Costs next to nothing, whatever the size of the event.
pub(super) fn note(step: &mut Running, event: &AgentEvent<'_>) {
    match event {
        AgentEvent::Text { text, delta } => {
            if !(*delta && step.in_text) {
                step.doing.clear();
            }
            step.in_text = true;
            let room = WORDS.saturating_sub(step.doing.len());
            step.doing.push_str(head(text, room));
        }
        AgentEvent::ToolCall { name, arguments, .. } => {
            step.in_text = false;
            head(name, WORDS).clone_into(&mut step.doing);
            if let Some(what) = informative(arguments.get()) {
                step.doing.push(' ');
                step.doing.push_str(&what);
            }
        }
        AgentEvent::Retry { attempt, delay_ms, reason } => {
            step.in_text = false;
            let wait =
                delay_ms.map_or_else(String::new, |ms| format!(" in {} s", ms.div_ceil(1000)));
            step.doing = format!("retry {attempt}{wait}: {}", head(reason, WORDS));
        }
        AgentEvent::Usage { usage, cost_usd } => {
            step.usage = Some(*usage);
            step.cost_usd = cost_usd.or(step.cost_usd);
        }
        AgentEvent::Warning { message } => {
            step.in_text = false;
            step.doing = format!("warning: {}", head(message, WORDS));
        }
        AgentEvent::Session { .. }
        | AgentEvent::ToolResult { .. }
        | AgentEvent::Failed { .. }
        | AgentEvent::Finished { .. }
        | AgentEvent::Raw { .. } => {}
    }
}

/// The most informative text among the arguments of a tool. Only for a person's eyes, so that
/// looking at the text of the JSON is good enough, and quick.
fn informative(arguments: &str) -> Option<String> {
    let head = head(arguments, LOOKED_AT);
    INFORMATIVE.iter().find_map(|key| {
        let value = head[head.find(key)? + key.len()..].trim_start().strip_prefix(':')?;
        // A list is a command with its arguments.
        let value = value.trim_start().trim_start_matches('[').trim_start().strip_prefix('"')?;
        let mut escaped = false;
        let end = value.find(|c: char| {
            let ends = c == '"' && !escaped;
            escaped = c == '\\' && !escaped;
            ends
        });
        let text = &value[..end.unwrap_or(value.len())];
        let unquoted = serde_json::from_str::<String>(&format!("\"{text}\""));
        Some(unquoted.unwrap_or_else(|_| text.to_owned()))
    })
}

#[cfg(test)]
mod tests {
    use agentd_core::event::Json;
    use agentd_core::outcome::Usage;

    use super::*;

    fn check(events: &[AgentEvent<'_>], doing: &str) {
        let mut step = Running::default();
        for event in events {
            note(&mut step, event);
        }
        assert_eq!(step.doing, doing);
    }

    fn text(text: &str, delta: bool) -> AgentEvent<'_> {
        AgentEvent::Text { text: text.into(), delta }
    }

    fn tool(arguments: &str) -> AgentEvent<'static> {
        let raw: Box<serde_json::value::RawValue> = serde_json::from_str(arguments).unwrap();
        let (id, name) = ("1".into(), "run_tool".into());
        AgentEvent::ToolCall { id, server: None, name, arguments: Json::from(raw) }
    }

    #[test]
    fn the_last_thing_counts() {
        check(&[text("I look ", true), text("at it", true)], "I look at it");
        check(&[text("One.", false), text("Two.", false)], "Two.");
        check(&[text("One.", false), tool("{}"), text("Two", true)], "Two");
        check(&[tool(r#"{"content": "x", "path": "src/a \"b\".rs"}"#)], r#"run_tool src/a "b".rs"#);
        check(&[tool(r#"{"command": ["cargo", "test"]}"#)], "run_tool cargo");
        check(&[tool(r#"{"path": {"a": 1}, "spec_id": "auth"}"#)], "run_tool auth");
        check(&[tool("null")], "run_tool");
        let retry = |delay_ms| AgentEvent::Retry { attempt: 2, delay_ms, reason: "busy".into() };
        check(&[retry(Some(1500))], "retry 2 in 2 s: busy");
        check(&[text("a", false), AgentEvent::Raw { line: "x".into() }], "a");
    }

    #[test]
    fn long_texts_are_not_kept() {
        let long = "ü".repeat(1 << 20);
        let mut step = Running::default();
        for delta in [false, true, true] {
            note(&mut step, &text(&long, delta));
        }
        assert!(step.doing.len() <= WORDS, "{}", step.doing.len());
        note(&mut step, &tool(&format!(r#"{{"path": "{}"}}"#, "x\\n".repeat(1 << 16))));
        assert!(step.doing.len() <= LOOKED_AT + 100, "{}", step.doing.len());
        let usage = Usage { input: 1, ..Usage::default() };
        note(&mut step, &AgentEvent::Usage { usage, cost_usd: None });
        assert_eq!(step.usage, Some(usage));
    }
}
